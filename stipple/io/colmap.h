#pragma once
// Models of COLMAP [Schoenberger and Frahm 2016], structure from motion: cameras, images with poses, and sparse points,
// in its text form (cameras.txt, images.txt, points3D.txt) and its binary form (.bin).

#include <array>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/atomic_file.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/lens.h"

namespace stipple::io {

/// The models that are read. COLMAP's others (fisheye, FOV, FULL_OPENCV ...) are refused by name.
enum class ColmapCameraModel { simple_pinhole, pinhole, simple_radial, radial, opencv };

struct ColmapCamera {
    uint32_t id = 0;
    ColmapCameraModel model = ColmapCameraModel::pinhole;
    Lens lens;  // numbers that the model does not have are 0, fy is fx where it has one focal length
};

/// A registered image. COLMAP's camera has x right, y down and looks along +z; a point of the world is at
/// R(rotation) p + translation in it.
struct ColmapImage {
    uint32_t id = 0, camera_id = 0;
    std::array<double, 4> rotation = {1, 0, 0, 0};  // w x y z, of unit length
    std::array<double, 3> translation = {};
    std::string name;  // relative to the folder of images
};

struct ColmapPoint {
    uint64_t id = 0;
    std::array<double, 3> position = {};
    std::array<uint8_t, 3> color = {};
    double error = 0;         // of reprojection, pixels; -1: not known
    int64_t track_begin = 0;  // in ColmapModel::track; its end is the next point's begin, or the end of the list
};

struct ColmapModel {
    std::vector<ColmapCamera> cameras;
    std::vector<ColmapImage> images;
    std::vector<ColmapPoint> points;
    std::vector<uint32_t> track;  // numbers of the images that saw a point

    std::span<const uint32_t> track_of(size_t point) const {
        const auto begin = static_cast<size_t>(points[point].track_begin);
        const size_t end =
            point + 1 < points.size() ? static_cast<size_t>(points[point + 1].track_begin) : track.size();
        return std::span(track).subspan(begin, end - begin);
    }
};

enum class ColmapForm { text, binary };

/// One file each, in either form: a binary one is told by the zero bytes of the count that it begins with. Image
/// features are skipped, tracks keep their images. Errors name line or byte: numbers that are not finite, counts that
/// the file does not bear out, ids that stand twice, sizes above limits.h, cameras without focal length, rotations of
/// length 0, names that lead out of the folder. parse_colmap_points replaces points and track of `model`.
std::vector<ColmapCamera> parse_colmap_cameras(ByteReader& reader);
std::vector<ColmapImage> parse_colmap_images(ByteReader& reader);
void parse_colmap_points(ByteReader& reader, ColmapModel& model);

/// Whether `folder` holds cameras and images of one form; binary, if both.
bool has_colmap(const std::string& folder, ColmapForm& form);

/// The model in a folder. Throws Error{bad_file} naming the file that is missing or wrong; images of cameras that are
/// not there are refused, and so are two of one name.
ColmapModel load_colmap(const std::string& folder, ColmapForm form);

/// The three files; features are left out, so that images have no points of their own and tracks count from 0. Text has
/// the shortest numbers that read back the same. Each file appears complete or not at all. Throws Error{bad_argument}
/// for names with a line break.
void write_colmap_text(const std::string& folder, const ColmapModel& model, Overwrite overwrite);
void write_colmap_binary(const std::string& folder, const ColmapModel& model, Overwrite overwrite);

/// The same files into sinks.
void write_colmap_cameras(const ColmapModel& model, ColmapForm form, ByteSink& sink);
void write_colmap_images(const ColmapModel& model, ColmapForm form, ByteSink& sink);
void write_colmap_points(const ColmapModel& model, ColmapForm form, ByteSink& sink);

/// Camera to world, 3 x 4 row by row, for a camera that looks along -z with y up, as transforms.json and radiance
/// fields have it; and back.
std::array<double, 12> pose_of(const ColmapImage& image);
void set_pose(ColmapImage& image, const std::array<double, 12>& to_world);

std::string_view name_of(ColmapCameraModel model);

}  // namespace stipple::io
