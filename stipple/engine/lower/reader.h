#pragma once
// A network on its way into the graph, for the kinds of layers (engine/kinds): forms of the layers so far, and how
// nodes join them.

#include "stipple/engine/lower/graph.h"

namespace stipple::engine::lowering {

class NetworkReader {
public:
    NetworkReader(const network::Network& network_of, const network::Weights& weights_of)
        : network(network_of), weights(weights_of) {}

    Graph read();

    /// Input i of a layer: as a form, and as a node with the layer's rows.
    const Form& form(const network::Layer& layer, size_t i) const {
        return forms_[static_cast<size_t>(layer.inputs[i])];
    }
    NodeId rows(const network::Layer& layer, size_t i) { return rows_of(layer.inputs[i]); }

    /// A step whose inputs are all those of the layer, as rows.
    Form step(const network::Layer& layer, StepKind kind);
    Form step(const network::Layer& layer, StepKind kind, std::vector<Link> inputs);

    /// The layer's affine map of its input: linear, actnorm, mix.
    Form affine(const network::Layer& layer) const;

    /// Input 0 as every neighbour, or every row of a point, sees it: `outer` without its node.
    Form seen_through(const network::Layer& layer, const Link& outer);

    const network::Network& network;
    const network::Weights& weights;
    Graph graph;

private:
    NodeId rows_of(network::Tensor tensor);

    std::vector<Form> forms_;
};

/// For tables: the layer is the step of that kind.
template <StepKind kKind>
Form lower_to_step(NetworkReader& reader, const network::Layer& layer) {
    return reader.step(layer, kKind);
}

}  // namespace stipple::engine::lowering
