#include "stipple/engine/lower/graph.h"

namespace stipple::engine::lowering {
namespace {

std::vector<float> rounded(const std::vector<double>& values) {
    return {values.begin(), values.end()};
}

class Emitter {
public:
    Emitter(const Graph& graph, const Chains& chains)
        : graph_(graph), chains_(chains), values_(graph.nodes.size(), -1) {}

    Program run() {
        program_.name = graph_.name;
        // Inputs in the order of the network, those that nothing needs too.
        for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
            if (graph_[id].kind == NodeKind::input) program_.inputs.push_back({graph_[id].name, new_value(id)});
        // In the order of the network, each step after what it needs.
        const std::vector<std::vector<NodeId>> users = graph_.users();
        for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
            const bool is_wanted = !users[static_cast<size_t>(id)].empty() && is_computed(id) && !is_late(id);
            if (is_wanted) value_of(id);
        }
        for (const Graph::Output& output : graph_.outputs)
            program_.outputs.push_back({output.name, value_of(output.node)});
        return std::move(program_);
    }

private:
    /// Has a value: not only a layer inside of chains, or a transform that was folded.
    bool is_computed(NodeId id) const {
        const Node& node = graph_[id];
        return node.kind == NodeKind::input || node.kind == NodeKind::step || chains_.of.count(id) != 0;
    }

    /// Comes right before what needs it.
    bool is_late(NodeId id) const {
        return graph_[id].kind == NodeKind::step && graph_[id].step == StepKind::fold_matrix;
    }

    Value new_value(NodeId id) {
        const auto value = static_cast<Value>(program_.values.size());
        program_.values.push_back({graph_[id].name, graph_[id].type});
        values_[static_cast<size_t>(id)] = value;
        return value;
    }

    Value value_of(NodeId id) {
        if (values_[static_cast<size_t>(id)] >= 0) return values_[static_cast<size_t>(id)];
        STIPPLE_ASSERT(is_computed(id));
        const auto chain = chains_.of.find(id);
        Step step = chain != chains_.of.end() ? chain_step(id, chain->second) : plain_step(id);
        step.name = graph_[id].name;
        step.output = new_value(id);
        program_.steps.push_back(std::move(step));
        return values_[static_cast<size_t>(id)];
    }

    Source source_of(const Link& link) {
        Source source{value_of(link.node), link.access, -1};
        if (link.indices >= 0) source.indices = value_of(link.indices);
        return source;
    }

    Step chain_step(NodeId id, const std::vector<NodeId>& layers) {
        Step step;
        for (const NodeId layer : layers) step.layers.push_back(dense_of(graph_[layer], layer == layers[0]));
        const Node& last = graph_[layers.back()];
        step.level = last.type.level;
        step.width = last.type.width;
        step.set = last.type.set;
        if (id != layers.back())
            step.reduce = graph_[id].step == StepKind::max_points ? Reduce::max_points : Reduce::max_rows;
        return step;
    }

    Dense dense_of(const Node& node, bool is_first) {
        Dense dense;
        dense.name = node.name;
        dense.out = node.type.channels;
        dense.bias = rounded(node.form.bias);
        dense.activation = node.activation;
        for (const Term& part : node.parts) {
            dense.in += part.map.cols;
            if (is_first) dense.parts.push_back(source_of(part.link));
        }
        for (const Link& link : node.addends) dense.addends.push_back(source_of(link));
        if (node.matrix >= 0)
            dense.matrix = value_of(node.matrix);
        else
            dense.weight = weight_of(node, dense.in);
        return dense;
    }

    /// The parts' maps side by side.
    static std::vector<float> weight_of(const Node& node, int64_t in) {
        std::vector<float> weight(static_cast<size_t>(node.type.channels * in));
        int64_t at = 0;
        for (const Term& part : node.parts) {
            const std::vector<double> values = dense_values(part.map);
            for (int64_t row = 0; row < part.map.rows; ++row)
                for (int64_t column = 0; column < part.map.cols; ++column)
                    weight[static_cast<size_t>(row * in + at + column)] =
                        static_cast<float>(values[static_cast<size_t>(row * part.map.cols + column)]);
            at += part.map.cols;
        }
        return weight;
    }

    Step plain_step(NodeId id) {
        const Node& node = graph_[id];
        Step step;
        step.kind = node.step;
        for (const Link& link : node.inputs) step.inputs.push_back(source_of(link));
        step.weight = rounded(node.weight);
        step.begin = node.begin;
        step.end = node.end;
        step.factor = static_cast<float>(node.factor);
        step.inverse = node.inverse;
        step.activation = node.activation;
        step.set = node.type.level == Level::point ? node.type.set
                   : node.inputs.empty()           ? node.set
                                                   : graph_[node.inputs[0].node].type.set;
        return step;
    }

    const Graph& graph_;
    const Chains& chains_;
    std::vector<Value> values_;
    Program program_;
};

}  // namespace

Program emit(const Graph& graph, const Chains& chains) {
    return Emitter(graph, chains).run();
}

}  // namespace stipple::engine::lowering
