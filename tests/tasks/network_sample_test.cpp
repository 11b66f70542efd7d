// Samples of networks with random weights: what holds whatever a network was trained to do.

#include "stipple/tasks/network_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/samplenet.h"
#include "stipple/tasks/weights.h"
#include "tests/support/devices.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

ModelOrEngine random_model(const std::string& name, const std::map<std::string, std::string>& config,
                           uint64_t seed = 3) {
    ModelOrEngine source;
    source.path = name + ".safetensors";
    models::Model model;
    model.network = models::build_model(name, config);
    model.weights = test::random_weights(model.network, seed);
    network::set_config(model.weights, model.network);
    source.model = std::move(model);
    return source;
}

/// A cloud far from 0, each point known by its number.
PointCloud numbered_cloud(int64_t n, uint64_t seed = 1) {
    PointCloud cloud(n);
    cloud.origin = {500000, 5400000, 120};
    const Rng rng(seed);
    Attribute number("number", DType::i32, n, 1);
    for (int64_t i = 0; i < n; ++i) {
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.view()(i, axis) = 40 * rng.uniform(static_cast<uint64_t>(3 * i + axis));
        number.as<int32_t>()(i, 0) = static_cast<int32_t>(i);
    }
    cloud.attributes.push_back(std::move(number));
    return cloud;
}

/// Exactly m points of the input, each once, with what they carry.
void expect_sample(const NetworkSample& sample, const PointCloud& cloud, int64_t m) {
    ASSERT_EQ(sample.cloud.size(), m);
    ASSERT_EQ(sample.indices.size(), static_cast<size_t>(m));
    EXPECT_EQ(std::set<int32_t>(sample.indices.begin(), sample.indices.end()).size(), static_cast<size_t>(m));
    EXPECT_EQ(sample.cloud.origin, cloud.origin);
    const Attribute* number = find(sample.cloud.attributes, "number");
    ASSERT_NE(number, nullptr);
    for (int64_t i = 0; i < m; ++i) {
        const int32_t index = sample.indices[static_cast<size_t>(i)];
        ASSERT_TRUE(index >= 0 && index < cloud.size());
        EXPECT_EQ(number->value(i), index);
        for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(sample.cloud.world(i, axis), cloud.world(index, axis));
    }
    EXPECT_GE(sample.proposed, 1);
    EXPECT_LE(sample.proposed, m);
}

class NetworkSampling : public test::OnDevice {
protected:
    RunnerOptions where() const { return {.device = fmt::format("{}", device())}; }
    NetworkSampler sampler(const std::string& name, const std::map<std::string, std::string>& config) const {
        return {random_model(name, config), where()};
    }
};
STIPPLE_ON_EVERY_DEVICE(NetworkSampling);

TEST_P(NetworkSampling, EveryNetworkGivesTheCountAsked) {
    const struct {
        const char* name;
        std::map<std::string, std::string> config;
    } networks[] = {{"samplenet", {{"count", "20"}}},
                    {"samplenet", {{"shape", "registration"}, {"count", "20"}, {"progressive", "true"}}},
                    {"samplenet", {{"shape", "reconstruction"}, {"count", "20"}, {"neighbours", "0"}}},
                    {"gumbel-subset", {{"count", "20"}}},
                    {"pointnet-classifier", {{"classes", "4"}, {"feature_transform", "false"}}},
                    {"pointnet-classifier", {{"variant", "tf"}, {"input_transform", "false"}}}};
    for (const auto& [name, config] : networks) {
        SCOPED_TRACE(name);
        NetworkSampler chooser = sampler(name, config);
        for (const int64_t n : {60, 700, 3000}) {  // less and more than the 1024 points that it sees
            const PointCloud cloud = numbered_cloud(n);
            for (const int64_t m : {20, 47}) expect_sample(sample_by_network(chooser, cloud, m, 0), cloud, m);
            expect_sample(sample_by_network(chooser, cloud, std::min<int64_t>(n, 200), 0), cloud,
                          std::min<int64_t>(n, 200));
        }
        const PointCloud all = numbered_cloud(30);
        expect_sample(sample_by_network(chooser, all, 30, 0), all, 30);
    }
}

// The definition, point by point: proposals of the plain reading of the network, the nearest input point of each, the
// first of equal ones, then always the point farthest from those before.
TEST_P(NetworkSampling, IsTheDefinition) {
    const int64_t n = 300, count = 24, m = 40;
    const ModelOrEngine model = random_model("samplenet", {{"count", std::to_string(count)}});
    const PointCloud cloud = numbered_cloud(n);
    const Array<float, 2> points = network_points(cloud, {.points = 0});
    const auto run = test::run_reference(model.model->network, model.model->weights, ops::Batch::single(n),
                                         {{"points", points.view()}});
    const auto distance = [&](int64_t i, const auto* p) {
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) sum += std::pow(points.view()(i, axis) - double{p[axis]}, 2);
        return sum;
    };
    std::vector<int32_t> expected;
    for (int64_t q = 0; q < count; ++q) {
        const double* place = run.output("simplified").row(q);
        int64_t best = 0;
        for (int64_t i = 1; i < n; ++i)
            if (distance(i, place) < distance(best, place)) best = i;
        if (std::find(expected.begin(), expected.end(), best) == expected.end())
            expected.push_back(static_cast<int32_t>(best));
    }
    const auto proposed = static_cast<int64_t>(expected.size());
    while (static_cast<int64_t>(expected.size()) < m) {
        int64_t best = -1;
        double farthest = -1;
        for (int64_t i = 0; i < n; ++i) {
            double nearest = INFINITY;
            for (const int32_t chosen : expected)
                nearest = std::min(nearest, distance(i, points.data() + 3 * int64_t{chosen}));
            if (nearest > farthest) {
                farthest = nearest;
                best = i;
            }
        }
        expected.push_back(static_cast<int32_t>(best));
    }
    NetworkSampler chooser(random_model("samplenet", {{"count", std::to_string(count)}}), where());
    const NetworkSample sample = sample_by_network(chooser, cloud, m, 0);
    EXPECT_EQ(sample.indices, expected);
    EXPECT_EQ(sample.proposed, proposed);
    EXPECT_LT(proposed, count) << "no two proposals have the same nearest point: this tests less than it should";
}

TEST_P(NetworkSampling, BeginningsOfProgressiveOnesAreSamples) {
    const PointCloud cloud = numbered_cloud(500);
    NetworkSampler chooser = sampler("samplenet", {{"count", "64"}, {"progressive", "true"}});
    const NetworkSample all = sample_by_network(chooser, cloud, 64, 0);
    for (const int64_t m : {1, 2, 7, 33}) {
        const NetworkSample few = sample_by_network(chooser, cloud, m, 0);
        expect_sample(few, cloud, m);
        EXPECT_TRUE(std::equal(few.indices.begin(), few.indices.end(), all.indices.begin()));
    }
    NetworkSampler at_once = sampler("samplenet", {{"count", "64"}});
    const std::string message = message_of([&] { sample_by_network(at_once, cloud, 63, 0); });
    EXPECT_TRUE(contains(message, "these weights choose 64 points at once: 63 of them are no sample")) << message;
}

TEST_P(NetworkSampling, NeitherPlaceNorSizeMatters) {
    PointCloud cloud = numbered_cloud(400);
    NetworkSampler chooser = sampler("samplenet", {{"count", "32"}});
    const std::vector<int32_t> expected = sample_by_network(chooser, cloud, 32, 0).indices;
    cloud.origin = {-3e6, 8e6, 1e5};
    EXPECT_EQ(sample_by_network(chooser, cloud, 32, 0).indices, expected);
    for (int64_t i = 0; i < cloud.positions.elements(); ++i) cloud.positions.data()[i] *= 1024;
    EXPECT_EQ(sample_by_network(chooser, cloud, 32, 0).indices, expected);
}

TEST_P(NetworkSampling, CopiesOfAPointAreChosenOnce) {
    PointCloud cloud = numbered_cloud(100);
    for (int64_t i = 40; i < 100; ++i)
        std::copy_n(cloud.positions.data() + 3 * (i % 40), 3, cloud.positions.data() + 3 * i);
    for (const char* name : {"samplenet", "gumbel-subset", "pointnet-classifier"}) {
        SCOPED_TRACE(name);
        NetworkSampler chooser =
            name == std::string("pointnet-classifier") ? sampler(name, {}) : sampler(name, {{"count", "16"}});
        const NetworkSample sample = sample_by_network(chooser, cloud, 40, 0);
        std::set<int32_t> places;
        for (const int32_t index : sample.indices) places.insert(index % 40);
        EXPECT_EQ(places.size(), 40u);
        EXPECT_TRUE(contains(message_of([&] { sample_by_network(chooser, cloud, 41, 0); }),
                             "asked for 41 points, the cloud has 40 distinct ones"));
        EXPECT_TRUE(
            contains(message_of([&] { sample_by_network(chooser, cloud, 101, 0); }), "asked for 101 of 100 points"));
    }
}

TEST_P(NetworkSampling, BatchesAreTheirClouds) {
    NetworkSampler chooser = sampler("samplenet", {{"count", "16"}});
    const std::vector<int64_t> sizes = {100, 40, 1500};
    CloudBatch batch;
    for (size_t i = 0; i < sizes.size(); ++i)
        batch.add(network_points(numbered_cloud(sizes[i], 10 + i), {.points = 0}));
    const Array<float, 2> points = batch.points_on(device());
    const ops::Clouds clouds(points.view(), batch.batch());
    Array<int32_t, 1> indices({3 * 20}, device());
    Array<float, 1> distances_sq({3 * 20}, device());
    const Array<int32_t, 2> proposals = chooser.propose(clouds, 5);
    chooser.choose(clouds, proposals, 20, indices.view(), distances_sq.view());
    const Array<int32_t, 1> host = indices.to(Device{});
    for (size_t i = 0; i < 2; ++i) {  // the third is thinned by numbers of its place in the batch
        const PointCloud cloud = numbered_cloud(sizes[i], 10 + i);
        const NetworkSample alone = sample_by_network(chooser, cloud, 20, 5);
        EXPECT_TRUE(std::equal(alone.indices.begin(), alone.indices.end(), host.data() + 20 * i)) << i;
    }
}

TEST_P(NetworkSampling, SameForAnyThreads) {
    const PointCloud cloud = numbered_cloud(5000);
    for (const char* name : {"samplenet", "gumbel-subset", "pointnet-classifier"}) {
        NetworkSampler chooser = sampler(name, {});
        set_threads(1);
        const std::vector<int32_t> one = sample_by_network(chooser, cloud, 100, 7).indices;
        set_threads(3);
        EXPECT_EQ(sample_by_network(chooser, cloud, 100, 7).indices, one) << name;
        set_threads(0);
    }
}

// Critical points alone: the classifier says the same of them as of the whole cloud.
TEST_P(NetworkSampling, CriticalPointsAreAllThatAClassifierSees) {
    const std::map<std::string, std::string> config = {
        {"classes", "5"}, {"input_transform", "false"}, {"feature_transform", "false"}};
    for (const char* variant : {"torch", "tf"}) {
        std::map<std::string, std::string> with = config;
        with["variant"] = variant;
        const ModelOrEngine model = random_model("pointnet-classifier", with);
        const PointCloud cloud = numbered_cloud(2000);
        NetworkSampler chooser(random_model("pointnet-classifier", with), where());
        const Array<float, 2> points = network_points(cloud, {.points = 0});
        const NetworkSample whole = sample_by_network(chooser, cloud, 1500, 0);
        const auto m = whole.proposed;
        ASSERT_LT(m, 1100);
        ASSERT_GT(m, 20);
        Array<float, 2> few({m, 3});
        for (int64_t i = 0; i < m; ++i)
            std::copy_n(points.data() + 3 * int64_t{whole.indices[static_cast<size_t>(i)]}, 3, few.data() + 3 * i);
        const auto logits = [&](const Array<float, 2>& rows) {
            return test::run_reference(model.model->network, model.model->weights, ops::Batch::single(rows.size(0)),
                                       {{"points", rows.view()}})
                .output("logits")
                .values;
        };
        const std::vector<double> expected = logits(points), found = logits(few);
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-3) << variant;
        // Without the most important one they are no longer the same.
        Array<float, 2> less({m - 1, 3});
        std::copy_n(few.data() + 3, 3 * (m - 1), less.data());
        EXPECT_NE(logits(less), found);
    }
}

TEST(NetworkSamplers, AreOfTheirMethod) {
    const test::TemporaryFolder folder;
    const auto save = [&](const std::string& name, const std::map<std::string, std::string>& config) {
        const ModelOrEngine source = random_model(name, config);
        const std::string path = folder / (name + std::to_string(config.size()) + ".safetensors");
        network::save_weights(path, source.model->weights, network::WeightStorage::f32, Overwrite::refuse);
        return path;
    };
    const std::string cls = save("samplenet", {}), reg = save("samplenet", {{"shape", "registration"}}),
                      snet = save("samplenet", {{"shape", "registration"}, {"neighbours", "0"}}),
                      gumbel = save("gumbel-subset", {}), autoencoder = save("autoencoder", {{"count", "10"}});
    EXPECT_EQ(load_sampler(SampleMethod::samplenet_cls, cls, 0, {}).count(), 32);
    EXPECT_EQ(load_sampler(SampleMethod::samplenet_reg, reg, 0, {}).count(), 64);
    EXPECT_EQ(load_sampler(SampleMethod::snet, snet, 0, {}).count(), 64);
    EXPECT_EQ(load_sampler(SampleMethod::gumbel, gumbel, 0, {}).count(), 32);
    EXPECT_EQ(load_sampler(SampleMethod::critical, "", 0, {}).count(), 1024);  // the shipped classifier
    const auto refusal = [](SampleMethod method, const std::string& model) {
        return message_of([&] { load_sampler(method, model, 0, {}); });
    };
    EXPECT_TRUE(contains(refusal(SampleMethod::samplenet_cls, reg), "not of --method samplenet-cls"));
    EXPECT_TRUE(contains(refusal(SampleMethod::samplenet_reg, snet), "not of --method samplenet-reg"));
    EXPECT_TRUE(contains(refusal(SampleMethod::critical, gumbel), "not of --method critical"));
    EXPECT_TRUE(contains(refusal(SampleMethod::gumbel, autoencoder), "autoencoder chooses no points"));
    EXPECT_TRUE(contains(refusal(SampleMethod::snet, ""), "--method snet needs --model WEIGHTS"));
    EXPECT_TRUE(contains(refusal(SampleMethod::samplenet_cls, folder / "no.safetensors"), "no.safetensors"));
}

TEST(NetworkSamplers, AreFoundByNameThoseOfTheSizeFirst) {
    const test::TemporaryFolder folder;
    const auto save = [&](const std::string& name, const char* count) {
        const ModelOrEngine source = random_model("samplenet", {{"count", count}});
        network::save_weights(folder / (name + ".safetensors"), source.model->weights, network::WeightStorage::f32,
                              Overwrite::refuse);
    };
    save("samplenet-cls-progressive", "64");
    save("samplenet-cls-12", "12");
    ASSERT_EQ(::setenv("STIPPLE_WEIGHTS", (folder / "").c_str(), 1), 0);
    const auto count = [](int64_t m) { return load_sampler(SampleMethod::samplenet_cls, "", m, {}).count(); };
    EXPECT_EQ(count(12), 12);
    EXPECT_EQ(count(13), 64);
    ::unsetenv("STIPPLE_WEIGHTS");
}

}  // namespace
}  // namespace stipple::tasks
