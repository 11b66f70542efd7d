#include "stipple/network/subgraph.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/network/builder.h"
#include "stipple/network/diagram.h"

namespace stipple::network {
namespace {

Network whole_network() {
    Builder build("whole");
    const Tensor points = build.input("points", points_of(3));
    const Tensor near = build.knn("knn", points, 4);
    const Tensor a = build.linear("a.linear", points, 8);
    const Tensor edges = build.gather("b.gather", a, near);
    const Tensor b = build.linear("b.linear", edges, 8);
    const Tensor pooled = build.max_rows("b.max", b);
    build.output("out", build.linear_sharing("c.linear", pooled, 8, {}, "b.linear"));
    return build.finish({});
}

Network part_of(const std::string& prefix) {
    return subgraph(whole_network(), "part", [&](const Layer& layer) { return layer.name.rfind(prefix, 0) == 0; });
}

TEST(Subgraph, WhatComesFromOutsideIsAnInput) {
    const Network part = part_of("b.");
    ASSERT_EQ(part.layers.size(), 5u);
    EXPECT_EQ(part.layers[0].name, "knn");
    EXPECT_EQ(part.layers[0].kind, Kind::input);
    EXPECT_TRUE(part.layers[0].type.is_index);
    EXPECT_EQ(part.layers[1].name, "a.linear");
    EXPECT_EQ(part.layers[1].kind, Kind::input);
    ASSERT_EQ(part.outputs.size(), 1u);
    EXPECT_EQ(part.outputs[0].name, "b.max");
    EXPECT_NO_THROW(validate(part));
    EXPECT_NE(to_svg(part).find("b.gather"), std::string::npos);
}

TEST(Subgraph, ParametersOfALayerThatIsNoPart) {
    const Network part = part_of("c.");
    EXPECT_EQ(part.layers.back().parameters, "c.linear");
    const Network both = subgraph(whole_network(), "part", [](const Layer& layer) { return layer.name != "points"; });
    EXPECT_EQ(both.layers.back().parameters, "b.linear");
    EXPECT_EQ(both.outputs.size(), 1u);
}

TEST(Subgraph, OfNoLayers) {
    EXPECT_THROW(part_of("none"), Error);
}

}  // namespace
}  // namespace stipple::network
