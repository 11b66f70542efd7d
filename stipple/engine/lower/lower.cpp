#include "stipple/engine/lower/graph.h"

namespace stipple::engine {

Program lower(const network::Network& network, const network::Weights& weights) {
    network::validate(network);
    network::check_weights(network, weights);
    lowering::Graph graph = lowering::read_network(network, weights);
    lowering::share_searches(graph);
    lowering::compose_dense(graph);
    lowering::cut_dense(graph);
    return lowering::emit(graph, lowering::plan_chains(graph));
}

}  // namespace stipple::engine
