#include "stipple/geometry/sample_surface.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/surface/widen_spacing.h"
#include "stipple/ops/poisson_disk.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kPiece = 4096;  // faces or samples that a thread takes at a time
constexpr int64_t kBlock = 256;   // samples that are drawn together

/// Chooses faces by area: the first whose sum of areas, its own included, is above a share of the whole.
///
/// A table of about as many equal shares as there are faces says where to begin to look [Chen and Asau 1974]. The faces
/// in a share are as many as the samples that fall into it are few: one step on average, for any areas.
class FaceChooser {
public:
    explicit FaceChooser(const MeshView& mesh) : sums_(static_cast<size_t>(mesh.faces())) {
        const int64_t m = mesh.faces(), pieces = (m + kPiece - 1) / kPiece;
        std::vector<double> before(static_cast<size_t>(pieces) + 1, 0);
        parallel_for(m, kPiece, [&](int64_t begin, int64_t end) {
            double sum = 0;
            for (int64_t f = begin; f < end; ++f) sums_[f] = sum += 0.5 * length(area_vector(mesh, f));
            before[begin / kPiece + 1] = sum;
        });
        for (int64_t p = 0; p < pieces; ++p) before[p + 1] += before[p];
        parallel_for(m, kPiece, [&](int64_t begin, int64_t end) {
            for (int64_t f = begin; f < end; ++f) sums_[f] += before[begin / kPiece];
        });
        total_ = before[pieces];
        if (total_ > 0) make_table();
    }

    double total() const { return total_; }

    /// u in [0, 1). Shares are powers of two: u * shares is exact, and rounding cannot put the table's face behind.
    int32_t choose(double u) const {
        const double wanted = u * total_;
        int32_t face = first_[static_cast<size_t>(u * shares_)];
        // One step or none is the rule: without a branch there is nothing to predict. The last sum is never passed.
        face += sums_[face] <= wanted ? 1 : 0;
        while (sums_[face] <= wanted) ++face;
        return face;
    }

private:
    void make_table() {
        const auto count = static_cast<int64_t>(std::bit_ceil(sums_.size()));
        shares_ = static_cast<double>(count);
        first_.resize(static_cast<size_t>(count));
        parallel_for(count, kPiece, [&](int64_t begin, int64_t end) {
            const auto wanted = [&](int64_t share) { return static_cast<double>(share) / shares_ * total_; };
            auto face = std::upper_bound(sums_.begin(), sums_.end(), wanted(begin));
            for (int64_t share = begin; share < end; ++share) {
                while (*face <= wanted(share)) ++face;
                first_[share] = static_cast<int32_t>(face - sums_.begin());
            }
        });
    }

    std::vector<double> sums_;
    std::vector<int32_t> first_;
    double shares_ = 0, total_ = 0;
};

/// One value of the three at the corners; b1 and b2 belong to the second and third.
double blend(double a, double b, double c, float b1, float b2) {
    return a + (b1 * (b - a) + b2 * (c - a));
}

/// Samples [begin, end) of the seed: the face by 53 bits, the place by 32 for each of two axes of the parallelogram,
/// whose other half is folded back onto the face. Three passes over a block wait for memory less than one.
void draw(const MeshView& mesh, const FaceChooser& chooser, const Rng& rng, int64_t begin, int64_t end,
          SurfaceSamples& samples) {
    double share[kBlock];
    for (int64_t i = begin; i < end; ++i) {
        const RandomBlock bits = rng.block(static_cast<uint64_t>(i));
        share[i - begin] = static_cast<double>((uint64_t{bits.word[0]} << 32 | bits.word[1]) >> 11) * 0x1p-53;
        double u = (bits.word[2] + 0.5) * 0x1p-32, v = (bits.word[3] + 0.5) * 0x1p-32;
        const bool beyond = u + v > 1;
        u = beyond ? 1 - u : u, v = beyond ? 1 - v : v;
        float* b = samples.barycentrics.data() + 3 * i;
        b[0] = static_cast<float>(1 - u - v), b[1] = static_cast<float>(u), b[2] = static_cast<float>(v);
    }
    for (int64_t i = begin; i < end; ++i) {
        const int32_t face = chooser.choose(share[i - begin]);
        samples.faces.data()[i] = face;
        __builtin_prefetch(mesh.triangles.data() + 3 * int64_t{face});
    }
    for (int64_t i = begin; i < end; ++i) {
        const int32_t* corner = mesh.triangles.data() + 3 * int64_t{samples.faces.data()[i]};
        const float* b = samples.barycentrics.data() + 3 * i;
        const float* p[3];
        for (int c = 0; c < 3; ++c) p[c] = mesh.vertices.data() + 3 * int64_t{corner[c]};
        for (int axis = 0; axis < 3; ++axis)
            samples.points.data()[3 * i + axis] =
                static_cast<float>(blend(p[0][axis], p[1][axis], p[2][axis], b[1], b[2]));
    }
}

SurfaceSamples make_samples(int64_t n) {
    return {Array<float, 2>({n, 3}), Array<int32_t, 1>({n}), Array<float, 2>({n, 3})};
}

SurfaceSamples draw_all(const MeshView& mesh, const FaceChooser& chooser, int64_t n, const Rng& rng) {
    SurfaceSamples samples = make_samples(n);
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kBlock) draw(mesh, chooser, rng, i, std::min(i + kBlock, end), samples);
    });
    return samples;
}

/// What sample_surface_poisson asks of the smallest spacing, in parts of the largest possible one, and among how many
/// places for each candidate it looks for that. When less than enough is reached it tries again among twice as many.
constexpr float kSpacing = 0.715f, kEnough = 0.7f;
constexpr int64_t kPlaces = 3;
constexpr int kTriesAgain = 2;
constexpr int64_t kFewestPlaces = 16384;  // few samples have less room to give way, and cost nothing

/// Streams of the seed.
enum : uint64_t { kUniform = 0, kCandidates = 1 };

}  // namespace

SurfaceSamples sample_surface(const MeshView& mesh, int64_t n, uint64_t seed) {
    require_cpu_mesh("sample_surface", mesh);
    STIPPLE_REQUIRE(n >= 0, "sample_surface: {} samples", n);
    if (n == 0) return make_samples(0);
    const FaceChooser chooser(mesh);
    STIPPLE_REQUIRE(chooser.total() > 0, "sample_surface: the mesh of {} faces has no area", mesh.faces());
    return draw_all(mesh, chooser, n, Rng(seed, kUniform));
}

SurfaceSamples sample_surface_poisson(const MeshView& mesh, int64_t n, uint64_t seed, double oversampling) {
    require_cpu_mesh("sample_surface_poisson", mesh);
    STIPPLE_REQUIRE(n >= 0, "sample_surface_poisson: {} samples", n);
    const double wanted = std::ceil(oversampling * static_cast<double>(n));
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / kPlaces;
    STIPPLE_REQUIRE(oversampling >= 1 && wanted <= static_cast<double>(kMost),
                    "sample_surface_poisson: oversampling {} of {} samples; at least 1, at most {} candidates",
                    oversampling, n, kMost);
    if (n == 0) return make_samples(0);
    const FaceChooser chooser(mesh);
    STIPPLE_REQUIRE(chooser.total() > 0, "sample_surface_poisson: the mesh of {} faces has no area", mesh.faces());
    const auto candidates = static_cast<int64_t>(wanted);
    ops::PoissonDiskOptions options;
    options.radius = ops::poisson_disk_radius_of_area(chooser.total(), n);
    int64_t places = std::max(kPlaces * candidates, kFewestPlaces);
    SurfaceSamples all = draw_all(mesh, chooser, places, Rng(seed, kCandidates));
    Array<int32_t, 1> kept({n});
    ops::poisson_disk(all.points.view().slice(0, candidates), ops::Batch::single(n), kept.view(), options);
    const float largest = 2 * options.radius;
    for (int tries = 0; widen_spacing(all.points.view(), kSpacing * largest, kept.view()) < kEnough * largest;
         ++tries) {
        if (tries == kTriesAgain) break;
        places = std::min<int64_t>(2 * places, std::numeric_limits<int32_t>::max());
        all = draw_all(mesh, chooser, places, Rng(seed, kCandidates));  // those there were, and as many again
    }
    SurfaceSamples samples = make_samples(n);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t from = kept.data()[i];
        samples.faces.data()[i] = all.faces.data()[from];
        std::copy_n(all.points.data() + 3 * from, 3, samples.points.data() + 3 * i);
        std::copy_n(all.barycentrics.data() + 3 * from, 3, samples.barycentrics.data() + 3 * i);
    }
    return samples;
}

Array<float, 2> interpolate(const MeshView& mesh, View<const int32_t, 1> faces, View<const float, 2> barycentrics,
                            View<const float, 2> vertex_values) {
    require_cpu_mesh("interpolate", mesh);
    const int64_t n = faces.size(0), channels = vertex_values.size(1);
    STIPPLE_REQUIRE(barycentrics.size(0) == n && barycentrics.size(1) == 3,
                    "interpolate: barycentrics must be [{}, 3], got {}", n, shape_text(barycentrics.shape().data(), 2));
    STIPPLE_REQUIRE(vertex_values.size(0) == mesh.vertices.size(0), "interpolate: {} rows of values for {} vertices",
                    vertex_values.size(0), mesh.vertices.size(0));
    STIPPLE_REQUIRE(
        faces.device() == Device{} && barycentrics.device() == Device{} && vertex_values.device() == Device{},
        "interpolate: works on the CPU");
    for (int64_t i = 0; i < n; ++i)
        STIPPLE_REQUIRE(faces(i) >= -1 && faces(i) < mesh.faces(), "interpolate: row {} has face {} of {}", i, faces(i),
                        mesh.faces());
    Array<float, 2> values({n, channels});
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* to = values.data() + i * channels;
            if (faces(i) < 0) {
                std::fill_n(to, channels, std::numeric_limits<float>::quiet_NaN());
                continue;
            }
            const int32_t* corner = mesh.triangles.data() + 3 * int64_t{faces(i)};
            for (int64_t c = 0; c < channels; ++c)
                to[c] = static_cast<float>(blend(vertex_values(corner[0], c), vertex_values(corner[1], c),
                                                 vertex_values(corner[2], c), barycentrics(i, 1), barycentrics(i, 2)));
        }
    });
    return values;
}

Array<float, 2> interpolate(const MeshView& mesh, const SurfaceSamples& samples, View<const float, 2> vertex_values) {
    return interpolate(mesh, samples.faces.view(), samples.barycentrics.view(), vertex_values);
}

}  // namespace stipple::geometry
