#include "stipple/geometry/registration/sweep_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/geometry/registration/small_linear.h"

namespace stipple::geometry {
namespace {

constexpr float kNowhere = 1e18f;  // its square is finite
constexpr int kFewest = 6;         // points of a plane
// A plane's points: the least eigenvalue of their covariance beside the middle one.
constexpr double kFlat = 0.05;
// And the middle one beside the largest: points of one ring lie on a line.
constexpr double kWide = 0.05;

/// Three large odd numbers, then the upper bits mixed into the lower ones.
size_t hash_of(const int32_t* at) {
    const uint64_t sum = static_cast<uint32_t>(at[0]) * uint64_t{0x9e3779b97f4a7c15} +
                         static_cast<uint32_t>(at[1]) * uint64_t{0xc2b2ae3d27d4eb4f} +
                         static_cast<uint32_t>(at[2]) * uint64_t{0x165667b19e3779f9};
    return static_cast<size_t>(sum ^ sum >> 32);
}

bool are_equal(const int32_t* a, const int32_t* b) {
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/// Where a place lies far beyond what numbers of cells can tell, it shares the last one.
int32_t cell_number(double place, double edge) {
    constexpr double kFarthest = 1 << 30;
    return static_cast<int32_t>(std::clamp(std::floor(place / edge), -kFarthest, kFarthest));
}

/// Neighbours of a cell: those with a common face, then edge, then corner.
struct Around {
    int32_t step[26][3];
    Around() {
        int count = 0;
        for (int kind = 1; kind <= 3; ++kind)
            for (int i = 0; i < 27; ++i) {
                const int32_t s[3] = {i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
                if (std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]) == kind) std::copy(s, s + 3, step[count++]);
            }
    }
};
const Around kAround;

}  // namespace

SweepMap::SweepMap(double voxel) : voxel_(voxel), places_(1 << 12, -1) {}

int32_t SweepMap::find(const int32_t* at) const {
    const size_t mask = places_.size() - 1;
    for (size_t place = hash_of(at) & mask;; place = (place + 1) & mask) {
        const int32_t index = places_[place];
        if (index < 0 || are_equal(cells_[index].at, at)) return index;
    }
}

void SweepMap::rehash(size_t places) {
    places_.assign(places, -1);
    const size_t mask = places - 1;
    for (size_t i = 0; i < cells_.size(); ++i) {
        size_t place = hash_of(cells_[i].at) & mask;
        while (places_[place] >= 0) place = (place + 1) & mask;
        places_[place] = static_cast<int32_t>(i);
    }
}

SweepMap::Cell& SweepMap::get(const int32_t* at) {
    const int32_t known = find(at);
    if (known >= 0) return cells_[known];
    Cell cell;
    std::copy(at, at + 3, cell.at);
    for (auto& axis : cell.place) std::fill_n(axis, kMost, kNowhere);
    cells_.push_back(cell);
    if (2 * cells_.size() > places_.size()) {
        rehash(2 * places_.size());
    } else {
        const size_t mask = places_.size() - 1;
        size_t place = hash_of(at) & mask;
        while (places_[place] >= 0) place = (place + 1) & mask;
        places_[place] = static_cast<int32_t>(cells_.size() - 1);
    }
    return cells_.back();
}

SweepMap::Nearest SweepMap::nearest(const Vector3& place, double reach) const {
    Nearest found;
    int32_t at[3];
    double inside[3];  // from the cell's lower corner
    for (int axis = 0; axis < 3; ++axis) {
        at[axis] = cell_number(place[axis], voxel_);
        inside[axis] = place[axis] - at[axis] * voxel_;
    }
    double best = reach * reach;
    const auto look = [&](const int32_t* step) {
        const int32_t there[3] = {at[0] + step[0], at[1] + step[1], at[2] + step[2]};
        const int32_t index = find(there);
        if (index < 0) return;
        const Cell& cell = cells_[index];
        float from[3], distances[kMost];
        for (int axis = 0; axis < 3; ++axis) from[axis] = static_cast<float>(inside[axis] - step[axis] * voxel_);
        for (int i = 0; i < kMost; ++i) {
            const float x = cell.place[0][i] - from[0], y = cell.place[1][i] - from[1], z = cell.place[2][i] - from[2];
            distances[i] = (x * x + y * y) + z * z;
        }
        int least = 0;
        for (int i = 1; i < cell.count; ++i)
            if (distances[i] < distances[least]) least = i;
        if (!(distances[least] < best)) return;
        best = distances[least];
        found.is_found = true;
        found.distance_sq = best;
        found.is_flat = cell.is_flat;
        for (int axis = 0; axis < 3; ++axis) {
            found.gap[axis] = double{cell.place[axis][least]} - from[axis];
            found.normal[axis] = cell.normal[axis];
        }
    };
    constexpr int32_t kHere[3] = {};
    look(kHere);
    for (const auto& step : kAround.step) {
        double away_sq = 0;  // of the neighbour's nearest face, edge or corner
        for (int axis = 0; axis < 3; ++axis) {
            if (step[axis] == 0) continue;
            const double away = step[axis] < 0 ? inside[axis] : voxel_ - inside[axis];
            away_sq += away * away;
        }
        if (away_sq < best) look(step);
    }
    return found;
}

void SweepMap::fit_plane(Cell& cell) const {
    cell.is_stale = false;
    cell.is_flat = false;
    // Rings lie far apart: a cell's own points often lie on one line, where those around it tell the surface.
    Vector3 middle = {}, mean = {};
    for (int axis = 0; axis < 3; ++axis) {
        for (int i = 0; i < cell.count; ++i) middle[axis] += cell.place[axis][i];
        middle[axis] /= cell.count;
    }
    const double near_sq = voxel_ * voxel_;
    Matrix3 spread = {};
    int count = 0;
    const auto gather = [&](const Cell& other, const int32_t* step) {
        for (int i = 0; i < other.count; ++i) {
            Vector3 at;
            double away_sq = 0;
            for (int axis = 0; axis < 3; ++axis) {
                at[axis] = other.place[axis][i] + step[axis] * voxel_ - middle[axis];
                away_sq += at[axis] * at[axis];
            }
            if (away_sq > near_sq) continue;
            ++count;
            for (int a = 0; a < 3; ++a) {
                mean[a] += at[a];
                for (int b = a; b < 3; ++b) spread[a][b] += at[a] * at[b];
            }
        }
    };
    constexpr int32_t kHere[3] = {};
    gather(cell, kHere);
    for (const auto& step : kAround.step) {
        const int32_t there[3] = {cell.at[0] + step[0], cell.at[1] + step[1], cell.at[2] + step[2]};
        const int32_t index = find(there);
        if (index >= 0) gather(cells_[index], step);
    }
    if (count < kFewest) return;
    for (int a = 0; a < 3; ++a)
        for (int b = a; b < 3; ++b) spread[b][a] = spread[a][b] -= mean[a] * mean[b] / count;
    const Matrix3 axes = principal_axes(spread);
    double values[3];
    for (int k = 0; k < 3; ++k) {
        values[k] = 0;
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b) values[k] += axes[k][a] * spread[a][b] * axes[k][b];
    }
    cell.is_flat = values[2] <= kFlat * values[1] && values[1] >= kWide * values[0];
    for (int axis = 0; axis < 3; ++axis) cell.normal[axis] = static_cast<float>(axes[2][axis]);
}

void SweepMap::add(std::span<const Vector3> places) {
    const auto apart = static_cast<float>(voxel_ * voxel_ / kMost);
    std::vector<int32_t> touched;
    for (const Vector3& place : places) {
        int32_t at[3];
        for (int axis = 0; axis < 3; ++axis) at[axis] = cell_number(place[axis], voxel_);
        Cell& cell = get(at);
        if (cell.count == kMost) continue;
        float inside[3];
        for (int axis = 0; axis < 3; ++axis) inside[axis] = static_cast<float>(place[axis] - at[axis] * voxel_);
        bool is_near = false;
        for (int i = 0; i < cell.count; ++i) {
            const float x = cell.place[0][i] - inside[0], y = cell.place[1][i] - inside[1],
                        z = cell.place[2][i] - inside[2];
            is_near |= (x * x + y * y) + z * z < apart;
        }
        if (is_near) continue;
        for (int axis = 0; axis < 3; ++axis) cell.place[axis][cell.count] = inside[axis];
        ++cell.count;
        if (!cell.is_stale || cell.count == 1) touched.push_back(static_cast<int32_t>(&cell - cells_.data()));
        cell.is_stale = true;
    }
    for (const int32_t index : touched) fit_plane(cells_[index]);
}

void SweepMap::forget(const Vector3& place, double range) {
    const size_t before = cells_.size();
    std::erase_if(cells_, [&](const Cell& cell) {
        double away_sq = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double away = cell.at[axis] * voxel_ - place[axis];
            away_sq += away * away;
        }
        return away_sq > range * range;
    });
    if (cells_.size() != before) rehash(places_.size());
}

int64_t SweepMap::points() const {
    int64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.count;
    return sum;
}

std::vector<int32_t> first_of_cells(std::span<const Vector3> places, double edge) {
    struct Known {
        int32_t at[3];
    };
    std::vector<Known> cells;
    std::vector<int32_t> first, table(1 << 12, -1);
    for (size_t i = 0; i < places.size(); ++i) {
        Known cell;
        for (int axis = 0; axis < 3; ++axis) cell.at[axis] = cell_number(places[i][axis], edge);
        size_t mask = table.size() - 1, place = hash_of(cell.at) & mask;
        while (table[place] >= 0 && !are_equal(cells[table[place]].at, cell.at)) place = (place + 1) & mask;
        if (table[place] >= 0) continue;
        table[place] = static_cast<int32_t>(cells.size());
        cells.push_back(cell);
        first.push_back(static_cast<int32_t>(i));
        if (2 * cells.size() <= table.size()) continue;
        table.assign(2 * table.size(), -1);
        mask = table.size() - 1;
        for (size_t k = 0; k < cells.size(); ++k) {
            place = hash_of(cells[k].at) & mask;
            while (table[place] >= 0) place = (place + 1) & mask;
            table[place] = static_cast<int32_t>(k);
        }
    }
    return first;
}

}  // namespace stipple::geometry
