#include "stipple/engine/lower/moves.h"

#include <algorithm>

namespace stipple::engine::lowering {
namespace {

Node step_node(std::string name, TensorType type, StepKind kind, std::vector<Link> inputs) {
    Node node = make_node(NodeKind::step, std::move(name), type);
    node.step = kind;
    node.inputs = std::move(inputs);
    return node;
}

bool is_row(const Term& term) {
    return term.link.access == Access::row;
}

/// Every factor the same.
bool is_uniform(const Map& map, double& factor) {
    factor = 0;
    for (size_t i = 0; i < map.columns.size(); ++i) {
        if (map.columns[i] < 0) continue;
        if (factor != 0 && map.values[i] != factor) return false;
        factor = map.values[i];
    }
    return factor != 0;
}

bool is_scaled_identity(const Map& map, double& factor) {
    if (map.rows != map.cols || !is_uniform(map, factor)) return false;
    for (int64_t i = 0; i < map.rows; ++i)
        if (map.columns[static_cast<size_t>(i)] != i) return false;
    return true;
}

bool make_activation(Graph& graph, NodeId id) {
    const Node& node = graph[id];
    if (!is_pure(node.form) || !is_row(node.form.terms[0])) return false;
    Node step = step_node(node.name, node.type, StepKind::activation, {node.form.terms[0].link});
    step.activation = node.activation;
    graph[id] = std::move(step);
    return true;
}

bool make_log_det(Graph& graph, NodeId id) {
    const Node& node = graph[id];
    const Term& term = node.form.terms[0];
    const Node& source = graph[term.link.node];
    if (source.kind != NodeKind::step || source.step != StepKind::log_det || !is_row(term) || term.map.rows != 1)
        return false;
    Node step = step_node(node.name, node.type, StepKind::log_det, {});
    step.factor = source.factor * term.map.values[0];
    step.set = source.set;
    graph[id] = std::move(step);
    return true;
}

bool make_single(Graph& graph, NodeId id) {
    const Node& node = graph[id];
    const Term& term = node.form.terms[0];
    if (term.link.access == Access::neighbour && is_identity(term.map)) {
        graph[id] = step_node(node.name, node.type, StepKind::gather, {{term.link.node}, {term.link.indices}});
        return true;
    }
    double factor = 0;
    if (!is_row(term) || !is_uniform(term.map, factor) || factor != 1) return false;
    const std::vector<int64_t>& columns = term.map.columns;
    const auto n = static_cast<int64_t>(columns.size());
    bool is_slice = columns[0] >= 0, is_reverse = n == term.map.cols;
    for (int64_t i = 0; i < n; ++i) {
        is_slice &= columns[static_cast<size_t>(i)] == columns[0] + i;
        is_reverse &= columns[static_cast<size_t>(i)] == n - 1 - i;
    }
    if (!is_slice && !is_reverse) return false;
    Node step = step_node(node.name, node.type, is_slice ? StepKind::slice : StepKind::reverse, {term.link});
    step.begin = is_slice ? columns[0] : 0;
    step.end = is_slice ? columns[0] + n : 0;
    graph[id] = std::move(step);
    return true;
}

/// x + factor * y + factor * z ...
bool make_sum(Graph& graph, NodeId id) {
    std::vector<std::pair<Link, double>> terms;
    for (const Term& term : graph[id].form.terms) {
        double factor = 0;
        if (!is_row(term) || !is_scaled_identity(term.map, factor)) return false;
        const Node& source = graph[term.link.node];
        if (source.kind == NodeKind::step && source.step == StepKind::log_det && factor != 1) {
            Node scaled_log_det = source;
            scaled_log_det.name = graph[id].name + "/" + source.name;
            scaled_log_det.factor *= factor;
            terms.push_back({{graph.add(std::move(scaled_log_det))}, 1});
        } else {
            terms.push_back({term.link, factor});
        }
    }
    const auto first = std::find_if(terms.begin(), terms.end(), [](const auto& term) { return term.second == 1; });
    if (first == terms.end()) return false;
    std::rotate(terms.begin(), first, first + 1);
    Link sum_so_far = terms[0].first;
    for (size_t i = 1; i < terms.size(); ++i) {
        Node step = step_node(graph[id].name, graph[id].type, StepKind::add, {sum_so_far, terms[i].first});
        step.factor = terms[i].second;
        if (i + 1 == terms.size()) {
            graph[id] = std::move(step);
        } else {
            step.name += fmt::format("/{}", i);
            sum_so_far = {graph.add(std::move(step))};
        }
    }
    return true;
}

bool make_couple(Graph& graph, NodeId id) {
    const Form& form = graph[id].form;
    if (form.terms.size() != 2) return false;
    const bool is_first = is_identity(form.terms[0].map);
    const Term &x = form.terms[is_first ? 0 : 1], &t = form.terms[is_first ? 1 : 0];
    double factor = 0;
    if (!is_row(x) || !is_row(t) || !is_identity(x.map) || !is_uniform(t.map, factor)) return false;
    const int64_t begin = t.map.rows - t.map.cols;
    if (begin < 0) return false;
    for (int64_t i = 0; i < t.map.rows; ++i)
        if (t.map.columns[static_cast<size_t>(i)] != (i < begin ? -1 : i - begin)) return false;
    Node step = step_node(graph[id].name, graph[id].type, StepKind::couple, {x.link, t.link});
    step.begin = begin;
    step.end = t.map.rows;
    step.factor = factor;
    graph[id] = std::move(step);
    return true;
}

/// Channels of several nodes side by side.
bool make_copy(Graph& graph, NodeId id) {
    struct Block {
        size_t term;
        int64_t begin, end;  // channels of the term's node
    };
    const Form form = graph[id].form;
    std::vector<Block> blocks;
    for (size_t row = 0; row < static_cast<size_t>(form.type.channels); ++row) {
        size_t found = form.terms.size();
        for (size_t i = 0; i < form.terms.size(); ++i) {
            if (form.terms[i].map.columns[row] < 0) continue;
            if (found != form.terms.size() || form.terms[i].map.values[row] != 1) return false;
            found = i;
        }
        if (found == form.terms.size()) return false;
        const int64_t column = form.terms[found].map.columns[row];
        if (!blocks.empty() && blocks.back().term == found && blocks.back().end == column)
            ++blocks.back().end;
        else
            blocks.push_back({found, column, column + 1});
    }
    std::vector<Link> inputs;
    for (const Block& block : blocks) {
        Link link = form.terms[block.term].link;
        const Node& source = graph[link.node];
        if (block.begin != 0 || block.end != source.type.channels) {
            TensorType type = source.type;
            type.channels = block.end - block.begin;
            Node slice = step_node(graph[id].name + "/" + source.name, type, StepKind::slice, {{link.node}});
            slice.begin = block.begin;
            slice.end = block.end;
            link.node = graph.add(std::move(slice));
        }
        inputs.push_back(link);
    }
    graph[id] = step_node(graph[id].name, graph[id].type, StepKind::copy, std::move(inputs));
    return true;
}

}  // namespace

bool make_move(Graph& graph, NodeId id) {
    const Form& form = graph[id].form;
    const bool has_transform = std::any_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
        return graph[term.link.node].kind == NodeKind::transform;
    });
    if (has_transform || has_bias(form)) return false;
    if (graph[id].activation.kind != ActivationKind::none) return make_activation(graph, id);
    if (!std::all_of(form.terms.begin(), form.terms.end(), [](const Term& term) { return term.map.is_selection; }))
        return false;
    if (form.terms.size() == 1) return make_log_det(graph, id) || make_single(graph, id) || make_copy(graph, id);
    return make_sum(graph, id) || make_couple(graph, id) || make_copy(graph, id);
}

}  // namespace stipple::engine::lowering
