// Pictures of networks, read by another XML parser.

#include "stipple/network/diagram.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stipple/network/builder.h"
#include "stipple/network/diagram/xml.h"
#include "tests/network/svg.h"
#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

Network small() {
    Builder build("small");
    const Tensor points = build.input("points", points_of(3));
    Tensor x = build.linear("conv1", points, 64, {.norm = true, .activation = relu()});
    x = build.linear("conv2", x, 1024);
    x = build.add_identity("matrix", build.linear("fc", build.max_points("pool", x), 9));
    build.output("moved", build.transform("apply", points, x));
    build.output("near", build.knn("knn", points, 16));
    return build.finish({{"quotes", "<\"&'>"}, {"control", "a\x01\x1b\xff\u00e9"}});
}

/// Densely connected: every layer reads all before it. About 250 layers.
Network dense() {
    Builder build("dense");
    std::vector<Tensor> parts = {build.input("x", points_of(3))};
    Tensor last = parts[0];
    for (int block = 0; block < 12; ++block) {
        parts = {last};
        for (int i = 0; i < 10; ++i) {
            const std::string name = fmt::format("blocks.{}.layer.{}", block, i);
            parts.push_back(build.linear(name, build.concat(name + ".concat", parts), 8));
        }
        last = parts.back();
        if (block % 3 == 0) build.output(fmt::format("stage{}", block), last);
    }
    build.output("y", last);
    return build.finish();
}

TEST(NetworkDiagram, IsWellFormedAndWhole) {
    for (const Network& network : {small(), dense()}) expect_good_picture(network);
}

TEST(NetworkDiagram, TellsWhatATableTells) {
    const Network network = small();
    const std::string svg = to_svg(network);
    for (const char* text :
         {">small<", ">conv1<", ">[B, N, 64]<", ">linear 64, norm, relu<", ">384<", ">[B, N, 16] int32<", ">knn k 16<",
          ">add_identity<", ">moved<", ">output<", ">8 layers, ", "MMAC for 1024 points<", ">neighbours<"})
        EXPECT_NE(svg.find(text), std::string::npos) << text;
    // The legend tells what is there, no more.
    EXPECT_EQ(svg.find(">flows<"), std::string::npos);
    EXPECT_EQ(svg, to_svg(network));
}

TEST(NetworkDiagram, NamesAreEscaped) {
    const std::string svg = to_svg(small());
    EXPECT_NE(svg.find("quotes &lt;&quot;&amp;&apos;&gt;"), std::string::npos);
    EXPECT_NE(svg.find("control a???\u00e9"), std::string::npos);
    EXPECT_EQ(xml_text("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&apos;");
    EXPECT_EQ(xml_text(std::string("\0\x07\x7f\n\t", 5)), "???\n\t");
    EXPECT_EQ(xml_text("\u00e9\u20ac\U0001f600"), "\u00e9\u20ac\U0001f600");
    // Overlong, surrogate, beyond Unicode, cut off, alone, not a character.
    EXPECT_EQ(xml_text("\xc0\x80"), "??");
    EXPECT_EQ(xml_text("\xed\xa0\x80"), "???");
    EXPECT_EQ(xml_text("\xf4\x90\x80\x80"), "????");
    EXPECT_EQ(xml_text("a\xe2\x82"), "a??");
    EXPECT_EQ(xml_text("\x80z"), "?z");
    EXPECT_EQ(xml_text("\xef\xbf\xbf"), "???");
}

TEST(NetworkDiagram, SharedParametersAreMarked) {
    Builder build("n");
    const Tensor x = build.input("x", points_of(3));
    const Tensor a = build.linear("a", x, 4);
    build.output("y", build.add("y", a, build.linear_sharing("b", x, 4, {}, "a")));
    const std::string svg = to_svg(build.finish());
    EXPECT_NE(svg.find(">shared<"), std::string::npos);
    EXPECT_NE(svg.find("weights of a"), std::string::npos);  // in its tooltip
}

TEST(NetworkDiagram, RefusesWhatIsNoNetwork) {
    Network network = small();
    network.layers[1].inputs = {4};
    EXPECT_ERROR(to_svg(network), bad_argument, "linear 'conv1'");
}

}  // namespace
}  // namespace stipple::test
