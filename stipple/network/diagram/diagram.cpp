#include "stipple/network/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "stipple/network/describe.h"
#include "stipple/network/diagram/graph_layout.h"
#include "stipple/network/diagram/xml.h"
#include "stipple/network/kinds/kind.h"

namespace stipple::network {
namespace {

// Letters of one width: what is measured here is what any viewer shows.
constexpr double kNameSize = 11.5, kDetailSize = 9.5, kLetter = 0.602;
constexpr double kBoxHeight = 36, kChainGap = 9, kPadding = 10, kBetween = 14;
constexpr double kMargin = 28, kTitleSize = 20, kLegendStep = 20;

// === What a kind is about

struct Group {
    const char* title;
    const char* strong;
    const char* pale;
};
// In the order of KindGroup.
constexpr std::array<Group, 8> kGroups = {{
    {"inputs and outputs", "#3c4858", "#e9edf2"},
    {"products", "#2f6fdb", "#eaf1fd"},
    {"one matrix a cloud", "#7c4dbd", "#f3edfb"},
    {"max and sums", "#d9730d", "#fdf0e1"},
    {"channels", "#76839a", "#f3f5f8"},
    {"neighbours", "#2b9558", "#e7f6ed"},
    {"arithmetic", "#14919b", "#e3f5f6"},
    {"flows", "#c23a78", "#fceaf2"},
}};
constexpr auto kOutputGroup = static_cast<size_t>(KindGroup::ends);

// Lines that pass ranks, so that the eye can follow them.
constexpr std::array<const char*, 8> kLongLines = {"#5b7fc7", "#c2803d", "#4f9d69", "#a05aa8",
                                                   "#c75b66", "#3f96a6", "#8a7a4a", "#6f78b8"};
constexpr const char* kShortLine = "#8290a3";

// === Boxes

// A layer or an output.
struct Box {
    std::string name, type, detail, count, tooltip;
    size_t group = 0;
    bool is_output = false;
    bool is_index = false;
    std::vector<Tensor> inputs;

    double width() const {
        const auto wide = [](const std::string& left, const std::string& right, double size) {
            const size_t letters = left.size() + right.size();
            return static_cast<double>(letters) * kLetter * size + (right.empty() ? 0 : kBetween);
        };
        return 2 * kPadding + std::max(wide(name, type, kNameSize), wide(detail, count, kDetailSize));
    }
};

std::string with_kind(const Layer& layer, const std::string& options) {
    return std::string(name_of(layer.kind)) + (options.empty() ? "" : " " + options);
}

std::vector<Box> boxes_of(const Network& network) {
    std::vector<Box> boxes;
    for (const Layer& layer : network.layers) {
        Box box;
        box.name = layer.name;
        box.type = to_string(layer.type);
        box.detail = with_kind(layer, brief_options_text(layer));
        box.group = static_cast<size_t>(kind_of(layer).group);
        const int64_t count_here = count(parameters_of(network, layer)).trained;
        const bool is_shared = layer.parameters != layer.name;
        if (count_here > 0) box.count = is_shared ? "shared" : grouped(count_here);
        box.tooltip = fmt::format("{}: {} {}", layer.name, with_kind(layer, options_text(layer)), box.type);
        for (Tensor input : layer.inputs) box.tooltip += "\ninput " + network[input].name;
        if (count_here > 0) box.tooltip += fmt::format("\n{} parameters", grouped(count_here));
        box.is_index = layer.type.is_index;
        box.inputs = layer.inputs;
        boxes.push_back(std::move(box));
    }
    for (const Output& output : network.outputs) {
        const Layer& layer = network[output.tensor];
        boxes.push_back({output.name,
                         to_string(layer.type),
                         "output",
                         {},
                         fmt::format("output {} = {}", output.name, layer.name),
                         kOutputGroup,
                         true,
                         layer.type.is_index,
                         {output.tensor}});
    }
    return boxes;
}

// A column of boxes, each the only reader of the one above it.
struct Chain {
    std::vector<size_t> boxes;
    double width = 0;

    double height() const {
        const auto count = static_cast<double>(boxes.size());
        return count * kBoxHeight + (count - 1) * kChainGap;
    }
};

std::vector<Chain> chains_of(const std::vector<Box>& boxes, std::vector<GraphNode>& nodes) {
    std::vector<size_t> readers(boxes.size(), 0);
    for (const Box& box : boxes)
        for (Tensor input : box.inputs) ++readers[static_cast<size_t>(input)];
    std::vector<Chain> chains;
    std::vector<int32_t> chain_of(boxes.size());
    for (size_t i = 0; i < boxes.size(); ++i) {
        const Box& box = boxes[i];
        const bool follows = box.inputs.size() == 1 && readers[static_cast<size_t>(box.inputs[0])] == 1;
        if (follows) {
            chain_of[i] = chain_of[static_cast<size_t>(box.inputs[0])];
        } else {
            chain_of[i] = static_cast<int32_t>(chains.size());
            chains.emplace_back();
            nodes.emplace_back();
            for (Tensor input : box.inputs) nodes.back().inputs.push_back(chain_of[static_cast<size_t>(input)]);
        }
        Chain& chain = chains[static_cast<size_t>(chain_of[i])];
        chain.boxes.push_back(i);
        chain.width = std::max(chain.width, box.width());
    }
    for (size_t i = 0; i < chains.size(); ++i) {
        nodes[i].width = chains[i].width;
        nodes[i].height = chains[i].height();
    }
    return chains;
}

// === Drawing

class Svg {
public:
    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
        text_ += '\n';
    }

    void write(double x, double y, const char* style, const std::string& text) {
        add("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>", x, y, style, xml_text(text));
    }

    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

void draw_box(Svg& svg, const Box& box, double x, double y, double width) {
    const Group& group = kGroups[box.group];
    svg.add("<g><title>{}</title>", xml_text(box.tooltip));
    svg.add(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" fill=\"{}\" "
        "stroke=\"{}\"/>",
        box.is_output ? "output" : "layer", x, y, width, kBoxHeight, box.is_output ? 18 : 5,
        box.is_output ? group.strong : group.pale, group.strong);
    if (!box.is_output)
        svg.add("<path d=\"M{:.1f} {:.1f}v{:.1f}\" stroke=\"{}\" stroke-width=\"4\"/>", x + 2, y + 5, kBoxHeight - 10,
                group.strong);
    const char* name = box.is_output ? "name light" : "name";
    const char* detail = box.is_output ? "detail pale" : "detail";
    svg.write(x + kPadding, y + 15, name, box.name);
    svg.write(x + kPadding, y + 28, detail, box.detail);
    svg.write(x + width - kPadding, y + 15, box.is_output ? "type light" : "type", box.type);
    if (!box.count.empty()) svg.write(x + width - kPadding, y + 28, "count", box.count);
    svg.add("</g>");
}

void draw_arrow(Svg& svg, double x, double y, const char* colour) {
    svg.add("<path d=\"M{:.1f} {:.1f}l-3.5 -6h7z\" fill=\"{}\"/>", x, y, colour);
}

void draw_lines(Svg& svg, const std::vector<Curve>& curves, const char* colour, bool is_dashed) {
    if (curves.empty()) return;
    std::string path;
    for (const Curve& curve : curves) {
        const double end = curve.y1 - (curve.is_arrow ? 5 : 0), middle = (curve.y0 + end) / 2;
        path += fmt::format("M{:.1f} {:.1f}", curve.x0, curve.y0);
        if (curve.x0 == curve.x1)
            path += fmt::format("V{:.1f}", end);
        else
            path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", curve.x0, middle, curve.x1, middle,
                                curve.x1, end);
    }
    svg.add("<path class=\"line\" d=\"{}\" stroke=\"{}\"{}/>", path, colour,
            is_dashed ? " stroke-dasharray=\"5 3\"" : "");
    for (const Curve& curve : curves)
        if (curve.is_arrow) draw_arrow(svg, curve.x1, curve.y1, colour);
}

std::string config_text(const Network& network) {
    std::string text;
    for (const auto& [key, value] : network.config)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
    return text;
}

constexpr const char* kStyle =
    "<style>text{font-family:'DejaVu Sans Mono','Menlo','Consolas',monospace;fill:#1c2733}"
    ".title{font:600 20px 'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif}"
    ".totals{font:12.5px 'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#46515f}"
    ".name{font-size:11.5px;font-weight:600}.type{font-size:11.5px;text-anchor:end}"
    ".detail{font-size:9.5px;fill:#55616f}.count{font-size:9.5px;fill:#55616f;text-anchor:end}"
    ".light{fill:#fff}.pale{fill:#c9d2dd}.line{fill:none;stroke-width:1.5;stroke-linecap:round}"
    ".layer,.output{stroke-opacity:.55}</style>";

}  // namespace

std::string to_svg(const Network& network) {
    validate(network);
    const std::vector<Box> boxes = boxes_of(network);
    std::vector<GraphNode> nodes;
    const std::vector<Chain> chains = chains_of(boxes, nodes);
    const GraphLayout layout = lay_out(nodes);

    std::array<bool, kGroups.size()> is_used{};
    for (const Box& box : boxes) is_used[box.group] = true;
    const std::string config = config_text(network), totals = totals_text(network);
    double legend_width = 0;
    for (size_t i = 0; i < kGroups.size(); ++i)
        if (is_used[i])
            legend_width += kLegendStep + 26 + 6.8 * static_cast<double>(std::string_view(kGroups[i].title).size());
    const double words = 7.2 * static_cast<double>(std::max(config.size(), totals.size()));
    const double width = std::max({layout.width, legend_width, words, 360.0}) + 2 * kMargin;
    const double top = kMargin + kTitleSize + (config.empty() ? 70 : 88);
    const double left = (width - layout.width) / 2;
    const double height = top + layout.height + kMargin;

    Svg svg;
    svg.add("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    svg.add(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\">",
        width, height);
    svg.add("{}", kStyle);
    svg.add("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>");
    svg.write(kMargin, kMargin + kTitleSize - 4, "title", network.name);
    svg.write(kMargin, kMargin + kTitleSize + 17, "totals", totals);
    if (!config.empty()) svg.write(kMargin, kMargin + kTitleSize + 35, "totals", config);
    double x = kMargin;
    const double legend = top - 32;
    for (size_t i = 0; i < kGroups.size(); ++i) {
        if (!is_used[i]) continue;
        svg.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"16\" height=\"12\" rx=\"3\" fill=\"{}\" stroke=\"{}\"/>", x,
                legend - 10, kGroups[i].pale, kGroups[i].strong);
        svg.write(x + 22, legend, "totals", kGroups[i].title);
        x += kLegendStep + 26 + 6.8 * static_cast<double>(std::string_view(kGroups[i].title).size());
    }

    svg.add("<g transform=\"translate({:.1f} {:.1f})\">", left, top);
    size_t long_lines = 0;
    for (size_t i = 0; i < chains.size(); ++i) {
        const Box& last = boxes[chains[i].boxes.back()];
        const Line& line = layout.lines[i];
        const char* colour = line.passes_ranks ? kLongLines[long_lines++ % kLongLines.size()] : kShortLine;
        draw_lines(svg, line.curves, colour, last.is_index);
    }
    for (size_t i = 0; i < chains.size(); ++i) {
        const PlacedNode& at = layout.nodes[i];
        double y = at.y;
        for (size_t k = 0; k < chains[i].boxes.size(); ++k, y += kBoxHeight + kChainGap) {
            if (k > 0)
                draw_lines(svg, {{at.x + chains[i].width / 2, y - kChainGap, at.x + chains[i].width / 2, y, true}},
                           kShortLine, false);
            draw_box(svg, boxes[chains[i].boxes[k]], at.x, y, chains[i].width);
        }
    }
    svg.add("</g>");
    svg.add("</svg>");
    return svg.take();
}

}  // namespace stipple::network
