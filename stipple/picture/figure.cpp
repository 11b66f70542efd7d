#include "stipple/picture/figure.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "stipple/picture/canvas.h"
#include "stipple/picture/legend.h"
#include "stipple/picture/render/eye_dome.h"
#include "stipple/picture/render/raster.h"
#include "stipple/picture/render/shade.h"
#include "stipple/picture/render/splat.h"
#include "stipple/picture/text.h"

namespace stipple::picture {
namespace {

constexpr size_t kMaxLabels = 4096;
constexpr int64_t kMaxPixels = int64_t{1} << 27;
constexpr int64_t kMaxSamples = int64_t{1} << 27;  // of a view: 1 GiB of keys

/// What colours some panels: an attribute by its values or by its labels, with one scale for all of them.
struct ColorGroup {
    std::string name;
    bool ranged = false;          // else labels
    std::optional<size_t> owner;  // the panel, of different scenes side by side that nobody asked to compare
    bool has_legend = false;
    std::vector<double> values;
    ColorScale scale;
};

struct Prepared {
    std::unique_ptr<Coloring> cloud_color, mesh_color;
    std::vector<Vec3f> normals;
    Camera camera;
    SplatSizes splats;
    std::optional<size_t> group;
};

struct Layout {
    int64_t columns = 1, rows = 1;
    double text = 16;    // size
    double margin = 12;  // around everything
    double gap = 8;      // between panels
    double caption = 0;  // height below each panel
    double title = 0;    // height above the panels
    double legend = 0;   // width right of the panels, with its gap: of the only legend
    double beside = 0;   // the same right of each panel, where they have legends of their own
    int64_t width = 0, height = 0;
};

class FigurePainter {
public:
    FigurePainter(std::span<const Panel> panels, const FigureStyle& style) : panels_(panels), style_(style) {
        check();
        background_ = style.background.value_or(style.dark ? Rgb{22, 24, 29} : Rgb{255, 255, 255});
        ink_ = is_dark(background_) ? Rgb{222, 226, 232} : Rgb{34, 37, 43};
    }

    Figure draw() {
        prepare_colors();
        prepare_cameras();
        make_room_for_splats();
        lay_out();
        Figure figure;
        figure.image = Image(layout_.width, layout_.height, 3);
        const auto ranged = std::find_if(groups_.begin(), groups_.end(), [](const ColorGroup& g) { return g.ranged; });
        const ColorScale& first = ranged != groups_.end() ? ranged->scale : plain_;
        figure.low = first.low;
        figure.high = first.high;
        fill(figure.image, background_);
        for (size_t i = 0; i < panels_.size(); ++i) {
            const auto [x, y] = corner_of(i);
            figure.panels.push_back(
                draw_view(figure.image, i, prepared_[i].camera, x, y, style_.panel_width, style_.panel_height, 1));
            figure.panels.back().low = scale_of(i).low;
            figure.panels.back().high = scale_of(i).high;
            figure.cameras.push_back(prepared_[i].camera);
            figure.corners.push_back({x, y});
        }
        if (style_.inset) draw_insets(figure.image);
        for (size_t i = 0; i < panels_.size(); ++i) draw_caption(figure.image, i);
        for (size_t i = 0; i < panels_.size() && style_.axes; ++i) {
            const auto [x, y] = corner_of(i);
            draw_axes(figure.image, static_cast<double>(x), static_cast<double>(y + style_.panel_height),
                      prepared_[i].camera, layout_.text);
        }
        draw_title_and_legend(figure.image);
        return figure;
    }

private:
    static bool is_dark(Rgb c) { return 0.3 * c.r + 0.59 * c.g + 0.11 * c.b < 120; }

    void check() const {
        STIPPLE_REQUIRE(style_.panel_width >= 16 && style_.panel_width <= 16384 && style_.panel_height >= 16 &&
                            style_.panel_height <= 16384,
                        "panels of {} x {} pixels, a side is 16 to 16384", style_.panel_width, style_.panel_height);
        STIPPLE_REQUIRE(style_.samples >= 0 && style_.samples <= 4, "{} samples per pixel and axis, 0 to 4 are taken",
                        style_.samples);
        STIPPLE_REQUIRE(style_.columns >= 0 && std::isfinite(style_.text_size) && std::isfinite(style_.point_radius),
                        "columns, text size and point radius must be numbers");
        if (style_.range)
            STIPPLE_REQUIRE(style_.range->first < style_.range->second && std::isfinite(style_.range->first) &&
                                std::isfinite(style_.range->second),
                            "the colour range {} to {} is empty", style_.range->first, style_.range->second);
        if (style_.inset) {
            const Inset& inset = *style_.inset;
            STIPPLE_REQUIRE(inset.size > 0.001 && inset.size <= 1 && inset.box > 0.05 && inset.box <= 1 &&
                                std::isfinite(inset.x) && std::isfinite(inset.y),
                            "an inset of {} shown as {}: both are fractions of the panel", inset.size, inset.box);
        }
        for (const Panel& panel : panels_) {
            for (const PointCloud* cloud : {panel.cloud, panel.mesh ? &panel.mesh->vertices : nullptr})
                STIPPLE_REQUIRE(!cloud || cloud->positions.device() == Device{},
                                "a picture of points on {}: move them to the CPU first", cloud->positions.device());
            if (panel.mesh) validate(*panel.mesh);
            if (panel.cloud) validate(*panel.cloud);
        }
    }

    // === Colours
    void prepare_colors() {
        prepared_.resize(panels_.size());
        plain_.map = style_.color_map;
        std::optional<Error> missing;
        bool found = panels_.empty();
        for (size_t i = 0; i < panels_.size(); ++i) {
            const Panel& panel = panels_[i];
            Prepared& prepared = prepared_[i];
            // A panel without the attribute (an input without error values, say) is shown plain when others have it.
            const auto make = [&](const PointCloud& cloud, const Mesh* mesh, const std::string& by, Rgb constant) {
                std::unique_ptr<Coloring> color;
                try {
                    color = std::make_unique<Coloring>(cloud, mesh, by, constant, style_.viewpoint.up);
                    found = true;
                } catch (const Error& error) {
                    if (!by.empty() && by[0] == '#') throw;
                    if (!missing) missing = error;
                    color = std::make_unique<Coloring>(cloud, mesh, "constant", constant);
                }
                const bool labelled = color->kind() == ColorKind::category;
                if (!color->needs_range() && !labelled) return color;
                const std::string name = by.empty() ? automatic_color(cloud, style_.viewpoint.up) : by;
                const bool is_own = by.empty() && !style_.shared_camera;
                prepared.group = group_of(name, color->needs_range(), is_own ? std::optional<size_t>(i) : std::nullopt);
                // Heights that nobody asked for are plain to see.
                if (!by.empty() || color->kind() != ColorKind::axis) groups_[*prepared.group].has_legend = true;
                ColorGroup& group = groups_[*prepared.group];
                if (labelled) {
                    if (group.scale.labels.empty()) group.scale.labels = style_.labels;
                    color->collect_labels(group.scale.labels, kMaxLabels);
                } else {
                    color->sample_values(group.values);
                }
                return color;
            };
            if (panel.cloud) prepared.cloud_color = make(*panel.cloud, nullptr, panel.color_by, panel.cloud_color);
            // Behind a cloud that is coloured, the mesh is the neutral ground.
            if (panel.mesh)
                prepared.mesh_color =
                    make(panel.mesh->vertices, panel.mesh, panel.cloud ? "constant" : panel.color_by, panel.mesh_color);
            if (panel.mesh && style_.smooth) prepared.normals = corner_normals(*panel.mesh);
            found |= !panel.cloud && !panel.mesh;
        }
        if (missing && !found) throw *missing;
        for (ColorGroup& group : groups_) {
            choose_range(group.values, group.scale.low, group.scale.high);
            if (style_.range) std::tie(group.scale.low, group.scale.high) = *style_.range;
        }
        if (style_.range) std::tie(plain_.low, plain_.high) = *style_.range;
    }

    /// `owner`: the only panel that it is for.
    size_t group_of(const std::string& name, bool ranged, std::optional<size_t> owner) {
        for (size_t i = 0; i < groups_.size(); ++i)
            if (groups_[i].name == name && groups_[i].ranged == ranged && groups_[i].owner == owner) return i;
        groups_.push_back({name, ranged, owner, false, {}, plain_});
        return groups_.size() - 1;
    }

    const ColorScale& scale_of(size_t panel) const {
        return prepared_[panel].group ? groups_[*prepared_[panel].group].scale : plain_;
    }

    // === Cameras
    void prepare_cameras() {
        const double w = static_cast<double>(style_.panel_width), h = static_cast<double>(style_.panel_height);
        const double margin = margin_ > 0 ? margin_ : 0.04 * std::min(w, h);
        margin_ = margin;
        std::vector<const PointCloud*> all;
        for (const Panel& panel : panels_) {
            if (panel.cloud) all.push_back(panel.cloud);
            if (panel.mesh) all.push_back(&panel.mesh->vertices);
        }
        if (style_.shared_camera) {
            const Camera camera = fit_camera(style_.viewpoint, all, w, h, margin);
            for (Prepared& prepared : prepared_) prepared.camera = camera;
            return;
        }
        for (size_t i = 0; i < panels_.size(); ++i) {
            std::vector<const PointCloud*> own;
            if (panels_[i].cloud) own.push_back(panels_[i].cloud);
            if (panels_[i].mesh) own.push_back(&panels_[i].mesh->vertices);
            prepared_[i].camera = fit_camera(style_.viewpoint, own, w, h, margin);
        }
    }

    /// Near points of a wide view are drawn large: the cameras step back until their splats fit beside the margin.
    void make_room_for_splats() {
        const double side = static_cast<double>(std::min(style_.panel_width, style_.panel_height));
        for (int round = 0; round < 4; ++round) {
            double overhang = 0;
            for (size_t i = 0; i < panels_.size(); ++i) {
                const Panel& panel = panels_[i];
                if (!panel.cloud) continue;
                Prepared& prepared = prepared_[i];
                const Camera& camera = prepared.camera;
                const double given = panel.point_radius > 0 ? panel.point_radius : style_.point_radius;
                prepared.splats = {};
                if (given > 0)
                    prepared.splats.radius = given / camera.pixels_per_unit(camera.depth_middle());
                else
                    prepared.splats = choose_splat_sizes(*panel.cloud, camera, style_.panel_width, style_.panel_height);
                const std::vector<float>& factors = prepared.splats.factors;
                const float largest = factors.empty() ? 1 : *std::max_element(factors.begin(), factors.end());
                overhang = std::max(
                    overhang,
                    splat_pixels(camera, prepared.splats.radius * static_cast<double>(largest), camera.depth_low));
            }
            // A zoom cuts in any case, and points as large as the picture leave no room to give.
            if (overhang <= margin_ || style_.viewpoint.zoom > 1 || margin_ >= 0.3 * side || round == 3) return;
            margin_ = std::min(overhang + 0.5, 0.3 * side);
            prepare_cameras();
        }
    }

    // === Layout
    bool has_legend(const ColorGroup& group) const {
        return style_.legend && group.has_legend && (group.ranged || !group.scale.labels.empty());
    }
    bool has_one_legend() const { return groups_.size() == 1 && has_legend(groups_[0]); }

    LegendStyle legend_style(const std::string& name) const {
        LegendStyle legend;
        legend.text_size = 0.88 * layout_.text;
        legend.color = ink_;
        legend.title = style_.legend_title.empty() || groups_.size() > 1 ? name : style_.legend_title;
        return legend;
    }

    /// Of a legend beside so many rows of panels.
    double legend_height(const ColorGroup& group, int64_t rows) const {
        const double h = static_cast<double>(style_.panel_height);
        if (!group.ranged) return static_cast<double>(rows) * h;
        return std::min(1.6, static_cast<double>(rows)) * h * 0.78;
    }

    /// With the gap before it; 0 where there is none.
    double legend_width(const ColorGroup& group, int64_t rows) const {
        if (!has_legend(group)) return 0;
        const LegendStyle legend = legend_style(group.name);
        const double width = group.ranged ? color_bar_width(group.scale, legend, legend_height(group, rows))
                                          : labels_width(group.scale, style_.label_names, legend);
        return std::ceil(layout_.text + width);
    }

    void draw_legend(Image& image, const ColorGroup& group, const Rect& where) const {
        if (group.ranged)
            draw_color_bar(image, where, group.scale, legend_style(group.name));
        else
            draw_labels(image, where, group.scale, style_.label_names, legend_style(group.name));
    }

    void lay_out() {
        const auto n = std::max<int64_t>(1, static_cast<int64_t>(panels_.size()));
        layout_.columns = style_.columns;
        if (layout_.columns == 0)
            layout_.columns = n <= 4 ? n : static_cast<int64_t>(std::ceil(std::sqrt(1.5 * static_cast<double>(n))));
        layout_.columns = std::min(layout_.columns, n);
        layout_.rows = (n + layout_.columns - 1) / layout_.columns;
        const double w = static_cast<double>(style_.panel_width), h = static_cast<double>(style_.panel_height);
        const double side = std::min(w, h);
        layout_.text = style_.text_size > 0 ? style_.text_size : std::clamp(8 + 0.025 * side, 11.0, 48.0);
        bool has_caption = false;
        for (const Panel& panel : panels_) has_caption |= !panel.caption.empty();
        const bool plain = !has_caption && style_.title.empty() && n == 1 && !has_one_legend();
        layout_.margin = plain ? 0 : std::round(0.7 * layout_.text);
        layout_.gap = std::round(0.6 * layout_.text);
        layout_.caption = has_caption ? std::round(1.9 * layout_.text) : 0;
        layout_.title = style_.title.empty() ? 0 : std::round(2.2 * layout_.text);
        if (groups_.size() == 1) layout_.legend = legend_width(groups_[0], layout_.rows);
        if (groups_.size() > 1)
            for (const ColorGroup& group : groups_) layout_.beside = std::max(layout_.beside, legend_width(group, 1));
        const double columns = static_cast<double>(layout_.columns), rows = static_cast<double>(layout_.rows);
        const double width =
            2 * layout_.margin + columns * (w + layout_.beside) + (columns - 1) * layout_.gap + layout_.legend;
        const double height =
            2 * layout_.margin + layout_.title + rows * (h + layout_.caption) + (rows - 1) * layout_.gap;
        STIPPLE_REQUIRE(width * height <= static_cast<double>(kMaxPixels) && width <= 65535 && height <= 65535,
                        "a figure of {:.0f} x {:.0f} pixels is too large", width, height);
        layout_.width = static_cast<int64_t>(width);
        layout_.height = static_cast<int64_t>(height);
    }

    std::array<int64_t, 2> corner_of(size_t panel) const {
        const int64_t column = static_cast<int64_t>(panel) % layout_.columns;
        const int64_t row = static_cast<int64_t>(panel) / layout_.columns;
        const auto margin = static_cast<int64_t>(layout_.margin), gap = static_cast<int64_t>(layout_.gap);
        return {margin + column * (style_.panel_width + static_cast<int64_t>(layout_.beside) + gap),
                margin + static_cast<int64_t>(layout_.title) +
                    row * (style_.panel_height + static_cast<int64_t>(layout_.caption) + gap)};
    }

    // === Views
    PanelCounts draw_view(Image& image, size_t index, const Camera& camera, int64_t x, int64_t y, int64_t width,
                          int64_t height, double zoom) const {
        const Panel& panel = panels_[index];
        const Prepared& prepared = prepared_[index];
        PanelCounts counts;
        if (!panel.cloud && !panel.mesh) return counts;
        int64_t samples =
            style_.samples > 0 ? style_.samples : std::clamp<int64_t>(1536 / std::max(width, height), 2, 4);
        while (samples > 1 && width * height * samples * samples > kMaxSamples) --samples;
        Visibility visibility(width, height, samples);
        ShadeInput input;
        input.visibility = &visibility;
        input.camera = &camera;
        input.scale = &scale_of(index);
        input.background = background_;
        input.light = static_cast<float>(style_.light);
        input.occlusion = static_cast<float>(style_.occlusion);
        if (panel.cloud) {
            input.cloud = panel.cloud;
            input.cloud_color = prepared.cloud_color.get();
            if (zoom == 1)
                input.splats = prepared.splats;
            else  // enlarged points overlap less, so that an inset shows more than a blur
                input.splats.radius = prepared.splats.radius * std::pow(zoom, -0.4);
            const SplatCounts drawn = draw_splats(visibility, *panel.cloud, camera, input.splats);
            if (!panel.mesh) close_pinholes(visibility, camera, input.splats.radius);
            counts.points = drawn.drawn;
            counts.nonfinite = drawn.nonfinite;
            const ColorKind kind = prepared.cloud_color->kind();
            if (kind == ColorKind::rgb || kind == ColorKind::normal) input.light *= 0.4f;
            input.eye_dome = style_.eye_dome == EyeDome::on || (style_.eye_dome == EyeDome::automatic && !panel.mesh &&
                                                                is_scene(*panel.cloud, style_.viewpoint.up));
        }
        if (panel.mesh) {
            input.mesh = panel.mesh;
            input.mesh_color = prepared.mesh_color.get();
            if (style_.smooth) input.mesh_normals = &prepared.normals;
            input.mesh_edges = style_.edges;
            counts.nonfinite += draw_triangles(visibility, *panel.mesh, camera);
        }
        shade(input, image, x, y);
        return counts;
    }

    // === Insets
    void draw_insets(Image& image) {
        const Inset& inset = *style_.inset;
        const double w = static_cast<double>(style_.panel_width), h = static_cast<double>(style_.panel_height);
        const double side = std::min(w, h), part = inset.size * side;
        const auto box = std::max<int64_t>(4, static_cast<int64_t>(inset.box * side));
        const Rect region{std::clamp(inset.x * w - part / 2, 0.0, w - part),
                          std::clamp(inset.y * h - part / 2, 0.0, h - part), part, part};
        const Corner corner = inset.corner == Corner::automatic ? emptiest_corner(image, box, region) : inset.corner;
        const bool right = corner == Corner::upper_right || corner == Corner::lower_right;
        const bool low = corner == Corner::lower_left || corner == Corner::lower_right;
        const int64_t box_x = right ? style_.panel_width - box : 0, box_y = low ? style_.panel_height - box : 0;
        const double line = std::max(1.5, std::round(layout_.text / 9));
        for (size_t i = 0; i < panels_.size(); ++i) {
            const auto [x, y] = corner_of(i);
            const double px = static_cast<double>(x), py = static_cast<double>(y);
            const double bx = px + static_cast<double>(box_x), by = py + static_cast<double>(box_y);
            const double b = static_cast<double>(box), rx = px + region.x, ry = py + region.y;
            // Lines from the part to the box that enlarges it: between the corners that see each other.
            const bool falling = right == low;  // the box lies on the falling diagonal
            const double top = falling ? part : 0, bottom = falling ? 0 : part;
            const double box_top = falling ? b : 0, box_bottom = falling ? 0 : b;
            draw_line(image, rx, ry + top, bx, by + box_top, line * 0.6, inset.color, 0.5f);
            draw_line(image, rx + part, ry + bottom, bx + b, by + box_bottom, line * 0.6, inset.color, 0.5f);
            fill_rect(image, {bx, by, b, b}, background_);
            const double zoom = b / part;
            draw_view(image, i, prepared_[i].camera.cropped(region.x, region.y, zoom), x + box_x, y + box_y, box, box,
                      zoom);
            draw_frame(image, {bx, by, b, b}, line, inset.color);
            draw_frame(image, {rx, ry, part, part}, line, inset.color);
        }
    }

    // The corner where a box hides the fewest drawn pixels over all panels, and does not hide the part itself.
    Corner emptiest_corner(const Image& image, int64_t box, const Rect& region) const {
        Corner best = Corner::lower_right;
        int64_t least = -1;
        for (Corner corner : {Corner::lower_right, Corner::lower_left, Corner::upper_right, Corner::upper_left}) {
            const bool right = corner == Corner::upper_right || corner == Corner::lower_right;
            const bool low = corner == Corner::lower_left || corner == Corner::lower_right;
            const int64_t x0 = right ? style_.panel_width - box : 0, y0 = low ? style_.panel_height - box : 0;
            int64_t hidden = 0;
            for (size_t i = 0; i < panels_.size(); ++i) {
                const auto [x, y] = corner_of(i);
                for (int64_t v = y0; v < y0 + box; v += 2)
                    for (int64_t u = x0; u < x0 + box; u += 2) {
                        const uint8_t* p = image.at(x + u, y + v);
                        hidden += !(Rgb{p[0], p[1], p[2]} == background_);
                    }
            }
            const double b = static_cast<double>(box), bx = static_cast<double>(x0), by = static_cast<double>(y0);
            if (region.x < bx + b && region.x + region.width > bx && region.y < by + b && region.y + region.height > by)
                hidden += int64_t{1} << 40;
            if (least < 0 || hidden < least) {
                least = hidden;
                best = corner;
            }
        }
        return best;
    }

    // === Words
    void draw_caption(Image& image, size_t index) const {
        const auto [x, y] = corner_of(index);
        const double px = static_cast<double>(x), py = static_cast<double>(y);
        const double w = static_cast<double>(style_.panel_width), h = static_cast<double>(style_.panel_height);
        TextStyle text{layout_.text, ink_, Align::center, false, false};
        draw_text(image, px + w / 2, py + h + 1.25 * layout_.text, fit_text(panels_[index].caption, text, w), text);
        if (style_.scale_bar) {
            const Camera& camera = prepared_[index].camera;
            const double pad = 0.04 * std::min(w, h);
            draw_scale_bar(image, {px + pad, py + pad, 0.25 * w, h - 2 * pad},
                           camera.unit / camera.pixels_per_unit(camera.depth_middle()), style_.length_unit,
                           legend_style(""));
        }
    }

    void draw_title_and_legend(Image& image) const {
        const double panels_width = static_cast<double>(layout_.width) - 2 * layout_.margin - layout_.legend;
        if (!style_.title.empty()) {
            TextStyle text{1.2 * layout_.text, ink_, Align::center, true, false};
            draw_text(image, layout_.margin + panels_width / 2, layout_.margin + 1.2 * layout_.text,
                      fit_text(style_.title, text, panels_width), text);
        }
        const double rows = static_cast<double>(layout_.rows), h = static_cast<double>(style_.panel_height);
        if (has_one_legend()) {
            const double grid = rows * (h + layout_.caption) + (rows - 1) * layout_.gap - layout_.caption;
            const double height = legend_height(groups_[0], layout_.rows);
            draw_legend(image, groups_[0],
                        {layout_.margin + panels_width + layout_.text,
                         layout_.margin + layout_.title + (grid - height) / 2, layout_.legend - layout_.text, height});
        }
        if (groups_.size() <= 1) return;
        for (size_t i = 0; i < panels_.size(); ++i) {
            if (!prepared_[i].group || !has_legend(groups_[*prepared_[i].group])) continue;
            const ColorGroup& group = groups_[*prepared_[i].group];
            const auto [x, y] = corner_of(i);
            const double right = static_cast<double>(x + style_.panel_width), height = legend_height(group, 1);
            draw_legend(image, group,
                        {right + layout_.text, static_cast<double>(y) + (h - height) / 2, layout_.beside - layout_.text,
                         height});
        }
    }

    std::span<const Panel> panels_;
    const FigureStyle& style_;
    Rgb background_, ink_;
    ColorScale plain_;  // of panels that need no legend: depth
    std::vector<ColorGroup> groups_;
    std::vector<Prepared> prepared_;
    double margin_ = 0;  // of a panel, pixels
    Layout layout_;
};

}  // namespace

Figure draw_figure(std::span<const Panel> panels, const FigureStyle& style) {
    return FigurePainter(panels, style).draw();
}

Image draw_cloud(const PointCloud& cloud, const FigureStyle& style) {
    Panel panel;
    panel.cloud = &cloud;
    return draw_figure({&panel, 1}, style).image;
}

Image draw_mesh(const Mesh& mesh, const FigureStyle& style) {
    Panel panel;
    panel.mesh = &mesh;
    return draw_figure({&panel, 1}, style).image;
}

}  // namespace stipple::picture
