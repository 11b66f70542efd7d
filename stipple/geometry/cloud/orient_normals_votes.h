#pragma once
// Signs by votes: points as the nodes of a graph whose edges say, more or less surely, whether two normals agree.

#include <cstdint>
#include <vector>

namespace stipple::geometry {

/// Nodes a < b. Above 0: their signs should be equal; below: they should differ.
struct Vote {
    int32_t a = 0, b = 0;
    float weight = 0;
};

struct Signs {
    std::vector<int8_t> sign;   // [n] 1 or -1
    std::vector<int32_t> part;  // [n] connected part, from 0
    int32_t parts = 0;
};

/// Signs that keep as many votes as they can, by weight; finding the best is NP-hard. Every cluster, a single node at
/// first, joins the neighbour with which it shares the largest sum of votes, turned as the sum says, until no cluster
/// has a neighbour [Boruvka's spanning tree, with the votes of parallel edges added up as in the greedy contraction of
/// Keuper et al. 2015]; then nodes turn one by one as their neighbours ask. Of equal sums the first edge counts.
/// Each pair at most once. Deterministic, O(m log n) for m votes.
Signs settle(int32_t nodes, const std::vector<Vote>& votes);

}  // namespace stipple::geometry
