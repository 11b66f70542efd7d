#include <algorithm>
#include <cmath>

#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/cli/mesh/ray_source.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/picture/legend.h"

namespace stipple::cli {
namespace {

struct MeshRaysOptions {
    InputFile mesh;
    OutputFile output;
    RayOptions rays;
    std::string picture;
};

/// The first hits, on the CPU.
struct Hits {
    Array<float, 1> t;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics;
};

Hits cast(const Mesh& mesh, const RaySet& rays, Device device) {
    const Array<float, 2> vertices = mesh.vertices.positions.to(device);
    const Array<int32_t, 2> triangles = mesh.triangles.to(device);
    const Array<float, 2> origins = rays.origins.to(device), directions = rays.directions.to(device);
    const int64_t m = rays.origins.size(0);
    Hits hits{Array<float, 1>({m}, device), Array<int32_t, 1>({m}, device), Array<float, 2>({m, 3}, device)};
    const geometry::MeshIndex index(geometry::MeshView(vertices.view(), triangles.view()));
    geometry::Rays cast_rays;
    cast_rays.origins = origins.view();
    cast_rays.directions = directions.view();
    geometry::first_hit(index, cast_rays, {hits.t.view(), hits.faces.view(), hits.barycentrics.view()});
    return {hits.t.to(Device{}), hits.faces.to(Device{}), hits.barycentrics.to(Device{})};
}

/// The places that were hit, with t, face and ray, and with what the mesh carries there.
PointCloud cloud_of_hits(const Mesh& mesh, const Hits& hits) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < hits.t.size(0); ++i)
        if (hits.faces.data()[i] >= 0) rows.push_back(i);
    const auto n = static_cast<int64_t>(rows.size());
    geometry::SurfaceSamples samples{Array<float, 2>(), Array<int32_t, 1>({n}), Array<float, 2>({n, 3})};
    Attribute t("t", DType::f32, n, 1), face("face", DType::i32, n, 1), ray("ray", DType::i32, n, 1);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = rows[static_cast<size_t>(i)];
        samples.faces.data()[i] = face.as<int32_t>()(i, 0) = hits.faces.data()[row];
        t.as<float>()(i, 0) = hits.t.data()[row];
        ray.as<int32_t>()(i, 0) = static_cast<int32_t>(row);
        for (int c = 0; c < 3; ++c) samples.barycentrics.data()[3 * i + c] = hits.barycentrics.data()[3 * row + c];
    }
    samples.points = geometry::interpolate(mesh, samples, mesh.vertices.positions.view());
    PointCloud cloud = geometry::cloud_of_samples(mesh, std::move(samples));
    for (Attribute* attribute : {&t, &face, &ray}) {
        std::erase_if(cloud.attributes, [&](const Attribute& other) { return other.name() == attribute->name(); });
        cloud.attributes.push_back(std::move(*attribute));
    }
    return cloud;
}

/// Depths by colour, near ones dark, with a bar; white where nothing was hit.
Image depth_picture(const Hits& hits, const RaySet& rays, double nearest, double farthest) {
    picture::ColorScale scale;
    scale.low = nearest;
    scale.high = farthest > nearest ? farthest : nearest + 1;
    picture::LegendStyle style;
    style.text_size = std::max(11.0, static_cast<double>(rays.height) / 32);
    style.title = "depth";
    const double margin = style.text_size;
    const double bar = picture::color_bar_width(scale, style, static_cast<double>(rays.height));
    Image image(rays.width + static_cast<int64_t>(std::ceil(bar + 2 * margin)), rays.height, 3);
    picture::fill(image, {255, 255, 255});
    for (int64_t i = 0; i < rays.width * rays.height; ++i) {
        if (hits.faces.data()[i] < 0) continue;
        const double share = (hits.t.data()[i] - scale.low) / (scale.high - scale.low);
        const picture::Rgb color = picture::map_color(scale.map, share);
        uint8_t* pixel = image.at(i % rays.width, i / rays.width);
        pixel[0] = color.r;
        pixel[1] = color.g;
        pixel[2] = color.b;
    }
    picture::draw_color_bar(
        image, {static_cast<double>(rays.width) + margin, margin, bar, static_cast<double>(rays.height) - 2 * margin},
        scale, style);
    return image;
}

Result run_rays(const MeshRaysOptions& options, const Common& common) {
    require_ray_source(options.rays);
    require_one_stdin({options.mesh.path, options.rays.file});
    const bool has_picture = !options.picture.empty();
    STIPPLE_REQUIRE(!has_picture || options.rays.camera || !options.rays.eye.empty(),
                    "--picture is for --camera and --eye");
    io::Format format{};
    if (!options.output.path.empty()) format = require_output(options.output, common);
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.mesh.path});
    if (!options.rays.file.empty()) result.fields["inputs"].push_back(options.rays.file);
    const Mesh mesh = load_faces(options.mesh, common, result);
    const RaySet rays = make_rays(options.rays, mesh, common, result);
    const Hits hits = about_file(options.mesh.path, [&] { return cast(mesh, rays, parse_device(common.device)); });
    Mesh found;
    found.vertices = cloud_of_hits(mesh, hits);
    const int64_t count = found.vertices.size(), all = rays.origins.size(0);
    const Attribute &t = *find(found.vertices.attributes, "t"), &face = *find(found.vertices.attributes, "face");
    result.fields["rays"] = all;
    result.fields["hits"] = count;
    result.text = fmt::format("{} of {} rays hit", grouped(count), grouped(all));
    double nearest = 0, farthest = 0;
    if (count > 0) {
        const auto [low, high] = std::minmax_element(t.as<float>().data(), t.as<float>().data() + count);
        nearest = *low;
        farthest = *high;
        result.fields["t"] = {{"min", nearest}, {"max", farthest}};
    }
    if (count > 0 && all == 1) {
        const std::array<double, 3> at = {found.vertices.world(0, 0), found.vertices.world(0, 1),
                                          found.vertices.world(0, 2)};
        result.fields["face"] = face.as<int32_t>()(0, 0);
        result.fields["point"] = at;
        result.text = fmt::format("hits face {} at t = {:.6g}: {:.9g} {:.9g} {:.9g}", face.as<int32_t>()(0, 0), nearest,
                                  at[0], at[1], at[2]);
    } else if (count > 0) {
        result.text += fmt::format(", t from {:.6g} to {:.6g}", nearest, farthest);
    }
    result.text += "\n";
    if (!options.output.path.empty())
        save_output(found, options.output, format, fmt::format("{} points with t, face and ray", grouped(count)),
                    common, result);
    save_picture(
        options.picture, [&] { return depth_picture(hits, rays, nearest, farthest); }, common, result);
    if (!common.table.empty())
        result.text = format_table({{"rays", "hits", "nearest t", "farthest t"},
                                    {{all, count, count ? Json(nearest) : Json(), count ? Json(farthest) : Json()}}},
                                   common.table);
    return result;
}

}  // namespace

Command add_mesh_rays(Arguments& group, Common& common) {
    auto options = std::make_shared<MeshRaysOptions>();
    RayOptions& rays = options->rays;
    Arguments& app = group.command("rays", "Cast rays at a mesh: depth pictures, scans, single hits");
    Option mesh = app.option("MESH", options->mesh.path, "The file; - is standard input");
    add_output(app, options->output).help("The places hit, with t, face and ray; - is standard output");
    app.flag("--camera", rays.camera, "A ray for each pixel, from an orbit that sees all of the mesh");
    app.option("--azimuth", rays.azimuth, "--camera: degrees about the up axis");
    app.option("--elevation", rays.elevation, "--camera: degrees above the horizon");
    app.option("--eye", rays.eye, "A pinhole camera at X Y Z").count(3).text("X Y Z");
    app.option("--look-at", rays.look_at, "--eye: what is in the middle; else the mesh's middle")
        .count(3)
        .text("X Y Z");
    add_up(app, rays.up);
    app.option("--fov", rays.field_of_view, "Degrees over the smaller side of the picture");
    app.option("--size", rays.size, "Pixels, WIDTHxHEIGHT");
    app.option("--rays", rays.file, "A file of origins and directions: x,y,z,dx,dy,dz or normals");
    app.option("--origin", rays.origin, "One ray from X Y Z ...").count(3).text("X Y Z");
    app.option("--direction", rays.direction, "... in this direction").count(3).text("X Y Z");
    app.option("--picture", options->picture, "Draw the depths of a camera into this .png");
    add_output_format(app, options->output);
    app.footer(
        "t counts in lengths of the direction; a camera's is the depth along its axis.\n\n"
        "Example:\n  stipple mesh rays bunny.ply --camera --azimuth 60 -o scan.ply --picture depth.png\n"
        "  stipple mesh rays part.stl --origin 0 0 10 --direction 0 0 -1");
    return {&app, [options, &common] { return run_rays(*options, common); }, {mesh}};
}

}  // namespace stipple::cli
