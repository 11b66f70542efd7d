#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/signed_distance.h"
#include "stipple/metrics/normalise.h"
#include "stipple/ops/knn.h"

namespace stipple::cli {
namespace {

struct DistanceOptions {
    InputFile reference, points;
    OutputFile output;
    std::string picture, up = "z";
    std::string to = "auto";  // points, surface
    bool is_signed = false;
};

/// Adds `distance` and `nearest`, the point of the reference that is nearest, to the cloud.
void measure_to_points(const PointCloud& reference, PointCloud& cloud, Device device) {
    // Both in the frame of the reference: origins differ from file to file. Distances in float64 from there.
    const metrics::Frame frame{reference.origin, 1};
    const metrics::Points from = metrics::in_frame(cloud, frame), to = metrics::in_frame(reference, frame);
    const Array<float, 2> queries = from.rounded.to(device), targets = to.rounded.to(device);
    Array<int32_t, 2> indices({cloud.size(), 1}, device);
    ops::knn(ops::PointIndex(targets.view()), queries.view(), indices.view(), {});
    const Array<int32_t, 2> nearest = indices.to({});
    Attribute distance("distance", DType::f32, cloud.size(), 1);
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const int64_t j = nearest.data()[i];
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = from.exact.data()[3 * i + axis] - (j < 0 ? HUGE_VAL : to.exact.data()[3 * j + axis]);
            sum += d * d;
        }
        distance.as<float>().data()[i] = static_cast<float>(std::sqrt(sum));
    }
    put_attribute(cloud.attributes, std::move(distance));
    put_attribute(cloud.attributes, label_attribute("nearest", nearest.span()));
}

/// Adds `distance` and `face`, the face that is nearest, to the cloud.
void measure_to_surface(const Mesh& mesh, PointCloud& cloud, bool is_signed, Device device) {
    // Both in the frame of the mesh: origins differ from file to file.
    const Array<float, 2> queries = metrics::in_frame(cloud, {mesh.vertices.origin, 1}).rounded.to(device);
    const Array<float, 2> vertices = mesh.vertices.positions.to(device);
    const Array<int32_t, 2> triangles = mesh.triangles.to(device);
    const geometry::MeshView view(vertices.view(), triangles.view());
    Array<float, 1> distances({cloud.size()}, device);
    Array<int32_t, 1> faces({cloud.size()}, device);
    geometry::ClosestPoints found;
    found.distances = distances.view();
    found.faces = faces.view();
    const geometry::MeshIndex index(view);
    if (is_signed)
        geometry::signed_distance(index, geometry::WindingIndex(view), queries.view(), found);
    else
        geometry::closest_point(index, queries.view(), found);
    const auto add = [&](const char* name, DType dtype, const void* data) {
        std::erase_if(cloud.attributes, [&](const Attribute& attribute) { return attribute.name() == name; });
        Attribute attribute(name, dtype, cloud.size(), 1);
        copy_bytes(attribute.data(), Device{}, static_cast<const std::byte*>(data), device,
                   attribute.rows() * attribute.row_bytes());
        cloud.attributes.push_back(std::move(attribute));
    };
    add("distance", DType::f32, distances.data());
    add("face", DType::i32, faces.data());
}

struct Summary {
    std::vector<std::pair<std::string, double>> values;  // mean, std, min, max and quantiles
    int64_t inside = 0;
};

Summary summarise(const Attribute& distance, bool is_signed) {
    std::vector<double> sorted;
    Summary summary;
    double sum = 0, sum_absolute = 0, squares = 0;
    for (int64_t i = 0; i < distance.rows(); ++i) {
        const double d = distance.value(i);
        sorted.push_back(d);
        sum += d;
        sum_absolute += std::abs(d);
        summary.inside += is_signed && d < 0;
    }
    const auto n = static_cast<double>(sorted.size());
    const double mean = sum / n;
    for (const double d : sorted) squares += (d - mean) * (d - mean);
    std::sort(sorted.begin(), sorted.end());
    // The smallest value that so many are not above.
    const auto quantile = [&](double share) {
        return sorted[static_cast<size_t>(std::max(0.0, std::ceil(share * n) - 1))];
    };
    summary.values = {{"mean", mean}, {"std", std::sqrt(squares / n)}, {"min", sorted.front()}};
    if (is_signed) summary.values.insert(summary.values.begin() + 1, {"mean of |d|", sum_absolute / n});
    for (const auto& [name, share] : {std::pair("median", 0.5), std::pair("90 %", 0.9), std::pair("99 %", 0.99)})
        summary.values.emplace_back(name, quantile(share));
    summary.values.emplace_back("max", sorted.back());
    return summary;
}

Image draw(const PointCloud& cloud, const DistanceOptions& options) {
    const char* title = options.is_signed ? "signed distance, negative inside" : "distance";
    return draw_values({&cloud}, {""}, {"distance", title, options.is_signed, options.up});
}

/// A mesh where there are faces and --to does not say points, else a cloud of finite points.
Mesh load_reference(const DistanceOptions& options, const Common& common, Result& result) {
    if (options.to == "surface") return load_faces(options.reference, common, result);
    Mesh reference = load_with_progress(options.reference.path, options.reference.from, options.reference.item, common,
                                        result.warnings);
    if (options.to == "points") reference.triangles = Array<int32_t, 2>({0, 3});
    if (reference.faces() > 0) {
        require_finite_faces(reference, options.reference.path);
        recentre(reference.vertices);
    } else if (bounds_of(reference.vertices).finite == 0) {
        throw Error(ErrorCode::bad_file, Place{options.reference.path}, "has no finite points");
    }
    return reference;
}

Result run_distance(const DistanceOptions& options, const Json& inputs, const Common& common) {
    require_one_stdin({options.reference.path, options.points.path});
    io::Format format{};
    if (!options.output.path.empty()) format = require_output(options.output, common, "distance");
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = inputs;
    const Device device = parse_device(common.device);
    Mesh reference = load_reference(options, common, result), measured;
    const bool to_surface = reference.faces() > 0;
    STIPPLE_REQUIRE(to_surface || !options.is_signed, "--signed needs a surface, {} is a cloud",
                    options.reference.path);
    measured.vertices = load_points(options.points, common, result);
    about_file(options.reference.path, [&] {
        if (to_surface)
            measure_to_surface(reference, measured.vertices, options.is_signed, device);
        else
            measure_to_points(reference.vertices, measured.vertices, device);
    });
    const int64_t points = measured.vertices.size();
    const Summary summary = summarise(*find(measured.vertices.attributes, "distance"), options.is_signed);

    result.fields["signed"] = options.is_signed;
    Table table{{"points"}, {{points}}};
    std::vector<std::pair<std::string, std::string>> pairs = {{"points", grouped(points)}};
    Json values = Json::object();
    for (const auto& [name, value] : summary.values) {
        table.columns.push_back(name);
        table.rows[0].push_back(value);
        pairs.emplace_back(name, fmt::format("{:.6g}", value));
        values[name] = value;
    }
    if (options.is_signed) {
        result.fields["inside"] = summary.inside;
        pairs.insert(pairs.begin() + 1, {"inside", grouped(summary.inside)});
    }
    result.fields["distance"] = std::move(values);
    result.text = fmt::format("{} of {} to {}\n", options.is_signed ? "signed distance, negative inside," : "distance",
                              printable(options.points.path), printable(options.reference.path)) +
                  format_pairs(pairs, 2);
    if (!options.output.path.empty())
        save_output(measured, options.output, format,
                    fmt::format("{} points with distance and {}", grouped(points), to_surface ? "face" : "nearest"),
                    common, result);
    save_picture(
        options.picture, [&] { return draw(measured.vertices, options); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_distance(Arguments& root, Common& common) {
    auto options = std::make_shared<DistanceOptions>();
    Arguments& app = root.command("distance", "Measure how far points are from a cloud or a surface");
    Option points = app.option("POINTS", options->points.path, "The cloud that is measured; - is standard input");
    Option reference = app.option("REFERENCE", options->reference.path, "A cloud or a mesh");
    add_output(app, options->output).help("The points with distance and what is nearest; - is standard output");
    app.option("--to", options->to, "auto: the surface where the reference has faces, else its points")
        .one_of({"auto", "points", "surface"})
        .text("auto|points|surface");
    app.flag("--signed", options->is_signed, "Negative inside, by the winding number: meshes may be open");
    app.option("--picture", options->picture, "Draw the points by distance into this .png");
    add_up(app, options->up);
    add_output_format(app, options->output);
    app.option("--from", options->points.from, "Format of the points, when name and content do not tell");
    app.option("--item", options->points.item, "Which cloud of a file that holds many, from 0")
        .from_zero()
        .no_default();
    app.footer(
        "Example:\n  stipple distance after.las before.las -o change.las --picture change.png\n"
        "  stipple distance scan.ply part.stl --signed --json");
    const auto run = [options, &common] {
        return run_distance(*options, Json::array({options->points.path, options->reference.path}), common);
    };
    return {&app, run, {points, reference}};
}

Command add_mesh_distance(Arguments& group, Common& common) {
    auto options = std::make_shared<DistanceOptions>();
    options->to = "surface";
    Arguments& app = group.command("distance", "Measure how far points are from a mesh; see stipple distance");
    Option mesh = app.option("MESH", options->reference.path, "The surface");
    Option points = app.option("POINTS", options->points.path, "The cloud; - is standard input");
    add_output(app, options->output).help("The points with distance and nearest face; - is standard output");
    app.flag("--signed", options->is_signed, "Negative inside, by the winding number: meshes may be open");
    app.option("--picture", options->picture, "Draw the points by distance into this .png");
    add_up(app, options->up);
    add_output_format(app, options->output);
    app.option("--from", options->points.from, "Format of the points, when name and content do not tell");
    app.option("--item", options->points.item, "Which cloud of a file that holds many, from 0")
        .from_zero()
        .no_default();
    app.footer("Example:\n  stipple mesh distance part.stl scan.ply --signed -o dist.ply --picture dist.png");
    const auto run = [options, &common] {
        return run_distance(*options, Json::array({options->reference.path, options->points.path}), common);
    };
    return {&app, run, {mesh, points}};
}

}  // namespace stipple::cli
