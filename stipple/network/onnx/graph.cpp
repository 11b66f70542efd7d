#include "stipple/network/onnx/graph.h"

#include <limits>

#include "stipple/core/error.h"
#include "stipple/io/common/protobuf_writer.h"

namespace stipple::network {

namespace {

using io::ProtobufWriter;

// Field numbers are those of onnx.proto; each function names its message.

ProtobufWriter tensor_proto(const OnnxTensor& tensor) {
    ProtobufWriter out;
    out.packed(1, tensor.dims);
    out.integer(2, static_cast<int64_t>(tensor.type));
    out.text(8, tensor.name);
    out.bytes(9, tensor.bytes);  // raw_data
    return out;
}

ProtobufWriter attribute_proto(const std::string& name, const OnnxAttribute& value) {
    enum { kFloat = 1, kInt = 2, kInts = 7 };  // AttributeProto.AttributeType
    ProtobufWriter out;
    out.text(1, name);
    if (const auto* real = std::get_if<float>(&value)) {
        out.real(2, *real);
        out.integer(20, kFloat);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
        out.integer(3, *integer);
        out.integer(20, kInt);
    } else {
        out.packed(8, std::get<std::vector<int64_t>>(value));
        out.integer(20, kInts);
    }
    return out;
}

ProtobufWriter node_proto(const OnnxNode& node) {
    ProtobufWriter out;
    for (const std::string& input : node.inputs) out.text(1, input);
    for (const std::string& output : node.unused) out.text(2, output);
    out.text(2, node.output);
    out.text(3, node.name);
    out.text(4, node.op);
    for (const auto& [name, value] : node.attributes) out.message(5, attribute_proto(name, value));
    return out;
}

ProtobufWriter value_info_proto(const OnnxValue& value) {
    ProtobufWriter shape;
    for (const OnnxDim& dim : value.dims) {
        ProtobufWriter dimension;
        if (dim.name.empty())
            dimension.integer(1, dim.size);
        else
            dimension.text(2, dim.name);
        shape.message(1, dimension);
    }
    ProtobufWriter tensor, type, out;
    tensor.integer(1, static_cast<int64_t>(value.type));
    tensor.message(2, shape);
    type.message(1, tensor);
    out.text(1, value.name);
    out.message(2, type);
    return out;
}

ProtobufWriter graph_proto(const OnnxModel& model) {
    ProtobufWriter out;
    for (const OnnxNode& node : model.nodes) out.message(1, node_proto(node));
    out.text(2, model.name);
    for (const OnnxTensor& constant : model.constants) out.message(5, tensor_proto(constant));
    out.text(10, model.doc);
    for (const OnnxValue& value : model.inputs) out.message(11, value_info_proto(value));
    for (const OnnxValue& value : model.outputs) out.message(12, value_info_proto(value));
    for (const OnnxValue& value : model.values) out.message(13, value_info_proto(value));
    return out;
}

}  // namespace

std::vector<std::byte> serialise(const OnnxModel& model) {
    int64_t bytes = 0;
    for (const OnnxTensor& constant : model.constants) bytes += static_cast<int64_t>(constant.bytes.size());
    // Names, nodes and shapes take far less than the sixteenth that is left for them.
    constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() / 16 * 15;
    STIPPLE_REQUIRE(bytes <= kLimit, "onnx: {} has {} bytes of weights; a file of this format has room for {}",
                    model.name, bytes, kLimit);

    ProtobufWriter opset;  // the domain is the default one
    opset.text(1, "");
    opset.integer(2, kOnnxOpset);
    ProtobufWriter out;
    out.integer(1, kOnnxIrVersion);
    out.text(2, "stipple");
    out.text(6, model.doc);
    out.message(7, graph_proto(model));
    out.message(8, opset);
    for (const auto& [name, value] : model.metadata) {
        ProtobufWriter entry;
        entry.text(1, name);
        entry.text(2, value);
        out.message(14, entry);
    }
    return out.take();
}

}  // namespace stipple::network
