#pragma once
// The commands of `stipple`: each adds itself, with its options, below `root`.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_info(Arguments& root, Common& common);
Command add_convert(Arguments& root, Common& common);
Command add_picture(Arguments& root, Common& common);
Command add_sample(Arguments& root, Common& common);
Command add_register(Arguments& root, Common& common);
Command add_normals(Arguments& root, Common& common);
Command add_clean(Arguments& root, Common& common);
Command add_crop(Arguments& root, Common& common);
Command add_transform(Arguments& root, Common& common);
Command add_merge(Arguments& root, Common& common);
Command add_split(Arguments& root, Common& common);
Command add_filter(Arguments& root, Common& common);
Command add_planes(Arguments& root, Common& common);
Command add_clusters(Arguments& root, Common& common);
Command add_ground(Arguments& root, Common& common);
Command add_run(Arguments& root, Common& common);
Command add_distance(Arguments& root, Common& common);
Command add_stats(Arguments& root, Common& common);
Command add_bench(Arguments& root, Common& common);
Command add_mesh(Arguments& root, Common& common);
Command add_metrics(Arguments& root, Common& common);
Command add_classify(Arguments& root, Common& common);
Command add_segment(Arguments& root, Common& common);
Command add_upsample(Arguments& root, Common& common);
Command add_reconstruct(Arguments& root, Common& common);
Command add_weights(Arguments& root, Common& common);
Command add_evaluate(Arguments& root, Common& common);
Command add_data(Arguments& root, Common& common);
Command add_radiance(Arguments& root, Common& common);
Command add_engine(Arguments& root, Common& common);
Command add_studies(Arguments& root, Common& common);
Command add_completion(Arguments& root, Common& common);

/// For the help, and for who has no stipple-learn.
Command add_train_elsewhere(Arguments& root, Common& common);
/// Throws the error of a command that is in stipple-learn.
Result refuse_without_learn(const char* command);
/// Throws that error where there is no stipple-learn: for commands that start it.
void require_learn(const char* command);
Command add_precision_elsewhere(Arguments& group, Common& common);
/// Whether a command line is for stipple-learn: train, and the studies that train.
bool is_for_stipple_learn(int argc, char** argv);
/// Becomes stipple-learn, with the same arguments. Returns where there is none; `argc` then leaves out what only that
/// program knows.
void run_stipple_learn(int& argc, char** argv);

}  // namespace stipple::cli
