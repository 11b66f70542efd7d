#pragma once
// The local map of odometry: cells of equal edge, each with a few points apart from each other and, where these lie
// flat, their plane. Internal to Odometry.

#include <cstdint>
#include <span>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

class SweepMap {
public:
    static constexpr int kMost = 20;  // points of a cell

    explicit SweepMap(double voxel);

    /// What lies nearest to a place.
    struct Nearest {
        bool is_found = false, is_flat = false;
        double distance_sq = 0;
        Vector3 gap = {};     // from the place to the point
        Vector3 normal = {};  // of the cell's plane, where it is flat
    };
    /// Of the points in the place's cell and those around it; none beyond `reach`.
    Nearest nearest(const Vector3& place, double reach) const;

    /// A point enters its cell unless the cell is full or has one nearer than a twentieth of its volume would allow.
    void add(std::span<const Vector3> places);
    /// Cells whose corner is farther than `range` from the place go.
    void forget(const Vector3& place, double range);

    int64_t cells() const { return static_cast<int64_t>(cells_.size()); }
    int64_t points() const;

private:
    struct Cell {
        int32_t at[3];
        int32_t count = 0;
        bool is_flat = false, is_stale = true;
        float normal[3] = {};
        float place[3][kMost];  // from the cell's lower corner; far away where there is none
    };

    int32_t find(const int32_t* at) const;
    Cell& get(const int32_t* at);
    void rehash(size_t places);
    void fit_plane(Cell& cell) const;

    double voxel_;
    std::vector<Cell> cells_;
    std::vector<int32_t> places_;  // open addressing, a power of two; -1: free
};

/// The first point of each cell of this edge, in the order of the points: their indices.
std::vector<int32_t> first_of_cells(std::span<const Vector3> places, double edge);

}  // namespace stipple::geometry
