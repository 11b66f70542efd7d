// stipple-learn: what needs LibTorch. `stipple train` finds it beside itself.

#include <cstdlib>

#include "stipple/cli/learn/study_command.h"
#include "stipple/cli/learn/train_command.h"
#include "stipple/cli/program.h"

int main(int argc, char** argv) {
    using namespace stipple::cli;
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // products of a GPU in a fixed order; read at its first use
    const AddCommand commands[] = {add_train, add_study};
    return run_program(argc, argv,
                       {.name = "stipple",
                        .version = STIPPLE_VERSION,
                        .description = "The part of stipple that trains.",
                        .footer = "Example:\n  stipple train pointnet-cls --data modelnet40_ply_hdf5_2048",
                        .commands = commands});
}
