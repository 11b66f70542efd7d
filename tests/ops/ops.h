#pragma once
// What the tests of ops share: every device, and clouds of every unpleasant kind.
//
//   class Knn : public OnDevice {};
//   STIPPLE_ON_EVERY_DEVICE(Knn);
//   TEST_P(Knn, TiesGoToTheLowestIndex) { Array<float, 2> points = upload(host); ... download(indices) }

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/ops/clouds.h"
#include "stipple/ops/distance_norm.h"
#include "tests/support/devices.h"

namespace stipple::test {

/// n points of a kind, [n, 3]. Deterministic.
enum class Kind { uniform, clustered, collinear, coplanar, duplicated, all_equal, lattice, nonfinite, huge, tiny };
Array<float, 2> make_cloud(Kind kind, int64_t n, uint64_t seed = 1);
const std::vector<Kind>& all_kinds();
std::string to_string(Kind kind);

inline constexpr ops::DistanceNorm kNorms[] = {ops::DistanceNorm::euclidean, ops::DistanceNorm::squared};

/// n rows of c uniform numbers in [0, 1).
Array<float, 2> make_features(int64_t n, int64_t c, uint64_t seed = 1);

/// Rows of several clouds one after another.
Array<float, 2> concatenate(const std::vector<const Array<float, 2>*>& clouds);

}  // namespace stipple::test
