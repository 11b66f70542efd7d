#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/ops/sampling/poisson_weight.h"
#include "tests/ops/ops.h"

namespace stipple::test {
namespace {

using ops::SampleRole;

struct Part {
    Array<float, 2> points;
    Array<uint8_t, 1> roles, factors;
};

/// Points of a unit square, of every role.
Part random_part(int64_t n, uint64_t seed) {
    Part part{Array<float, 2>({n, 3}), Array<uint8_t, 1>({n}), Array<uint8_t, 1>({n})};
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        float* p = part.points.data() + 3 * i;
        p[0] = rng.uniform(static_cast<uint64_t>(4 * i)), p[1] = rng.uniform(static_cast<uint64_t>(4 * i + 1)),
        p[2] = 0;
        const float role = rng.uniform(static_cast<uint64_t>(4 * i + 2));
        part.roles.data()[i] = static_cast<uint8_t>(role < 0.6f   ? SampleRole::candidate
                                                    : role < 0.9f ? SampleRole::border
                                                                  : SampleRole::fixed);
        part.factors.data()[i] = static_cast<uint8_t>(1 + 200 * rng.uniform(static_cast<uint64_t>(4 * i + 3)));
    }
    return part;
}

/// One removal after the other, everything looked at each time.
std::vector<int32_t> eliminate_slowly(const Part& part, bool has_factors, float radius, int64_t m) {
    const auto role = [&](int32_t i) { return static_cast<SampleRole>(part.roles.data()[i]); };
    std::vector<int32_t> living;
    for (int32_t i = 0; i < part.points.size(0); ++i)
        if (std::isfinite(part.points.data()[3 * i])) living.push_back(i);
    const auto candidates = [&] {
        return std::count_if(living.begin(), living.end(), [&](int32_t i) { return role(i) == SampleRole::candidate; });
    };
    while (candidates() > m) {
        int64_t largest = -1;
        int32_t worst = -1;
        for (const int32_t i : living) {
            if (role(i) == SampleRole::fixed) continue;
            int64_t sum = 0;
            for (const int32_t j : living)
                if (j != i)
                    sum += ops::poisson_weight(distance_sq(part.points.data() + 3 * i, part.points.data() + 3 * j),
                                               1 / (2 * radius));
            if (has_factors) sum *= part.factors.data()[i];
            if (sum > largest) largest = sum, worst = i;
        }
        living.erase(std::find(living.begin(), living.end(), worst));
    }
    std::erase_if(living, [&](int32_t i) { return role(i) != SampleRole::candidate; });
    return living;
}

TEST(PoissonDiskOfPart, IsOneRemovalAfterTheOther) {
    for (const uint64_t seed : {1, 2, 3})
        for (const bool has_factors : {false, true}) {
            Part part = random_part(300, seed);
            part.points.data()[3 * 17] = NAN;
            const int64_t m = 40;
            Array<int32_t, 1> indices({m});
            ops::poisson_disk_of_part(part.points.view(), part.roles.view(),
                                      has_factors ? part.factors.view() : View<const uint8_t, 1>(), 0.06f,
                                      indices.view());
            EXPECT_EQ(std::vector<int32_t>(indices.span().begin(), indices.span().end()),
                      eliminate_slowly(part, has_factors, 0.06f, m))
                << seed;
        }
}

TEST(PoissonDiskOfPart, StaysAwayFromWhatIsFixed) {
    Part part = random_part(2000, 4);
    for (int64_t i = 0; i < 2000; ++i) {
        const bool is_left = part.points.data()[3 * i] < 0.5f;
        part.roles.data()[i] = static_cast<uint8_t>(is_left ? SampleRole::candidate : SampleRole::fixed);
    }
    // The other half is full: beside it there is hardly room, where it is missing there is.
    Array<int32_t, 1> indices({60});
    const auto beside = [&] {
        ops::poisson_disk_of_part(part.points.view(), part.roles.view(), {}, 0.05f, indices.view());
        int64_t count = 0;
        for (const int32_t i : indices.span()) count += part.points.data()[3 * i] > 0.46f;
        return count;
    };
    const int64_t with_fixed = beside();
    for (int64_t i = 0; i < 2000; ++i)
        if (part.points.data()[3 * i] >= 0.5f) part.points.data()[3 * i] = NAN;
    const int64_t without = beside();
    EXPECT_GE(without, 4);
    EXPECT_LE(4 * with_fixed, without);
}

TEST(PoissonDiskOfPart, RefusesWhatItCannotDo) {
    Part part = random_part(50, 5);
    Array<int32_t, 1> indices({10}), many({50});
    const auto call = [&](float radius, View<int32_t, 1> out) {
        ops::poisson_disk_of_part(part.points.view(), part.roles.view(), part.factors.view(), radius, out);
    };
    EXPECT_THROW(call(0, indices.view()), Error);
    EXPECT_THROW(call(NAN, indices.view()), Error);
    EXPECT_THROW(call(0.1f, many.view()), Error);
    part.factors.data()[3] = 0;
    EXPECT_THROW(call(0.1f, indices.view()), Error);
    part.factors.data()[3] = 1;
    part.roles.data()[3] = 3;
    EXPECT_THROW(call(0.1f, indices.view()), Error);
    part.roles.data()[3] = 0;
    call(0.1f, indices.view());
    EXPECT_THROW(
        ops::poisson_disk_of_part(part.points.view(), part.roles.view().slice(0, 49), {}, 0.1f, indices.view()), Error);
}

}  // namespace
}  // namespace stipple::test
