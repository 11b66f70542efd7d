#include "stipple/metrics/uniformity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/radius_search.h"

namespace stipple::metrics {
namespace {

constexpr int64_t kFewest = 5;      // points of a disk that counts
constexpr int64_t kNeighbours = 8;  // looked at before the whole disk is

/// The points, moved to the surface, and which of them lie in each disk of the largest radius.
struct Disks {
    Array<float, 2> places;        // [n, 3] finite points on the surface
    std::vector<double> radii;     // of each share
    std::vector<int64_t> offsets;  // disks + 1
    std::vector<int32_t> members;  // nearest to the middle first
    std::vector<float> squared;    // their squared distances from it

    int64_t disks() const { return static_cast<int64_t>(offsets.size()) - 1; }

    /// The members of a disk within the radius of a share.
    std::span<const int32_t> within(int64_t disk, size_t share) const {
        const auto radius_sq = static_cast<float>(radii[share] * radii[share]);
        const auto begin = squared.begin() + offsets[disk], end = squared.begin() + offsets[disk + 1];
        const auto count = static_cast<size_t>(std::upper_bound(begin, end, radius_sq) - begin);
        return {members.data() + offsets[disk], count};
    }
};

void require_options(const char* who, const IndexedMesh& mesh, const Points& points, const DiskOptions& options) {
    STIPPLE_REQUIRE(mesh.area() > 0, "{}: the mesh has no area", who);
    STIPPLE_REQUIRE(points.finite > 0, "{}: no finite points", who);
    STIPPLE_REQUIRE(options.disks > 0 && !options.shares.empty(), "{}: {} disks of {} sizes", who, options.disks,
                    options.shares.size());
    for (const double share : options.shares)
        STIPPLE_REQUIRE(share > 0 && share < 1, "{}: a disk of {} of the area", who, share);
}

Disks disks_of(const IndexedMesh& mesh, const Points& points, const DiskOptions& options) {
    const FaceDistances surface = point_to_face(mesh, points);
    Array<float, 2> normals({mesh.mesh().faces(), 3});
    geometry::face_normals(mesh.mesh(), normals.view());

    Disks disks;
    std::vector<int32_t> face_of;
    disks.places = Array<float, 2>({points.finite, 3});
    for (int64_t i = 0; i < points.size(); ++i) {
        if (surface.face.data()[i] < 0) continue;
        for (int axis = 0; axis < 3; ++axis)
            disks.places.data()[3 * face_of.size() + axis] = static_cast<float>(surface.nearest.data()[3 * i + axis]);
        face_of.push_back(surface.face.data()[i]);
    }
    double largest = 0;
    for (const double share : options.shares) {
        disks.radii.push_back(std::sqrt(share * mesh.area() / M_PI));
        largest = std::max(largest, disks.radii.back());
    }

    const geometry::SurfaceSamples middles = geometry::sample_surface(mesh.mesh(), options.disks, options.seed);
    const ops::PointIndex index(disks.places.view());
    Array<int32_t, 1> counts({options.disks});
    Array<int64_t, 1> offsets({options.disks + 1});
    const auto radius = static_cast<float>(largest);
    ops::radius_count(index, middles.points.view(), radius, counts.view());
    const int64_t total = ops::radius_offsets(counts.view(), offsets.view());
    Array<int32_t, 1> found({total});
    Array<float, 1> squared({total});
    ops::radius_search(index, middles.points.view(), radius, offsets.view(), found.view(), squared.view());

    disks.offsets.push_back(0);
    for (int64_t disk = 0; disk < options.disks; ++disk) {
        const float* middle = normals.data() + 3 * int64_t{middles.faces.data()[disk]};
        for (int64_t at = offsets.data()[disk]; at < offsets.data()[disk + 1]; ++at) {
            const float* normal = normals.data() + 3 * int64_t{face_of[found.data()[at]]};
            if (middle[0] * normal[0] + middle[1] * normal[1] + middle[2] * normal[2] <= 0) continue;
            disks.members.push_back(found.data()[at]);
            disks.squared.push_back(squared.data()[at]);
        }
        disks.offsets.push_back(static_cast<int64_t>(disks.members.size()));
    }
    return disks;
}

/// Distance to the nearest other point of a disk. Most often that is one of the nearest in the whole cloud.
class DiskSpacing {
public:
    explicit DiskSpacing(const Disks& disks)
        : places_(disks.places.data()),
          columns_(std::min(kNeighbours, disks.places.size(0))),
          neighbours_({disks.places.size(0), columns_}) {
        ops::knn(ops::PointIndex(disks.places.view()), disks.places.view(), neighbours_.view(), {});
    }

    /// `sorted`: the disk's points by index, two at least.
    double operator()(int32_t point, std::span<const int32_t> sorted) const {
        for (int64_t k = 0; k < columns_; ++k) {
            const int32_t other = neighbours_.data()[int64_t{point} * columns_ + k];
            if (other != point && std::binary_search(sorted.begin(), sorted.end(), other))
                return std::sqrt(squared(point, other));
        }
        double least = std::numeric_limits<double>::infinity();
        for (const int32_t other : sorted)
            if (other != point) least = std::min(least, squared(point, other));
        return std::sqrt(least);
    }

private:
    double squared(int32_t i, int32_t j) const {
        const float *a = places_ + 3 * int64_t{i}, *b = places_ + 3 * int64_t{j};
        const double x = double{a[0]} - b[0], y = double{a[1]} - b[1], z = double{a[2]} - b[2];
        return x * x + y * y + z * z;
    }

    const float* places_;
    int64_t columns_;
    Array<int32_t, 2> neighbours_;
};

double clutter(const DiskSpacing& spacing, std::span<const int32_t> members, double radius) {
    std::vector<int32_t> sorted(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end());
    const double n = static_cast<double>(sorted.size());
    const double expected = std::sqrt(2 * M_PI * radius * radius / (n * 1.732));
    double sum = 0;
    for (const int32_t point : sorted) {
        const double off = spacing(point, sorted) - expected;
        sum += off * off / expected;
    }
    return sum / n;
}

}  // namespace

std::vector<DiskUniformity> disk_uniformity(const IndexedMesh& mesh, const Points& points, const DiskOptions& options) {
    require_options("disk_uniformity", mesh, points, options);
    const Disks disks = disks_of(mesh, points, options);
    const DiskSpacing spacing(disks);
    std::vector<DiskUniformity> result;
    for (size_t s = 0; s < options.shares.size(); ++s) {
        const double expected = options.shares[s] * static_cast<double>(points.finite);
        std::vector<double> values(static_cast<size_t>(disks.disks()), NAN);
        parallel_for(disks.disks(), 32, [&](int64_t begin, int64_t end) {
            for (int64_t disk = begin; disk < end; ++disk) {
                const std::span<const int32_t> members = disks.within(disk, s);
                const auto n = static_cast<int64_t>(members.size());
                if (n < kFewest) continue;
                const double off = static_cast<double>(n) - expected;
                values[disk] = off * off / expected * clutter(spacing, members, disks.radii[s]);
            }
        });
        DiskUniformity one{options.shares[s], disks.radii[s]};
        for (const double value : values) {
            if (std::isnan(value))
                ++one.skipped;
            else
                one.value += value;
        }
        const int64_t counted = disks.disks() - one.skipped;
        one.value = counted == 0 ? NAN : one.value / static_cast<double>(counted);
        result.push_back(one);
    }
    return result;
}

DiskOptions nuc_defaults() {
    DiskOptions options;
    options.disks = 9000;
    options.shares = {0.002, 0.004, 0.006, 0.008, 0.010, 0.012};
    return options;
}

std::vector<Nuc> normalised_uniformity(const IndexedMesh& mesh, const Points& points, const DiskOptions& options) {
    require_options("normalised_uniformity", mesh, points, options);
    const Disks disks = disks_of(mesh, points, options);
    std::vector<Nuc> result;
    for (size_t s = 0; s < options.shares.size(); ++s) {
        const double expected = options.shares[s] * static_cast<double>(points.finite);
        double sum = 0, squares = 0;
        for (int64_t disk = 0; disk < disks.disks(); ++disk) {
            const double ratio = static_cast<double>(disks.within(disk, s).size()) / expected;
            sum += ratio;
            squares += ratio * ratio;
        }
        const double count = static_cast<double>(disks.disks()), mean = sum / count;
        result.push_back({options.shares[s], mean, std::sqrt(std::max(0.0, squares / count - mean * mean))});
    }
    return result;
}

}  // namespace stipple::metrics
