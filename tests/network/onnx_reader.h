#pragma once
// Reads the bytes of an ONNX model back: the wire format of Protocol Buffers, and of the messages what tests look at.
// Written against the format's definition, not against our writer: any order of fields, packed or not.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace stipple::test {

/// One field of a message: a number (varint, 4 or 8 bytes) or bytes.
struct WireField {
    int number = 0, wire_type = 0;
    uint64_t value = 0;
    std::span<const std::byte> bytes;
};

/// Throws std::runtime_error where the bytes break the wire format.
std::vector<WireField> read_message(std::span<const std::byte> bytes);

struct ReadAttribute {
    int type = 0;
    float f = 0;
    int64_t i = 0;
    std::vector<int64_t> ints;
};

struct ReadNode {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    std::map<std::string, ReadAttribute> attributes;
};

struct ReadTensor {
    std::string name;
    int type = 0;
    std::vector<int64_t> dims;
    std::span<const std::byte> raw;

    std::vector<float> floats() const;
    std::vector<int8_t> int8s() const;
};

struct ReadValue {
    std::string name;
    int type = 0;
    std::vector<std::string> dims;  // names, or sizes as text
};

struct ReadModel {
    int64_t ir_version = 0;
    std::string producer, doc, graph_name;
    std::map<std::string, int64_t> opsets;  // version by domain
    std::map<std::string, std::string> metadata;
    std::vector<ReadNode> nodes;
    std::vector<ReadTensor> constants;
    std::vector<ReadValue> inputs, outputs, values;

    const ReadTensor& constant(const std::string& name) const;
    std::vector<const ReadNode*> nodes_of(const std::string& op) const;
};

/// Refers into `bytes`.
ReadModel read_onnx(std::span<const std::byte> bytes);

}  // namespace stipple::test
