#pragma once
// The inputs of a study of upsampling, drawn from meshes: one shape, one condition and one seed give one cloud,
// whatever else is drawn.

#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::tasks::study {

/// How the points of an input are chosen.
///   even      farthest points of 40,000 uniform samples of the surface, input (c) of the usual protocol
///   random    independent and uniform on the surface
///   gradient  independent; the density grows linearly from 1 to 8 along a random direction
///   region    independent; the fifth of the surface that is nearest to a random point of it has a tenth of the density
///   given     random points of the truth that comes with the shape, input (r) of the usual protocol
enum class Draw { even, random, gradient, region, given };

/// What is upsampled, and to what.
struct Condition {
    std::string id = {};     // names folders and rows: "noise-0.5"
    std::string title = {};  // for people: "noise 0.5 %"
    double value = 0;        // where it stands on the axis of a sweep; NaN: not on it
    Draw draw = Draw::even;
    int64_t points = 2048;
    double noise = 0;  // standard deviation in per cent of the bounding sphere's radius
    double ratio = 4;
    int64_t neighbours = 0;    // of networks, instead of their own; then nothing else runs. 0: their own
    bool given_truth = false;  // scored against the truth that comes with the shape, else against an independent sample
    std::string published = {};  // which published values belong to it (published.h)

    int64_t wanted() const;  // points of the output
};

struct Shape {
    std::string name;   // of the mesh's file, without extension
    std::string mesh;   // path
    std::string truth;  // path of a cloud; empty: none comes with it
};

/// The meshes of folder/meshes, or of the folder itself where there is no such folder in it, by name, with the clouds
/// of folder/gt_8192 that have their names. The first `count`, 0: all. Throws Error{bad_file} for a folder that is not
/// there, Error{bad_argument} for one without meshes and for two of one name.
std::vector<Shape> list_shapes(const std::string& folder, int64_t count);

/// Farthest points of uniform samples: 40,000 for up to 8,192 points, else 160,000 for each 32,768 begun.
PointCloud even_points(const Mesh& mesh, int64_t count, uint64_t seed);

/// The input of a condition. `given`: the truth that comes with the shape, or null. Noise is Gaussian, equal in all
/// directions. Throws Error{bad_argument} for a condition that wants a truth that is not given, or fewer than 1 point.
PointCloud draw_input(const Mesh& mesh, const PointCloud* given, const Condition& condition, uint64_t seed);
/// What an output is scored against: condition.wanted() points, independent of the input, or the given ones.
PointCloud draw_truth(const Mesh& mesh, const PointCloud* given, const Condition& condition, uint64_t seed);
/// Another such sample of the surface: what an output would be that nothing can beat by much.
PointCloud draw_floor(const Mesh& mesh, const Condition& condition, uint64_t seed);

/// FNV-1a of the positions, as 16 hexadecimal digits: the name of a cloud in rows that are kept.
std::string fingerprint(const PointCloud& cloud);

}  // namespace stipple::tasks::study
