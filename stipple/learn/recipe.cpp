#include "stipple/learn/recipe.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/core/program_files.h"
#include "stipple/core/toml.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/text.h"
#include "stipple/models/registry.h"

namespace stipple::learn {
namespace {

using data::AugmentOptions;
using data::DropoutForm;
using Values = std::vector<std::string>;

constexpr const char* kFolders = "STIPPLE_RECIPES";

[[noreturn]] void fail(const std::string& message) {
    throw Error(ErrorCode::bad_config, message);
}

// ---- values of each type: from the texts of TOML, and back

const std::string& one(const Values& values) {
    if (values.size() != 1) fail("one value expected");
    return values.front();
}

template <class T>
void read_number(const Values& values, T& to, const char* expected) {
    const std::string& text = one(values);
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        fail(fmt::format("{} expected, got {}", expected, text));
    to = number;
}

void read(const Values& values, double& to) {
    read_number(values, to, "a number");
}
void read(const Values& values, int64_t& to) {
    read_number(values, to, "a whole number");
}
void read(const Values& values, uint64_t& to) {
    read_number(values, to, "a whole number from 0");
}
void read(const Values& values, std::string& to) {
    to = one(values);
}
void read(const Values& values, bool& to) {
    const std::string& text = one(values);
    if (text != "true" && text != "false") fail(fmt::format("true or false expected, got {}", text));
    to = text == "true";
}
template <class T, size_t N>
void read(const Values& values, std::array<T, N>& to) {
    if (values.size() != N) fail(fmt::format("{} values expected, got {}", N, values.size()));
    for (size_t i = 0; i < N; ++i) read({values[i]}, to[i]);
}

template <class T>
struct Words;  // of an enum, in its order
template <>
struct Words<OptimizerKind> {
    static constexpr const char* words[] = {"sgd", "adam", "adamw"};
};
template <>
struct Words<ScheduleKind> {
    static constexpr const char* words[] = {"constant", "cosine", "step", "plateau"};
};
template <>
struct Words<Precision> {
    static constexpr const char* words[] = {"fp32", "tf32", "bf16", "fp16", "fp16-weights", "fp16-pure"};
};
template <>
struct Words<DropoutForm> {
    static constexpr const char* words[] = {"replace", "remove", "repeat"};
};
template <class T>
requires std::is_enum_v<T>
void read(const Values& values, T& to) {
    std::vector<std::string> words(std::begin(Words<T>::words), std::end(Words<T>::words));
    for (size_t i = 0; i < words.size(); ++i)
        if (words[i] == one(values)) {
            to = static_cast<T>(i);
            return;
        }
    fail(fmt::format("one of {} expected, got {}", fmt::join(words, ", "), one(values)));
}

std::string shown(double number) {
    if (!std::isfinite(number)) return number > 0 ? "inf" : "-inf";
    std::string text;
    io::append_number(text, number);
    return text;
}
std::string shown(int64_t number) {
    return std::to_string(number);
}
std::string shown(uint64_t number) {
    return std::to_string(number);
}
std::string shown(bool truth) {
    return truth ? "true" : "false";
}
std::string shown(const std::string& text) {
    return toml_string(text);
}
template <class T>
requires std::is_enum_v<T> std::string shown(T word) {
    return toml_string(Words<T>::words[static_cast<size_t>(word)]);
}
template <class T, size_t N>
std::string shown(const std::array<T, N>& values) {
    std::string text = "[";
    for (size_t i = 0; i < N; ++i) text += (i > 0 ? ", " : "") + shown(values[i]);
    return text + "]";
}

// ---- the keys

struct Key {
    std::string table, name;
    std::function<void(const Values&)> read;
    std::function<std::string()> text;
};

class Keys {
public:
    template <class T>
    void add(const std::string& table, const std::string& name, T& value) {
        keys.push_back({table, name, [&value](const Values& values) { learn::read(values, value); },
                        [&value] { return shown(value); }});
    }
    void add(const std::string& table, AugmentOptions& a) {
        add(table, "choose", a.choose);
        add(table, "shuffle", a.shuffle);
        add(table, "dropout_ratio", a.dropout_ratio);
        add(table, "dropout_share", a.dropout_share);
        add(table, "dropout_form", a.dropout_form);
        add(table, "thin_share", a.thin_share);
        add(table, "thin_min", a.thin_min);
        add(table, "thin_max", a.thin_max);
        add(table, "thin_first", a.thin_first);
        add(table, "mirror", a.mirror);
        add(table, "rotation_angle", a.rotation_angle);
        add(table, "rotation_axis", a.rotation_axis);
        add(table, "tilt_sigma", a.tilt_sigma);
        add(table, "tilt_clip", a.tilt_clip);
        add(table, "scale_min", a.scale_min);
        add(table, "scale_max", a.scale_max);
        add(table, "axis_scale_min", a.axis_scale_min);
        add(table, "axis_scale_max", a.axis_scale_max);
        add(table, "shift", a.shift);
        add(table, "jitter_sigma", a.jitter_sigma);
        add(table, "jitter_clip", a.jitter_clip);
    }
    void add(const std::string& table, PatchOptions& p) {
        add(table, "queries", p.queries);
        add(table, "truth", p.truth);
        add(table, "pools", p.pools);
        add(table, "samples", p.samples);
        add(table, "scans", p.scans);
        add(table, "region", p.region);
        add(table, "inner_share", p.inner_share);
        add(table, "truth_radius", p.truth_radius);
        add(table, "cloud_min", p.cloud_min);
        add(table, "cloud_max", p.cloud_max);
        add(table, "random_share", p.random_share);
        add(table, "gradient_share", p.gradient_share);
        add(table, "scan_share", p.scan_share);
        add(table, "voxel_share", p.voxel_share);
        add(table, "noise_share", p.noise_share);
        add(table, "noise_max", p.noise_max);
        add(table, "scan_noise_share", p.scan_noise_share);
        add(table, "mixed_share", p.mixed_share);
        add(table, "scale_min", p.scale_min);
        add(table, "scale_max", p.scale_max);
        add(table, "midpoint_share", p.midpoint_share);
        add(table, "input_share", p.input_share);
        add(table, "query_noise_share", p.query_noise_share);
        add(table, "query_noise", p.query_noise);
    }
    void add(const std::string& table, SamplingOptions& s) {
        add(table, "task", s.task);
        add(table, "network", s.network);
        add(table, "alpha", s.alpha);
        add(table, "beta", s.beta);
        add(table, "gamma", s.gamma);
        add(table, "delta", s.delta);
        add(table, "lambda", s.lambda);
        add(table, "smallest", s.smallest);
        add(table, "mean", s.mean);
        add(table, "teacher", s.teacher);
        add(table, "temperature", s.temperature);
        add(table, "last_temperature", s.last_temperature);
        add(table, "straight_through", s.straight_through);
    }
    void add(const std::string& table, ThinOptions& t) {
        add(table, "share", t.share);
        add(table, "least", t.least);
    }
    void add(const std::string& table, PoseOptions& p) {
        add(table, "angle", p.angle);
        add(table, "shift", p.shift);
        add(table, "rotation_weight", p.rotation_weight);
        add(table, "translation_weight", p.translation_weight);
        add(table, "chamfer_weight", p.chamfer_weight);
    }

    std::vector<Key> keys;
};

/// All keys but those of [model], which the model itself knows.
std::vector<Key> keys_of(Recipe& r) {
    Keys k;
    k.add("", "name", r.name);
    k.add("", "about", r.about);
    k.add("", "task", r.task);
    k.add("", "model", r.model);
    k.add("", "init", r.init);
    k.add("data", "folder", r.data.folder);
    k.add("data", "layout", r.data.layout);
    k.add("data", "split", r.data.split);
    k.add("data", "validation", r.data.validation);
    k.add("data", "held_out", r.data.held_out);
    k.add("data", "classes", r.data.classes);
    k.add("data", "points", r.data.points);
    k.add("data", "subset", r.data.subset);
    k.add("data", "normalise", r.data.normalise);
    k.add("data", "mesh_points", r.data.mesh_points);
    k.add("data", "up", r.data.up);
    k.add("data", "items", r.data.items);
    k.add("data", "validation_items", r.data.validation_items);
    k.add("augment", r.augment);
    k.add("view", "weight", r.view.weight);
    k.add("view", "points", r.view.points);
    k.add("view", r.view.augment);
    k.add("patch", r.patch);
    k.add("sampling", r.sampling);
    k.add("pose", r.pose);
    k.add("thin", r.thin);
    k.add("loss", "label_smoothing", r.loss.label_smoothing);
    k.add("loss", "transform_weight", r.loss.transform_weight);
    k.add("loss", "transform_convention", r.loss.transform_convention);
    k.add("loss", "own_parts", r.loss.own_parts);
    k.add("loss", "vector_weight", r.loss.vector_weight);
    k.add("loss", "distance_weight", r.loss.distance_weight);
    k.add("loss", "coverage_weight", r.loss.coverage_weight);
    k.add("loss", "uncertainty_weight", r.loss.uncertainty_weight);
    k.add("loss", "transport_weight", r.loss.transport_weight);
    k.add("loss", "nll_weight", r.loss.nll_weight);
    k.add("loss", "chamfer_weight", r.loss.chamfer_weight);
    k.add("optimizer", "kind", r.optimizer.kind);
    k.add("optimizer", "weight_decay", r.optimizer.weight_decay);
    k.add("optimizer", "momentum", r.optimizer.momentum);
    k.add("optimizer", "beta1", r.optimizer.beta1);
    k.add("optimizer", "beta2", r.optimizer.beta2);
    k.add("optimizer", "eps", r.optimizer.eps);
    k.add("schedule", "kind", r.schedule.kind);
    k.add("schedule", "rate", r.schedule.rate);
    k.add("schedule", "warmup", r.schedule.warmup);
    k.add("schedule", "floor", r.schedule.floor);
    k.add("schedule", "factor", r.schedule.factor);
    k.add("schedule", "every", r.schedule.every);
    k.add("schedule", "norm_momentum", r.schedule.norm_momentum);
    k.add("schedule", "norm_momentum_factor", r.schedule.norm_momentum_factor);
    k.add("schedule", "norm_momentum_floor", r.schedule.norm_momentum_floor);
    k.add("run", "epochs", r.run.epochs);
    k.add("run", "batch", r.run.batch);
    k.add("run", "seed", r.run.seed);
    k.add("run", "clip", r.run.clip);
    k.add("run", "average_decay", r.run.average_decay);
    k.add("run", "evaluate_every", r.run.evaluate_every);
    k.add("run", "save_every", r.run.save_every);
    k.add("run", "keep", r.run.keep);
    k.add("run", "patience", r.run.patience);
    k.add("run", "log_every", r.run.log_every);
    k.add("run", "loader_threads", r.run.loader_threads);
    k.add("run", "deterministic", r.run.deterministic);
    k.add("run", "graph", r.run.graph);
    k.add("run", "precision", r.run.precision);
    k.add("run", "storage", r.run.storage);
    k.add("run", "confidence", r.run.confidence);
    return std::move(k.keys);
}

std::string full_name(const std::string& table, const std::string& key) {
    return table.empty() ? key : table + "." + key;
}

void set(Recipe& recipe, const std::string& table, const std::string& key, const Values& values) {
    if (table == "model") {
        recipe.options[key] = one(values);
        return;
    }
    std::vector<std::string> names;
    for (const Key& known : keys_of(recipe)) {
        if (known.table == table && known.name == key) {
            try {
                known.read(values);
            } catch (const Error& error) {
                fail(fmt::format("{}: {}", full_name(table, key), error.message()));
            }
            return;
        }
        names.push_back(full_name(known.table, known.name));
    }
    const std::string nearest = nearest_name(full_name(table, key), names);
    fail(fmt::format("unknown key {}{}", full_name(table, key),
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

void require(bool holds, const char* message) {
    if (!holds) fail(message);
}

}  // namespace

const std::vector<std::string>& task_names() {
    static const std::vector<std::string> names = {"classification", "segmentation", "upsampling",
                                                   "sampling",       "registration", "reconstruction"};
    return names;
}

Recipe parse_recipe(std::string_view text) {
    Recipe recipe;
    for (const TomlItem& item : parse_toml(text)) {
        if (item.key.empty()) continue;
        try {
            set(recipe, item.table, item.key, item.values);
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_config, Place{.path = {}, .line = item.line}, error.message());
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
    const size_t dot = key.find('.');
    const std::string table(dot == std::string_view::npos ? "" : key.substr(0, dot)),
        name(dot == std::string_view::npos ? key : key.substr(dot + 1));
    // As a line of TOML where it is one (arrays, quotes), else a bare word
    Values values = {std::string(value)};
    if (value.starts_with('[') || value.starts_with('"'))
        values = parse_toml(fmt::format("value = {}\n", value)).front().values;
    set(recipe, table, name, values);
}

std::string to_toml(const Recipe& recipe) {
    Recipe copy = recipe;
    std::string text, table;
    for (const Key& key : keys_of(copy)) {
        if (key.table != table) {
            if (table.empty() && !copy.options.empty()) {
                text += "\n[model]\n";
                for (const auto& [name, value] : copy.options)
                    text += fmt::format("{} = {}\n", name, toml_string(value));
            }
            table = key.table;
            text += fmt::format("\n[{}]\n", table);
        }
        text += fmt::format("{} = {}\n", key.name, key.text());
    }
    return text;
}

std::vector<Difference> differences(const Recipe& a, const Recipe& b) {
    Recipe first = a, second = b;
    const std::vector<Key> left = keys_of(first), right = keys_of(second);
    std::vector<Difference> differing;
    for (size_t i = 0; i < left.size(); ++i)
        if (left[i].text() != right[i].text())
            differing.push_back({full_name(left[i].table, left[i].name), left[i].text(), right[i].text()});
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
    const std::vector<std::string>& tasks = task_names();
    if (std::find(tasks.begin(), tasks.end(), r.task) == tasks.end())
        fail(fmt::format("task must be one of {}", fmt::join(tasks, ", ")));
    validate(r.sampling);
    validate(r.pose);
    validate(r.thin);
    require(r.data.held_out >= 0 && r.data.held_out <= 0.5, "data.held_out must be 0 to 0.5");
    require(r.data.held_out == 0 || r.data.validation.empty(), "data.validation and data.held_out exclude each other");
    require(r.data.points >= 1 && r.data.points <= 1 << 24, "data.points must be 1 to 16777216");
    require(r.data.subset == "random" || r.data.subset == "first", "data.subset must be random or first");
    require(r.data.mesh_points >= 1, "data.mesh_points must be at least 1");
    require(r.data.items >= 1 && r.data.items <= INT32_MAX, "data.items must be 1 to 2147483647");
    require(r.data.validation_items >= 3 && r.data.validation_items <= 1 << 20,
            "data.validation_items must be 3 to 1048576");
    require(r.view.weight >= 0 && std::isfinite(r.view.weight), "view.weight must be at least 0");
    require(r.view.points >= 1 && r.view.points <= 1 << 24, "view.points must be 1 to 16777216");
    require(r.loss.label_smoothing >= 0 && r.loss.label_smoothing < 1, "loss.label_smoothing must be below 1");
    require(r.loss.transform_weight >= 0, "loss.transform_weight must be at least 0");
    require(r.loss.transform_convention == "torch" || r.loss.transform_convention == "tf",
            "loss.transform_convention must be torch or tf");
    for (const double weight :
         {r.loss.vector_weight, r.loss.distance_weight, r.loss.coverage_weight, r.loss.uncertainty_weight,
          r.loss.transport_weight, r.loss.nll_weight, r.loss.chamfer_weight})
        require(weight >= 0 && std::isfinite(weight), "weights of losses must be at least 0");
    if (r.task == "upsampling") {
        require(r.data.validation.empty(), "data.validation: meshes have no splits; data.held_out keeps some of them");
        validate(r.patch, r.data.points);
    }
    require(r.run.epochs >= 1 && r.run.epochs <= 1 << 24, "run.epochs must be 1 to 16777216");
    require(r.run.batch >= 1 && r.run.batch <= 1 << 20, "run.batch must be 1 to 1048576");
    require(r.run.clip >= 0, "run.clip must be at least 0");
    require(r.run.average_decay >= 0 && r.run.average_decay < 1, "run.average_decay must be 0 to below 1");
    require(r.run.evaluate_every >= 1 && r.run.save_every >= 1 && r.run.log_every >= 1,
            "run.evaluate_every, save_every and log_every must be at least 1");
    require(r.run.keep >= 1 && r.run.keep <= 1000, "run.keep must be 1 to 1000");
    require(r.run.patience >= 0, "run.patience must be at least 0");
    require(r.run.loader_threads >= 0 && r.run.loader_threads <= 256, "run.loader_threads must be 0 to 256");
    validate(r.schedule);
    try {
        data::validate(r.augment);
        data::validate(r.view.augment);
    } catch (const Error& error) {
        fail(error.message());
    }
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
