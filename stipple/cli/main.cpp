// stipple: the program.

#include "stipple/cli/commands.h"
#include "stipple/cli/program.h"

int main(int argc, char** argv) {
    using namespace stipple::cli;
    if (is_for_stipple_learn(argc, argv)) run_stipple_learn(argc, argv);  // unless it is not there
    const AddCommand commands[] = {
        add_info,      add_convert,  add_sample,          add_normals,  add_clean,    add_crop,
        add_transform, add_merge,    add_split,           add_filter,   add_planes,   add_clusters,
        add_ground,    add_run,      add_distance,        add_stats,    add_mesh,     add_metrics,
        add_picture,   add_register, add_classify,        add_segment,  add_upsample, add_reconstruct,
        add_radiance,  add_data,     add_train_elsewhere, add_evaluate, add_weights,  add_engine,
        add_bench,     add_studies,  add_completion};
    return run_program(argc, argv,
                       {.name = "stipple",
                        .version = STIPPLE_VERSION,
                        .description = "Learns on 3D points: reads, converts, samples, draws and recognises point "
                                       "clouds and meshes.",
                        .footer = "Example:\n  stipple info scan.ply\n  stipple COMMAND --help",
                        .commands = commands});
}
