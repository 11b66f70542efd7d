#pragma once
// Weights: the parameters of a network by name, as float32, and what travels with them. One .safetensors file is a
// model: its metadata hold the architecture's name ("stipple.model"), its configuration ("stipple.config", JSON), and,
// after calibration, "stipple.calibration" (JSON). "stipple.storage" says how the numbers are stored.
//
// Int8 rows: a tensor NAME of shape [rows, ...] is stored as two, NAME (I8, the same shape, -127 to 127) and NAME.scale
// (F32, [rows]); a value is its int8 times the scale of its row. Only the type tells: a tensor named X.scale is a scale
// where X is of I8, and a tensor as any other where it is not.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/atomic_file.h"
#include "stipple/io/safetensors.h"
#include "stipple/network/network.h"

namespace stipple::network {

struct WeightTensor {
    std::vector<int64_t> shape;
    std::vector<float> values;  // last dimension fastest
};

struct Weights {
    std::map<std::string, WeightTensor> tensors;
    std::map<std::string, std::string> metadata;
};

/// As the initialisers say, from one seed: a parameter's values depend on the seed, its name and its shape alone. The
/// network's configuration is in the metadata.
Weights initial_weights(const Network& network, uint64_t seed);

/// Every parameter of the network is there, with its shape, and nothing else is. Throws Error{bad_file} that names the
/// layer, the tensor, and what was expected and found; lists up to three missing names. Values that are not finite are
/// refused too.
void check_weights(const Network& network, const Weights& weights);

/// Reads f16, bf16, f32 and f64 tensors and int8 rows as float32; others are skipped (batch counters of other
/// trainers). Throws what load_safetensors throws, and Error{bad_file} that names the tensor for int8 rows without
/// scales or of no shape, a value of -128, scales of another type or shape, a scale that is negative or not finite, and
/// where "stipple.storage" is "int8-rows" for a NAME.scale of F32 without NAME. parse: of a file in memory or a pipe.
Weights parse_weights(io::ByteReader& reader);
Weights load_weights(const std::string& path);

/// How a file stores the numbers; they are rounded to nearest even. int8_rows: tensors of two and more dimensions with
/// at least kInt8RowLength values in a row, unless they have a namesake with .scale; the rest as f16. A row's scale is
/// its largest magnitude / 127 in 17 significant bits, so that every value is exact in float32 and saving what was
/// loaded changes nothing.
enum class WeightStorage { f32, f16, bf16, int8_rows };
inline constexpr const char* kWeightStorageWords[] = {"f32", "f16", "bf16", "int8-rows"};
constexpr int64_t kInt8RowLength = 32;  // below, a scale costs much of what int8 saves, and such layers are small
std::string_view name_of(WeightStorage storage);  // "f32", "int8-rows"
/// By its name. Throws Error{bad_argument} that lists the names.
WeightStorage parse_weight_storage(std::string_view name);

/// Sets "stipple.storage" in the file. A value that is not finite, or beyond what is stored, is Error{not_finite}
/// naming its tensor. write: into memory or a pipe.
void write_weights(const Weights& weights, WeightStorage storage, ByteSink& sink);
void save_weights(const std::string& path, const Weights& weights, WeightStorage storage, Overwrite overwrite);

/// FNV-1a over names, shapes and values: names a set of weights in plans and reports.
uint64_t checksum(const Weights& weights);

/// The configuration in the metadata. Throws Error{bad_file} when it is absent or no JSON object of strings.
std::map<std::string, std::string> config_of(const Weights& weights);
void set_config(Weights& weights, const Network& network);

}  // namespace stipple::network
