#include <unistd.h>

#include "stipple/cli/commands.h"
#include "stipple/core/program_files.h"

// `stipple train` and `stipple study precision` are commands of another program, which needs LibTorch and is found
// beside this one.

namespace stipple::cli {
namespace {

std::string learn_path() {
    const std::string own = program_path();
    return own.substr(0, own.rfind('/') + 1) + "stipple-learn";
}

Result refuse(const char* command) {
    if (is_file(learn_path()))
        throw Error(ErrorCode::bad_argument, fmt::format("{} is a program of its own: name it first", command),
                    fmt::format("stipple {} [options]", command));
    throw Error(ErrorCode::no_device, fmt::format("{} needs the program stipple-learn beside stipple", command),
                "build it with: make learn (it installs LibTorch; docs/training.md)");
}

}  // namespace

bool is_for_stipple_learn(int argc, char** argv) {
    const std::string_view first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
    if (first != "study") return first == "train";
    // Studies of upsampling are here; the help lists all.
    return !second.empty() && !second.starts_with("-") && !second.starts_with("upsampling");
}

void run_stipple_learn(int& argc, char** argv) {
    const std::string path = learn_path();
    if (is_file(path)) ::execv(path.c_str(), argv);
    for (int i = 2; i < argc; ++i)
        if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "--json") return;
    argc = std::string_view(argv[1]) == "train" ? 2 : 3;  // its options are not known here
}

Command add_train_elsewhere(Arguments& root, Common& common) {
    Arguments& app = root.command("train", "Train a network; needs the program stipple-learn");
    app.footer(
        "Example:\n  stipple train pointnet-cls --data modelnet40_ply_hdf5_2048 -o runs/cls\n"
        "  stipple train --resume runs/cls");
    (void)common;
    return {&app, [] { return refuse("train"); }};
}

Command add_precision_elsewhere(Arguments& group, Common& common) {
    Arguments& app = group.command("precision", "Training by precision; needs the program stipple-learn");
    app.footer("Example:\n  stipple study precision pointnet-cls --data modelnet40.stpk -o runs/precision");
    (void)common;
    return {&app, [] { return refuse("study precision"); }};
}

}  // namespace stipple::cli
