// stipple.io: images, and the cameras of photographs (COLMAP, transforms.json).

#include "docstrings.h"
#include "python/bindings/common/call.h"
#include "python/bindings/common/image_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/common/values.h"
#include "python/bindings/io/files.h"
#include "python/bindings/module.h"
#include "stipple/io/colmap.h"
#include "stipple/io/image_file.h"
#include "stipple/io/transforms.h"

namespace stipple::python {
namespace {

struct ModelResult {
    static constexpr auto name = py::detail::const_name("ColmapModel");
    static constexpr const char* fields[] = {"cameras", "images", "ids",           "positions",
                                             "colors",  "errors", "track_offsets", "track"};
};

py::dict lens_dict(const io::Lens& lens) {
    py::dict made;
    made["width"] = lens.width;
    made["height"] = lens.height;
    made["fx"] = lens.fx;
    made["fy"] = lens.fy;
    made["cx"] = lens.cx;
    made["cy"] = lens.cy;
    made["k1"] = lens.k1;
    made["k2"] = lens.k2;
    made["p1"] = lens.p1;
    made["p2"] = lens.p2;
    return made;
}

/// The first 12 or 16 numbers of a camera-to-world matrix, [4, 4].
py::array_t<double> pose_matrix(std::span<const double> rows) {
    py::array_t<double> made({4, 4});
    double* m = made.mutable_data();
    for (size_t i = 0; i < 12; ++i) m[i] = rows[i];
    m[12] = m[13] = m[14] = 0;
    m[15] = 1;
    return made;
}

std::string_view form_of(const std::string& folder) {
    io::ColmapForm form{};
    if (!io::has_colmap(folder, form)) return {};
    return form == io::ColmapForm::text ? "text" : "binary";
}

py::object points_part(const io::ColmapModel& model, auto&& get) {
    using Item = std::decay_t<decltype(get(model.points[0]))>;
    std::vector<Item> made;
    made.reserve(model.points.size());
    for (const io::ColmapPoint& point : model.points) made.push_back(get(point));
    return numpy_of(std::move(made));
}

Record<ModelResult> load_colmap(const PathLike& folder_, const py::object& form_) {
    const std::string folder = path_of(folder_, "folder");
    constexpr Word<io::ColmapForm> kForms[] = {{"text", io::ColmapForm::text}, {"binary", io::ColmapForm::binary}};
    const std::string_view found_form = form_.is_none() ? form_of(folder) : std::string_view();
    const io::ColmapForm form = !form_.is_none()         ? choice(form_.cast<std::string>(), "form", kForms)
                                : found_form == "binary" ? io::ColmapForm::binary
                                                         : io::ColmapForm::text;
    io::ColmapModel model = without_gil([&] { return io::load_colmap(folder, form); });
    py::list cameras, images;
    for (const io::ColmapCamera& camera : model.cameras) {
        py::dict entry = lens_dict(camera.lens);
        entry["id"] = camera.id;
        entry["model"] = io::name_of(camera.model);
        cameras.append(entry);
    }
    for (const io::ColmapImage& image : model.images) {
        py::dict entry;
        entry["id"] = image.id;
        entry["camera_id"] = image.camera_id;
        entry["name"] = image.name;
        entry["rotation"] = tuple_of(image.rotation);
        entry["translation"] = tuple_of(image.translation);
        entry["to_world"] = pose_matrix(io::pose_of(image));
        images.append(entry);
    }
    std::vector<int64_t> offsets;
    for (const io::ColmapPoint& point : model.points) offsets.push_back(point.track_begin);
    offsets.push_back(static_cast<int64_t>(model.track.size()));
    const py::object ids = points_part(model, [](const auto& p) { return p.id; });
    const py::object positions = points_part(model, [](const auto& p) { return p.position; });
    const py::object colors = points_part(model, [](const auto& p) { return p.color; });
    const py::object errors = points_part(model, [](const auto& p) { return p.error; });
    return record<ModelResult>(cameras, images, ids, positions, colors, errors, numpy_of(std::move(offsets)),
                               numpy_of(std::move(model.track)));
}

py::list load_transforms(const PathLike& path_, const py::object& limits_) {
    const std::string path = path_of(path_);
    const io::Limits limits = limits_of(limits_);
    const io::Transforms found = without_gil([&] { return io::load_transforms(path, limits); });
    py::list frames;
    for (const io::TransformsFrame& frame : found.frames) {
        py::dict entry;
        entry["file_path"] = frame.file_path;
        entry["to_world"] = pose_matrix(frame.to_world);
        entry["camera_angle_x"] = frame.camera_angle_x;
        entry["camera_angle_y"] = frame.camera_angle_y;
        entry["lens"] = lens_dict(frame.lens);
        frames.append(entry);
    }
    return frames;
}

}  // namespace

void bind_cameras(py::module_& io) {
    add_record<ModelResult>(io);
    const py::none none;
    io.def(
        "load_image",
        [](const PathLike& path_, const py::object& limits_) {
            const std::string path = path_of(path_);
            const io::Limits limits = limits_of(limits_);
            return give(without_gil([&] { return io::load_image(path, limits); }));
        },
        py::arg("path"), py::kw_only(), py::arg("limits") = none, doc::io::load_image);
    io.def(
        "save_png",
        [](const PathLike& path_, const ImageObject& image, bool overwrite) {
            const std::string path = path_of(path_);
            without_gil([&] { io::save_png(path, *image.image, overwrite_of(overwrite)); });
        },
        py::arg("path"), py::arg("image"), py::kw_only(), py::arg("overwrite") = false, doc::io::save_png);
    io.def(
        "save_jpeg",
        [](const PathLike& path_, const ImageObject& image, bool overwrite, int quality) {
            const std::string path = path_of(path_);
            without_gil([&] { io::save_jpeg(path, *image.image, overwrite_of(overwrite), quality); });
        },
        py::arg("path"), py::arg("image"), py::kw_only(), py::arg("overwrite") = false, py::arg("quality") = 92,
        "Writes a picture of 1 or 3 channels as JPEG, atomically; quality 1 to 100.");
    io.def(
        "has_colmap", [](const PathLike& folder) { return !form_of(path_of(folder, "folder")).empty(); },
        py::arg("folder"), doc::io::has_colmap);
    io.def("load_colmap", &load_colmap, py::arg("folder"), py::kw_only(), py::arg("form") = none, doc::io::load_colmap);
    io.def("load_transforms", &load_transforms, py::arg("path"), py::kw_only(), py::arg("limits") = none,
           doc::io::parse_transforms);
}

}  // namespace stipple::python
