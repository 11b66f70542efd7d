#include "stipple/geometry/planes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/core/box.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/cloud/normals_eigen.h"
#include "stipple/ops/space_curve.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kPlaneGrain = 32768;
constexpr int64_t kPlaneSample = 16384;
constexpr int64_t kMostTrials = 20000;
constexpr double kMissed = 1e-6;

/// normal . x + offset = 0, normal of unit length.
struct Plane {
    Vec3d normal;
    double offset = 0;
    bool exists = false;
};

/// Points as three rows, which a loop over all of them reads fastest, about a point among them: in float32 they are as
/// precise as the cloud's own.
struct Rows {
    std::vector<float> x, y, z;
    int64_t size() const { return static_cast<int64_t>(x.size()); }
    Vec3d operator[](int64_t i) const { return {x[i], y[i], z[i]}; }
    void push(float a, float b, float c) { x.push_back(a), y.push_back(b), z.push_back(c); }
};

int64_t count_within(const Rows& rows, int64_t begin, int64_t end, const Plane& plane, float distance) {
    const auto a = static_cast<float>(plane.normal.x), b = static_cast<float>(plane.normal.y),
               c = static_cast<float>(plane.normal.z), d = static_cast<float>(plane.offset);
    const float *x = rows.x.data(), *y = rows.y.data(), *z = rows.z.data();
    int32_t count = 0;  // of at most kPlaneSample or kPlaneGrain: narrow numbers are added faster
    for (int64_t i = begin; i < end; ++i) count += std::abs(a * x[i] + b * y[i] + c * z[i] + d) <= distance ? 1 : 0;
    return count;
}

int64_t count_within(const Rows& rows, const Plane& plane, float distance) {
    std::vector<int64_t> counts(static_cast<size_t>(rows.size() / kPlaneGrain + 1), 0);
    parallel_for(rows.size(), kPlaneGrain, [&](int64_t begin, int64_t end) {
        counts[begin / kPlaneGrain] = count_within(rows, begin, end, plane, distance);
    });
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

struct PlaneSums {
    double n = 0, x = 0, y = 0, z = 0, xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0;
    void add(const PlaneSums& o) {
        n += o.n, x += o.x, y += o.y, z += o.z;
        xx += o.xx, xy += o.xy, xz += o.xz, yy += o.yy, yz += o.yz, zz += o.zz;
    }
};

/// The plane of least squares through the points within the distance of another.
Plane refit(const Rows& rows, const Plane& plane, double distance) {
    std::vector<PlaneSums> parts(static_cast<size_t>(rows.size() / kPlaneGrain + 1));
    parallel_for(rows.size(), kPlaneGrain, [&](int64_t begin, int64_t end) {
        PlaneSums s;
        for (int64_t i = begin; i < end; ++i) {
            // Without a branch: which points are near is as good as random.
            const double w = std::abs(dot(plane.normal, rows[i]) + plane.offset) <= distance ? 1 : 0;
            const Vec3d p = rows[i], q = w * p;
            s.n += w, s.x += q.x, s.y += q.y, s.z += q.z;
            s.xx += q.x * p.x, s.xy += q.x * p.y, s.xz += q.x * p.z;
            s.yy += q.y * p.y, s.yz += q.y * p.z, s.zz += q.z * p.z;
        }
        parts[begin / kPlaneGrain] = s;
    });
    PlaneSums sum;
    for (const PlaneSums& part : parts) sum.add(part);
    if (sum.n < 3) return {};
    const Vec3d mean = {sum.x / sum.n, sum.y / sum.n, sum.z / sum.n};
    const LeastDirection least = least_direction({sum.xx / sum.n - mean.x * mean.x, sum.xy / sum.n - mean.x * mean.y,
                                                  sum.xz / sum.n - mean.x * mean.z, sum.yy / sum.n - mean.y * mean.y,
                                                  sum.yz / sum.n - mean.y * mean.z, sum.zz / sum.n - mean.z * mean.z});
    if (!least.exists) return {};
    const Vec3d normal = {least.x, least.y, least.z};
    return {normal, -dot(normal, mean), true};
}

Plane through(const Vec3d& a, const Vec3d& b, const Vec3d& c) {
    const Vec3d normal = cross(b - a, c - a);
    const double size = length(normal);
    // Three points nearly on a line have no plane that rounding leaves alone.
    if (!(size > 1e-6 * dot(b - a, b - a) + 1e-6 * dot(c - a, c - a))) return {};
    const Vec3d n = (1 / size) * normal;
    return {n, -dot(n, a), true};
}

/// Up to kPlaneSample of the points, in the order of a curve through space: neighbours in it are near each other.
Rows sample_of(const Rows& rows, uint64_t seed) {
    const int64_t n = rows.size(), m = std::min(n, kPlaneSample);
    std::vector<int32_t> chosen(static_cast<size_t>(m));
    const Rng rng(seed, 0x53414D50);
    for (int64_t i = 0; i < m; ++i) {  // one of each stretch of the cloud
        const int64_t begin = n * i / m, end = n * (i + 1) / m;
        chosen[i] =
            static_cast<int32_t>(begin + rng.below(static_cast<uint64_t>(i), static_cast<uint32_t>(end - begin)));
    }
    auto box = Box<float>::none();
    for (const int32_t i : chosen) box.add(std::array<float, 3>{rows.x[i], rows.y[i], rows.z[i]});
    const float scale = box.longest_side() > 0 ? 1024 / box.longest_side() : 0;
    std::vector<std::pair<uint64_t, int32_t>> order;
    for (const int32_t i : chosen)
        order.emplace_back(ops::hilbert_code(ops::curve_cell(rows.x[i], box.low[0], scale, 1024),
                                             ops::curve_cell(rows.y[i], box.low[1], scale, 1024),
                                             ops::curve_cell(rows.z[i], box.low[2], scale, 1024), 10),
                           i);
    std::sort(order.begin(), order.end());
    Rows sample;
    for (const auto& [code, i] : order) sample.push(rows.x[i], rows.y[i], rows.z[i]);
    return sample;
}

/// The trial of a number: three points of the sample, of odd trials within a window of the curve, which is now small,
/// now large.
Plane proposal(const Rows& sample, const Rng& rng, int64_t trial) {
    const auto m = static_cast<uint32_t>(sample.size());
    const auto at = [&](int k) { return static_cast<uint64_t>(8 * trial + k); };
    int64_t index[3];
    if (trial % 2 == 0) {
        for (int k = 0; k < 3; ++k) index[k] = rng.below(at(k), m);
    } else {
        const int bits = 4 + static_cast<int>(rng.below(at(3), 8));
        const uint32_t window = std::min(m, uint32_t{1} << bits);
        const uint32_t first = rng.below(at(4), m - window + 1);
        for (int k = 0; k < 3; ++k) index[k] = first + rng.below(at(k), window);
    }
    return through(sample[index[0]], sample[index[1]], sample[index[2]]);
}

/// Trials after which a plane with this share of the points is missed with the chance kMissed. Even trials alone count:
/// what the others find is a gift.
int64_t enough_trials(double share) {
    const double hit = share * share * share;
    if (hit >= 1) return 64;
    const double needed = 2 * std::log(kMissed) / std::log1p(-hit);
    return needed < kMostTrials ? std::max<int64_t>(64, static_cast<int64_t>(needed)) : kMostTrials;
}

/// The best planes that trials on the sample find, best first.
std::vector<Plane> best_proposals(const Rows& sample, double distance, int trials, uint64_t seed) {
    struct Scored {
        int64_t count, trial;
    };
    constexpr size_t kKept = 12;
    constexpr int64_t kRound = 256;  // between looks at whether it is enough
    const Rng rng(seed, 0x504C414E45);
    std::vector<Scored> best;
    const int64_t most = trials > 0 ? trials : kMostTrials;
    int64_t wanted = most;
    for (int64_t round = 0; round < wanted; round += kRound) {
        const int64_t count = std::min(kRound, most - round);
        std::vector<int64_t> counts(static_cast<size_t>(count), 0);
        parallel_for(count, 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const Plane plane = proposal(sample, rng, round + i);
                if (plane.exists)
                    counts[i] = count_within(sample, 0, sample.size(), plane, static_cast<float>(distance));
            }
        });
        for (int64_t i = 0; i < count; ++i)
            if (counts[i] > 0) best.push_back({counts[i], round + i});
        std::sort(best.begin(), best.end(), [](const Scored& a, const Scored& b) {
            return a.count != b.count ? a.count > b.count : a.trial < b.trial;
        });
        if (best.size() > kKept) best.resize(kKept);
        if (trials == 0 && !best.empty())
            wanted = enough_trials(static_cast<double>(best[0].count) / static_cast<double>(sample.size()));
    }
    std::vector<Plane> planes;
    for (const Scored& scored : best) planes.push_back(proposal(sample, rng, scored.trial));
    return planes;
}

/// Least squares do not ask for the most points: shifts and tilts by parts of the distance, as long as they gain some.
Plane climbed(const Rows& rows, Plane plane, int64_t most, double distance) {
    constexpr int kMostTries = 24;
    float reach = 0;
    for (int64_t i = 0; i < rows.size(); i += 64)
        reach = std::max({reach, std::abs(rows.x[i]), std::abs(rows.y[i]), std::abs(rows.z[i])});
    if (!(reach > 0)) return plane;
    int tries = 0;
    for (const double part : {0.2, 0.07}) {
        for (bool gains = true; gains && tries < kMostTries;) {
            gains = false;
            const Vec3d side = std::abs(plane.normal.x) < 0.9 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0};
            const Vec3d u = cross(plane.normal, side), v = cross(plane.normal, u),
                        centre = -plane.offset * plane.normal;
            for (int way = 0; way < 6 && tries < kMostTries; ++way, ++tries) {
                const double step = (way % 2 == 0 ? part : -part) * distance, tilt = step / static_cast<double>(reach);
                Plane next = plane;
                if (way < 2) {
                    next.offset += step;
                } else {
                    const Vec3d normal = plane.normal + tilt * (way < 4 ? u : v);
                    next.normal = (1 / length(normal)) * normal;
                    next.offset = -dot(next.normal, centre);
                }
                const int64_t more = count_within(rows, next, static_cast<float>(distance));
                if (more <= most) continue;
                plane = next, most = more, gains = true;
                break;
            }
        }
    }
    return plane;
}

/// The plane with the most points: proposals fitted on the sample, the best of them on all points.
Plane best_plane(const Rows& rows, const PlaneOptions& options, uint64_t seed) {
    if (rows.size() < 3) return {};
    const Rows sample = sample_of(rows, seed);
    const auto distance = static_cast<float>(options.distance);
    std::vector<std::pair<int64_t, Plane>> fitted;
    for (Plane plane : best_proposals(sample, options.distance, options.trials, seed)) {
        int64_t count = count_within(sample, 0, sample.size(), plane, distance);
        for (int step = 0; step < 8; ++step) {
            const Plane next = refit(sample, plane, options.distance);
            const int64_t more = next.exists ? count_within(sample, 0, sample.size(), next, distance) : 0;
            if (more < count || (more == count && step > 0)) break;
            plane = next, count = more;
        }
        fitted.emplace_back(count, plane);
    }
    std::stable_sort(fitted.begin(), fitted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (fitted.size() > 3) fitted.resize(3);
    for (auto& [count, plane] : fitted) count = count_within(rows, plane, distance);
    std::stable_sort(fitted.begin(), fitted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (fitted.empty()) return {};
    auto [most, best] = fitted[0];
    for (int step = 0; step < 16; ++step) {
        const Plane next = refit(rows, best, options.distance);
        const int64_t more = next.exists ? count_within(rows, next, distance) : 0;
        if (more <= most) break;
        best = next, most = more;
    }
    return climbed(rows, best, most, options.distance);
}

}  // namespace

const Fields& plane_fields() {
    using Options = PlaneOptions;
    static const Fields fields = {
        field<&Options::distance>("distance", "Of points from their plane, at most")
            .unit("unit of the cloud")
            .shown("D")
            .above(0)
            .no_default(),
        field<&Options::count>("count", "Planes wanted, at most; 0: all that are large enough").from(0),
        field<&Options::min_points>("min_points", "Of a plane; 0: a hundredth of the cloud").from(0),
        field<&Options::trials>("trials", "Planes that are tried for each; 0: until sure").from(0)};
    return fields;
}

const Fields& plane_segment_fields() {
    static const Fields fields = {
        field<&PlaneSegment::points>("points", "Points that belong to it"),
        field<&PlaneSegment::normal>("normal", "Of unit length, the largest component positive"),
        field<&PlaneSegment::offset>("offset", "In normal . x + offset = 0").unit("unit of the cloud"),
        field<&PlaneSegment::rms>("rms", "Root mean square distance of its points").unit("unit of the cloud")};
    return fields;
}

PlaneSegments find_planes(const PointCloud& cloud, const PlaneOptions& wanted) {
    check_fields(plane_fields(), &wanted);
    STIPPLE_REQUIRE(wanted.min_points == 0 || wanted.min_points >= 3, "min_points must be from 3, got {}",
                    wanted.min_points);
    const int64_t n = cloud.size();
    PlaneSegments found;
    found.labels = Array<int32_t, 1>({n});
    std::fill_n(found.labels.data(), n, -1);
    const float* p = cloud.positions.data();
    std::vector<int32_t> left;
    left.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
        if (std::isfinite(p[3 * i]) && std::isfinite(p[3 * i + 1]) && std::isfinite(p[3 * i + 2]))
            left.push_back(static_cast<int32_t>(i));
    PlaneOptions options = wanted;
    if (options.min_points == 0) options.min_points = std::max<int64_t>(3, (int64_t(left.size()) + 99) / 100);
    found.min_points = options.min_points;
    // About the middle of the box: nothing is rounded much by it.
    auto box = Box<float>::none();
    for (const int32_t i : left)
        box.add(std::array<float, 3>{p[3 * int64_t{i}], p[3 * int64_t{i} + 1], p[3 * int64_t{i} + 2]});
    const Vec3d middle = left.empty()
                             ? Vec3d{}
                             : Vec3d{0.5 * box.low[0] + 0.5 * box.high[0], 0.5 * box.low[1] + 0.5 * box.high[1],
                                     0.5 * box.low[2] + 0.5 * box.high[2]};
    while (options.count == 0 || static_cast<int64_t>(found.planes.size()) < options.count) {
        Rows rows;
        const size_t m = left.size();
        rows.x.resize(m), rows.y.resize(m), rows.z.resize(m);
        parallel_for(static_cast<int64_t>(m), kPlaneGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const Vec3d at = to_vec3(p + 3 * int64_t{left[i]}) - middle;
                rows.x[i] = static_cast<float>(at.x), rows.y[i] = static_cast<float>(at.y);
                rows.z[i] = static_cast<float>(at.z);
            }
        });
        const Plane plane = best_plane(rows, options, options.seed + found.planes.size());
        if (!plane.exists) break;
        PlaneSegment segment;
        segment.normal = {plane.normal.x, plane.normal.y, plane.normal.z};
        const Vec3d origin = to_vec3(cloud.origin);
        const double local = plane.offset - dot(plane.normal, middle);  // for positions about the cloud's origin
        segment.offset = local - dot(plane.normal, origin);
        const auto number = static_cast<int32_t>(found.planes.size());
        std::vector<PlaneSums> sums(m / kPlaneGrain + 1);
        parallel_for(static_cast<int64_t>(m), kPlaneGrain, [&](int64_t begin, int64_t end) {
            PlaneSums& sum = sums[begin / kPlaneGrain];
            for (int64_t i = begin; i < end; ++i) {
                const double distance = dot(plane.normal, to_vec3(p + 3 * int64_t{left[i]})) + local;
                if (!(std::abs(distance) <= options.distance)) continue;
                sum.n += 1, sum.xx += distance * distance;
                found.labels.data()[left[i]] = number;
            }
        });
        PlaneSums all;
        for (const PlaneSums& sum : sums) all.add(sum);
        segment.points = static_cast<int64_t>(all.n);
        segment.rms = std::sqrt(all.xx / all.n);
        const bool is_small = segment.points < options.min_points;
        std::erase_if(left, [&](int32_t i) {
            int32_t& label = found.labels.data()[i];
            if (label != number) return false;
            if (is_small) label = -1;
            return true;
        });
        if (is_small) break;
        const Vector3& v = segment.normal;
        int largest = 0;
        for (int axis = 1; axis < 3; ++axis)
            if (std::abs(v[axis]) > std::abs(v[largest])) largest = axis;
        if (v[largest] < 0) segment.normal = {-v[0], -v[1], -v[2]}, segment.offset = -segment.offset;
        found.planes.push_back(segment);
    }
    return found;
}

}  // namespace stipple::geometry
