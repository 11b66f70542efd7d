#pragma once
// Engine files: one file that `stipple engine build` writes and that loads in milliseconds. A safetensors container:
// the folded weights as tensors, for CPUs no wider than their layers compute with; plan, options, calibration and where
// it came from in the metadata. Nothing of the network is lowered again; only the packing for the very CPU or GPU
// happens when it is compiled.

#include <cstdint>
#include <map>
#include <string>

#include "stipple/core/byte_sink.h"
#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"
#include "stipple/io/byte_source.h"

namespace stipple::engine {

/// Of the container: names and meaning of metadata and tensors. 2: weights may be int8 or bf16.
inline constexpr int64_t kEngineFormat = 2, kOldestEngineFormat = 1;
/// Of programs: the kinds of steps, what they compute and how their weights lie. A file of another version is refused.
inline constexpr int64_t kEngineArchitecture = 1;

struct EngineFile {
    Program program;      // lowered, precisions and ranges set
    Options options;      // the device's index is not kept
    uint64_t source = 0;  // network::checksum of the weights that it was built from
    /// The model's name is program.name; its configuration and whatever else its metadata had ("stipple.classes").
    std::map<std::string, std::string> metadata;
};

/// Throws Error{cannot_write}, Error{bad_argument} when the program is no valid one.
void write_engine(const EngineFile& file, ByteSink& sink);
void save_engine(const std::string& path, const EngineFile& file, Overwrite overwrite);

/// For files from anywhere: everything is checked (container, versions, plan, weights, checksum) before anything is
/// computed. Throws Error{bad_file} that names what is wrong; another version's file is refused with both versions.
EngineFile parse_engine(io::ByteReader& reader);
EngineFile load_engine(const std::string& path);

/// By its metadata. False for any other safetensors file; throws Error{bad_file} for what is none.
bool is_engine_file(const std::string& path);

/// What `engine build` writes.
EngineFile engine_file_of(const Engine& engine, const network::Weights& weights);

/// For the device kind in its options, at `index`.
Engine compile(EngineFile file, int index = 0);

}  // namespace stipple::engine
