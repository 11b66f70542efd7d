#include <algorithm>
#include <cmath>

#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/picture/figure.h"
#include "stipple/picture/legend.h"
#include "stipple/picture/ray_camera.h"
#include "stipple/tasks/mesh_rays.h"

namespace stipple::cli {
namespace {

struct MeshRaysCommand {
    InputFile mesh;
    OutputFile output;
    picture::RayCameraOptions camera;
    std::string up = "z", size = "512x512";  // of the camera
    std::string file;                        // of rays
    tasks::OneRay ray;
    std::string picture;
};

/// Depths by colour, near ones dark, with a bar; white where nothing was hit.
Image depth_picture(const tasks::MeshHits& hits, int64_t width, int64_t height) {
    picture::ColorScale scale;
    scale.low = hits.hits > 0 ? hits.t_range.min : 0;
    scale.high = hits.hits > 0 && hits.t_range.max > scale.low ? hits.t_range.max : scale.low + 1;
    picture::LegendStyle style;
    style.text_size = std::max(11.0, static_cast<double>(height) / 32);
    style.title = "depth";
    const double margin = style.text_size;
    const double bar = picture::color_bar_width(scale, style, static_cast<double>(height));
    Image image(width + static_cast<int64_t>(std::ceil(bar + 2 * margin)), height, 3);
    picture::fill(image, {255, 255, 255});
    for (int64_t i = 0; i < width * height; ++i) {
        if (hits.ray_faces.data()[i] < 0) continue;
        const double share = (hits.t.data()[i] - scale.low) / (scale.high - scale.low);
        const picture::Rgb color = picture::map_color(scale.map, share);
        uint8_t* pixel = image.at(i % width, i / width);
        pixel[0] = color.r;
        pixel[1] = color.g;
        pixel[2] = color.b;
    }
    picture::draw_color_bar(
        image, {static_cast<double>(width) + margin, margin, bar, static_cast<double>(height) - 2 * margin}, scale,
        style);
    return image;
}

/// Exactly one source of rays; the size of a camera's picture. Before the first byte is read.
void require_source(MeshRaysCommand& command) {
    const tasks::OneRay& ray = command.ray;
    const int sources = (!ray.origin.empty() || !ray.direction.empty()) + !command.file.empty() + command.camera.orbit +
                        !command.camera.eye.empty();
    STIPPLE_REQUIRE(sources == 1, "where from? Give one of --camera, --eye, --rays, or --origin and --direction");
    STIPPLE_REQUIRE(ray.origin.empty() == ray.direction.empty(), "--origin and --direction go together");
    if (command.camera.is_wanted()) std::tie(command.camera.width, command.camera.height) = parse_size(command.size);
    command.camera.up = picture::up_axis_by_name(command.up);
    require_valid(command.camera);
}

tasks::RaySet rays_of(const MeshRaysCommand& command, const Mesh& mesh, const Common& common, Result& result) {
    if (!command.ray.origin.empty()) return tasks::ray_of(command.ray, mesh);
    if (command.camera.is_wanted()) {
        picture::PixelRays pixels = picture::pixel_rays(command.camera, mesh);
        return {std::move(pixels.origins), std::move(pixels.directions)};
    }
    const Mesh file = load_with_progress(command.file, "", -1, common, result.warnings);
    return about_file(command.file, [&] { return tasks::rays_of(file.vertices, mesh); });
}

/// A line for people.
std::string summary_of(const tasks::MeshHits& hits) {
    if (hits.face)
        return fmt::format("hits face {} at t = {:.6g}: {:.9g} {:.9g} {:.9g}\n", *hits.face, hits.t_range.min,
                           hits.point[0], hits.point[1], hits.point[2]);
    std::string text = fmt::format("{} of {} rays hit", grouped(hits.hits), grouped(hits.rays));
    if (hits.hits > 0) text += fmt::format(", t from {:.6g} to {:.6g}", hits.t_range.min, hits.t_range.max);
    return text + "\n";
}

Result run_rays(MeshRaysCommand& command, const Common& common) {
    require_source(command);
    require_one_stdin({command.mesh.path, command.file});
    STIPPLE_REQUIRE(command.picture.empty() || command.camera.is_wanted(), "--picture is for --camera and --eye");
    io::Format format{};
    if (!command.output.path.empty()) format = require_output(command.output, common);
    require_picture(command.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({command.mesh.path});
    if (!command.file.empty()) result.fields["inputs"].push_back(command.file);
    const Mesh mesh = load_faces(command.mesh, common, result);
    const tasks::RaySet rays = rays_of(command, mesh, common, result);
    tasks::MeshHits hits =
        about_file(command.mesh.path, [&] { return tasks::cast_at_mesh(mesh, rays, parse_device(common.device)); });
    result.fields.update(to_json(tasks::mesh_hits_fields(), &hits));
    result.text = summary_of(hits);
    if (!command.output.path.empty()) {
        Mesh found;
        found.vertices = std::move(hits.cloud);
        save_output(found, command.output, format, fmt::format("{} points with t, face and ray", grouped(hits.hits)),
                    common, result);
    }
    save_picture(
        command.picture, [&] { return depth_picture(hits, command.camera.width, command.camera.height); }, common,
        result);
    const auto cell = [&](double t) { return hits.hits > 0 ? Json(t) : Json(); };
    if (!common.table.empty())
        result.text = format_table({{"rays", "hits", "nearest t", "farthest t"},
                                    {{hits.rays, hits.hits, cell(hits.t_range.min), cell(hits.t_range.max)}}},
                                   common.table);
    return result;
}

}  // namespace

Command add_mesh_rays(Arguments& group, Common& common) {
    auto command = std::make_shared<MeshRaysCommand>();
    const Fields &camera = picture::ray_camera_fields(), &ray = tasks::one_ray_fields();
    Arguments& app = group.command("rays", "Cast rays at a mesh: depth pictures, scans, single hits");
    Option mesh = app.option("MESH", command->mesh.path, "The file; - is standard input");
    add_output(app, command->output).help("The places hit, with t, face and ray; - is standard output");
    app.add(camera, &command->camera, {"camera", "azimuth", "elevation"});
    app.add(camera, &command->camera, "eye").count(3);
    app.add(camera, &command->camera, "look_at").count(3);
    add_up(app, command->up);
    app.add(camera, &command->camera, "fov");
    app.option("--size", command->size, "Pixels, WIDTHxHEIGHT");
    app.option("--rays", command->file, "A file of origins and directions: x,y,z,dx,dy,dz or normals");
    app.add(ray, &command->ray, "origin").count(3);
    app.add(ray, &command->ray, "direction").count(3);
    app.option("--picture", command->picture, "Draw the depths of a camera into this .png");
    add_output_format(app, command->output);
    app.footer(
        "t counts in lengths of the direction; a camera's is the depth along its axis.\n\n"
        "Example:\n  stipple mesh rays bunny.ply --camera --azimuth 60 -o scan.ply --picture depth.png\n"
        "  stipple mesh rays part.stl --origin 0 0 10 --direction 0 0 -1");
    return {&app, [command, &common] { return run_rays(*command, common); }, {mesh}};
}

}  // namespace stipple::cli
