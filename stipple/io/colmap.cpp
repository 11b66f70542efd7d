#include "stipple/io/colmap.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace stipple::io {
namespace {

constexpr int64_t kFeatureLine = int64_t{256} << 20;  // a text image's features stand in one line

template <class Parse>
auto parse_colmap_part(const std::string& folder, const char* part, ColmapForm form, const Parse& parse) {
    const std::string path = fmt::format("{}/{}.{}", folder, part, form == ColmapForm::text ? "txt" : "bin");
    FileSource source(path);
    try {
        Limits limits;
        limits.max_line = std::max(limits.max_line, kFeatureLine);
        ByteReader reader(source, limits);
        // Their first bytes tell the form as well; a text file under the name of a binary one was cut or renamed.
        const auto head = reader.peek(8);
        const bool has_zero = std::find(head.begin(), head.end(), std::byte{0}) != head.end();
        if (has_zero != (form == ColmapForm::binary))
            reader.fail(form == ColmapForm::binary ? "a binary file begins with a count of 8 bytes"
                                                   : "a text file has no zero bytes");
        return parse(reader);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

bool is_readable(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

void require_consistent(const ColmapModel& model, const std::string& path) {
    std::vector<uint32_t> ids;
    for (const ColmapCamera& camera : model.cameras) ids.push_back(camera.id);
    std::sort(ids.begin(), ids.end());
    std::vector<std::string_view> names;
    for (const ColmapImage& image : model.images) {
        if (!std::binary_search(ids.begin(), ids.end(), image.camera_id))
            throw Error(ErrorCode::bad_file, Place{path, {}, {}},
                        fmt::format("image {} is of camera {}, which is not among the {} cameras",
                                    in_quotes(image.name), image.camera_id, ids.size()));
        names.push_back(image.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
        throw Error(ErrorCode::bad_file, Place{path, {}, {}},
                    fmt::format("two images are named {}", in_quotes(*twice)));
}

/// Rotation matrix, row by row, of a quaternion of unit length.
std::array<double, 9> matrix_of(const std::array<double, 4>& q) {
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    return {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),  //
            2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),  //
            2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
}

/// The quaternion nearest to a rotation matrix, its largest component found first, so that nothing is divided by
/// little.
std::array<double, 4> quaternion_of(const std::array<double, 9>& m) {
    const double squares[4] = {1 + m[0] + m[4] + m[8], 1 + m[0] - m[4] - m[8], 1 - m[0] + m[4] - m[8],
                               1 - m[0] - m[4] + m[8]};
    const auto largest = std::max_element(squares, squares + 4) - squares;
    std::array<double, 4> q = {};
    switch (largest) {
        case 0: q = {squares[0], m[7] - m[5], m[2] - m[6], m[3] - m[1]}; break;
        case 1: q = {m[7] - m[5], squares[1], m[1] + m[3], m[2] + m[6]}; break;
        case 2: q = {m[2] - m[6], m[1] + m[3], squares[2], m[5] + m[7]}; break;
        default: q = {m[3] - m[1], m[2] + m[6], m[5] + m[7], squares[3]}; break;
    }
    double norm = 0;
    for (const double number : q) norm += number * number;
    norm = std::sqrt(norm);
    for (double& number : q) number /= norm;
    return q;
}

}  // namespace

bool has_colmap(const std::string& folder, ColmapForm& form) {
    const auto has = [&](const char* extension) {
        return is_readable(fmt::format("{}/cameras.{}", folder, extension)) &&
               is_readable(fmt::format("{}/images.{}", folder, extension));
    };
    form = has("bin") ? ColmapForm::binary : ColmapForm::text;
    return form == ColmapForm::binary || has("txt");
}

ColmapModel load_colmap(const std::string& folder, ColmapForm form) {
    ColmapModel model;
    model.cameras = parse_colmap_part(folder, "cameras", form, parse_colmap_cameras);
    model.images = parse_colmap_part(folder, "images", form, parse_colmap_images);
    parse_colmap_part(folder, "points3D", form, [&](ByteReader& reader) { parse_colmap_points(reader, model); });
    require_consistent(model, fmt::format("{}/images.{}", folder, form == ColmapForm::text ? "txt" : "bin"));
    return model;
}

std::array<double, 12> pose_of(const ColmapImage& image) {
    const std::array<double, 9> r = matrix_of(image.rotation);
    std::array<double, 12> to_world = {};
    for (size_t row = 0; row < 3; ++row) {
        // Columns of the inverse rotation are rows of the rotation; y and z point the other way in our cameras.
        to_world[4 * row] = r[row];
        to_world[4 * row + 1] = -r[3 + row];
        to_world[4 * row + 2] = -r[6 + row];
        for (size_t k = 0; k < 3; ++k) to_world[4 * row + 3] -= r[3 * k + row] * image.translation[k];
    }
    return to_world;
}

void set_pose(ColmapImage& image, const std::array<double, 12>& to_world) {
    std::array<double, 9> r = {};
    for (size_t row = 0; row < 3; ++row) {
        r[row] = to_world[4 * row];
        r[3 + row] = -to_world[4 * row + 1];
        r[6 + row] = -to_world[4 * row + 2];
    }
    image.rotation = quaternion_of(r);
    const std::array<double, 9> exact = matrix_of(image.rotation);
    for (size_t k = 0; k < 3; ++k) {
        image.translation[k] = 0;
        for (size_t axis = 0; axis < 3; ++axis) image.translation[k] -= exact[3 * k + axis] * to_world[4 * axis + 3];
    }
}

}  // namespace stipple::io
