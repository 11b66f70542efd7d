#include <unistd.h>

#include "stipple/cli/commands.h"
#include "stipple/core/program_files.h"

// `stipple train`, `stipple study precision` and `stipple study upsampling-ablation --retrain` are commands of another
// program, which needs LibTorch and is found beside this one.

namespace stipple::cli {
namespace {

std::string learn_path() {
    const std::string own = program_path();
    return own.substr(0, own.rfind('/') + 1) + "stipple-learn";
}

bool has_word(int argc, char** argv, std::string_view word) {
    for (int i = 2; i < argc; ++i)
        if (argv[i] == word) return true;
    return false;
}

}  // namespace

Result refuse_without_learn(const char* command) {
    if (is_file(learn_path()))
        throw Error(ErrorCode::bad_argument, fmt::format("{} is a program of its own: name it first", command),
                    fmt::format("stipple {} [options]", command));
    throw Error(ErrorCode::no_device, fmt::format("{} needs the program stipple-learn beside stipple", command),
                "build it with: make learn (it installs LibTorch; docs/training.md)");
}

void require_learn(const char* command) {
    if (!is_file(learn_path())) refuse_without_learn(command);
}

bool is_for_stipple_learn(int argc, char** argv) {
    const std::string_view first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
    if (first != "study") return first == "train";
    // Studies of upsampling are here, but for trainings, and so are those of registration, of radiance fields and of
    // samplers, which starts trainings as programs of their own; the help lists all.
    if (second == "upsampling-ablation" && has_word(argc, argv, "--retrain")) return true;
    return !second.empty() && !second.starts_with("-") && !second.starts_with("upsampling") &&
           second != "registration" && second != "radiance" && second != "sampling";
}

void run_stipple_learn(int& argc, char** argv) {
    const std::string path = learn_path();
    if (is_file(path)) ::execv(path.c_str(), argv);
    if (has_word(argc, argv, "--help") || has_word(argc, argv, "--json")) return;
    const bool is_retraining = has_word(argc, argv, "--retrain");
    argc = std::string_view(argv[1]) == "train" ? 2 : 3;  // its options are not known here
    static char retrain[] = "--retrain";
    if (is_retraining && argc == 3) argv[argc++] = retrain;  // which the command refuses
}

Command add_train_elsewhere(Arguments& root, Common& common) {
    Arguments& app = root.command("train", "Train a network; needs the program stipple-learn");
    app.footer(
        "Example:\n  stipple train pointnet-cls --data modelnet40_ply_hdf5_2048 -o runs/cls\n"
        "  stipple train --resume runs/cls");
    (void)common;
    return {&app, [] { return refuse_without_learn("train"); }};
}

Command add_precision_elsewhere(Arguments& group, Common& common) {
    Arguments& app = group.command("precision", "Training by precision; needs the program stipple-learn");
    app.footer("Example:\n  stipple study precision pointnet-cls --data modelnet40.stpk -o runs/precision");
    (void)common;
    return {&app, [] { return refuse_without_learn("study precision"); }};
}

}  // namespace stipple::cli
