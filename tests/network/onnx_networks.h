#pragma once
// Small networks that together hold every kind of layer, in every form that an export has to tell apart.

#include <vector>

#include "stipple/network/network.h"

namespace stipple::test {

network::Network dense_network();          // linear, activation, dropout, sums, max, log_softmax on points and clouds
network::Network activation_network();     // every activation, after products on points and clouds, and alone
network::Network transform_network();      // transforms whose identity joins the bias, and one that cannot
network::Network rows_network();           // repeat, concat, slice, reverse, add, subtract, scale; points and clouds
network::Network neighbour_network();      // knn, gather, edges, softmax, interpolation, k > 1
network::Network one_neighbour_network();  // the same with k = 1: rows without a dimension of their own
network::Network wide_knn_network();       // neighbours in a space of many channels
network::Network index_network();          // indices as input and as output
network::Network sets_network();           // queries and a template beside a cloud: neighbours across point sets
network::Network attention_network();  // attention in every variant, within a set and across, constants, rows cut anew
network::Network flow_network();       // flow layers and their inverses, densities
network::Network flow_step_network();  // flow steps that hold a small network, with log-determinants
network::Network aliases_network();    // outputs that are inputs, twice the same, or pass through dropout

struct NamedNetwork {
    const char* name;
    network::Network (*build)();
};
inline const std::vector<NamedNetwork>& onnx_networks() {
    static const std::vector<NamedNetwork> all = {
        {"dense", dense_network},        {"activation", activation_network}, {"transform", transform_network},
        {"rows", rows_network},          {"neighbour", neighbour_network},   {"one_neighbour", one_neighbour_network},
        {"wide_knn", wide_knn_network},  {"index", index_network},           {"sets", sets_network},
        {"flow", flow_network},          {"flow_step", flow_step_network},   {"aliases", aliases_network},
        {"attention", attention_network}};
    return all;
}

}  // namespace stipple::test
