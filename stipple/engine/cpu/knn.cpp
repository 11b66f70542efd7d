#include "stipple/ops/knn.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "stipple/engine/cpu/steps.h"
#include "stipple/ops/common/simd.h"

namespace stipple::engine::cpu {
namespace {

using namespace ops::cpu;

constexpr int64_t kQueries = 64;  // searched together
constexpr int64_t kBlock = 1024;  // candidates at a time, coordinate by coordinate
constexpr int64_t kGroup = 16;    // candidates that are looked at or left together

// A neighbour as one number: distance above, index below. The order of the numbers is that of ops::knn's contract.
uint64_t key_of(float d2, int64_t index) {
    return static_cast<uint64_t>(std::bit_cast<uint32_t>(d2)) << 32 | static_cast<uint32_t>(index);
}
float d2_of(uint64_t key) {
    return std::bit_cast<float>(static_cast<uint32_t>(key >> 32));
}

// No neighbour: after all finite distances.
constexpr uint64_t kNone = uint64_t{0x7f800000} << 32;

// Bit i is set where candidate i is nearer than `reach`.
uint32_t nearer(const float* d2, float reach) {
    constexpr Int4 kBit = {1, 2, 4, 8};
    Int4 mask = {};
    for (int i = 0; i < 4; ++i) mask |= (load<Float4>(d2 + 4 * i) < all(reach)) & (kBit << (4 * i));
    return or_of(mask);
}

// Squared distances of one query to n candidates, rounded up to whole groups.
void distances(const float* query, const float* candidates, int64_t n, int64_t channels, float* d2) {
    const int64_t padded = (n + kGroup - 1) / kGroup * kGroup;
    for (int64_t i = 0; i < padded; ++i) {
        const float d = query[0] - candidates[i];
        d2[i] = d * d;
    }
    for (int64_t c = 1; c < channels; ++c)
        for (int64_t i = 0; i < padded; ++i) {
            const float d = query[c] - candidates[c * kBlock + i];
            d2[i] += d * d;
        }
}

// Takes candidates first .. first + n into the sorted list of the k nearest.
void insert_nearer(const float* d2, int64_t n, int64_t first, int64_t k, uint64_t* list) {
    float reach = d2_of(list[k - 1]);
    for (int64_t g = 0; g < n; g += kGroup)
        for_each_bit(nearer(d2 + g, reach), [&](int i) {
            // Candidates come in the order of their indices: an equal distance is never nearer.
            const float d = d2[g + i];
            if (!(d < reach)) return;
            const uint64_t key = key_of(d, first + g + i);
            int64_t at = k - 1;
            for (; at > 0 && list[at - 1] > key; --at) list[at] = list[at - 1];
            list[at] = key;
            reach = d2_of(list[k - 1]);
        });
}

// The same for a list of 2 * kPairs numbers, which stays in registers: no branch depends on where a number belongs, and
// one that is too far leaves the list as it is.
template <int kPairs>
void insert_in_registers(const float* d2, int64_t n, int64_t first, uint64_t* list) {
    Long2 numbers[kPairs];
    for (int i = 0; i < kPairs; ++i) numbers[i] = load<Long2>(list + 2 * i);
    for (int64_t g = 0; g < n; g += kGroup) {
        const float reach = d2_of(static_cast<uint64_t>(numbers[kPairs - 1][1]));
        for_each_bit(nearer(d2 + g, reach), [&](int i) {
            const auto number = static_cast<int64_t>(key_of(d2[g + i], first + g + i));
            const Long2 key = {number, number};
            Long2 before = {};
#pragma GCC unroll 16
            for (int j = 0; j < kPairs; ++j) {  // each moves up by one or stays
                const Long2 old = numbers[j];
                numbers[j] = smaller(old, larger(Long2{before[1], old[0]}, key));
                before = old;
            }
        });
    }
    for (int i = 0; i < kPairs; ++i) store(list + 2 * i, numbers[i]);
}

// Length of the list of the k nearest: shorter ones are filled up in front, by numbers before all others.
int64_t list_length(int64_t k) {
    return k <= 8 ? 8 : k <= 16 ? 16 : k <= 32 ? 32 : k;
}

void insert(const float* d2, int64_t n, int64_t first, int64_t length, uint64_t* list) {
    switch (length) {
        case 8: return insert_in_registers<4>(d2, n, first, list);
        case 16: return insert_in_registers<8>(d2, n, first, list);
        case 32: return insert_in_registers<16>(d2, n, first, list);
        default: return insert_nearer(d2, n, first, length, list);
    }
}

}  // namespace

int64_t knn_scratch_bytes(int64_t channels, int64_t k) {
    return (channels + 1) * kBlock * static_cast<int64_t>(sizeof(float)) +
           kQueries * list_length(k) * static_cast<int64_t>(sizeof(uint64_t));
}

void knn_all(const float* points, int64_t stride, int64_t rows, int64_t channels, int64_t k, int32_t* out,
             int64_t begin, int64_t end, std::byte* scratch, const KnnQueries& queries_of) {
    const bool is_own = queries_of.data == nullptr;
    const float* from = is_own ? points : queries_of.data;
    const int64_t from_stride = is_own ? stride : queries_of.stride;
    auto* candidates = reinterpret_cast<float*>(scratch);  // [channels, kBlock]
    float* d2 = candidates + channels * kBlock;
    auto* lists = reinterpret_cast<uint64_t*>(d2 + kBlock);
    const int64_t length = list_length(k), filled = length - k;
    int64_t loaded = -1;
    for (int64_t q0 = begin; q0 < end; q0 += kQueries) {
        const int64_t queries = std::min(kQueries, end - q0);
        for (int64_t q = 0; q < queries; ++q) {
            std::fill_n(lists + q * length, filled, uint64_t{0});
            std::fill_n(lists + q * length + filled, k, kNone);
        }
        for (int64_t first = 0; first < rows; first += kBlock) {
            const int64_t n = std::min(kBlock, rows - first);
            if (loaded != first)  // a patch is one block, loaded once
                for (int64_t c = 0; c < channels; ++c) {
                    float* to = candidates + c * kBlock;
                    for (int64_t i = 0; i < n; ++i) to[i] = points[(first + i) * stride + c];
                    std::fill(to + n, to + (n + kGroup - 1) / kGroup * kGroup, std::numeric_limits<float>::infinity());
                }
            loaded = first;
            for (int64_t q = 0; q < queries; ++q) {
                distances(from + (q0 + q) * from_stride, candidates, n, channels, d2);
                insert(d2, n, first, length, lists + q * length);
            }
        }
        for (int64_t q = 0; q < queries; ++q)
            for (int64_t j = 0; j < k; ++j) {
                const uint64_t key = lists[q * length + filled + j];
                const int64_t missing = is_own ? q0 + q : 0;
                out[(q0 + q) * k + j] = static_cast<int32_t>(key == kNone ? static_cast<uint64_t>(missing) : key);
            }
    }
}

void knn_tree(const ops::PointIndex& points, const KnnQueries& queries, bool is_own, int64_t k, int32_t* out) {
    const int64_t rows = queries.rows;
    ops::knn(points, View<const float, 2>(queries.data, {rows, points.dimension()}, {queries.stride, 1}),
             View<int32_t, 2>(out, {rows, k}), {});
    for (int64_t i = 0; i < rows * k; ++i)
        if (out[i] < 0) out[i] = is_own ? static_cast<int32_t>(i / k) : 0;
}

}  // namespace stipple::engine::cpu
