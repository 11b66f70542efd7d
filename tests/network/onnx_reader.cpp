#include "tests/network/onnx_reader.h"

#include <cstring>
#include <stdexcept>

namespace stipple::test {

namespace {

using Bytes = std::span<const std::byte>;

uint64_t read_varint(Bytes& bytes) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (bytes.empty()) throw std::runtime_error("a varint is cut off");
        const auto byte = static_cast<uint64_t>(bytes[0]);
        bytes = bytes.subspan(1);
        if (shift == 63 && byte > 1) throw std::runtime_error("a varint has more than 64 bits");
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    throw std::runtime_error("a varint has more than ten bytes");
}

Bytes take(Bytes& bytes, uint64_t count) {
    if (count > bytes.size()) throw std::runtime_error("a field is longer than its message");
    const Bytes taken = bytes.first(static_cast<size_t>(count));
    bytes = bytes.subspan(static_cast<size_t>(count));
    return taken;
}

std::string text_of(const WireField& field) {
    if (field.wire_type != 2) throw std::runtime_error("text is not length-delimited");
    return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
}

int64_t integer_of(const WireField& field) {
    if (field.wire_type != 0) throw std::runtime_error("a number is no varint");
    return static_cast<int64_t>(field.value);
}

void append_integers(std::vector<int64_t>& to, const WireField& field) {
    if (field.wire_type == 0) {
        to.push_back(integer_of(field));
        return;
    }
    for (Bytes rest = field.bytes; !rest.empty();) to.push_back(static_cast<int64_t>(read_varint(rest)));
}

ReadAttribute attribute_of(Bytes bytes, std::string& name) {
    ReadAttribute attribute;
    for (const WireField& field : read_message(bytes)) {
        if (field.number == 1) name = text_of(field);
        if (field.number == 2) {
            const auto bits = static_cast<uint32_t>(field.value);
            std::memcpy(&attribute.f, &bits, 4);
        }
        if (field.number == 3) attribute.i = integer_of(field);
        if (field.number == 8) append_integers(attribute.ints, field);
        if (field.number == 20) attribute.type = static_cast<int>(integer_of(field));
    }
    return attribute;
}

ReadNode node_of(Bytes bytes) {
    ReadNode node;
    for (const WireField& field : read_message(bytes)) {
        if (field.number == 1) node.inputs.push_back(text_of(field));
        if (field.number == 2) node.outputs.push_back(text_of(field));
        if (field.number == 3) node.name = text_of(field);
        if (field.number == 4) node.op = text_of(field);
        if (field.number == 5) {
            std::string name;
            const ReadAttribute attribute = attribute_of(field.bytes, name);
            if (!node.attributes.emplace(name, attribute).second) throw std::runtime_error(name + " is there twice");
        }
    }
    return node;
}

ReadTensor tensor_of(Bytes bytes) {
    ReadTensor tensor;
    for (const WireField& field : read_message(bytes)) {
        if (field.number == 1) append_integers(tensor.dims, field);
        if (field.number == 2) tensor.type = static_cast<int>(integer_of(field));
        if (field.number == 8) tensor.name = text_of(field);
        if (field.number == 9) tensor.raw = field.bytes;
    }
    return tensor;
}

/// The only field of that number, which is a message.
Bytes inner(Bytes bytes, int number) {
    for (const WireField& field : read_message(bytes))
        if (field.number == number) return field.bytes;
    throw std::runtime_error("a field is missing");
}

ReadValue value_of(Bytes bytes) {
    ReadValue value;
    for (const WireField& field : read_message(bytes)) {
        if (field.number == 1) value.name = text_of(field);
        if (field.number != 2) continue;
        for (const WireField& part : read_message(inner(field.bytes, 1))) {
            if (part.number == 1) value.type = static_cast<int>(integer_of(part));
            if (part.number != 2) continue;
            for (const WireField& dim : read_message(part.bytes))
                for (const WireField& size : read_message(dim.bytes))
                    value.dims.push_back(size.number == 1 ? std::to_string(integer_of(size)) : text_of(size));
        }
    }
    return value;
}

template <class T>
std::vector<T> numbers_of(Bytes raw) {
    std::vector<T> values(raw.size() / sizeof(T));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
}

void read_graph(Bytes bytes, ReadModel& model) {
    for (const WireField& field : read_message(bytes)) {
        if (field.number == 1) model.nodes.push_back(node_of(field.bytes));
        if (field.number == 2) model.graph_name = text_of(field);
        if (field.number == 5) model.constants.push_back(tensor_of(field.bytes));
        if (field.number == 11) model.inputs.push_back(value_of(field.bytes));
        if (field.number == 12) model.outputs.push_back(value_of(field.bytes));
        if (field.number == 13) model.values.push_back(value_of(field.bytes));
    }
}

}  // namespace

std::vector<WireField> read_message(Bytes bytes) {
    std::vector<WireField> fields;
    while (!bytes.empty()) {
        const uint64_t key = read_varint(bytes);
        WireField field{static_cast<int>(key >> 3), static_cast<int>(key & 7), 0, {}};
        if (key >> 3 == 0 || key >> 3 > (1u << 29) - 1) throw std::runtime_error("no number of a field");
        switch (field.wire_type) {
            case 0: field.value = read_varint(bytes); break;
            case 1: std::memcpy(&field.value, take(bytes, 8).data(), 8); break;
            case 2: field.bytes = take(bytes, read_varint(bytes)); break;
            case 5: std::memcpy(&field.value, take(bytes, 4).data(), 4); break;
            default: throw std::runtime_error("an unknown wire type");
        }
        fields.push_back(field);
    }
    return fields;
}

std::vector<float> ReadTensor::floats() const {
    return numbers_of<float>(raw);
}

std::vector<int8_t> ReadTensor::int8s() const {
    return numbers_of<int8_t>(raw);
}

const ReadTensor& ReadModel::constant(const std::string& name) const {
    for (const ReadTensor& tensor : constants)
        if (tensor.name == name) return tensor;
    throw std::runtime_error("no constant " + name);
}

std::vector<const ReadNode*> ReadModel::nodes_of(const std::string& op) const {
    std::vector<const ReadNode*> found;
    for (const ReadNode& node : nodes)
        if (node.op == op) found.push_back(&node);
    return found;
}

ReadModel read_onnx(Bytes bytes) {
    ReadModel model;
    for (const WireField& field : read_message(bytes)) {
        if (field.number == 1) model.ir_version = integer_of(field);
        if (field.number == 2) model.producer = text_of(field);
        if (field.number == 6) model.doc = text_of(field);
        if (field.number == 7) read_graph(field.bytes, model);
        if (field.number == 8) {
            std::string domain;
            int64_t version = 0;
            for (const WireField& part : read_message(field.bytes))
                part.number == 1 ? void(domain = text_of(part)) : void(version = integer_of(part));
            model.opsets[domain] = version;
        }
        if (field.number == 14) {
            std::string key, value;
            for (const WireField& part : read_message(field.bytes)) (part.number == 1 ? key : value) = text_of(part);
            model.metadata[key] = value;
        }
    }
    return model;
}

}  // namespace stipple::test
