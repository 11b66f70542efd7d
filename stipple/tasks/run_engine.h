#pragma once
// Runs a built engine on clouds, as many at a time as it was built for, and gathers all that it answers.

#include <functional>

#include "stipple/core/fields.h"
#include "stipple/tasks/model_file.h"
#include "stipple/tasks/network_clouds.h"

namespace stipple::tasks {

struct RunEngineOptions {
    std::string device = "auto";  // "cuda:1"; of the kind that the engine was built for
    CloudOptions clouds;
    Profile* profile = nullptr;          // what steps take
    std::function<void()> advance = {};  // a cloud more was read
};

/// All rows of an output, batch after batch.
struct EngineOutput {
    std::string name;
    network::TensorType type;
    std::vector<float> values;
    std::vector<int32_t> indices = {};  // instead, of an output of indices

    /// Numbers of a row: an output of indices has one row of all neighbours for each point.
    int64_t columns() const { return type.is_index ? type.width : type.channels; }
    int64_t rows() const { return static_cast<int64_t>(type.is_index ? indices.size() : values.size()) / columns(); }
};

/// What an output holds.
struct OutputRange {
    std::string name;
    std::string type;  // "[B, 5]"
    int64_t rows = 0;
    double least = 0, most = 0;
};
const Fields& output_range_fields();

struct CloudClass {
    std::string path, name;
};
const Fields& cloud_class_fields();

struct EngineRun {
    std::vector<EngineOutput> outputs;
    std::vector<int64_t> offsets = {0};  // where each cloud's points begin in outputs of points
    std::vector<OutputRange> ranges;     // of the outputs
    std::vector<CloudClass> classes;     // of the clouds, where an output is logits of classes
    double load_ms = 0, compile_ms = 0, run_ms = 0;
    int64_t batches = 0;
};
const Fields& engine_run_fields();

/// Throws Error{bad_file} for a file that is no engine, Error{bad_argument} for an engine with other inputs than
/// points, of another kind of device, and for a cloud with more points than it was built for. Can be interrupted.
EngineRun run_engine(const std::string& path, const std::vector<data::CloudEntry>& entries,
                     const RunEngineOptions& options, const data::ReadClouds& how, io::Warnings& warnings);

}  // namespace stipple::tasks
