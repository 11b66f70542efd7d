#include "stipple/engine/lower/reader.h"

#include "stipple/core/error.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/parameters.h"

namespace stipple::engine::lowering {

using network::Layer;

Graph NetworkReader::read() {
    graph.name = network.name;
    for (const Layer& layer : network.layers) {
        const LayerLowering* kind = find_lowering(layer.kind);
        STIPPLE_REQUIRE(kind, "layer '{}': the engine does not know {}", layer.name, network::name_of(layer.kind));
        forms_.push_back(kind->lower(*this, layer));
    }
    for (const network::Output& output : network.outputs) {
        graph.outputs.push_back({output.name, rows_of(output.tensor)});
    }
    return std::move(graph);
}

NodeId NetworkReader::rows_of(network::Tensor tensor) {
    return graph.row_node_of(network[tensor].name, forms_[static_cast<size_t>(tensor)]);
}

Form NetworkReader::step(const Layer& layer, StepKind kind, std::vector<Link> inputs) {
    Node node = make_node(NodeKind::step, layer.name, layer.type);
    node.step = kind;
    node.inputs = std::move(inputs);
    node.inverse = layer.options.inverse;
    return graph.form_of(graph.add(std::move(node)));
}

Form NetworkReader::step(const Layer& layer, StepKind kind) {
    std::vector<Link> inputs;
    for (size_t i = 0; i < layer.inputs.size(); ++i) inputs.push_back({rows(layer, i)});
    return step(layer, kind, std::move(inputs));
}

Form NetworkReader::affine(const Layer& layer) const {
    const Affine affine = affine_of(layer, weights, form(layer, 0).type.channels);
    Form out = apply(affine.map, form(layer, 0));
    for (size_t i = 0; i < out.bias.size(); ++i) out.bias[i] += affine.bias[i];
    return out;
}

Form NetworkReader::seen_through(const Layer& layer, const Link& outer) {
    const Form x = form(layer, 0);
    Form out{layer.type, {}, x.bias};
    out.type.channels = x.type.channels;
    for (const Term& term : x.terms) {
        Link link;
        if (!compose(outer, term.link, link)) {
            const NodeId node = rows(layer, 0);
            out = graph.form_of(node);
            out.type = layer.type;
            out.type.channels = x.type.channels;
            out.terms[0].link = outer;
            out.terms[0].link.node = node;
            return out;
        }
        add_term(out, {link, term.map});
    }
    return out;
}

Graph read_network(const network::Network& network, const network::Weights& weights) {
    return NetworkReader(network, weights).read();
}

}  // namespace stipple::engine::lowering
