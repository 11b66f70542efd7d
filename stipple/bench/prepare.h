#pragma once
// What the files of cases share.

#include <memory>
#include <utility>

#include "stipple/bench/cases.h"
#include "stipple/bench/data.h"

namespace stipple::bench {

/// Arrays that a prepared case keeps: a function that can be copied holds no Array, which cannot.
template <class T>
std::shared_ptr<T> keep(T value) {
    return std::make_shared<T>(std::move(value));
}

template <class T, int Rank>
std::shared_ptr<Array<T, Rank>> room(std::array<int64_t, Rank> shape, Device device) {
    return keep(Array<T, Rank>(shape, device));
}

inline std::shared_ptr<Array<int32_t, 1>> room_for_indices(int64_t n, Device device) {
    return room<int32_t, 1>({n}, device);
}

inline std::shared_ptr<Array<float, 1>> room_for_floats(int64_t n, Device device) {
    return room<float, 1>({n}, device);
}

inline std::shared_ptr<Array<float, 2>> room_for_rows(int64_t n, int64_t c, Device device) {
    return room<float, 2>({n, c}, device);
}

/// Random neighbours: the worst case for caches.
inline std::shared_ptr<Array<int32_t, 2>> random_neighbours(int64_t clouds, int64_t n, int64_t m, int64_t k,
                                                            Device device) {
    return keep(uniform_neighbours(clouds, n, m, k, 1).to(device));
}

/// "100k", "1M", "32 x 2048"
std::string shape_of(int64_t clouds, int64_t n);

}  // namespace stipple::bench
