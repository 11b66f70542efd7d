#include "stipple/network/subgraph.h"

#include <map>
#include <set>

#include "stipple/core/error.h"

namespace stipple::network {

Network subgraph(const Network& network, const std::string& name,
                 const std::function<bool(const Layer& layer)>& is_part) {
    const size_t count = network.layers.size();
    std::vector<bool> chosen(count), is_read(count, false), is_read_outside(count, false);
    for (size_t i = 0; i < count; ++i) chosen[i] = is_part(network.layers[i]);
    for (size_t i = 0; i < count; ++i)
        for (const Tensor input : network.layers[i].inputs) {
            const auto at = static_cast<size_t>(input);
            is_read[at] = is_read[at] || chosen[i];
            is_read_outside[at] = is_read_outside[at] || !chosen[i];
        }

    Network part;
    part.name = name;
    std::map<Tensor, Tensor> place;  // of the whole's layers in the part
    std::set<std::string> names;
    for (size_t i = 0; i < count; ++i) {
        if (!chosen[i] && !is_read[i]) continue;
        Layer layer = network.layers[i];
        if (chosen[i]) {
            for (Tensor& input : layer.inputs) input = place.at(input);
            // Whose parameters it shares may be no part of it.
            if (!names.count(layer.parameters)) layer.parameters = layer.name;
        } else {
            layer.kind = Kind::input;
            layer.inputs.clear();
            layer.options = {};
            layer.options.type = layer.type;
            layer.options.channels = layer.type.channels;
            layer.parameters = layer.name;
        }
        names.insert(layer.name);
        place[static_cast<Tensor>(i)] = static_cast<Tensor>(part.layers.size());
        part.layers.push_back(std::move(layer));
    }
    for (size_t i = 0; i < count; ++i)
        if (chosen[i] && (is_read_outside[i] || !is_read[i]))
            part.outputs.push_back({network.layers[i].name, place.at(static_cast<Tensor>(i))});
    STIPPLE_REQUIRE(!part.outputs.empty(), "{}: no layer of {} is part of it", name, network.name);
    validate(part);
    return part;
}

}  // namespace stipple::network
