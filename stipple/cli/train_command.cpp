#include <unistd.h>

#include "stipple/cli/commands.h"
#include "stipple/core/program_files.h"

// `stipple train` is a command of another program, which needs LibTorch and is found beside this one.

namespace stipple::cli {
namespace {

std::string learn_path() {
    const std::string own = program_path();
    return own.substr(0, own.rfind('/') + 1) + "stipple-learn";
}

}  // namespace

void run_stipple_learn(int& argc, char** argv) {
    const std::string path = learn_path();
    if (is_file(path)) ::execv(path.c_str(), argv);
    for (int i = 2; i < argc; ++i)
        if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "--json") return;
    argc = 2;  // its options are not known here
}

Command add_train_elsewhere(Arguments& root, Common& common) {
    Arguments& app = root.command("train", "Train a network; needs the program stipple-learn");
    app.footer(
        "Example:\n  stipple train pointnet-cls --data modelnet40_ply_hdf5_2048 -o runs/cls\n"
        "  stipple train --resume runs/cls");
    (void)common;
    return {&app, []() -> Result {
                if (is_file(learn_path()))
                    throw Error(ErrorCode::bad_argument, "train is a program of its own: name it first",
                                "stipple train [options]");
                throw Error(ErrorCode::no_device, "train needs the program stipple-learn beside stipple",
                            "build it with: make learn (it installs LibTorch; docs/training.md)");
            }};
}

}  // namespace stipple::cli
