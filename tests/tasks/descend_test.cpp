// Descent down known distances, and clouds that networks of the other refinements make denser.

#include "stipple/tasks/upsample/descend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/network/builder.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsample/candidates.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

/// To a sphere around the origin.
float sphere_distance(const float* p, float radius) {
    return std::abs(std::hypot(p[0], p[1], p[2]) - radius);
}

/// Places up to half a spacing from a sphere of radius 5.
Array<float, 2> near_sphere(int64_t n) {
    Array<float, 2> places({n, 3});
    const Rng rng(3);
    for (int64_t i = 0; i < n; ++i) {
        float* p = places.data() + 3 * i;
        for (int c = 0; c < 3; ++c) p[c] = static_cast<float>(rng.normal(static_cast<uint64_t>(4 * i + c)));
        const float factor = (4.5f + rng.uniform(static_cast<uint64_t>(4 * i + 3))) / std::hypot(p[0], p[1], p[2]);
        for (int c = 0; c < 3; ++c) p[c] *= factor;
    }
    return places;
}

struct CountedDistance {
    std::function<float(const float*)> distance;
    int64_t calls = 0;

    void operator()(View<const float, 2> places, View<float, 1> distances) {
        ++calls;
        for (int64_t i = 0; i < places.size(0); ++i) distances.data()[i] = distance(places.data() + 3 * i);
    }
};

TEST(UpsampleDescend, FindsASphere) {
    constexpr int64_t kPlaces = 200;
    Array<float, 2> places = near_sphere(kPlaces);
    CountedDistance distance = {[](const float* p) { return sphere_distance(p, 5); }};
    const std::vector<float> left = descend(places.view(), std::ref(distance));
    EXPECT_EQ(distance.calls, 5 * 6);
    ASSERT_EQ(left.size(), static_cast<size_t>(kPlaces));
    for (int64_t i = 0; i < kPlaces; ++i) {
        EXPECT_LT(left[static_cast<size_t>(i)], 1e-3f) << i;
        EXPECT_EQ(left[static_cast<size_t>(i)], sphere_distance(places.data() + 3 * i, 5)) << i;
    }
}

/// Distances three times too large: the first steps go too far, and shorter ones follow.
TEST(UpsampleDescend, NeverGoesUp) {
    constexpr int64_t kPlaces = 200;
    const Array<float, 2> before = near_sphere(kPlaces);
    Array<float, 2> places = near_sphere(kPlaces);
    CountedDistance distance = {[](const float* p) { return 3 * sphere_distance(p, 5); }};
    const std::vector<float> left = descend(places.view(), std::ref(distance));
    double first = 0, last = 0;
    for (int64_t i = 0; i < kPlaces; ++i) {
        const float from = 3 * sphere_distance(before.data() + 3 * i, 5);
        EXPECT_LE(left[static_cast<size_t>(i)], from);
        first += from, last += left[static_cast<size_t>(i)];
    }
    EXPECT_LT(last, 0.3 * first);
}

TEST(UpsampleDescend, StaysWhereNothingSlopes) {
    Array<float, 2> places({3, 3});
    for (int64_t i = 0; i < 9; ++i) places.data()[i] = static_cast<float>(i);
    const Array<float, 2> before = places.clone();
    const auto distance = [](View<const float, 2> at, View<float, 1> to) {
        for (int64_t i = 0; i < at.size(0); ++i) to.data()[i] = i == 1 ? NAN : 0.5f;
    };
    const std::vector<float> left = descend(places.view(), distance);
    for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(places.data()[i], before.data()[i]);
    EXPECT_EQ(left[0], 0.5f);
    EXPECT_TRUE(std::isnan(left[1]));
    EXPECT_EQ(left[2], 0.5f);
    EXPECT_TRUE(descend(Array<float, 2>({0, 3}).view(), distance).empty());
}

/// Of a flow upsampler that nobody trained.
ModelOrEngine refined_by(const std::string& refinement) {
    ModelOrEngine source;
    source.path = refinement;
    network::Network network = models::build_model(
        "flow-upsampler", {{"layers", "1"}, {"width", "8"}, {"hidden", "8"}, {"refinement", refinement}});
    network::Weights weights = network::initial_weights(network, 1);
    source.model = models::Model{std::move(network), std::move(weights)};
    return source;
}

/// A square of the plane z = 0 with some unevenness, with its x as an attribute.
PointCloud plane_points(int64_t n) {
    PointCloud cloud(n * n);
    Attribute& x = cloud.attributes.emplace_back("intensity", DType::f32, n * n, 1);
    for (int64_t i = 0; i < n * n; ++i) {
        float* p = cloud.positions.data() + 3 * i;
        p[0] = static_cast<float>(i % n) + 0.3f * Rng(5).uniform(static_cast<uint64_t>(2 * i));
        p[1] = static_cast<float>(i / n) + 0.3f * Rng(5).uniform(static_cast<uint64_t>(2 * i + 1));
        p[2] = 0;
        x.as<float>().data()[i] = p[0];
    }
    return cloud;
}

TEST(UpsampleRefinements, MakeExactCounts) {
    const PointCloud cloud = plane_points(12);
    for (const char* refinement : {"matching", "descent"}) {
        Upsampler upsampler(refined_by(refinement), {.device = "cpu"});
        EXPECT_TRUE(upsampler.maker().mover());
        EXPECT_GT(upsampler.maker().sources(), 0);
        std::vector<float> first;
        const int usual = threads();
        for (const int count : {1, 2, 3}) {
            set_threads(count);
            const Upsampled made = upsample(upsampler, cloud, {.ratio = 2.5});
            EXPECT_EQ(made.cloud.size(), 360) << refinement;
            const float* positions = made.cloud.positions.data();
            const std::vector<float> all(positions, positions + 3 * made.cloud.size());
            for (const float x : all) EXPECT_TRUE(std::isfinite(x));
            if (first.empty()) first = all;
            EXPECT_EQ(all, first) << refinement << ", threads " << count;
        }
        set_threads(usual);
    }
}

/// Distances that are the same everywhere leave queries between the points. The attribute is the x of the input, and
/// that of a point is near its own.
TEST(UpsampleRefinements, DescentBlendsTheNearest) {
    ModelOrEngine source = refined_by("descent");
    for (float& x : source.model->weights.tensors.at("distance.weight").values) x = 0;
    Upsampler upsampler(std::move(source), {.device = "cpu"});
    const Upsampled made = upsample(upsampler, plane_points(12), {.ratio = 3});
    ASSERT_EQ(made.cloud.size(), 432);
    double off = 0;
    int64_t inner = 0;  // beyond the rim all are made of its points
    for (int64_t i = 0; i < made.cloud.size(); ++i) {
        const float* p = made.cloud.positions.data() + 3 * i;
        if (std::max(std::abs(p[0] - 5.5f), std::abs(p[1] - 5.5f)) > 3) continue;
        off += std::abs(made.cloud.attributes[0].value(i, 0) - p[0]);
        ++inner;
    }
    ASSERT_GT(inner, 50);
    EXPECT_LT(off / static_cast<double>(inner), 0.25);
}

/// |z| of a query: the distance to the plane of the first point.
ModelOrEngine plane_distances() {
    network::Builder build("plane-distances");
    build.input("points", network::points_of(3));
    const network::Tensor queries = build.input("queries", network::points_of(3, 1));
    const network::Tensor z = build.slice("z", queries, 2, 3);
    const network::Tensor above = build.activation("above", z, network::relu());
    const network::Tensor below = build.activation("below", build.scale("turned", z, -1), network::relu());
    build.output("distance", build.add("distance", above, below));
    ModelOrEngine source;
    source.path = "plane-distances";
    network::Network network = build.finish();
    network::Weights weights = network::initial_weights(network, 1);
    source.model = models::Model{std::move(network), std::move(weights)};
    return source;
}

TEST(UpsampleRefinements, DescentEndsOnTheSurface) {
    PointCloud cloud = plane_points(12);
    for (int64_t i = 1; i < cloud.size(); ++i)
        cloud.positions.data()[3 * i + 2] = 0.4f * Rng(6).uniform(static_cast<uint64_t>(i)) - 0.2f;
    Upsampler upsampler(plane_distances(), {.device = "cpu"});
    UpsampleOptions options{.count = 500};
    options.denoises = true;
    const Upsampled made = upsample(upsampler, cloud, options);
    ASSERT_EQ(made.cloud.size(), 500);
    EXPECT_LT(made.measured, cloud.size() / 2);
    for (int64_t i = 0; i < made.cloud.size(); ++i)  // a twentieth of a spacing counts as on it
        EXPECT_LT(std::abs(made.cloud.positions.data()[3 * i + 2]), i < made.measured ? 0.06f : 1e-3f) << i;
    // Without it measured points stay where they are.
    const Upsampled kept = upsample(upsampler, cloud, {.count = 500});
    ASSERT_EQ(kept.cloud.size(), 500);
    for (int64_t i = 0; i < 3 * cloud.size(); ++i) EXPECT_EQ(kept.cloud.positions.data()[i], cloud.positions.data()[i]);
}

}  // namespace
}  // namespace stipple::tasks
