#pragma once
// A cloud in parts: by the values of an attribute, by tiles of the ground plan, or by number.

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// Says which part each point belongs to, for a cloud that comes in pieces: parts are numbered from 0 as they are met,
/// and stay what they are from piece to piece.
class CloudSplitter {
public:
    /// One part for each value of an attribute of one component, which every piece must have. -0 is 0, and all NaN are
    /// one value.
    static CloudSplitter by_attribute(std::string name);
    /// Squares of x and y that begin at multiples of `size` in the world; each holds its lower and left edge. Points
    /// with a non-finite x or y belong to no part. Throws Error{bad_argument} for a size that is not above 0.
    static CloudSplitter by_tile(double size);
    /// `count` points each, in their order; the last part has the rest. Throws Error{bad_argument} for a count below 1.
    static CloudSplitter by_count(int64_t count);

    /// [n] parts; -1: none. Throws Error{bad_argument} when there are more than `most` parts, and for an attribute that
    /// is not there or has several components. O(n).
    std::vector<int32_t> assign(const PointCloud& piece, int64_t most);

    /// A name for each part so far, fit for a file: the value ("2", "-0.5", "nan"), the lower left corner of the tile
    /// ("637000_851000"), the number from 1 in at least four digits ("0001").
    const std::vector<std::string>& names() const { return names_; }

private:
    CloudSplitter() = default;
    int32_t add(std::string name, int64_t most);
    void assign_values(const PointCloud& piece, int64_t most, std::vector<int32_t>& parts);
    void assign_tiles(const PointCloud& piece, int64_t most, std::vector<int32_t>& parts);

    std::string attribute_;
    double tile_ = 0;
    int64_t count_ = 0, seen_ = 0;
    std::vector<std::string> names_;
    std::unordered_map<uint64_t, int32_t> part_of_value_;
    std::map<std::array<int64_t, 2>, int32_t> part_of_tile_;
};

/// The indices of the points of each part, ascending. Points of no part (below 0) are in none. Throws
/// Error{bad_argument} for a part from `count` on.
std::vector<std::vector<int32_t>> members(const std::vector<int32_t>& parts, size_t count);

}  // namespace stipple::geometry
