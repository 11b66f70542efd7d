#pragma once
// The random numbers of an augmentation, as data/augment.h lists them, and what they decide about the number of rows.
// On CPU and CUDA.

#include "stipple/core/rng.h"
#include "stipple/data/augment.h"

namespace stipple::data {

/// Operations that draw numbers, in the order of their k.
enum class Draws : uint64_t {
    choose,
    shuffle,
    dropout,
    mirror,
    rotation,
    tilt,
    scale,
    axis_scale,
    shift,
    jitter,
    thin,
};

/// The random numbers of one (seed, epoch, item).
class ItemRandom {
public:
    STIPPLE_HD ItemRandom(uint64_t seed, int64_t epoch, int64_t item) : item_(static_cast<uint64_t>(item)) {
        const RandomBlock block = Rng(seed, uint64_t{0x4155474D} << 32).block(static_cast<uint64_t>(epoch));
        key_ = uint64_t{block.word[1]} << 32 | block.word[0];
    }
    STIPPLE_HD Rng of(Draws operation) const { return Rng(key_, 16 * item_ + static_cast<uint64_t>(operation)); }

private:
    uint64_t key_ = 0, item_;
};

/// Whether any operation decides which rows there are, or their order.
inline bool changes_rows(const AugmentOptions& options) {
    return options.choose > 0 || options.shuffle || options.dropout_ratio > 0 || options.thin_share > 0;
}

/// By which choose and shuffle order the points.
STIPPLE_HD uint64_t bits_of_point(const Rng& rng, int32_t index) {
    const RandomBlock block = rng.block(static_cast<uint64_t>(index) / 2);
    return index % 2 == 0 ? uint64_t{block.word[0]} << 32 | block.word[1]
                          : uint64_t{block.word[2]} << 32 | block.word[3];
}

/// By which thin orders the points: their u as an integer below 2^24.
STIPPLE_HD uint64_t thin_bits_of_point(const Rng& rng, int32_t index) {
    return static_cast<uint64_t>(multiply_rounded(double{rng.uniform(4 + static_cast<uint64_t>(index))}, 0x1p24));
}

/// The share of points that dropout takes from this cloud; below 0: it is not concerned.
STIPPLE_HD double dropout_ratio_of(const AugmentOptions& options, const Rng& rng) {
    if (!(rng.uniform(0) < options.dropout_share)) return -1;
    return multiply_rounded(options.dropout_ratio, double{rng.uniform(1)});
}

STIPPLE_HD bool is_dropped(const Rng& rng, int32_t index, double ratio) {
    return rng.uniform(4 + static_cast<uint64_t>(index)) < ratio;
}

/// How many of a cloud's rows thin keeps: all of them where it is not concerned.
STIPPLE_HD int64_t thinned_rows(const AugmentOptions& options, const Rng& rng, int64_t rows) {
    if (rows == 0 || !(rng.uniform(0) < options.thin_share)) return rows;
    const int64_t most = options.thin_max > 0 && options.thin_max < rows ? options.thin_max : rows;
    const int64_t least = options.thin_min < most ? options.thin_min : most;
    const double ratio = static_cast<double>(most) / static_cast<double>(least);
    const auto n = static_cast<int64_t>(
        multiply_rounded(static_cast<double>(least), ::pow(ratio, static_cast<double>(rng.uniform(1)))));
    return n < least ? least : n > most ? most : n;
}

/// Whether they are the first ones.
STIPPLE_HD bool thins_to_first(const AugmentOptions& options, const Rng& rng) {
    return rng.uniform(2) < options.thin_first;
}

}  // namespace stipple::data
