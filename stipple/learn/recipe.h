#pragma once
// Recipe: every number of a training run, as a TOML file with a table for each subject. recipes/ has those that ship;
// docs/training.md explains each key. No torch here.
//
//   Recipe recipe = load_recipe("recipes/pointnet-cls.toml");
//   set_option(recipe, "schedule.rate", "0.002");
//   write(to_toml(recipe));      // complete: reading it back gives the same recipe

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/data/augment.h"
#include "stipple/learn/optimizer_options.h"
#include "stipple/learn/precision.h"
#include "stipple/learn/sampling/sampling_options.h"
#include "stipple/learn/schedule.h"
#include "stipple/learn/upsampling/patch_options.h"
#include "stipple/network/weights.h"

namespace stipple::learn {

enum class TrainingTask { classification, segmentation, upsampling, sampling, registration, reconstruction };
inline constexpr const char* kTrainingTaskWords[] = {"classification", "segmentation", "upsampling",
                                                     "sampling",       "registration", "reconstruction"};
inline std::string name_of(TrainingTask task) {
    return kTrainingTaskWords[static_cast<size_t>(task)];
}

/// Which points of clouds that have more than a batch takes.
enum class PointSubset { random, first };  // others for each epoch; those that are stored first
inline constexpr const char* kPointSubsetWords[] = {"random", "first"};

/// How far the matrices of a T-net are from orthogonal. Two conventions are published under the weight 0.001.
enum class TransformConvention {
    torch,  // mean over the clouds of |A A^T - I|, the norm not squared (fxia22, yanx27)
    tf,     // half of the sum over the clouds of |A A^T - I|^2 (charlesq34): grows with the batch
};
inline constexpr const char* kTransformConventionWords[] = {"torch", "tf"};

struct DataRecipe {
    std::string folder;           // --data
    std::string layout = "auto";  // as load_data_set
    std::string split = "";       // trained on; empty: train, or all of a set that is not split
    std::string validation = "";  // split that is evaluated while training; empty: what is held out
    double held_out = 0;          // share of the training items that is not trained on but evaluated: every n-th
    std::string classes = "";     // of part sets: only items of these, with commas; empty: all
    int64_t points = 1024;        // of each cloud in a batch
    PointSubset subset = PointSubset::random;
    bool normalise = false;         // centred, largest radius 1
    int64_t mesh_points = 4096;     // samples of a mesh
    std::string up = "z";           // axis of the set, told in the weights
    int64_t items = 4096;           // patches of an epoch, where they are made of meshes
    int64_t validation_items = 96;  // patches of held-out meshes that are evaluated, at least 3
};

/// A second look at every item of a batch, with an augmentation of its own: of fewer points, as a rule.
struct ViewRecipe {
    double weight = 0;  // of its loss; 0: there is none
    int64_t points = 256;
    data::AugmentOptions augment;
};

struct LossRecipe {
    double label_smoothing = 0;
    double transform_weight = 0.001;  // of the feature transform's regulariser, where there is one
    TransformConvention transform_convention = TransformConvention::torch;
    bool own_parts = true;  // part segmenters: a point competes among parts of its category alone
    // Upsamplers that move queries (upsampling.h)
    double vector_weight = 1, distance_weight = 1, coverage_weight = 0.1, uncertainty_weight = 0.1;
    // and those that make children, for which distance_weight and coverage_weight count too (child_upsampling.h)
    double transport_weight = 1, nll_weight = 0.02;
    double chamfer_weight = 0;  // of both kinds: the second stage, from weights that exist
};

struct RunRecipe {
    int64_t epochs = 200, batch = 64;
    uint64_t seed = 0;
    double clip = 1;             // largest norm of all gradients together; 0: any
    double average_decay = 0;    // of the moving average that is evaluated and saved; 0: the weights themselves
    int64_t evaluate_every = 1;  // epochs; the last is always evaluated
    int64_t save_every = 1;      // epochs
    int64_t keep = 2;            // last checkpoints, beside the best
    int64_t patience = 0;        // evaluations without a better one after which it ends; 0: never
    int64_t log_every = 20;      // steps between two lines of metrics.jsonl
    int64_t loader_threads = 2;
    bool deterministic = true;  // on a GPU: the same bits every time, somewhat slower; the CPU always is
    Precision precision = Precision::fp32;
    bool graph = true;  // on a GPU: data and augmentation there too, and a step is one CUDA graph
    network::WeightStorage storage = network::WeightStorage::f16;  // of the weights that it ends in
    bool confidence = true;  // classifiers, autoencoders: measure how much an answer is worth (finish.h)
};

struct Recipe {
    std::string name, about;
    TrainingTask task = TrainingTask::classification;
    std::string model = "pointnet-classifier";   // of models/registry.h
    std::string init;                            // weights to start from; empty: initial ones
    std::map<std::string, std::string> options;  // of the model; classes, parts and categories come from the data
    DataRecipe data;
    data::AugmentOptions augment;
    ViewRecipe view;
    PatchOptions patch;        // upsampling
    SamplingOptions sampling;  // sampling
    PoseOptions pose;          // registration, and sampling for it
    ThinOptions thin;          // registration, reconstruction
    LossRecipe loss;
    OptimizerOptions optimizer;
    ScheduleOptions schedule;
    RunRecipe run;
};
/// All but the options of the model, which the model itself knows. A recipe is one object with nested tables.
const Fields& recipe_fields();

/// Throws Error{bad_config} with the line for an unknown table or key (the nearest one is the hint), a value of another
/// type, and numbers out of range.
Recipe parse_recipe(std::string_view text);
Recipe load_recipe(const std::string& path);

/// "table.key", or "key" at the top. Throws Error{bad_config} as above, without a line.
void set_option(Recipe& recipe, std::string_view key, std::string_view value);

/// All keys, with the tables in the order above.
std::string to_toml(const Recipe& recipe);

struct Difference {
    std::string key;            // "run.batch"
    std::string first, second;  // values as in TOML
};
/// Keys whose values differ, those of the model too.
std::vector<Difference> differences(const Recipe& a, const Recipe& b);

/// Of numbers against each other and their ranges. Throws Error{bad_config}.
void validate(const Recipe& recipe);

/// As validate(), and that the model knows its options. Throws Error{bad_config}, Error{bad_argument}.
void validate_with_model(const Recipe& recipe);

/// A recipe by name ("pointnet-cls") in the folders of recipes_folders(), or by path. Throws Error{bad_argument} that
/// lists the names.
std::string find_recipe(const std::string& name_or_path);
std::vector<std::string> list_recipes();

}  // namespace stipple::learn
