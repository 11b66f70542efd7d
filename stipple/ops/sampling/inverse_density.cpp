#include "stipple/ops/inverse_density.h"

#include <algorithm>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/sampling/inverse_density_key.h"

namespace stipple::ops {
namespace cpu {
namespace {

void inverse_density_keys(const Batch& batch, int64_t first_row, View<const float, 2> distances_sq, uint64_t seed,
                          int dimension, View<uint64_t, 1> keys) {
    const int64_t columns = distances_sq.size(1);
    parallel_for(distances_sq.size(0), 1024, [&](int64_t begin, int64_t end) {
        int64_t low = 0, high = batch.clouds();
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            (batch.begin(middle) <= first_row + begin ? low : high) = middle;
        }
        for (int64_t i = begin, cloud = low; i < end; ++i) {
            const int64_t row = first_row + i;
            while (batch.end(cloud) <= row) ++cloud;
            keys.data()[row] =
                row_key(seed, cloud, row - batch.begin(cloud), distances_sq.data() + i * columns, columns, dimension);
        }
    });
}

void smallest_keys(View<const uint64_t, 1> keys, View<int32_t, 1> indices, bool& enough) {
    const int64_t n = keys.size(0), m = indices.size(0);
    struct Entry {
        uint64_t key;
        int32_t index;
        bool operator<(const Entry& other) const { return key != other.key ? key < other.key : index < other.index; }
    };
    std::vector<Entry> entries(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) entries[i] = {keys.data()[i], static_cast<int32_t>(i)};
    if (m < n) std::nth_element(entries.begin(), entries.begin() + m, entries.end());
    enough = true;
    for (int64_t i = 0; i < m; ++i) {
        enough &= entries[i].key != kNoKey;
        indices.data()[i] = entries[i].index;
    }
    std::sort(indices.data(), indices.data() + m);
}

}  // namespace
}  // namespace cpu

namespace {

constexpr int64_t kRows = 65536;  // neighbours of so many points are held at a time

/// Rows [begin, end) of a batch as a batch of as many clouds.
Batch part_of(const Batch& batch, int64_t begin, int64_t end) {
    std::vector<int64_t> offsets(static_cast<size_t>(batch.clouds()) + 1);
    for (int64_t cloud = 0; cloud <= batch.clouds(); ++cloud)
        offsets[cloud] = std::clamp(batch.begin(cloud), begin, end) - begin;
    return Batch::ragged(std::move(offsets));
}

Array<uint64_t, 1> keys_of(const Clouds& points, uint64_t seed, const InverseDensityOptions& options, Stream stream) {
    const int64_t n = points.batch.rows(), columns = options.k + 1;  // a point finds itself first
    Array<uint64_t, 1> keys({n}, points.device());
    const PointIndex index(points, stream);
    Array<int32_t, 2> neighbours({std::min(n, kRows), columns}, points.device());
    Array<float, 2> distances_sq({std::min(n, kRows), columns}, points.device());
    for (int64_t begin = 0; begin < n; begin += kRows) {
        const int64_t end = std::min(n, begin + kRows);
        const auto found = distances_sq.view().slice(0, end - begin);
        knn(index, Clouds(points.rows.slice(begin, end), part_of(points.batch, begin, end)),
            neighbours.view().slice(0, end - begin), found, stream);
        switch (points.device().type) {
            case DeviceType::cpu:
                cpu::inverse_density_keys(points.batch, begin, found, seed, options.dimension, keys.view());
                break;
            case DeviceType::cuda:
                STIPPLE_CUDA_CALL(cuda::inverse_density_keys, points.batch, begin, found, seed, options.dimension,
                                  keys.view(), stream);
                break;
        }
    }
    return keys;
}

void require_enough(bool enough, int64_t samples, int64_t cloud) {
    STIPPLE_REQUIRE(enough, "inverse_density_sample: asked for {} samples, cloud {} has fewer finite points", samples,
                    cloud);
}

}  // namespace

void inverse_density_sample(const Clouds& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                            const InverseDensityOptions& options, Stream stream) {
    constexpr const char* kOp = "inverse_density_sample";
    require_clouds(kOp, "points", points);
    require_same_batch(kOp, points.batch, samples);
    require_output<int32_t, 1>(kOp, "indices", indices, {samples.rows()}, points.device());
    STIPPLE_REQUIRE(options.k >= 1 && options.k <= 127, "{}: k must be 1 to 127, got {}", kOp, options.k);
    STIPPLE_REQUIRE(options.dimension >= 1 && options.dimension <= 3, "{}: the dimension must be 1 to 3, got {}", kOp,
                    options.dimension);
    const Batch& batch = points.batch;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        STIPPLE_REQUIRE(samples.size(cloud) <= batch.size(cloud), "{}: asked for {} of the {} points of cloud {}", kOp,
                        samples.size(cloud), batch.size(cloud), cloud);
        STIPPLE_REQUIRE(batch.size(cloud) == 0 || batch.size(cloud) > options.k,
                        "{}: k is {}, but cloud {} has {} points", kOp, options.k, cloud, batch.size(cloud));
    }
    if (samples.rows() == 0) return;
    const Array<uint64_t, 1> keys = keys_of(points, seed, options, stream);
    const auto of_cloud = [&](int64_t cloud) { return keys.view().slice(batch.begin(cloud), batch.end(cloud)); };
    const auto out = [&](int64_t cloud) { return indices.slice(samples.begin(cloud), samples.end(cloud)); };
    switch (points.device().type) {
        case DeviceType::cpu:
            return parallel_for(batch.clouds(), 1, [&](int64_t begin, int64_t end) {
                for (int64_t cloud = begin; cloud < end; ++cloud) {
                    bool enough = true;
                    cpu::smallest_keys(of_cloud(cloud), out(cloud), enough);
                    require_enough(enough, samples.size(cloud), cloud);
                }
            });
        case DeviceType::cuda:
            for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
                if (samples.size(cloud) == 0) continue;
                bool enough = true;
                STIPPLE_CUDA_CALL(cuda::smallest_keys, of_cloud(cloud), out(cloud), enough, stream);
                require_enough(enough, samples.size(cloud), cloud);
            }
    }
}

}  // namespace stipple::ops
