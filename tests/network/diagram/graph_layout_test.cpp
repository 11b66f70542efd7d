// Layouts of graphs: what every picture must have, on many random graphs, and the order on small ones.

#include "stipple/network/diagram/graph_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stipple/core/rng.h"
#include "stipple/network/diagram/graph_ranks.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

std::vector<GraphNode> random_graph(uint64_t seed, uint32_t count) {
    const Rng rng(seed);
    std::vector<GraphNode> nodes;
    uint64_t draw = 0;
    for (uint32_t i = 0; i < count; ++i) {
        GraphNode node{50.0 + rng.below(draw, 200), 20.0 + rng.below(draw + 1, 150), {}};
        draw += 2;
        const uint32_t inputs = i == 0 ? 0 : rng.below(draw++, 4);
        // Near ones mostly, far ones sometimes.
        for (uint32_t k = 0; k < inputs; ++k) {
            const uint32_t reach = rng.below(draw++, 5) == 0 ? i : std::min<uint32_t>(i, 6);
            node.inputs.push_back(static_cast<int32_t>(i - 1 - rng.below(draw++, reach)));
        }
        nodes.push_back(node);
    }
    return nodes;
}

void expect_sound(const std::vector<GraphNode>& nodes, const GraphLayout& layout) {
    constexpr double kSlack = 1e-6;
    ASSERT_EQ(layout.nodes.size(), nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
        const PlacedNode& a = layout.nodes[i];
        EXPECT_GE(a.x, -kSlack);
        EXPECT_GE(a.y, 0);
        EXPECT_LE(a.x + nodes[i].width, layout.width + kSlack);
        EXPECT_LE(a.y + nodes[i].height, layout.height + kSlack);
        for (size_t k = 0; k < i; ++k) {
            const PlacedNode& b = layout.nodes[k];
            const bool is_apart = a.x + nodes[i].width < b.x || b.x + nodes[k].width < a.x ||
                                  a.y + nodes[i].height < b.y || b.y + nodes[k].height < a.y;
            EXPECT_TRUE(is_apart) << i << " and " << k;
        }
        for (int32_t input : nodes[i].inputs) {
            const PlacedNode& from = layout.nodes[static_cast<size_t>(input)];
            EXPECT_LT(from.rank, a.rank);
            EXPECT_LT(from.y + nodes[static_cast<size_t>(input)].height, a.y);
            // Its arrow arrives on the box's upper edge.
            const auto& curves = layout.lines[static_cast<size_t>(input)].curves;
            EXPECT_TRUE(std::any_of(curves.begin(), curves.end(),
                                    [&](const Curve& curve) {
                                        return curve.is_arrow && curve.y1 == a.y && curve.x1 >= a.x &&
                                               curve.x1 <= a.x + nodes[i].width;
                                    }))
                << input << " to " << i;
        }
    }
    // Every piece of a line starts at its box or where another piece of it ends, goes down, and stays inside.
    for (size_t i = 0; i < nodes.size(); ++i)
        for (const Curve& curve : layout.lines[i].curves) {
            EXPECT_LT(curve.y0, curve.y1);
            EXPECT_GE(std::min(curve.x0, curve.x1), -kSlack);
            EXPECT_LE(std::max(curve.x0, curve.x1), layout.width + kSlack);
            const double bottom = layout.nodes[i].y + nodes[i].height;
            const bool is_joined =
                std::abs(curve.y0 - bottom) < kSlack ||
                std::any_of(layout.lines[i].curves.begin(), layout.lines[i].curves.end(), [&](const Curve& other) {
                    return !other.is_arrow && std::abs(other.x1 - curve.x0) < kSlack &&
                           std::abs(other.y1 - curve.y0) < kSlack;
                });
            EXPECT_TRUE(is_joined);
        }
}

TEST(NetworkGraphLayout, EveryGraphIsSound) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const auto nodes = random_graph(seed, 1 + static_cast<uint32_t>(seed) * 2);
        expect_sound(nodes, lay_out(nodes));
    }
    const auto large = random_graph(1000, 400);
    expect_sound(large, lay_out(large));
}

TEST(NetworkGraphLayout, NothingAndOne) {
    EXPECT_TRUE(lay_out({}).nodes.empty());
    const GraphLayout one = lay_out({{100, 40, {}}});
    EXPECT_EQ(one.nodes[0].x, 0);
    EXPECT_EQ(one.nodes[0].y, 0);
    EXPECT_EQ(one.width, 100);
    EXPECT_EQ(one.height, 40);
    EXPECT_TRUE(one.lines[0].curves.empty());
}

TEST(NetworkGraphLayout, TheSameGraphTwiceIsTheSamePicture) {
    const auto nodes = random_graph(5, 80);
    const GraphLayout a = lay_out(nodes), b = lay_out(nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
        EXPECT_EQ(a.nodes[i].x, b.nodes[i].x);
        EXPECT_EQ(a.nodes[i].y, b.nodes[i].y);
    }
}

TEST(NetworkGraphLayout, AChainIsAStraightColumn) {
    std::vector<GraphNode> nodes = {{100, 40, {}}};
    for (int32_t i = 1; i < 10; ++i) nodes.push_back({60.0 + 10 * i, 40, {i - 1}});
    const GraphLayout layout = lay_out(nodes);
    for (size_t i = 0; i < nodes.size(); ++i)
        EXPECT_NEAR(layout.nodes[i].x + nodes[i].width / 2, layout.width / 2, 1e-6);
    for (size_t i = 0; i + 1 < nodes.size(); ++i) EXPECT_FALSE(layout.lines[i].passes_ranks);
}

TEST(NetworkGraphLayout, WhatCanBeUncrossedIs) {
    // Two ladders whose boxes are listed alternately, and a complete tree.
    std::vector<GraphNode> ladders = {{50, 20, {}}, {50, 20, {}}};
    for (int32_t i = 2; i < 30; ++i) ladders.push_back({50, 20, {i - 2}});
    EXPECT_EQ(count_crossings(rank_graph(ladders)), 0);
    std::vector<GraphNode> tree = {{50, 20, {}}};
    for (int32_t i = 1; i < 63; ++i) tree.push_back({50, 20, {(i - 1) / 2}});
    EXPECT_EQ(count_crossings(rank_graph(tree)), 0);
    // K(3, 3) has nine at least in two ranks.
    std::vector<GraphNode> complete(3, {50, 20, {}});
    for (int i = 0; i < 3; ++i) complete.push_back({50, 20, {0, 1, 2}});
    EXPECT_EQ(count_crossings(rank_graph(complete)), 9);
}

TEST(NetworkGraphLayout, InputsStandAboveTheirFirstReader) {
    // 0 -> 1 -> 2 -> 3, and 4 is read by 5 = f(3, 4): no reason to be at the top.
    const GraphLayout layout =
        lay_out({{50, 20, {}}, {50, 20, {0}}, {50, 20, {1}}, {50, 20, {2}}, {50, 20, {}}, {50, 20, {3, 4}}});
    EXPECT_EQ(layout.nodes[4].rank, layout.nodes[5].rank - 1);
    // 0 -> {1, 2}; 1 -> 3 -> 4; 4 reads 2: 2 may stand anywhere between, and stands by its reader.
    const GraphLayout other = lay_out({{50, 20, {}}, {50, 20, {0}}, {50, 20, {0}}, {50, 20, {1}}, {50, 20, {3, 2}}});
    EXPECT_EQ(other.nodes[2].rank, 2);
}

TEST(NetworkGraphLayout, ALongLineIsOneAndStraight) {
    // 0 is read by all of a chain: one line beside it.
    std::vector<GraphNode> nodes = {{80, 20, {}}, {80, 20, {0}}};
    for (int32_t i = 2; i < 8; ++i) nodes.push_back({80, 20, {i - 1, 0}});
    const GraphLayout layout = lay_out(nodes);
    EXPECT_TRUE(layout.lines[0].passes_ranks);
    int verticals = 0;
    double x = -1;
    for (const Curve& curve : layout.lines[0].curves)
        if (!curve.is_arrow && curve.y1 - curve.y0 == 20) {  // beside a box
            if (x < 0) x = curve.x0;
            EXPECT_NEAR(curve.x0, x, 1e-9);
            ++verticals;
        }
    EXPECT_EQ(verticals, 6);
}

}  // namespace
}  // namespace stipple::test
