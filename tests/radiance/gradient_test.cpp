// Gradients of a training step against central differences of its loss in double precision.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/radiance/cpu/step.h"
#include "stipple/radiance/march/environment.h"
#include "stipple/radiance/march/opacity.h"
#include "tests/support/analytic_scene.h"

namespace stipple::radiance {
namespace {

constexpr double kGradientUnit = 1.0 / kGradientOne;

/// A grid of bricks, all stored and occupied, with random values.
struct SmallStep {
    Scene scene = test::analytic_scene(12, 4, 0, 0);
    std::vector<uint8_t> pixels;
    std::vector<uint32_t> first = {0};
    std::vector<CameraView> cameras;
    std::vector<int32_t> table;
    std::vector<uint64_t> occupied;
    cpu::StepMemory memory;

    explicit SmallStep(int channels, int environment_side = 0) {
        for (const Photograph& photo : scene.train) {
            cameras.push_back(view_of(photo.camera));
            const auto count = static_cast<size_t>(photo.pixels.width() * photo.pixels.height());
            pixels.insert(pixels.end(), photo.pixels.pixels.data(), photo.pixels.pixels.data() + 4 * count);
            first.push_back(first.back() + static_cast<uint32_t>(count));
        }
        GridShape shape;
        shape.size = {8, 7, 6};
        shape.box = {{-1, -1, -0.9f}, {1, 1.1f, 1}};
        shape.voxel = 0.3f;
        const std::array<int32_t, 3> bricks = shape.bricks();
        const int32_t count = bricks[0] * bricks[1] * bricks[2];
        for (int32_t i = 0; i < count; ++i) table.push_back(i);
        occupied.assign(static_cast<size_t>(count), ~uint64_t{0});
        memory.bricks.view = view_of(shape);
        for (size_t axis = 0; axis < 3; ++axis) memory.bricks.bricks[axis] = bricks[axis];
        memory.bricks.table = table.data();
        memory.bricks.occupied = occupied.data();
        memory.photos = {pixels.data(), first.data(), cameras.data(), static_cast<int32_t>(cameras.size())};
        memory.pool = {nullptr, first.back(), true};
        memory.channels = channels;
        StepConstants& c = memory.constants;
        c.draw.seed = 3;
        c.rays = 40;
        c.near = 0.5f;
        c.step = 0.5f * shape.voxel;
        c.opacity_length = 0.5f;
        c.shift = -2;
        c.weight_entropy = 0.05f;
        c.weight_rgbper = 0.3f;
        c.rate_density = c.rate_features = c.rate_network = c.rate_environment = 0.01f;
        c.environment_side = environment_side;
        if (environment_side > 0) c.draw.background = Background::learned;
        fill(memory.environment.value, static_cast<size_t>(3 * environment_side * environment_side), 4, 1);
        memory.environment.reset_moments();
        reset_rates(memory.state);
        const auto nodes = static_cast<size_t>(count) * kBrickNodes;
        fill(memory.density.value, nodes, 1, 1);
        fill(memory.features.value, nodes * static_cast<size_t>(channels), 2, 1);
        fill(memory.network.value, kNetworkNumbers, 3, 0.3f);
        memory.density.reset_moments();
        memory.features.reset_moments();
        memory.network.reset_moments();
        memory.touched.assign(static_cast<size_t>(count), 0);
    }

    static void fill(std::vector<float>& values, size_t count, uint64_t stream, float size) {
        const Rng rng(7, stream);
        values.resize(count);
        for (size_t i = 0; i < count; ++i) values[i] = size * (2 * rng.uniform(i) - 1);
    }
};

struct Values {
    std::vector<double> density, features, network, environment;
};

Values values_of(const cpu::StepMemory& m) {
    return {{m.density.value.begin(), m.density.value.end()},
            {m.features.value.begin(), m.features.value.end()},
            {m.network.value.begin(), m.network.value.end()},
            {m.environment.value.begin(), m.environment.value.end()}};
}

/// The colour of features seen along a unit direction.
std::array<double, 3> colour_of(const Values& v, const std::vector<double>& features, Vec3d view) {
    std::array<double, 3> colour{};
    if (features.size() == 3) {
        for (size_t k = 0; k < 3; ++k) colour[k] = sigmoid(features[k]);
        return colour;
    }
    double input[kNetworkInputs];
    std::copy(features.begin(), features.end(), input);
    encode_view(view, input + kFeatures);
    input[kNetworkInputs - 1] = 1;
    double hidden1[kHidden], hidden2[kHidden];
    for (int i = 0; i < kHidden; ++i) {
        hidden1[i] = 0;
        for (int k = 0; k < kNetworkInputs; ++k)
            hidden1[i] += v.network[static_cast<size_t>(i * kNetworkInputs + k)] * input[k];
        hidden1[i] = std::max(hidden1[i], 0.0);
    }
    for (int i = 0; i < kHidden; ++i) {
        hidden2[i] = v.network[static_cast<size_t>(kBias2 + i)];
        for (int k = 0; k < kHidden; ++k)
            hidden2[i] += v.network[static_cast<size_t>(kWeight2 + i * kHidden + k)] * hidden1[k];
        hidden2[i] = std::max(hidden2[i], 0.0);
    }
    for (int i = 0; i < 3; ++i) {
        double sum = v.network[static_cast<size_t>(kBias3 + i)];
        for (int k = 0; k < kHidden; ++k)
            sum += v.network[static_cast<size_t>(kWeight3 + i * kHidden + k)] * hidden2[k];
        colour[static_cast<size_t>(i)] = sigmoid(sum);
    }
    return colour;
}

/// The loss of a step. The weights of the per-sample colour loss are constants: those of the first call.
double loss_of(const SmallStep& step, const Values& v, std::vector<double>& fixed_weights) {
    const cpu::StepMemory& m = step.memory;
    const StepConstants& c = m.constants;
    const bool fix = fixed_weights.empty();
    size_t sample = 0;
    double loss = 0;
    for (int32_t r = 0; r < c.rays; ++r) {
        const DrawnRay drawn = draw_ray(m.photos, m.pool, c.draw, m.state.step, c.rays, r);
        const GridView& view = m.bricks.view;
        const March march = march_through(drawn.ray, view.low, view.high, c.near, c.step, drawn.offset);
        const Vec3f d = drawn.ray.direction;
        const Vec3d direction = unit(Vec3d{d.x, d.y, d.z});
        double left = 1, pixel[3] = {};
        for (int i = 0; i < march.samples; ++i) {
            const Vec3f p = march.at(i);
            if (!is_inside(view, p)) continue;
            const Corners corners = corners_of(m.bricks, to_nodes(view, p));
            double density = 0;
            std::vector<double> features(static_cast<size_t>(m.channels));
            for (int k = 0; k < 8; ++k) {
                const auto node = static_cast<size_t>(corners.node[k]);
                density += double{corners.weight[k]} * v.density[node];
                for (size_t ch = 0; ch < features.size(); ++ch) {
                    features[ch] += double{corners.weight[k]} * v.features[node * features.size() + ch];
                }
            }
            const double alpha = opacity(density + c.shift, double{c.opacity_length});
            const double weight = left * alpha;
            left *= 1 - alpha;
            if (fix) fixed_weights.push_back(weight);
            const std::array<double, 3> colour = colour_of(v, features, direction);
            for (size_t k = 0; k < 3; ++k) {
                pixel[k] += weight * colour[k];
                const double own = colour[k] - drawn.colour[k];
                loss += c.weight_rgbper / double(c.rays) * fixed_weights[sample] * own * own;
            }
            ++sample;
        }
        for (int k = 0; k < 3; ++k) {
            double background = drawn.background[k];
            if (c.environment_side > 0) {
                const Texels texels = texels_of(d, c.environment_side);
                double sum = 0;
                for (int corner = 0; corner < 4; ++corner)
                    sum += double{texels.weight[corner]} *
                           v.environment[static_cast<size_t>(3 * texels.texel[corner] + k)];
                background = sigmoid(sum);
            }
            const double difference = pixel[k] + left * background - drawn.colour[k];
            loss += difference * difference / (3.0 * c.rays);
        }
        double slope = 0;
        loss += c.weight_entropy / double(c.rays) * end_entropy(left, slope);
    }
    return loss;
}

/// Compares every `stride`-th gradient with central differences.
void compare(const SmallStep& step, Values& v, std::vector<double>& numbers, const std::vector<double>& gradient,
             size_t stride, const char* name) {
    std::vector<double> weights;
    loss_of(step, v, weights);
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    ASSERT_GT(largest, 0) << name;
    for (size_t i = 0; i < numbers.size(); i += stride) {
        const double before = numbers[i], h = 1e-4;
        numbers[i] = before + h;
        const double above = loss_of(step, v, weights);
        numbers[i] = before - h;
        const double below = loss_of(step, v, weights);
        numbers[i] = before;
        EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 2e-4 * largest) << name << " " << i;
    }
}

std::vector<double> real_gradients(const std::vector<int64_t>& fixed) {
    std::vector<double> gradient;
    for (const int64_t g : fixed) gradient.push_back(static_cast<double>(g) * kGradientUnit);
    return gradient;
}

TEST(RadianceGradient, OfAFineStepIsThatOfItsLoss) {
    SmallStep step(kFeatures);
    cpu::compute_gradients(step.memory);
    Values v = values_of(step.memory);
    compare(step, v, v.density, real_gradients(step.memory.density.gradient), 17, "density");
    compare(step, v, v.features, real_gradients(step.memory.features.gradient), 307, "features");
    const std::vector<float>& network = step.memory.network_gradient;
    compare(step, v, v.network, {network.begin(), network.end()}, 1511, "network");
}

TEST(RadianceGradient, OfACoarseStepIsThatOfItsLoss) {
    SmallStep step(3);
    cpu::compute_gradients(step.memory);
    Values v = values_of(step.memory);
    compare(step, v, v.density, real_gradients(step.memory.density.gradient), 7, "density");
    compare(step, v, v.features, real_gradients(step.memory.features.gradient), 23, "colours");
}

TEST(RadianceGradient, OfAnEnvironmentIsThatOfTheLoss) {
    for (const int channels : {3, kFeatures}) {
        SmallStep step(channels, 4);
        cpu::compute_gradients(step.memory);
        Values v = values_of(step.memory);
        compare(step, v, v.environment, real_gradients(step.memory.environment.gradient), 1, "environment");
        // What is left behind the last sample is worth as much as the map's colour.
        compare(step, v, v.density, real_gradients(step.memory.density.gradient), 29, "density");
    }
}

TEST(RadianceGradient, TexelsWithoutOneStayBitForBit) {
    SmallStep step(kFeatures, 64);
    cpu::compute_gradients(step.memory);
    const std::vector<int64_t> gradient = step.memory.environment.gradient;
    step.memory.density.reset_moments();
    step.memory.features.reset_moments();
    step.memory.environment.reset_moments();
    const std::vector<float> before = step.memory.environment.value;
    cpu::run_step(step.memory);
    int64_t moved = 0;
    for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(step.memory.environment.value[i] != before[i], gradient[i] != 0) << i;
        moved += gradient[i] != 0;
    }
    EXPECT_GT(moved, 0);
    EXPECT_LT(moved, static_cast<int64_t>(before.size()) / 2);
}

TEST(RadianceGradient, NodesWithoutOneStayBitForBit) {
    SmallStep step(kFeatures);
    step.memory.constants.rays = 3;
    cpu::compute_gradients(step.memory);
    const std::vector<int64_t> density = step.memory.density.gradient, features = step.memory.features.gradient;
    step.memory.density.reset_moments();
    step.memory.features.reset_moments();
    const cpu::Values before_density = step.memory.density, before_features = step.memory.features;
    cpu::run_step(step.memory);
    int64_t moved = 0, stayed = 0;
    for (size_t i = 0; i < density.size(); ++i) {
        const bool same = step.memory.density.value[i] == before_density.value[i];
        EXPECT_EQ(same, density[i] == 0) << i;
        ++(same ? stayed : moved);
    }
    for (size_t i = 0; i < features.size(); ++i) {
        if (features[i] != 0) continue;
        EXPECT_EQ(step.memory.features.value[i], before_features.value[i]);
    }
    EXPECT_GT(moved, 0);
    EXPECT_GT(stayed, 0);
}

}  // namespace
}  // namespace stipple::radiance
