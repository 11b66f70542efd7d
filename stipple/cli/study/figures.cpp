#include "stipple/cli/study/figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stipple/geometry/normals.h"
#include "stipple/geometry/reconstruct.h"
#include "stipple/metrics/point_to_face.h"
#include "stipple/picture/chart.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/upsampling_study/place_colors.h"

namespace stipple::cli {
namespace {

constexpr const char* kError = "error";
constexpr const char* kErrorTitle = "distance to the surface, of the radius";

PointCloud load_kept(const std::string& path) {
    io::Warnings ignored;
    return io::load_cloud(path, {}, ignored);
}

/// Clouds of one shape in the unit sphere of its surface, with their errors.
class ShapeView {
public:
    ShapeView(const FigureSource& source, const study::Shape& shape)
        : plan_(*source.plan), shape_(shape), mesh_(plan_.load_mesh(shape.mesh)), indexed_(mesh_) {
        frame_ = metrics::unit_sphere(mesh_.vertices);
    }

    PointCloud input(const study::Condition& condition) const {
        return seen(load_kept(study::input_path(plan_, condition, shape_, plan_.first_seed)));
    }
    PointCloud output(const study::Condition& condition, const std::string& method) const {
        return seen(load_kept(study::output_path(plan_, method, condition, shape_, plan_.first_seed)));
    }
    /// What is reconstructed from a cloud that is seen.
    Mesh surface(const PointCloud& cloud) const {
        Array<float, 2> normals({cloud.size(), 3});
        geometry::estimate_normals(cloud.positions.view(), normals.view(), {});
        geometry::orient_consistently(cloud.positions.view(), normals.view());
        Mesh made = geometry::reconstruct_surface(cloud.positions.view(), normals.view());
        add_errors(made.vertices);
        return made;
    }

private:
    PointCloud seen(const PointCloud& cloud) const {
        const metrics::Points points = metrics::in_frame(cloud, frame_);
        PointCloud made(cloud.size());
        std::copy(points.rounded.span().begin(), points.rounded.span().end(), made.positions.data());
        add_errors(made);
        return made;
    }

    /// Of a cloud in the unit sphere.
    void add_errors(PointCloud& cloud) const {
        PointCloud back(cloud.size());
        back.origin = mesh_.vertices.origin;
        for (int64_t i = 0; i < cloud.size(); ++i)
            for (int axis = 0; axis < 3; ++axis) {
                const auto at = static_cast<size_t>(axis);
                back.positions.data()[3 * i + axis] = static_cast<float>(cloud.world(i, axis) * frame_.scale +
                                                                         frame_.origin[at] - mesh_.vertices.origin[at]);
            }
        const metrics::FaceDistances distances =
            metrics::point_to_face(indexed_, metrics::in_frame(back, indexed_.frame()));
        Attribute error(kError, DType::f32, cloud.size(), 1);
        for (int64_t i = 0; i < cloud.size(); ++i)
            error.as<float>()(i, 0) = static_cast<float>(distances.distance.data()[i] / frame_.scale);
        cloud.attributes.push_back(std::move(error));
    }

    const study::StudyPlan& plan_;
    const study::Shape& shape_;
    Mesh mesh_;
    metrics::IndexedMesh indexed_;
    metrics::Frame frame_;
};

/// Panels with the clouds or meshes that they show.
struct Grid {
    std::vector<PointCloud> clouds;
    std::vector<Mesh> meshes;
    std::vector<std::string> captions;

    void add(PointCloud cloud, std::string caption) {
        clouds.push_back(std::move(cloud));
        captions.push_back(std::move(caption));
    }
    void add(Mesh mesh, std::string caption) {
        meshes.push_back(std::move(mesh));
        captions.push_back(std::move(caption));
    }
    std::vector<picture::Panel> panels(const std::string& color_by) const {
        std::vector<picture::Panel> made;
        for (size_t i = 0; i < captions.size(); ++i) {
            picture::Panel& panel = made.emplace_back();
            if (meshes.empty())
                panel.cloud = &clouds[i];
            else
                panel.mesh = &meshes[i];
            panel.caption = captions[i];
            panel.color_by = color_by;
        }
        return made;
    }
    /// The size that 98 % of all errors of clouds stay within.
    double high() const {
        std::vector<double> errors;
        const auto take = [&](const PointCloud& cloud) {
            const Attribute* error = find(cloud.attributes, kError);
            for (int64_t i = 0; error && i < error->rows(); ++i)
                if (std::isfinite(error->value(i))) errors.push_back(error->value(i));
        };
        for (const PointCloud& cloud : clouds) take(cloud);
        if (errors.empty()) return 1;
        const auto most = errors.begin() + static_cast<int64_t>(0.98 * static_cast<double>(errors.size() - 1));
        std::nth_element(errors.begin(), most, errors.end());
        return *most > 0 ? *most : 1;
    }
};

picture::FigureStyle grid_style(const FigureSource& source, int64_t columns) {
    picture::FigureStyle style;
    style.columns = columns;
    style.panel_width = style.panel_height = source.size > 0 ? source.size : 300;
    style.viewpoint.up = picture::up_axis_by_name(source.up);
    return style;
}

Image draw_grid_errors(const Grid& grid, double high, picture::FigureStyle style) {
    style.range = {0.0, high};
    style.legend_title = kErrorTitle;
    return picture::draw_figure(grid.panels(kError), style).image;
}

std::vector<const study::Shape*> first_shapes(const FigureSource& source, size_t most) {
    std::vector<const study::Shape*> shapes;
    for (const study::Shape& shape : source.plan->shapes)
        if (shapes.size() < std::min(most, static_cast<size_t>(source.plan->figure_shapes))) shapes.push_back(&shape);
    return shapes;
}

}  // namespace

const study::Method& FigureSource::shown() const {
    for (const study::Method& method : plan->methods)
        if (method.kind == study::MethodKind::network) return method;
    return *std::find_if(plan->methods.begin(), plan->methods.end(),
                         [](const study::Method& method) { return method.kind == study::MethodKind::midpoints; });
}

Image draw_error_grid(const FigureSource& source, const study::Condition& condition, bool as_surfaces) {
    Grid clouds, surfaces;
    int64_t columns = 0;
    for (const study::Shape* shape : first_shapes(source, 5)) {
        const ShapeView view(source, *shape);
        columns = 0;
        const auto show = [&](PointCloud cloud, const std::string& caption) {
            if (as_surfaces) surfaces.add(view.surface(cloud), caption);
            clouds.add(std::move(cloud), caption);
            ++columns;
        };
        for (const study::Method& method : source.plan->methods)
            if (method.kind != study::MethodKind::floor)
                show(view.output(condition, method.name), fmt::format("{}: {}", shape->name, method.name));
        show(view.output(condition, "truth"), fmt::format("{}: truth", shape->name));
    }
    picture::FigureStyle style = grid_style(source, columns);
    style.inset = picture::Inset{.x = 0.5, .y = 0.4};
    // The scale of the clouds serves both: a bubble of a surface would take all colours of its own.
    return draw_grid_errors(as_surfaces ? surfaces : clouds, clouds.high(), style);
}

Image draw_step_grid(const FigureSource& source, const study::Shape& shape) {
    const ShapeView view(source, shape);
    const std::vector<study::Condition>& conditions = source.plan->conditions;
    Grid grid;
    for (const study::Condition& condition : conditions)
        grid.add(view.input(condition), fmt::format("input, {}", condition.title));
    for (const study::Condition& condition : conditions)
        grid.add(view.output(condition, source.shown().name),
                 fmt::format("{}, {} points", source.shown().name, grouped(condition.wanted())));
    return draw_grid_errors(grid, grid.high(), grid_style(source, static_cast<int64_t>(conditions.size())));
}

Image draw_source_grid(const FigureSource& source, const study::Condition& condition) {
    Grid grid;
    std::vector<PointCloud> outputs;
    const std::vector<const study::Shape*> shapes = first_shapes(source, 4);
    for (const study::Shape* shape : shapes) {
        const ShapeView view(source, *shape);
        PointCloud input = view.input(condition), output = view.output(condition, source.shown().name);
        study::color_by_place(input);
        study::color_by_nearest(output, input);
        grid.add(std::move(input), fmt::format("{}, {} points", shape->name, grouped(condition.points)));
        outputs.push_back(std::move(output));
    }
    for (PointCloud& output : outputs) {
        const std::string caption = fmt::format("{}, {} points", source.shown().name, grouped(output.size()));
        grid.add(std::move(output), caption);
    }
    return picture::draw_figure(grid.panels("color"), grid_style(source, static_cast<int64_t>(shapes.size()))).image;
}

Image draw_truth_grid(const FigureSource& source, const study::Shape& shape) {
    const ShapeView view(source, shape);
    Grid grid;
    for (const study::Condition& condition : source.plan->conditions) {
        grid.add(view.input(condition), fmt::format("input, {}", condition.title));
        grid.add(view.output(condition, source.shown().name), source.shown().name);
        grid.add(view.output(condition, "truth"), "truth");
    }
    return draw_grid_errors(grid, grid.high(), grid_style(source, 3));
}

Image draw_sweep(const std::vector<study::Condition>& conditions, const std::vector<study::Mean>& means, size_t score,
                 const std::string& axis) {
    const study::ScoreInfo& info = study::kScores[score];
    picture::LineChart chart;
    chart.title = fmt::format("{} by {}", info.title, axis);
    chart.x.label = axis;
    chart.y.label = info.scale == 1 ? std::string(info.title) : fmt::format("{} x 1000", info.title);
    std::map<std::string, size_t> place;
    const auto add = [&](const study::Mean& mean, double x) {
        const std::string name =
            mean.source == "measured" ? mean.method : fmt::format("{}, {}", mean.method, mean.source);
        const auto [at, is_new] = place.emplace(name, chart.series.size());
        if (is_new) chart.series.push_back({.name = name, .markers = true});
        chart.series[at->second].x.push_back(x);
        chart.series[at->second].y.push_back(info.scale * mean.mean[score]);
    };
    const auto in_order = [&](bool on_axis, const auto& work) {
        for (const study::Condition& condition : conditions)
            for (const study::Mean& mean : means)
                if (std::isfinite(condition.value) == on_axis && mean.input == condition.id &&
                    std::isfinite(mean.mean[score]))
                    work(mean, condition.value);
    };
    in_order(true, add);
    // What does not depend on the axis is a level line, unless it has a curve.
    const std::map<std::string, size_t> curves = place;
    in_order(false, [&](const study::Mean& mean, double) {
        if (mean.source != "measured" || curves.count(mean.method)) return;
        for (const study::Condition& condition : conditions)
            if (std::isfinite(condition.value)) add(mean, condition.value);
    });
    return picture::draw_chart(chart, {}).image;
}

}  // namespace stipple::cli
