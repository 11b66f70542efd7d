#pragma once

#include "stipple/core/rng.h"
#include "stipple/ops/clouds.h"

namespace stipple::ops {

enum class SampleOrder {
    by_index,  // ascending
    random,    // any prefix is a uniform sample too, the same as for a smaller count
};

struct RandomSampleOptions {
    SampleOrder order = SampleOrder::by_index;
    bool with_replacement = false;  // independent draws, in the order of drawing whatever `order` says
};

/// A uniform random subset of each cloud, without coordinates: non-finite points are drawn like any other.
///
/// points   the clouds to draw from
/// samples  how many of each cloud, e.g. Batch::dense(clouds, m); without replacement not more than it has points
/// indices  [samples.rows()] int32, positions in the cloud, CPU or CUDA
///
/// Each point gets 64 random bits that depend on seed, cloud and index alone; the samples are the points with the
/// smallest, ties to the lowest index. The same on CPU and CUDA and on any number of threads; with one seed, what is
/// drawn of a cloud contains what a smaller count draws.
/// Throws Error{bad_argument} for more samples than points (with replacement: for any of an empty cloud), for clouds of
/// more than 2^31 - 1 points, and for wrong shapes. O(n) time; memory O(m) on the CPU, O(n) on CUDA.
void random_sample(const Batch& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                   const RandomSampleOptions& options = {}, Stream stream = {});

/// 64 bits for the i-th point or draw of a cloud.
STIPPLE_HD uint64_t random_sample_bits(uint64_t seed, int64_t cloud, int64_t i) {
    constexpr uint64_t kPurpose = 0x52534D50;  // keeps apart from other uses of the seed
    const RandomBlock block =
        Rng(seed, kPurpose << 32 ^ static_cast<uint64_t>(cloud)).block(static_cast<uint64_t>(i) / 2);
    return i % 2 == 0 ? uint64_t{block.word[0]} << 32 | block.word[1] : uint64_t{block.word[2]} << 32 | block.word[3];
}

/// In [0, bound), bound < 2^31: the upper half of bits * bound.
STIPPLE_HD int32_t random_sample_below(uint64_t bits, uint64_t bound) {
    return static_cast<int32_t>(((bits >> 32) * bound + ((bits & 0xFFFFFFFFu) * bound >> 32)) >> 32);
}

namespace cuda {
void random_sample(const Batch& points, const Batch& samples, uint64_t seed, View<int32_t, 1> indices,
                   const RandomSampleOptions& options, Stream stream);
}

}  // namespace stipple::ops
