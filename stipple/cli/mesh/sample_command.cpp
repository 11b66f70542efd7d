#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct MeshSampleOptions {
    InputFile input;
    OutputFile output;
    std::string method = "poisson", picture, up = "z";
    int64_t count = 0;
    bool normals = false;
};

/// The normal of the face that each sample lies on.
Attribute normals_at(const Mesh& mesh, View<const int32_t, 1> faces) {
    Array<float, 2> of_faces({mesh.faces(), 3});
    geometry::face_normals(mesh, of_faces.view());
    Attribute normals("normal", DType::f32, faces.size(0), 3);
    const View<float, 2> out = normals.as<float>();
    for (int64_t i = 0; i < faces.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis) out(i, axis) = of_faces.data()[3 * int64_t{faces(i)} + axis];
    return normals;
}

PointCloud sample(const Mesh& mesh, const MeshSampleOptions& options, uint64_t seed) {
    geometry::SurfaceSamples samples = options.method == "uniform"
                                           ? geometry::sample_surface(mesh, options.count, seed)
                                           : geometry::sample_surface_poisson(mesh, options.count, seed);
    const Array<int32_t, 1> faces = samples.faces.clone();
    PointCloud cloud = geometry::cloud_of_samples(mesh, std::move(samples));
    if (options.normals) {
        std::erase_if(cloud.attributes, [](const Attribute& attribute) { return attribute.name() == "normal"; });
        cloud.attributes.push_back(normals_at(mesh, faces.view()));
    }
    return cloud;
}

Image mesh_and_samples(const Mesh& mesh, const PointCloud& cloud, const MeshSampleOptions& options) {
    const picture::Panel panels[] = {
        {.mesh = &mesh, .caption = fmt::format("mesh, {} faces", grouped(mesh.faces()))},
        {.cloud = &cloud, .caption = fmt::format("{}, {} points", options.method, grouped(cloud.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    style.viewpoint.up = picture::up_axis_by_name(options.up);
    return picture::draw_figure(panels, style).image;
}

Result run_mesh_sample(const MeshSampleOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.count > 0, "how many points? Give -n COUNT");
    const io::Format format = require_output(options.output, common);
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    const Mesh mesh = load_faces(options.input, common, result);
    Mesh sampled;
    sampled.vertices = about_file(options.input.path, [&] { return sample(mesh, options, common.seed); });
    result.fields["faces"] = mesh.faces();
    result.fields["method"] = options.method;
    result.fields["sampled"] = sampled.vertices.size();
    save_output(sampled, options.output, format,
                fmt::format("{} points of {} faces by {}", grouped(sampled.vertices.size()), grouped(mesh.faces()),
                            options.method),
                common, result);
    save_picture(
        options.picture, [&] { return mesh_and_samples(mesh, sampled.vertices, options); }, common, result);
    if (!common.table.empty())
        result.text = format_table({{"file", "format", "method", "faces", "sampled", "written"},
                                    {{options.output.path, io::info_of(format).name, options.method, mesh.faces(),
                                      sampled.vertices.size(), !common.dry_run}}},
                                   common.table);
    return result;
}

}  // namespace

Command add_mesh_sample(Arguments& group, Common& common) {
    auto options = std::make_shared<MeshSampleOptions>();
    Arguments& app = group.command("sample", "Draw points from the surface of a mesh");
    Option input = app.option("MESH", options->input.path, "The file; - is standard input");
    Option output = add_output(app, options->output);
    app.option("-n,--count", options->count, "Points wanted").from_zero().no_default();
    app.option("--method", options->method, "poisson: spread evenly; uniform: independent, by area")
        .one_of({"poisson", "uniform"})
        .text("poisson|uniform");
    app.flag("--normals", options->normals, "The normals of the faces as attribute normal");
    app.option("--picture", options->picture, "Draw mesh and points side by side into this .png");
    add_up(app, options->up);
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Colours and other attributes of the mesh are interpolated. --seed draws other points.\n\n"
        "Example:\n  stipple mesh sample bunny.ply -n 8192 --normals -o points.ply --picture points.png");
    return {&app, [options, &common] { return run_mesh_sample(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
