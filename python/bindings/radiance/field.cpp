// stipple.radiance: fields, cameras, pictures and what is exported.

#include "stipple/radiance/field.h"

#include <cmath>
#include <mutex>

#include "python/bindings/radiance/objects.h"
#include "stipple/radiance/camera_path.h"
#include "stipple/radiance/export.h"
#include "stipple/radiance/render.h"
#include "stipple/radiance/view_images.h"

namespace stipple::python {
namespace {

using radiance::Camera, radiance::Field, radiance::RenderedView;

struct RendererObject {
    std::shared_ptr<const Field> field;
    std::shared_ptr<radiance::Renderer> renderer;
    std::shared_ptr<std::mutex> mutex;  // one view at a time
};
struct ViewObject {
    std::shared_ptr<RenderedView> view;
};

struct FieldSummaryRecord {
    static constexpr auto name = py::detail::const_name("FieldSummary");
    static constexpr const char* fields[] = {"nodes",          "bricks",       "stored_bricks",
                                             "occupied_nodes", "packed_bytes", "render_bytes"};
};
struct ViewScoreRecord {
    static constexpr auto name = py::detail::const_name("ViewScore");
    static constexpr const char* fields[] = {"file", "psnr", "ssim", "seconds"};
};
struct ViewScoresRecord {
    static constexpr auto name = py::detail::const_name("ViewScores");
    static constexpr const char* fields[] = {"views", "psnr", "ssim", "seconds"};
};

Camera make_camera(int32_t width, int32_t height, float fx, float fy, float cx, float cy, const py::object& to_world) {
    Camera camera{width, height, fx, fy, cx, cy, {}};
    Call call;
    const auto matrix = call.array<float, 2>(to_world, "to_world");
    STIPPLE_REQUIRE((matrix.size(0) == 3 || matrix.size(0) == 4) && matrix.size(1) == 4 && matrix.device() == Device{},
                    "to_world: an array of shape [{}, {}]; wanted is [3, 4] or [4, 4] on the CPU", matrix.size(0),
                    matrix.size(1));
    std::copy_n(matrix.data(), 12, camera.to_world.begin());
    return camera;
}

py::object to_world(const Camera& camera) {
    Array<float, 2> matrix({3, 4});
    std::copy(camera.to_world.begin(), camera.to_world.end(), matrix.data());
    return numpy_of(std::move(matrix));
}

Vec3d vec_of(const py::object& object, const char* name) {
    const auto v = numbers_of<3>(object, name);
    return {v[0], v[1], v[2]};
}

std::optional<Box<double>> box_of(const py::object& box) {
    if (box.is_none()) return {};
    Box<double> made;
    const auto low = numbers_of<3>(sequence_part(box, "box", 2, 0), "box[0], low");
    const auto high = numbers_of<3>(sequence_part(box, "box", 2, 1), "box[1], high");
    for (size_t i = 0; i < 3; ++i) made.low[i] = low[i], made.high[i] = high[i];
    return made;
}

ViewObject render(const RendererObject& object, const Camera& camera, bool geometry, bool colour) {
    return {without_gil([&] {
        const std::lock_guard lock(*object.mutex);
        return std::make_shared<RenderedView>(object.renderer->render(camera, {geometry, colour}));
    })};
}

py::list orbit(const FieldObject& o, int frames, double elevation, int32_t width, int32_t height, double degrees) {
    py::list made;
    for (const Camera& camera : radiance::orbit(*o.field, frames, elevation, {width, height, degrees}))
        made.append(camera);
    return made;
}

CloudObject export_points(const FieldObject& o, int64_t count, double spacing, double least_confidence,
                          const py::object& box, uint64_t seed, const py::object& device_, const py::object& done) {
    const radiance::PointsOptions options{count, spacing, least_confidence, box_of(box), seed};
    const Device device = device_or_cpu(device_);
    std::function<void(int64_t, int64_t)> report;
    if (!done.is_none())
        report = [&](int64_t views, int64_t total) {
            const py::gil_scoped_acquire held;
            done(views, total);
        };
    return give(without_gil([&] { return radiance::export_points(*o.field, options, device, report); }));
}

MeshObject export_mesh(const FieldObject& o, double level, double least_part, const py::object& box) {
    const radiance::MeshOptions options{level, least_part, box_of(box)};
    return give(without_gil([&] { return radiance::export_mesh(*o.field, options); }));
}

py::object give_image(Image&& image) {
    return numpy_of(std::move(image.pixels));
}

const std::vector<radiance::Photograph>& split_of(const SceneObject& scene, std::string_view split) {
    using Split = std::vector<radiance::Photograph> radiance::Scene::*;
    constexpr Word<Split> kSplits[] = {{"train", &radiance::Scene::train},
                                       {"validation", &radiance::Scene::validation},
                                       {"test", &radiance::Scene::test}};
    return (*scene.scene).*choice(split, "split", kSplits);
}

Record<ViewScoresRecord> evaluate(const RendererObject& object, const SceneObject& scene, std::string_view split,
                                  const py::object& background_, const py::object& done) {
    const auto& photographs = split_of(scene, split);
    const radiance::Background background = background_.is_none()
                                                ? object.field->background
                                                : choice(background_.cast<std::string>(), "background", kBackgrounds);
    std::function<void(int64_t)> report;
    if (!done.is_none())
        report = [&](int64_t views) {
            const py::gil_scoped_acquire held;
            done(views);
        };
    const radiance::ViewScores scores = without_gil([&] {
        const std::lock_guard lock(*object.mutex);
        return radiance::evaluate(*object.renderer, photographs, background, scene.scene->alpha_is_unknown, report);
    });
    py::list views;
    for (const radiance::ViewScore& each : scores.views)
        views.append(record<ViewScoreRecord>(str_of(each.file), py::float_(each.psnr), py::float_(each.ssim),
                                             py::float_(each.seconds)));
    return record<ViewScoresRecord>(views, py::float_(scores.psnr), py::float_(scores.ssim),
                                    py::float_(scores.seconds));
}

Record<FieldSummaryRecord> summarise(const FieldObject& o) {
    const radiance::FieldSummary found = without_gil([&] { return radiance::summarise(*o.field); });
    return record<FieldSummaryRecord>(py::int_(found.nodes), py::int_(found.bricks), py::int_(found.stored_bricks),
                                      py::int_(found.occupied_nodes), py::int_(found.packed_bytes),
                                      py::int_(found.render_bytes));
}

py::list cameras_of(const FieldObject& o) {
    py::list made;
    for (const Camera& camera : o.field->cameras) made.append(camera);
    return made;
}

template <Array<float, 3> RenderedView::*Part>
ArrayResult part_of_view(const ViewObject& o) {
    return view_numpy(((*o.view).*Part).view(), o.view, true);
}

void bind_classes(py::module_& module) {
    py::class_<Camera>(module, "Camera", doc::radiance::Camera)
        .def(py::init(&make_camera), py::arg("width"), py::arg("height"), py::arg("fx"), py::arg("fy"), py::arg("cx"),
             py::arg("cy"), py::arg("to_world"))
        .def_readonly("width", &Camera::width)
        .def_readonly("height", &Camera::height)
        .def_readonly("fx", &Camera::fx)
        .def_readonly("fy", &Camera::fy)
        .def_readonly("cx", &Camera::cx)
        .def_readonly("cy", &Camera::cy)
        .def_property_readonly("to_world", &to_world, "[3, 4] rotation and position")
        .def("__repr__", [](const Camera& c) {
            return fmt::format("stipple.radiance.Camera({} x {}, fx {}, at {} {} {})", c.width, c.height, c.fx,
                               c.to_world[3], c.to_world[7], c.to_world[11]);
        });
    py::class_<FieldObject>(module, "Field", doc::radiance::Field)
        .def_property_readonly(
            "size",
            [](const FieldObject& o) {
                const auto& size = o.field->grid.size;
                return py::make_tuple(size[0], size[1], size[2]);
            },
            "Nodes of the grid along x, y and z.")
        .def_property_readonly(
            "box",
            [](const FieldObject& o) {
                const auto& box = o.field->grid.box;
                return py::make_tuple(py::make_tuple(box.low[0], box.low[1], box.low[2]),
                                      py::make_tuple(box.high[0], box.high[1], box.high[2]));
            },
            "Low and high corner, about the origin.")
        .def_property_readonly("voxel", [](const FieldObject& o) { return o.field->grid.voxel; })
        .def_property_readonly("origin", [](const FieldObject& o) { return tuple_of(o.field->origin); })
        .def_property_readonly("background", [](const FieldObject& o) { return word_of(o.field->background); })
        .def_property_readonly("cameras", &cameras_of)
        .def_property_readonly("notes", [](const FieldObject& o) { return dict_of(o.field->notes); })
        .def("__repr__", [](const FieldObject& o) {
            const auto& size = o.field->grid.size;
            return fmt::format("stipple.radiance.Field({} x {} x {} nodes, {} cameras)", size[0], size[1], size[2],
                               o.field->cameras.size());
        });
    py::class_<ViewObject>(module, "RenderedView", doc::radiance::RenderedView)
        .def_property_readonly("colour", &part_of_view<&RenderedView::colour>, "[height, width, 3]")
        .def_property_readonly("alpha", &part_of_view<&RenderedView::alpha>, "[height, width, 1]")
        .def_property_readonly("depth", &part_of_view<&RenderedView::depth>, "[height, width, 1]")
        .def_property_readonly("normal", &part_of_view<&RenderedView::normal>, "[height, width, 3]");
    py::class_<RendererObject>(module, "Renderer", doc::radiance::Renderer)
        .def(py::init([](const FieldObject& o, const py::object& device_) {
                 const Device device = device_or_cpu(device_);
                 return without_gil([&] {
                     return RendererObject{o.field, std::make_shared<radiance::Renderer>(*o.field, device),
                                           std::make_shared<std::mutex>()};
                 });
             }),
             py::arg("field"), py::kw_only(), py::arg("device") = py::none())
        .def("render", &render, py::arg("camera"), py::kw_only(), py::arg("geometry") = false, py::arg("colour") = true,
             "A RenderedView of one camera. `geometry`: depth and normals too.")
        .def(
            "seconds", [](const RendererObject& o) { return o.renderer->seconds(); },
            "Seconds that the device took for the last view.");
}

void bind_field_files(py::module_& module) {
    const py::arg path("path"), field("field");
    module.def(
        "fault_of", [](const FieldObject& o) { return radiance::fault_of(*o.field); }, field, doc::radiance::fault_of);
    module.def(
        "save_field",
        [](const py::object& name, const FieldObject& o, bool overwrite) {
            const std::string to = path_of(name, "path");
            without_gil([&] { radiance::save_field(to, *o.field, overwrite_of(overwrite)); });
        },
        path, field, py::kw_only(), py::arg("overwrite") = false, doc::radiance::save_field);
    module.def(
        "load_field",
        [](const py::object& name) {
            const std::string from = path_of(name, "path");
            return without_gil([&] { return give(radiance::load_field(from)); });
        },
        path, doc::radiance::load_field);
    module.def(
        "is_field_file", [](const py::object& name) { return radiance::is_field_file(path_of(name, "path")); }, path,
        doc::radiance::is_field_file);
}

void bind_pictures(py::module_& module) {
    const py::arg view("view");
    module.def(
        "colour_image", [](const ViewObject& o) { return give_image(radiance::colour_image(*o.view)); }, view,
        "RGB, [height, width, 3] of uint8, clipped.");
    module.def(
        "alpha_image", [](const ViewObject& o) { return give_image(radiance::alpha_image(*o.view)); }, view,
        "Grey, [height, width, 1] of uint8.");
    module.def(
        "normal_image", [](const ViewObject& o) { return give_image(radiance::normal_image(*o.view)); }, view,
        doc::radiance::normal_image);
    module.def(
        "depth_range",
        [](const ViewObject& o) {
            const auto [least, most] = radiance::depth_range(*o.view);
            return py::make_tuple(least, most);
        },
        view, doc::radiance::depth_range);
}

}  // namespace

void bind_radiance_field(py::module_& module) {
    add_record<FieldSummaryRecord>(module);
    add_record<ViewScoreRecord>(module);
    add_record<ViewScoresRecord>(module);
    py::class_<SceneObject> scene(module, "Scene", doc::radiance::Scene);
    bind_classes(module);
    bind_field_files(module);
    bind_pictures(module);
    const auto none = py::none();
    const py::arg field("field");
    const py::arg_v width = py::arg("width") = 0, height = py::arg("height") = 0, degrees = py::arg("degrees") = 0.0;
    const radiance::PointsOptions points;
    const radiance::MeshOptions mesh;
    module.def("summarise", &summarise, field, "What a field holds in numbers: nodes, bricks and bytes.");
    module.def(
        "look_at",
        [](const FieldObject& o, const py::object& eye, const py::object& aim, const py::object& up, int32_t w,
           int32_t h, double angle) {
            return radiance::look_at(*o.field, vec_of(eye, "eye"), vec_of(aim, "aim"), vec_of(up, "up"), {w, h, angle});
        },
        field, py::arg("eye"), py::arg("aim"), py::arg("up"), py::kw_only(), width, height, degrees,
        doc::radiance::look_at);
    module.def(
        "up_of",
        [](const FieldObject& o) {
            const Vec3d up = radiance::up_of(*o.field);
            return py::make_tuple(up.x, up.y, up.z);
        },
        field, doc::radiance::up_of);
    module.def("orbit", &orbit, field, py::arg("frames"), py::arg("elevation") = std::nan(""), py::kw_only(), width,
               height, degrees, doc::radiance::orbit);
    module.def("export_points", &export_points, field, py::kw_only(), py::arg("count") = points.count,
               py::arg("spacing") = points.spacing, py::arg("least_confidence") = points.least_confidence,
               py::arg("box") = none, py::arg("seed") = points.seed, py::arg("device") = none, py::arg("done") = none,
               doc::radiance::export_points);
    module.def("export_mesh", &export_mesh, field, py::kw_only(), py::arg("level") = mesh.level,
               py::arg("least_part") = mesh.least_part, py::arg("box") = none, doc::radiance::export_mesh);
    module.def(
        "export_density",
        [](const FieldObject& o) { return numpy_of(without_gil([&] { return radiance::export_density(*o.field); })); },
        field, doc::radiance::export_density);
    module.def(
        "density_of_opacity",
        [](const FieldObject& o, double opacity) { return radiance::density_of_opacity(*o.field, opacity); }, field,
        py::arg("opacity"), doc::radiance::density_of_opacity);
    module.def("evaluate", &evaluate, py::arg("renderer"), py::arg("scene"), py::kw_only(), py::arg("split") = "test",
               py::arg("background") = none, py::arg("done") = none, doc::radiance::evaluate);
    scene
        .def_property_readonly("sizes",
                               [](const SceneObject& o) {
                                   py::dict made;
                                   made["train"] = o.scene->train.size();
                                   made["validation"] = o.scene->validation.size();
                                   made["test"] = o.scene->test.size();
                                   return made;
                               })
        .def_property_readonly("source", [](const SceneObject& o) { return o.scene->source; })
        .def_property_readonly("has_alpha", [](const SceneObject& o) { return o.scene->has_alpha; })
        .def_property_readonly("origin", [](const SceneObject& o) { return tuple_of(o.scene->origin); })
        .def_property_readonly("near", [](const SceneObject& o) { return o.scene->near; })
        .def_property_readonly("far", [](const SceneObject& o) { return o.scene->far; })
        .def(
            "cameras",
            [](const SceneObject& o, std::string_view split) {
                py::list made;
                for (const auto& photograph : split_of(o, split)) made.append(photograph.camera);
                return made;
            },
            py::arg("split") = "train")
        .def(
            "pixels",
            [](const SceneObject& o, std::string_view split, size_t index) {
                const auto& photographs = split_of(o, split);
                if (index >= photographs.size()) throw py::index_error("no such photograph");
                return view_numpy(photographs[index].pixels.pixels.view(),
                                  std::const_pointer_cast<radiance::Scene>(o.scene));
            },
            py::arg("split"), py::arg("index"), "[height, width, 4] of uint8, a view.");
}

}  // namespace stipple::python
