#pragma once
// An ONNX model as data, and its bytes. Only what an export needs of the format [onnx.ai, "Open Neural Network Exchange
// Intermediate Representation", version 8].

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stipple::network {

constexpr int64_t kOnnxOpset = 17;
constexpr int64_t kOnnxIrVersion = 8;

enum class OnnxType { float32 = 1, int8 = 3, int32 = 6, int64 = 7 };  // numbers of TensorProto.DataType

/// A constant. Bytes are little-endian, last dimension fastest.
struct OnnxTensor {
    std::string name;
    OnnxType type = OnnxType::float32;
    std::vector<int64_t> dims;
    std::vector<std::byte> bytes;
};

using OnnxAttribute = std::variant<int64_t, float, std::vector<int64_t>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

struct OnnxNode {
    std::string op, name;
    std::vector<std::string> inputs;
    std::string output;  // all that we write have one that is used: the last
    /// Outputs before `output` that nobody reads (TopK's values).
    std::vector<std::string> unused;
    OnnxAttributes attributes;
};

/// A dimension: its size, or the name of one that is free (B, N).
struct OnnxDim {
    std::string name;
    int64_t size = 0;  // when it has no name
};

struct OnnxValue {
    std::string name;
    OnnxType type = OnnxType::float32;
    std::vector<OnnxDim> dims;
};

struct OnnxModel {
    std::string name, doc;
    std::map<std::string, std::string> metadata;
    std::vector<OnnxNode> nodes;  // in an order in which they can be run
    std::vector<OnnxTensor> constants;
    std::vector<OnnxValue> inputs, outputs;
    std::vector<OnnxValue> values;  // shapes of what is between, for viewers and checkers
};

/// Throws Error{bad_argument} beyond the 2 GiB that Protocol Buffers allow a message.
std::vector<std::byte> serialise(const OnnxModel& model);

}  // namespace stipple::network
