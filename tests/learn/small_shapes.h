#pragma once
// Small shapes and short trainings on them, for the tests of samplers.

#include <map>
#include <string>

#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/objective.h"
#include "stipple/learn/sampling/shape_objective.h"
#include "stipple/learn/train.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

constexpr int64_t kShapePoints = 64;

/// Three kinds of shapes, stretched at random: ellipsoids, boxes and two slabs. The first ones are trained on, the
/// others are held out: scores are means over them, so that a test which asserts a score wants many. Each kind is a
/// category of two parts as well, 2 c below z = 0 and 2 c + 1 above. Other trials get other shapes.
learn::LabelData small_shapes(int64_t trained_on, int64_t held_out);

/// The seed is that of the trial.
learn::Recipe shape_recipe(learn::TrainingTask task, const std::string& model,
                           std::map<std::string, std::string> options);

struct Trained {
    std::map<std::string, double> scores;
    std::string weights;
};
Trained train_small(const learn::Recipe& recipe, learn::Objective& objective, const std::string& folder,
                    learn::TrainOptions options = {});

/// Initial weights of a model in a file; its path.
std::string random_weights_file(const std::string& path, const std::string& model,
                                const std::map<std::string, std::string>& options);

/// A classifier of the shapes, trained until it knows them.
std::string small_classifier(const TemporaryFolder& folder, const learn::LabelData& data);

/// The held-out clouds, with the labels of their points.
learn::ShapeBatch held_out_batch(const learn::LabelData& data);

/// How low the loss was in the run in `folder`, mean over its epochs, as a share of what it is with weights that
/// stay what they began as: trains once more at a rate of nothing, with the same clouds, noise and temperatures.
double loss_share_of_idle(const learn::Recipe& recipe, const learn::LabelData& data, const std::string& folder);

/// The task's loss for `size` points of each held-out cloud: drawn at random, or chosen by a trained sampler as users
/// get them, through the engine.
double loss_of_random(const learn::Recipe& recipe, const learn::LabelData& data, int64_t size);
double loss_of_sampler(const learn::Recipe& recipe, const learn::LabelData& data, const std::string& weights,
                       int64_t size);

}  // namespace stipple::test
