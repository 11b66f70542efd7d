#pragma once
// The oracle of every neighbour search.

#include <cstring>
#include <limits>

#include "stipple/core/rng.h"
#include "stipple/ops/point_index.h"
#include "tests/ops/guarded.h"
#include "tests/ops/ops.h"
#include "tests/support/not_finite.h"

namespace stipple::test {

struct Neighbour {
    float distance_sq;
    int32_t index;
    bool operator<(const Neighbour& other) const {
        return distance_sq < other.distance_sq || (distance_sq == other.distance_sq && index < other.index);
    }
};

/// Every point that can be found from a query, nearest first.
inline std::vector<Neighbour> all_neighbours(View<const float, 2> points, const float* query) {
    std::vector<Neighbour> found;
    for (int64_t i = 0; i < points.size(0); ++i) {
        float sum = 0;
        for (int64_t axis = 0; axis < points.size(1); ++axis) {
            const float d = query[axis] - points(i, axis);
            sum += d * d;
        }
        if (sum <= std::numeric_limits<float>::max()) found.push_back({sum, static_cast<int32_t>(i)});
    }
    std::sort(found.begin(), found.end());
    return found;
}

/// Host clouds on a device.
struct Uploaded {
    Array<float, 2> rows;
    ops::Clouds clouds;
    Uploaded(const Array<float, 2>& host, Device device) : Uploaded(host, ops::Batch::single(host.size(0)), device) {}
    Uploaded(const Array<float, 2>& host, const ops::Batch& batch, Device device)
        : rows(host.to(device)), clouds(View<const float, 2>(rows.view()), batch) {}
};

/// A row of a batch belongs to this cloud.
inline int64_t cloud_of(const ops::Batch& batch, int64_t row) {
    int64_t cloud = 0;
    while (row >= batch.end(cloud)) ++cloud;
    return cloud;
}

/// Three clouds of three kinds with an empty one between them, as rows and offsets.
struct RaggedSample {
    Array<float, 2> rows;
    ops::Batch batch;
    explicit RaggedSample(std::vector<int64_t> sizes, uint64_t seed = 1) {
        std::vector<Array<float, 2>> clouds;
        std::vector<const Array<float, 2>*> pointers;
        std::vector<int64_t> offsets = {0};
        const Kind kinds[] = {Kind::uniform, Kind::lattice, Kind::nonfinite, Kind::duplicated};
        for (size_t i = 0; i < sizes.size(); ++i) {
            clouds.push_back(make_cloud(kinds[i % 4], sizes[i], seed + i));
            offsets.push_back(offsets.back() + sizes[i]);
        }
        for (const Array<float, 2>& cloud : clouds) pointers.push_back(&cloud);
        rows = concatenate(pointers);
        batch = ops::Batch::ragged(std::move(offsets));
    }
};

}  // namespace stipple::test
