#include "stipple/io/colmap/camera_models.h"

#include <cmath>

#include "stipple/io/transforms.h"

namespace stipple::io {
namespace colmap {
namespace {

constexpr std::array<ModelInfo, 5> kColmapModels = {{
    {ColmapCameraModel::simple_pinhole, "SIMPLE_PINHOLE", 0, 3},
    {ColmapCameraModel::pinhole, "PINHOLE", 1, 4},
    {ColmapCameraModel::simple_radial, "SIMPLE_RADIAL", 2, 4},
    {ColmapCameraModel::radial, "RADIAL", 3, 5},
    {ColmapCameraModel::opencv, "OPENCV", 4, 8},
}};
// Those that COLMAP has besides, from number 5.
constexpr std::array<std::string_view, 7> kOtherModels = {"OPENCV_FISHEYE",
                                                          "FULL_OPENCV",
                                                          "FOV",
                                                          "SIMPLE_RADIAL_FISHEYE",
                                                          "RADIAL_FISHEYE",
                                                          "THIN_PRISM_FISHEYE",
                                                          "RAD_TAN_THIN_PRISM_FISHEYE"};
constexpr const char* kUndistort = "colmap image_undistorter makes PINHOLE cameras of it";

}  // namespace

std::span<const ModelInfo> models() {
    return kColmapModels;
}

const ModelInfo& info_of(ColmapCameraModel model) {
    return kColmapModels[static_cast<size_t>(model)];
}

const ModelInfo& model_by_name(const ByteReader& reader, std::string_view name) {
    for (const ModelInfo& info : kColmapModels)
        if (info.name == name) return info;
    for (const std::string_view other : kOtherModels)
        if (other == name) reader.fail_line(fmt::format("camera model {} is not read", other), kUndistort);
    reader.fail_line(fmt::format("expected a camera model, found {}", in_quotes(name)));
}

const ModelInfo& model_by_id(const ByteReader& reader, int32_t id) {
    if (id >= 0 && id < 5) return kColmapModels[static_cast<size_t>(id)];
    if (id >= 5 && id < 12)
        reader.fail(fmt::format("camera model {} is not read", kOtherModels[static_cast<size_t>(id - 5)]), kUndistort);
    reader.fail(fmt::format("camera model {} is not known", id));
}

void set_parameters(ColmapCameraModel model, std::span<const double> p, Lens& lens) {
    const bool one_focal_length =
        model != ColmapCameraModel::pinhole && model != ColmapCameraModel::opencv;  // then p is one shorter
    const size_t centre = one_focal_length ? 1 : 2;
    lens.fx = p[0];
    lens.fy = one_focal_length ? p[0] : p[1];
    lens.cx = p[centre], lens.cy = p[centre + 1];
    const std::span<const double> distortion = p.subspan(centre + 2);
    double* const to[] = {&lens.k1, &lens.k2, &lens.p1, &lens.p2};
    for (size_t i = 0; i < distortion.size(); ++i) *to[i] = distortion[i];
}

std::vector<double> parameters_of(const ColmapCamera& camera) {
    const Lens& lens = camera.lens;
    switch (camera.model) {
        case ColmapCameraModel::simple_pinhole: return {lens.fx, lens.cx, lens.cy};
        case ColmapCameraModel::pinhole: return {lens.fx, lens.fy, lens.cx, lens.cy};
        case ColmapCameraModel::simple_radial: return {lens.fx, lens.cx, lens.cy, lens.k1};
        case ColmapCameraModel::radial: return {lens.fx, lens.cx, lens.cy, lens.k1, lens.k2};
        case ColmapCameraModel::opencv: break;
    }
    return {lens.fx, lens.fy, lens.cx, lens.cy, lens.k1, lens.k2, lens.p1, lens.p2};
}

std::string camera_fault(const ColmapCamera& camera, const Limits& limits) {
    const Lens& lens = camera.lens;
    if (lens.width < 1 || lens.height < 1 || lens.width > limits.max_image_side || lens.height > limits.max_image_side)
        return fmt::format("camera {} has pictures of {} x {} pixels, 1 to {} a side are read", camera.id, lens.width,
                           lens.height, limits.max_image_side);
    if (!(lens.fx > 0 && lens.fx < 1e9 && lens.fy > 0 && lens.fy < 1e9))
        return fmt::format("camera {} has the focal length {:g}", camera.id, lens.fx > 0 ? lens.fy : lens.fx);
    for (const double number : {lens.cx, lens.cy, lens.k1, lens.k2, lens.p1, lens.p2})
        if (!(std::abs(number) < 1e9)) return fmt::format("camera {} has the parameter {:g}", camera.id, number);
    return {};
}

std::string image_fault(ColmapImage& image) {
    if (const std::string fault = path_fault(image.name); !fault.empty())
        return fmt::format("the name {} of image {} {}", in_quotes(image.name), image.id, fault);
    double norm_sq = 0;
    for (const double number : image.rotation) norm_sq += number * number;
    if (!(norm_sq > 1e-12 && norm_sq < 1e12))
        return fmt::format("image {} has a rotation of length {:g}", image.id, std::sqrt(norm_sq));
    const double norm = std::sqrt(norm_sq);
    if (std::abs(norm - 1) > 1e-15)  // else dividing would change what a file of ours says
        for (double& number : image.rotation) number /= norm;
    for (const double number : image.translation)
        if (!(std::abs(number) < 1e15)) return fmt::format("image {} has the translation {:g}", image.id, number);
    return {};
}

}  // namespace colmap

std::string_view name_of(ColmapCameraModel model) {
    return colmap::info_of(model).name;
}

}  // namespace stipple::io
