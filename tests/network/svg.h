#pragma once
// A picture of a network, checked by Python's XML parser.

#include <gtest/gtest.h>

#include <fstream>

#include "stipple/network/diagram.h"
#include "tests/support/python.h"

namespace stipple::test {

/// Well-formed; a box for each layer and output, with its name in it; boxes apart from each other, inside the picture,
/// and as wide as their text.
inline void expect_good_picture(const network::Network& network) {
    const TemporaryFolder folder;
    std::ofstream(folder / "picture.svg") << network::to_svg(network);
    std::ofstream names(folder / "names.txt");
    for (const network::Layer& layer : network.layers) names << layer.name << "\n";
    for (const network::Output& output : network.outputs) names << output.name << "\n";
    names.close();
    const std::string found = run_python(folder, R"python(
import re
import xml.etree.ElementTree as tree
root = tree.parse("picture.svg").getroot()
svg = "{http://www.w3.org/2000/svg}"
assert root.tag == svg + "svg"
width, height = float(root.get("width")), float(root.get("height"))
graph = root.find(svg + "g")
dx, dy = map(float, re.match(r"translate\((\S+) (\S+)\)", graph.get("transform")).groups())
boxes, names = [], []
for box in graph.findall(svg + "g"):
    rect = box.find(svg + "rect")
    x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
    assert 0 <= x + dx and x + dx + w <= width and 0 <= y + dy and y + dy + h <= height, "outside"
    boxes.append((x, y, x + w, y + h))
    texts = box.findall(svg + "text")
    names.append(texts[0].text)
    for line in set(text.get("y") for text in texts):
        size = 11.5 if float(line) < y + h / 2 else 9.5
        letters = sum(len(text.text) for text in texts if text.get("y") == line)
        assert letters * 0.6 * size + 20 <= w, f"{names[-1]}: text is wider than its box"
    assert box.find(svg + "title").text
for i, a in enumerate(boxes):
    for b in boxes[:i]:
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1], f"{a} overlaps {b}"
wanted = open("names.txt").read().split()
assert sorted(names) == sorted(wanted), (names, wanted)
print(len(boxes))
)python");
    EXPECT_EQ(found, std::to_string(network.layers.size() + network.outputs.size()) + "\n");
}

}  // namespace stipple::test
