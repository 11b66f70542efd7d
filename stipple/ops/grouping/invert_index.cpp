#include "stipple/ops/invert_index.h"

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"

namespace stipple::ops {
namespace cpu {
namespace {

/// Counting sort of one cloud's entries. Entries are cut into `chunks` with counters of their own, so that chunks are
/// counted and placed in parallel; the result is the same for any number of chunks.
void invert_cloud(const int32_t* indices, int64_t first, int64_t entries, int64_t n, int64_t chunks, int32_t* ranges,
                  int32_t* positions) {
    const int64_t bins = n + 1;  // the last holds the entries that name no row
    const int64_t per_chunk = (entries + chunks - 1) / chunks;
    std::vector<int32_t> cursor(static_cast<size_t>(chunks * bins));
    const auto bin_of = [&](int64_t e) { return names_row(indices[e], n) ? indices[e] : n; };
    const auto over_chunks = [&](const auto& visit) {
        parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
            for (int64_t chunk = begin; chunk < end; ++chunk) {
                int32_t* bin = cursor.data() + chunk * bins;
                const int64_t last = std::min(entries, (chunk + 1) * per_chunk);
                for (int64_t e = chunk * per_chunk; e < last; ++e) visit(bin, e);
            }
        });
    };

    over_chunks([&](int32_t* bin, int64_t e) { ++bin[bin_of(e)]; });
    int64_t next = first;
    for (int64_t row = 0; row < bins; ++row) {
        if (row < n) ranges[2 * row] = static_cast<int32_t>(next);
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            const int32_t count = cursor[chunk * bins + row];
            cursor[chunk * bins + row] = static_cast<int32_t>(next);
            next += count;
        }
        if (row < n) ranges[2 * row + 1] = static_cast<int32_t>(next);
    }
    over_chunks([&](int32_t* bin, int64_t e) { positions[bin[bin_of(e)]++] = static_cast<int32_t>(first + e); });
}

void invert_index(const Neighbours& neighbours, const Batch& rows, int32_t* ranges, int32_t* positions) {
    constexpr int64_t kEntriesPerChunk = 1 << 16;  // below, starting a thread costs more than it saves
    const int64_t k = neighbours.k(), clouds = rows.clouds();
    const auto invert = [&](int64_t cloud, int64_t chunks) {
        const int64_t first = neighbours.batch.begin(cloud) * k, entries = neighbours.batch.size(cloud) * k;
        invert_cloud(neighbours.indices.data() + first, first, entries, rows.size(cloud), chunks,
                     ranges + 2 * rows.begin(cloud), positions);
    };
    if (clouds >= threads()) {
        const int64_t mean = neighbours.entries() / clouds + 1;
        parallel_for(clouds, std::max<int64_t>(1, kEntriesPerChunk / 8 / mean), [&](int64_t begin, int64_t end) {
            for (int64_t cloud = begin; cloud < end; ++cloud) invert(cloud, 1);
        });
        return;
    }
    for (int64_t cloud = 0; cloud < clouds; ++cloud) {
        const int64_t entries = neighbours.batch.size(cloud) * k;
        // As many counters as entries at most: a cloud of many rows and few entries is not worth several sets.
        const int64_t affordable = std::min(entries / kEntriesPerChunk, 2 * entries / (rows.size(cloud) + 1));
        invert(cloud, std::clamp<int64_t>(affordable, 1, threads()));
    }
}

}  // namespace
}  // namespace cpu

void invert_index(const Neighbours& neighbours, const Batch& rows, View<int32_t, 2> ranges, View<int32_t, 1> positions,
                  [[maybe_unused]] Stream stream) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    require_neighbours("invert_index", neighbours, rows, neighbours.device());
    const int64_t entries = neighbours.entries();
    STIPPLE_REQUIRE(entries <= kMost && rows.rows() <= kMost - rows.clouds(),
                    "invert_index: {} entries and {} rows in {} clouds; the most is {}", entries, rows.rows(),
                    rows.clouds(), kMost);
    require_output<int32_t, 2>("invert_index", "ranges", ranges, {rows.rows(), 2}, neighbours.device());
    require_output<int32_t, 1>("invert_index", "positions", positions, {entries}, neighbours.device());
    if (rows.rows() == 0 && entries == 0) return;
    switch (neighbours.device().type) {
        case DeviceType::cpu: return cpu::invert_index(neighbours, rows, ranges.data(), positions.data());
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::invert_index, neighbours, rows, ranges, positions, stream);
    }
}

void require_inverse(const char* op, const InvertedIndex& inverse, int64_t n, int64_t entries, Device device) {
    require_output<const int32_t, 2>(op, "ranges", inverse.ranges, {n, 2}, device);
    require_output<const int32_t, 1>(op, "positions", inverse.positions, {entries}, device);
}

}  // namespace stipple::ops
