#pragma once
// Coloring: what colour a point or a place on a triangle has, by attribute, coordinate or constant.

#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/picture/camera.h"
#include "stipple/picture/color_map.h"

namespace stipple::picture {

/// How numbers and labels become colours; shared by the panels of a figure that show the same attribute.
struct ColorScale {
    ColorMap map = ColorMap::viridis;
    double low = 0, high = 1;     // the ends of the map
    std::vector<int64_t> labels;  // sorted; the i-th has category_color(i)
    Rgb missing{170, 170, 170};   // NaN values
};

enum class ColorKind { constant, rgb, scalar, axis, depth, normal, category };

class Coloring {
public:
    /// `by` is "" (the attribute color if there is one, else of a cloud what automatic_color() names, of a mesh
    /// `constant`), "constant", "#rrggbb", "x", "y", "z", "depth" or the name of an attribute of the vertices or, for a
    /// mesh, of the faces. color (uint8 or uint16, 3 or 4
    /// components) is shown as it is, 8-bit values in uint16 as color_maximum() tells, normal as colour, integers named
    /// label, class, classification or part by category, anything else through the colour map: its first component, or
    /// the length of a vector. Throws Error{bad_argument} that lists the names when there is no such attribute. Keeps
    /// pointers to cloud and mesh.
    Coloring(const PointCloud& cloud, const Mesh* mesh, const std::string& by, Rgb constant, UpAxis up = UpAxis::z);

    ColorKind kind() const { return kind_; }
    bool needs_range() const { return kind_ == ColorKind::scalar || kind_ == ColorKind::axis; }

    /// Values for the automatic range: about 50000, finite ones.
    void sample_values(std::vector<double>& values) const;
    /// Distinct labels, added to a sorted list. Stops at `limit`.
    void collect_labels(std::vector<int64_t>& labels, size_t limit) const;

    /// 0..255. `depth01` is the depth from the nearest (0) to the farthest (1).
    Vec3f of_point(int64_t point, float depth01, const ColorScale& scale) const;
    /// At barycentric weights of triangle `face`.
    Vec3f of_face(int64_t face, const float weight[3], float depth01, const ColorScale& scale) const;

private:
    double value(int64_t row) const;
    Vec3f category(int64_t row, const ColorScale& scale) const;
    Vec3f scalar(double value, const ColorScale& scale) const;
    Vec3f rgb(int64_t row) const;

    const PointCloud* cloud_;
    const Mesh* mesh_;
    const Attribute* attribute_ = nullptr;
    bool per_face_ = false;
    ColorKind kind_ = ColorKind::constant;
    int axis_ = 0;
    float rgb_scale_ = 1;
    Rgb constant_;
};

/// What a cloud is coloured by where nobody says it: its colours, else its intensities where they differ, else its
/// height, the name of the up axis.
std::string automatic_color(const PointCloud& cloud, UpAxis up);

/// The range that holds all but the lowest and highest 2 %; (0, 1) for no values, and a unit range about a single one.
/// Reorders values.
void choose_range(std::vector<double>& values, double& low, double& high);

}  // namespace stipple::picture
