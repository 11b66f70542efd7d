#include <numeric>

#include "stipple/engine/lower/graph.h"
#include "stipple/engine/lower/parameters.h"

namespace stipple::engine::lowering {
namespace {

using network::Kind;
using network::Layer;
using network::Network;
using network::Tensor;
using network::Weights;

class Reader {
public:
    Reader(const Network& network, const Weights& weights) : network_(network), weights_(weights) {}

    Graph read() {
        graph_.name = network_.name;
        for (const Layer& layer : network_.layers) forms_.push_back(form_of(layer));
        for (const network::Output& output : network_.outputs) {
            STIPPLE_REQUIRE(!network_[output.tensor].type.is_index, "output '{}' is indices: the engine gives numbers",
                            output.name);
            graph_.outputs.push_back({output.name, rows_of_tensor(output.tensor)});
        }
        return std::move(graph_);
    }

private:
    const Form& form(const Layer& layer, size_t i) const { return forms_[static_cast<size_t>(layer.inputs[i])]; }
    NodeId rows_of_tensor(Tensor tensor) {
        return graph_.row_node_of(network_[tensor].name, forms_[static_cast<size_t>(tensor)]);
    }
    NodeId rows(const Layer& layer, size_t i) { return rows_of_tensor(layer.inputs[i]); }

    Form step(const Layer& layer, StepKind kind, std::vector<Link> inputs) {
        Node node = make_node(NodeKind::step, layer.name, layer.type);
        node.step = kind;
        node.inputs = std::move(inputs);
        node.inverse = layer.options.inverse;
        return graph_.form_of(graph_.add(std::move(node)));
    }

    /// A step of its inputs as rows.
    Form step(const Layer& layer, StepKind kind) {
        std::vector<Link> inputs;
        for (size_t i = 0; i < layer.inputs.size(); ++i) inputs.push_back({rows(layer, i)});
        return step(layer, kind, std::move(inputs));
    }

    /// x as every neighbour of `indices`, or as every row of a point, sees it.
    Form seen_through(const Layer& layer, const Link& outer) {
        Form x = form(layer, 0);
        Form out{layer.type, {}, x.bias};
        out.type.channels = x.type.channels;
        for (const Term& term : x.terms) {
            Link link;
            if (!compose(outer, term.link, link)) {
                const NodeId node = rows(layer, 0);
                out = graph_.form_of(node);
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

    Form input(const Layer& layer) {
        STIPPLE_REQUIRE(!layer.type.is_index, "input '{}' is indices: the engine takes numbers", layer.name);
        return graph_.form_of(graph_.add(make_node(NodeKind::input, layer.name, layer.type)));
    }

    Form affine(const Layer& layer) {
        const Affine affine = affine_of(layer, weights_, form(layer, 0).type.channels);
        Form out = apply(affine.map, form(layer, 0));
        for (size_t i = 0; i < out.bias.size(); ++i) out.bias[i] += affine.bias[i];
        return out;
    }

    Form transform(const Layer& layer) {
        Node node = make_node(NodeKind::transform, layer.name, layer.type);
        node.inputs = {{rows(layer, 0)}, {rows(layer, 1)}};
        return graph_.form_of(graph_.add(std::move(node)));
    }

    Form add_identity(const Layer& layer) {
        Form out = form(layer, 0);
        const auto count = out.bias.size();
        size_t k = 1;
        while (k * k < count) ++k;
        for (size_t i = 0; i < count; i += k + 1) out.bias[i] += 1;
        return out;
    }

    Form concat(const Layer& layer) {
        Form out{layer.type, {}, std::vector<double>(static_cast<size_t>(layer.type.channels), 0.0)};
        int64_t at = 0;
        for (size_t i = 0; i < layer.inputs.size(); ++i) {
            out = sum(std::move(out), placed(form(layer, i), at, layer.type.channels));
            at += form(layer, i).type.channels;
        }
        return out;
    }

    Form edge(const Layer& layer) {
        const Form self = seen_through(layer, {-1, Access::point, -1});
        const Form other = seen_through(layer, {-1, Access::neighbour, rows_of_indices(layer)});
        const int64_t c = self.type.channels;
        Form out = placed(self, 0, 3 * c);
        out = sum(std::move(out), placed(other, c, 3 * c));
        out = sum(std::move(out), placed(other, 2 * c, 3 * c));
        return sum(std::move(out), placed(apply(scaled(identity(c), -1), self), 2 * c, 3 * c));
    }

    NodeId rows_of_indices(const Layer& layer) { return rows(layer, 1); }

    Form couple(const Layer& layer) {
        const Form& x = form(layer, 0);
        const Form t = placed(form(layer, 1), layer.options.begin, x.type.channels);
        const double sign = layer.options.inverse ? 1 : -1;
        return sum(x, apply(scaled(identity(x.type.channels), sign), t));
    }

    Form inject(const Layer& layer) {
        std::vector<Link> inputs{{rows(layer, 0)}};
        for (size_t i = 1; i < 3; ++i) {
            const Tensor tensor = layer.inputs[i];
            Link link = graph_.link_of(network_[tensor].name, form(layer, i));
            if (link.access == Access::neighbour) link = {rows(layer, i)};
            inputs.push_back(link);
        }
        return step(layer, StepKind::inject, std::move(inputs));
    }

    /// The number of points, times what each contributes: sums of them are one.
    Form log_det(const Layer& layer) {
        Node node = make_node(NodeKind::step, layer.name, layer.type);
        node.step = StepKind::log_det;
        const Form points = graph_.form_of(graph_.add(std::move(node)));
        return apply(scaled(identity(1), log_det_of(layer, weights_)), points);
    }

    Form form_of(const Layer& layer) {
        const network::LayerOptions& options = layer.options;
        switch (layer.kind) {
            case Kind::input: return input(layer);
            case Kind::linear: return graph_.dense(layer.name, affine(layer), options.activation);
            case Kind::activation: return graph_.dense(layer.name, form(layer, 0), options.activation);
            case Kind::dropout: return form(layer, 0);
            case Kind::transform: return transform(layer);
            case Kind::add_identity: return add_identity(layer);
            case Kind::max_points: return step(layer, StepKind::max_points);
            case Kind::sum_points: return step(layer, StepKind::sum_points);
            case Kind::max_rows: return step(layer, StepKind::max_rows);
            case Kind::sum_channels: return step(layer, StepKind::sum_channels);
            case Kind::concat: return concat(layer);
            case Kind::slice: {
                std::vector<int64_t> channels(static_cast<size_t>(options.end - options.begin));
                std::iota(channels.begin(), channels.end(), options.begin);
                return selected(form(layer, 0), channels);
            }
            case Kind::reverse: {
                std::vector<int64_t> channels(static_cast<size_t>(layer.type.channels));
                std::iota(channels.rbegin(), channels.rend(), int64_t{0});
                return selected(form(layer, 0), channels);
            }
            case Kind::repeat:
                if (layer.type.width == 1 && form(layer, 0).type.level == Level::point) return form(layer, 0);
                return seen_through(
                    layer, {-1, form(layer, 0).type.level == Level::cloud ? Access::cloud : Access::point, -1});
            case Kind::knn: return step(layer, StepKind::knn);
            case Kind::gather: return seen_through(layer, {-1, Access::neighbour, rows_of_indices(layer)});
            case Kind::edge: return edge(layer);
            case Kind::edge_distance: return step(layer, StepKind::edge_distance);
            case Kind::softmax_rows: return step(layer, StepKind::softmax_rows);
            case Kind::interpolate: return step(layer, StepKind::interpolate);
            case Kind::log_softmax: return step(layer, StepKind::log_softmax);
            case Kind::add: return sum(form(layer, 0), form(layer, 1));
            case Kind::subtract:
                return sum(form(layer, 0), apply(scaled(identity(layer.type.channels), -1), form(layer, 1)));
            case Kind::scale: return apply(scaled(identity(layer.type.channels), options.factor), form(layer, 0));
            case Kind::actnorm:
            case Kind::mix: return affine(layer);
            case Kind::couple: return couple(layer);
            case Kind::inject: return inject(layer);
            case Kind::flow_log_det: return log_det(layer);
            case Kind::gaussian_log_density: return step(layer, StepKind::gaussian_log_density);
        }
        STIPPLE_ASSERT(false);
        return {};
    }

    const Network& network_;
    const Weights& weights_;
    Graph graph_;
    std::vector<Form> forms_;
};

}  // namespace

Graph read_network(const Network& network, const Weights& weights) {
    return Reader(network, weights).read();
}

}  // namespace stipple::engine::lowering
