// Two layouts of points: channels last, as the network has them, and channels first, as convolutions want them. A value
// gets its twin in the other layout when somebody asks; what nobody reads goes in the end, so that a run of
// convolutions has a Transpose at its two ends only.

#include <set>

#include "stipple/network/onnx/export.h"

namespace stipple::network {

std::string channels_first(OnnxExport& out, const Layer& layer, const std::string& value, const TensorType& type) {
    const auto known = out.twins.find(value);
    if (known != out.twins.end()) return known->second;
    const std::vector<int64_t> order =
        type.width > 1 ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 2, 1};
    return out.twins[value] = out.node(layer, "Transpose", {value}, {{"perm", order}});
}

std::string channels_last(OnnxExport& out, const Layer& layer, const std::string& twin, const TensorType& type) {
    const std::vector<int64_t> order =
        type.width > 1 ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1};
    const std::string value = out.node(layer, "Transpose", {twin}, {{"perm", order}});
    out.twins[value] = twin;
    return value;
}

void remove_unread(OnnxModel& model) {
    std::set<std::string> read;
    for (const OnnxValue& output : model.outputs) read.insert(output.name);
    std::vector<OnnxNode> kept;
    for (size_t i = model.nodes.size(); i-- > 0;) {  // readers before what they read
        if (!read.contains(model.nodes[i].output)) continue;
        read.insert(model.nodes[i].inputs.begin(), model.nodes[i].inputs.end());
        kept.push_back(std::move(model.nodes[i]));
    }
    model.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    std::erase_if(model.constants, [&](const OnnxTensor& constant) { return !read.contains(constant.name); });
    std::set<std::string> made;
    for (const OnnxNode& node : model.nodes) made.insert(node.output);
    std::erase_if(model.values, [&](const OnnxValue& value) { return !made.contains(value.name); });
}

}  // namespace stipple::network
