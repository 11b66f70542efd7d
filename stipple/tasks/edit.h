#pragma once
// Clouds cut, moved, joined, split and converted: the options and results of these, and their work on a cloud or on
// each piece of a file that comes in pieces.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/geometry/affine_transform.h"
#include "stipple/geometry/merge_clouds.h"
#include "stipple/geometry/region.h"
#include "stipple/geometry/split_cloud.h"
#include "stipple/io/format.h"

namespace stipple::tasks {

/// What a task that keeps some points has seen.
struct KeptPoints {
    int64_t points = 0, kept = 0;
};
const Fields& kept_points_fields();

/// A step of several that are done one after the other, and what came of it.
struct StepRun {
    std::string step = {};
    int64_t points = 0, left = 0;
    double seconds = 0;
};
const Fields& step_run_fields();
struct RunTotals {
    int64_t points = 0, left = 0;
};
const Fields& run_totals_fields();

// ---- Crop

struct CropOptions {
    std::optional<std::array<double, 6>> box = {};     // its corners; infinite where it has no end
    std::optional<std::array<double, 4>> sphere = {};  // its centre and its radius
    /// x and y of the corners in the ground plan, or one word: a file with them (small_files.h).
    std::vector<std::string> polygon = {};
    bool outside = false;
};
const Fields& crop_fields();

struct Cropped {
    int64_t non_finite = 0;  // points that are neither inside nor outside
};
const Fields& cropped_fields();

/// The region of the options. Throws Error{bad_argument} for options without a shape and as geometry::require_region,
/// and Error{bad_file} for a file that cannot be read.
geometry::Region region_of(const CropOptions& options);
/// [n] 1 for points of the piece that stay. Adds to `cropped`.
std::vector<uint8_t> crop_mask(const PointCloud& piece, const geometry::Region& region, bool outside, Cropped& cropped);

// ---- Filter

struct FilterOptions {
    std::string expression = {};  // geometry/point_filter.h
    bool invert = false;
};
const Fields& filter_fields();

// ---- Transform

struct TransformOptions {
    // In this order. --matrix and --apply name the same thing: one of them.
    std::string matrix = {}, apply = {};  // files (small_files.h)
    bool centre = false;
    std::string swap = {};                 // geometry::axis_swap
    std::vector<double> scale = {};        // one factor, or one for each axis
    std::vector<std::string> rotate = {};  // x, y, z or the three numbers of an axis; degrees
    std::optional<std::array<double, 3>> translate = {};
    std::optional<std::array<double, 3>> about = {};  // swap, scale and rotate leave it where it is; else 0
    bool invert = false;                              // all of it
};
const Fields& transform_fields();

struct Transformed {
    int64_t points = 0;
    std::array<std::array<double, 4>, 4> transform = {};  // rows
};
const Fields& transformed_fields();
Transformed transformed_of(int64_t points, const geometry::AffineTransform& transform);

/// Throws Error{bad_argument} for options that ask for nothing, contradict each other or have wrong numbers.
void check_options(const TransformOptions& options);
/// The matrix of the file of `matrix` or `apply`; without one that of no transform. Throws Error{bad_file}.
geometry::AffineTransform first_matrix(const TransformOptions& options);
/// All of the options, after the `first` matrix. `bounds_after` tells the box around the points after a matrix, which
/// `centre` asks for: a box that is turned has another middle.
geometry::AffineTransform transform_of(
    const TransformOptions& options, const geometry::AffineTransform& first,
    const std::function<Bounds(const geometry::AffineTransform& before)>& bounds_after);
/// The box around points after a matrix.
Bounds moved_bounds(const Mesh& piece, const geometry::AffineTransform& transform);
/// The grid of a LAS file for its points once they are moved: about the middle of where the box around them goes, as
/// fine as before. None where there is no box, or one that is too large for integers: then all points are gathered and
/// tell it.
std::optional<FileFacts::Grid> moved_grid(const FileFacts& facts, const std::optional<Bounds>& box,
                                          const geometry::AffineTransform& transform);

// ---- Merge

/// The words of geometry::MissingAttributes.
inline constexpr const char* kMissingAttributesWords[] = {"error", "fill", "drop"};

struct MergeOptions {
    std::string source_id = {};  // a name: that attribute is added, the file of each point
    geometry::MissingAttributes missing = geometry::MissingAttributes::refuse;
};
const Fields& merge_fields();

struct MergedFile {
    std::string path = {};
    int64_t points = 0, source = 0;
};
struct Merged {
    std::vector<MergedFile> files = {};
    int64_t points = 0;
    std::vector<std::string> attributes = {};
};
const Fields& merged_fields();

/// The attribute of MergeOptions::source_id for points of one file. At most 65,536 files.
Attribute source_ids(const std::string& name, int64_t points, size_t source);
/// How far apart two numbers of float32 are at the largest distance from the origin that a merged cloud within these
/// bounds would have: files far from each other share one origin.
double spacing_of_merged(const Bounds& all);

// ---- Split

struct SplitOptions {
    // One of three.
    std::string by = {};                // an attribute
    std::optional<double> tile = {};    // edge of squares of the ground plan
    std::optional<int64_t> count = {};  // points of each part

    int64_t most = 1000;  // parts
};
const Fields& split_fields();

struct SplitParts {
    int64_t points = 0, parts = 0;
};
const Fields& split_parts_fields();

/// Throws Error{bad_argument} unless exactly one way to split is given, and for options out of their ranges.
geometry::CloudSplitter splitter_of(const SplitOptions& options);

// ---- Convert

struct ConvertOptions {
    io::WriteOptions writing = {};   // but for its scale
    std::vector<double> scale = {};  // LAS: unit of the integers, for all axes or for each; none: that of the input
    bool drop_nonfinite = false;
    std::optional<std::array<double, 3>> shift = {};  // added to the coordinates
};
const Fields& convert_fields();

/// How to write, with the scale. Throws Error{bad_argument} for options out of their ranges.
io::WriteOptions writing_of(const ConvertOptions& options);
/// Drops points that are not finite and shifts, as far as the options say so, for a file of that format. Warnings are
/// about the file that the mesh comes from, or about the one that it goes into. Throws Error{bad_argument} where points
/// shall be dropped from a mesh with faces, Error{bad_file} where none is left.
void convert(Mesh& mesh, const ConvertOptions& options, io::Format to, io::Warnings& of_input, io::Warnings& of_output);

}  // namespace stipple::tasks
