#pragma once
// Sixteen numbers in four registers of four, by the vector extension that GCC and clang share: SSE and NEON alike, and
// no need for the optimiser to see what is meant. Internal to the CPU code of ops.

#include <bit>
#include <cstdint>
#include <cstring>

namespace stipple::ops::cpu {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using Long2 = int64_t __attribute__((vector_size(16)));

template <class Vector, class T>
Vector load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Vector, class T>
void store(T* to, Vector v) {
    std::memcpy(to, &v, sizeof v);
}

inline Float4 all(float x) {
    return Float4{x, x, x, x};
}
inline Int4 all(int32_t x) {
    return Int4{x, x, x, x};
}

template <class Vector>
Vector larger(Vector a, Vector b) {
    return a > b ? a : b;
}
template <class Vector>
Vector smaller(Vector a, Vector b) {
    return a < b ? a : b;
}

inline Int4 bits_of(Float4 v) {
    return reinterpret_cast<Int4>(v);
}

/// The OR of the four numbers.
inline uint32_t or_of(Int4 v) {
    const auto halves = reinterpret_cast<Long2>(v);
    const auto both = static_cast<uint64_t>(halves[0] | halves[1]);
    return static_cast<uint32_t>(both | both >> 32);
}

struct Ints16 {
    Int4 part[4];

    static Ints16 from(const int32_t* p) {
        Ints16 v;
        for (int i = 0; i < 4; ++i) v.part[i] = load<Int4>(p + 4 * i);
        return v;
    }
    void to(int32_t* p) const {
        for (int i = 0; i < 4; ++i) store(p + 4 * i, part[i]);
    }

    /// Bit i is set where number i is at most limit i.
    uint32_t within(const Ints16& limits) const {
        constexpr Int4 kBit = {1, 2, 4, 8};
        Int4 mask = {};
        for (int i = 0; i < 4; ++i) mask |= (part[i] <= limits.part[i]) & (kBit << (4 * i));
        return or_of(mask);
    }
    uint32_t within(int32_t limit) const { return within({all(limit), all(limit), all(limit), all(limit)}); }

    int32_t most() const {
        const Int4 v = larger(larger(part[0], part[1]), larger(part[2], part[3]));
        const int32_t a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
        return a > b ? a : b;
    }
    int32_t least() const {
        const Int4 v = smaller(smaller(part[0], part[1]), smaller(part[2], part[3]));
        const int32_t a = v[0] < v[1] ? v[0] : v[1], b = v[2] < v[3] ? v[2] : v[3];
        return a < b ? a : b;
    }

    /// How many are before each in ascending order; of equal ones the first is before the second.
    Ints16 ranks() const {
        constexpr Int4 kAfter[4] = {{0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}};
        Ints16 rank = {};
        for (int j = 0; j < 16; ++j) {
            const Int4 value = all(part[j / 4][j % 4]);
            for (int i = 0; i < 4; ++i) {
                const Int4 limit = i > j / 4 ? part[i] + 1 : i < j / 4 ? part[i] : part[i] + kAfter[j % 4];
                rank.part[i] -= value < limit;  // true is -1
            }
        }
        return rank;
    }
};

/// The numbers of the set bits, lowest first.
template <class Each>
void for_each_bit(uint32_t mask, Each each) {
    for (; mask != 0; mask &= mask - 1) each(std::countr_zero(mask));
}

}  // namespace stipple::ops::cpu
