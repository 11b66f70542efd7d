#include "stipple/learn/recipe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/program_files.h"
#include "stipple/core/toml.h"
#include "stipple/io/byte_source.h"
#include "stipple/models/registry.h"

namespace stipple::learn {
namespace {

constexpr const char* kFolders = "STIPPLE_RECIPES";
constexpr std::string_view kModelTable = "model.";

const Fields& data_fields() {
    using Data = DataRecipe;
    static const Fields fields = {
        field<&Data::folder>("folder", "The data set"),
        field<&Data::layout>("layout", "How its files lie; auto: found out"),
        field<&Data::split>("split", "What is trained on; empty: train, or all of a set that is not split"),
        field<&Data::validation>("validation", "The split that is evaluated; empty: what is held out"),
        field<&Data::held_out>("held_out", "The share of the items that is evaluated and not trained on")
            .between(0, 0.5),
        field<&Data::classes>("classes", "Of part sets: only items of these classes, with commas; empty: all"),
        field<&Data::points>("points", "Points of each cloud in a batch").between(1, 1 << 24),
        field<&Data::subset>("subset", "Which points of larger clouds").words(kPointSubsetWords),
        field<&Data::normalise>("normalise", "Clouds are centred and their largest radius becomes 1"),
        field<&Data::mesh_points>("mesh_points", "Points that a mesh is sampled by").from(1),
        field<&Data::up>("up", "The axis of the set that points up"),
        field<&Data::items>("items", "Patches of an epoch, where they are cut from meshes").between(1, INT32_MAX),
        field<&Data::validation_items>("validation_items", "Patches of held-out meshes that are evaluated")
            .between(3, 1 << 20)};
    return fields;
}

const Fields& view_fields() {
    using View = ViewRecipe;
    static const Fields fields = {
        field<&View::weight>("weight", "The weight of the loss of a second look at each item; 0: there is none")
            .from(0),
        field<&View::points>("points", "Points of the second look").between(1, 1 << 24),
        object_field<&View::augment>("", data::augment_fields)};
    return fields;
}

const Fields& loss_fields() {
    using Loss = LossRecipe;
    static const Fields fields = {
        field<&Loss::label_smoothing>("label_smoothing", "What other classes than the label share").from(0).below(1),
        field<&Loss::transform_weight>("transform_weight", "The weight of the feature transform's regulariser").from(0),
        field<&Loss::transform_convention>("transform_convention", "Which regulariser")
            .words(kTransformConventionWords),
        field<&Loss::own_parts>("own_parts", "A point competes among the parts of its category alone"),
        field<&Loss::vector_weight>("vector_weight", "Upsamplers: the weight of the way to the surface").from(0),
        field<&Loss::distance_weight>("distance_weight", "Upsamplers: the weight of the distance to the surface")
            .from(0),
        field<&Loss::coverage_weight>("coverage_weight", "Upsamplers: the weight of what is not covered").from(0),
        field<&Loss::uncertainty_weight>("uncertainty_weight", "Upsamplers: the weight of the expected distance")
            .from(0),
        field<&Loss::transport_weight>("transport_weight", "Upsamplers that make children: the weight of transport")
            .from(0),
        field<&Loss::nll_weight>("nll_weight", "Upsamplers that make children: the weight of the likelihood").from(0),
        field<&Loss::chamfer_weight>("chamfer_weight", "Upsamplers, second stage: the weight of the chamfer distance")
            .from(0)};
    return fields;
}

const Fields& run_fields() {
    using Run = RunRecipe;
    static const Fields fields = {
        field<&Run::epochs>("epochs", "Times that all items are seen").between(1, 1 << 24),
        field<&Run::batch>("batch", "Items of a step").between(1, 1 << 20),
        field<&Run::seed>("seed", "Of all random numbers"),
        field<&Run::clip>("clip", "The largest norm of all gradients together; 0: any").from(0).may_be_infinite(),
        field<&Run::average_decay>("average_decay", "Of the moving average that is evaluated and saved; 0: none")
            .from(0)
            .below(1),
        field<&Run::evaluate_every>("evaluate_every", "Epochs between evaluations").from(1),
        field<&Run::save_every>("save_every", "Epochs between checkpoints").from(1),
        field<&Run::keep>("keep", "Last checkpoints that stay, beside the best").between(1, 1000),
        field<&Run::patience>("patience", "Evaluations without a better one after which it ends; 0: never").from(0),
        field<&Run::log_every>("log_every", "Steps between two lines of metrics.jsonl").from(1),
        field<&Run::loader_threads>("loader_threads", "Threads that load data").between(0, 256),
        field<&Run::deterministic>("deterministic", "On a GPU: the same bits every time, somewhat slower"),
        field<&Run::graph>("graph", "On a GPU: data and augmentation there too, and a step is one CUDA graph"),
        field<&Run::precision>("precision", "In which numbers the run computes").words(kPrecisionWords),
        field<&Run::storage>("storage", "How the weights that it ends in are stored")
            .words(network::kWeightStorageWords),
        field<&Run::confidence>("confidence", "Classifiers, autoencoders: how much an answer is worth is measured")};
    return fields;
}

/// What goes wrong in a recipe is its configuration's.
template <class Body>
void as_configuration(const Body& body) {
    try {
        body();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_argument) throw;
        throw Error(ErrorCode::bad_config, error.message(), error.hint());
    }
}

void require(bool holds, const char* message) {
    if (!holds) throw Error(ErrorCode::bad_config, message);
}

/// `key` as "table.key", or "key" at the top.
void set(Recipe& recipe, const std::string& key, const std::vector<std::string>& values) {
    if (key.starts_with(kModelTable)) {
        if (values.size() != 1)
            throw Error(ErrorCode::bad_config, fmt::format("{} must be one value, got {} values", key, values.size()));
        recipe.options[key.substr(kModelTable.size())] = values[0];
        return;
    }
    as_configuration([&] { set_by_key(recipe_fields(), &recipe, key, values); });
}

}  // namespace

const Fields& recipe_fields() {
    static const Fields fields = {
        field<&Recipe::name>("name", "What the recipe is called"),
        field<&Recipe::about>("about", "One line about it"),
        field<&Recipe::task>("task", "What is learned").words(kTrainingTaskWords),
        field<&Recipe::model>("model", "The architecture of the network"),
        field<&Recipe::init>("init", "Weights to start from; empty: random ones"),
        object_field<&Recipe::data>("data", data_fields, "What is trained on"),
        object_field<&Recipe::augment>("augment", data::augment_fields, "What clouds become before they are seen"),
        object_field<&Recipe::view>("view", view_fields, "A second look at each item, augmented on its own"),
        object_field<&Recipe::patch>("patch", patch_fields, "Upsampling: how patches are cut"),
        object_field<&Recipe::sampling>("sampling", sampling_fields, "Sampling: the loss"),
        object_field<&Recipe::pose>("pose", pose_fields, "Registration, and sampling for it: pairs and loss"),
        object_field<&Recipe::thin>("thin", thin_fields, "Registration, reconstruction: inputs of fewer points"),
        object_field<&Recipe::loss>("loss", loss_fields, "What is made small"),
        object_field<&Recipe::optimizer>("optimizer", update_fields, "How parameters are changed"),
        object_field<&Recipe::schedule>("schedule", schedule_fields, "The learning rate over the run"),
        object_field<&Recipe::run>("run", run_fields, "The run itself")};
    return fields;
}

Recipe parse_recipe(std::string_view text) {
    Recipe recipe;
    for (const TomlItem& item : parse_toml(text)) {
        if (item.key.empty()) continue;
        try {
            set(recipe, item.table.empty() ? item.key : item.table + "." + item.key, item.values);
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_config, Place{.path = {}, .line = item.line}, error.message(), error.hint());
        }
    }
    validate(recipe);
    return recipe;
}

Recipe load_recipe(const std::string& path) {
    try {
        io::FileSource source(path);
        io::ByteReader reader(source);
        std::string text;
        while (const auto line = reader.line()) text += std::string(*line) + "\n";
        return parse_recipe(text);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

void set_option(Recipe& recipe, std::string_view key, std::string_view value) {
    // As a line of TOML where it is one (arrays, quotes), else a bare word
    std::vector<std::string> values = {std::string(value)};
    if (value.starts_with('[') || value.starts_with('"'))
        values = parse_toml(fmt::format("value = {}\n", value)).front().values;
    set(recipe, std::string(key), values);
}

std::string to_toml(const Recipe& recipe) {
    const Fields& fields = recipe_fields();
    const auto tables = std::find_if(fields.begin(), fields.end(), [](const Field& field) { return field.nested; });
    std::string text = to_toml(Fields(fields.begin(), tables), &recipe);
    if (!recipe.options.empty()) text += "\n[model]\n";
    for (const auto& [name, value] : recipe.options) text += fmt::format("{} = {}\n", name, toml_string(value));
    return text + to_toml(Fields(tables, fields.end()), &recipe);
}

std::vector<Difference> differences(const Recipe& a, const Recipe& b) {
    const auto left = values_of(recipe_fields(), &a), right = values_of(recipe_fields(), &b);
    std::vector<Difference> differing;
    for (size_t i = 0; i < left.size(); ++i)
        if (left[i].second != right[i].second) differing.push_back({left[i].first, left[i].second, right[i].second});
    std::map<std::string, std::string> of_model = a.options;
    of_model.insert(b.options.begin(), b.options.end());
    for (const auto& [name, value] : of_model) {
        const auto value_in = [&name = name](const Recipe& recipe) {
            const auto found = recipe.options.find(name);
            return found == recipe.options.end() ? std::string() : found->second;
        };
        if (value_in(a) != value_in(b)) differing.push_back({"model." + name, value_in(a), value_in(b)});
    }
    return differing;
}

void validate(const Recipe& r) {
    as_configuration([&] { check_fields(recipe_fields(), &r); });
    sampling_task(r.sampling);
    require(r.data.held_out == 0 || r.data.validation.empty(), "data.validation and data.held_out exclude each other");
    if (r.task == TrainingTask::upsampling) {
        require(r.data.validation.empty(), "data.validation: meshes have no splits; data.held_out keeps some of them");
        validate(r.patch, r.data.points);
    }
    as_configuration([&] {
        data::validate(r.augment);
        data::validate(r.view.augment);
    });
}

void validate_with_model(const Recipe& recipe) {
    validate(recipe);
    models::build_model(recipe.model, recipe.options);
}

std::string find_recipe(const std::string& name_or_path) {
    const std::vector<std::string> folders = shared_folders("recipes", kFolders);
    const std::string path = find_shared(folders, name_or_path, ".toml");
    if (!is_file(path))
        throw Error(ErrorCode::bad_argument, fmt::format("no recipe {}", name_or_path),
                    fmt::format("recipes: {}", fmt::join(list_recipes(), ", ")));
    return path;
}

std::vector<std::string> list_recipes() {
    return list_shared(shared_folders("recipes", kFolders), ".toml");
}

}  // namespace stipple::learn
