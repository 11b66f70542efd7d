#pragma once
// Which pixels a step sees, on CPU and CUDA: a pure function of seed and step.

#include "stipple/core/rng.h"
#include "stipple/radiance/march/ray.h"

namespace stipple::radiance {

/// `index` of n in a random order: a bijection of [0, n) for every key, by a Feistel network of four rounds over the
/// next power of four, walked until the result is below n.
STIPPLE_HD uint32_t shuffled(uint32_t index, uint32_t n, uint64_t key) {
    int half = 1;
    while (half < 16 && (uint64_t{1} << (2 * half)) < n) ++half;
    const uint32_t mask = (uint32_t{1} << half) - 1;
    uint32_t x = index;
    do {
        uint32_t left = x >> half, right = x & mask;
        for (uint32_t round = 0; round < 4; ++round) {
            uint32_t h = (right + static_cast<uint32_t>(key >> (16 * (round & 1))) + round) * 0x9E3779B1u;
            h ^= h >> 15;
            h = (h + static_cast<uint32_t>(key >> 32)) * 0x85EBCA77u;
            h ^= h >> 13;
            const uint32_t next = left ^ (h & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= n);
    return x;
}

/// Photographs one after the other, row by row.
struct Photos {
    const uint8_t* pixels = nullptr;  // RGBA
    const uint32_t* first = nullptr;  // [count + 1] pixels before each photograph
    const CameraView* cameras = nullptr;
    int32_t count = 0;
};

/// The photograph of a pixel in the row of all.
STIPPLE_HD int32_t photo_of(const Photos& photos, uint32_t pixel) {
    int32_t low = 0, high = photos.count - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (photos.first[middle] <= pixel) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/// Pixels to draw from: `list`, or all of them.
struct PixelPool {
    const uint32_t* list = nullptr;
    uint32_t count = 0;
    bool with_replacement = false;
};

struct DrawnRay {
    Ray ray;
    float colour[3];      // of the photograph, on the background
    float background[3];  // 0 where it is learned: the caller has the map
    float offset = 0;     // of the first sample, in steps
};

struct DrawRules {
    uint64_t seed = 0;
    Background background = Background::white;
    bool jitter = false;
};

/// Ray `i` of a step of `rays` rays.
STIPPLE_HD DrawnRay draw_ray(const Photos& photos, const PixelPool& pool, const DrawRules& rules, int64_t step,
                             int32_t rays, int32_t i) {
    const uint64_t k = static_cast<uint64_t>(step) * static_cast<uint64_t>(rays) + static_cast<uint64_t>(i);
    uint32_t pixel = 0;
    if (pool.with_replacement) {
        pixel = Rng(rules.seed, 1).below(k, pool.count);
    } else {
        const uint64_t epoch = k / pool.count;
        const RandomBlock block = Rng(rules.seed, 2).block(epoch);
        pixel = shuffled(static_cast<uint32_t>(k - epoch * pool.count), pool.count,
                         uint64_t{block.word[0]} << 32 | block.word[1]);
    }
    if (pool.list) pixel = pool.list[pixel];
    const int32_t photo = photo_of(photos, pixel);
    const CameraView& camera = photos.cameras[photo];
    const int32_t place = static_cast<int32_t>(pixel - photos.first[photo]);
    DrawnRay drawn;
    drawn.ray = camera_ray(camera, place % camera.width, place / camera.width);
    const uint8_t* rgba = photos.pixels + int64_t{pixel} * 4;
    // Where the background is learned a pixel shows what is there; it is transparent by what is not known of it.
    const float alpha = rules.background == Background::learned ? 1.0f : static_cast<float>(rgba[3]) / 255.0f;
    for (int c = 0; c < 3; ++c) {
        drawn.background[c] = rules.background == Background::white ? 1.0f : 0.0f;
        if (rules.background == Background::random) {
            drawn.background[c] = Rng(rules.seed, 3).uniform(k * 4 + static_cast<uint64_t>(c));
        }
        drawn.colour[c] = add_rounded(multiply_rounded(static_cast<float>(rgba[c]) / 255.0f, alpha),
                                      multiply_rounded(1 - alpha, drawn.background[c]));
    }
    drawn.offset = rules.jitter ? Rng(rules.seed, 4).uniform(k) : 0;
    return drawn;
}

}  // namespace stipple::radiance
