#include "tests/ops/ops.h"

#include <cstring>
#include <functional>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/support/not_finite.h"

namespace stipple::test {

const std::vector<Kind>& all_kinds() {
    static const std::vector<Kind> kinds = {Kind::uniform,    Kind::clustered, Kind::collinear, Kind::coplanar,
                                            Kind::duplicated, Kind::all_equal, Kind::lattice,   Kind::nonfinite,
                                            Kind::huge,       Kind::tiny};
    return kinds;
}

std::string to_string(Kind kind) {
    static const char* const names[] = {"uniform",   "clustered", "collinear", "coplanar", "duplicated",
                                        "all_equal", "lattice",   "nonfinite", "huge",     "tiny"};
    return names[static_cast<int>(kind)];
}

Array<float, 2> make_cloud(Kind kind, int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    const Rng rng(seed, 100 + static_cast<uint64_t>(kind));
    for (int64_t i = 0; i < n; ++i) {
        float u[3];
        for (int axis = 0; axis < 3; ++axis) u[axis] = rng.uniform(3 * i + axis);
        float* p = points.data() + 3 * i;
        for (int axis = 0; axis < 3; ++axis) p[axis] = u[axis];
        switch (kind) {
            case Kind::uniform: break;
            case Kind::clustered:  // a few dense spots far apart, and one point in 50 anywhere
                for (int axis = 0; axis < 3 && i % 50 != 0; ++axis)
                    p[axis] = 100.0f * static_cast<float>((i * 7 + axis * 3) % 5) + 1e-3f * u[axis];
                break;
            case Kind::collinear: p[0] = p[1] = p[2] = u[0]; break;
            case Kind::coplanar: p[2] = 0.25f; break;
            case Kind::duplicated:  // every point about four times
                for (int axis = 0; axis < 3; ++axis)
                    p[axis] = rng.uniform(3 * (rng.bits(1'000'000'000 + i) % (n / 4 + 1)) + axis);
                break;
            case Kind::all_equal: p[0] = 0.1f, p[1] = -0.2f, p[2] = 0.3f; break;
            case Kind::lattice:  // many exact ties
                for (int axis = 0; axis < 3; ++axis) p[axis] = static_cast<float>(static_cast<int>(u[axis] * 8));
                break;
            case Kind::nonfinite:
                if (i % 7 == 3) p[i % 3] = i % 2 == 0 ? kNan : (i % 4 == 1 ? kInfinity : -kInfinity);
                break;
            case Kind::huge:
                for (int axis = 0; axis < 3; ++axis) p[axis] = (u[axis] - 0.5f) * 1e18f;
                break;
            case Kind::tiny:
                for (int axis = 0; axis < 3; ++axis) p[axis] = (u[axis] - 0.5f) * 1e-18f;
                break;
        }
    }
    return points;
}

Array<float, 2> make_features(int64_t n, int64_t c, uint64_t seed) {
    Array<float, 2> rows({n, c});
    const Rng rng(seed, 99);
    for (int64_t i = 0; i < n * c; ++i) rows.data()[i] = rng.uniform(i);
    return rows;
}

Array<float, 2> concatenate(const std::vector<const Array<float, 2>*>& clouds) {
    int64_t rows = 0;
    for (const auto* cloud : clouds) rows += cloud->size(0);
    const int64_t columns = clouds.empty() ? 3 : clouds[0]->size(1);
    Array<float, 2> all({rows, columns});
    float* to = all.data();
    for (const auto* cloud : clouds) {
        if (cloud->elements() > 0) std::memcpy(to, cloud->data(), cloud->elements() * sizeof(float));
        to += cloud->elements();
    }
    return all;
}

}  // namespace stipple::test
