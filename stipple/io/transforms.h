#pragma once
// transforms.json: cameras of photographs, as Blender scenes of NeRF [Mildenhall et al. 2020] have them
// (transforms_train.json and so on) and as other tools write them (instant-ngp, nerfstudio).

#include <array>
#include <string>
#include <vector>

#include "stipple/io/byte_source.h"
#include "stipple/io/lens.h"

namespace stipple::io {

/// One photograph. Numbers that neither the frame nor the file has are 0.
struct TransformsFrame {
    std::string file_path;  // relative, without a leading "./"; Blender scenes leave the extension out
    /// Camera to world, 4 x 4, row by row, the last row 0 0 0 1. The camera looks along -z, y is up. The three columns
    /// are at right angles and of unit length: a uniform scale in the file is taken out.
    std::array<double, 16> to_world = {};
    double camera_angle_x = 0, camera_angle_y = 0;  // opening in radians
    Lens lens;                                      // as far as the file tells; width 0: that of the picture
};

struct Transforms {
    std::vector<TransformsFrame> frames;  // in the order of the file, at least one
};

/// Reads camera_angle_x, camera_angle_y, fl_x, fl_y, cx, cy, w, h, k1, k2, p1, p2 of the file and of frames, which go
/// before the file's; other keys are ignored, but for models that would be wrong then: k3 and k4 other than 0,
/// is_fisheye, and a camera_model that is none of the pinholes, RADIAL and OPENCV are refused. Throws Error{bad_file}:
/// what is no JSON with line and column, all else with the key ("frames/3/transform_matrix/0/2"): keys that stand
/// twice, matrices that are not 4 x 4 numbers or no rotation (singular, mirrored, sheared), paths that are absolute,
/// lead out of the folder (..) or stand twice, sizes above limits.h. O(bytes).
Transforms parse_transforms(ByteReader& reader);

/// Errors name the path.
Transforms load_transforms(const std::string& path, Limits limits = {});

/// The frame's lens for a picture of that size: focal lengths from openings where the file has no focal lengths, fy =
/// fx where it has one of them, the principal point in the middle where it has none. Throws Error{bad_file} without any
/// focal length or opening.
Lens lens_of(const TransformsFrame& frame, int64_t width, int64_t height);

/// A name within a folder: not empty, not absolute, no "..", no control characters, no backslash. Returns what is wrong
/// with it, or an empty text.
std::string path_fault(std::string_view path);

}  // namespace stipple::io
