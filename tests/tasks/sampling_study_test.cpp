// The study of samplers on toy clouds and networks that nobody has trained: every number against a plain reading of its
// definition.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/tasks/sampling_study/find_weights.h"
#include "stipple/tasks/sampling_study/run_study.h"
#include "stipple/tasks/sampling_study/tables.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks::study {
namespace {

using test::contains;
using test::message_of;

constexpr int64_t kStored = 70;  // points of a stored cloud

data::DataSet toy_set(int64_t clouds = 12) {
    data::DataSet set;
    set.split = "test";
    set.classes = {"airplane", "car", "chair", "table"};
    const Rng rng(5);
    for (int64_t i = 0; i < clouds; ++i) {
        set.labels.push_back(static_cast<int32_t>(i % 4));
        for (int64_t p = 0; p < 3 * kStored; ++p)
            set.clouds.points.push_back(2 * rng.uniform(static_cast<uint64_t>(i * 3 * kStored + p)) - 1);
        set.clouds.offsets.push_back((i + 1) * kStored);
    }
    return set;
}

std::string save_random(const std::string& path, const std::string& name,
                        const std::map<std::string, std::string>& config, uint64_t seed = 3) {
    const network::Network net = models::build_model(name, config);
    network::Weights weights = test::random_weights(net, seed);
    network::set_config(weights, net);
    network::save_weights(path, weights, network::WeightStorage::f32, Overwrite::allow);
    return path;
}

EqualClouds equal(const SamplingClouds& clouds, int look = 0) {
    return {clouds.look(look).view(), clouds.n};
}

double distance_sq(const float* a, const float* b) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) sum += std::pow(double{a[axis]} - b[axis], 2);
    return sum;
}

/// Squared, both ways, summed.
double naive_chamfer(const float* a, int64_t n, const float* b, int64_t m) {
    const auto one_way = [](const float* from, int64_t many, const float* to, int64_t others) {
        double sum = 0;
        for (int64_t i = 0; i < many; ++i) {
            double nearest = INFINITY;
            for (int64_t j = 0; j < others; ++j) nearest = std::min(nearest, distance_sq(from + 3 * i, to + 3 * j));
            sum += nearest;
        }
        return sum / static_cast<double>(many);
    };
    return one_way(a, n, b, m) + one_way(b, m, a, n);
}

class SamplingStudy : public ::testing::Test {
protected:
    RunnerOptions where(int64_t batch = 5) const { return {.device = "cpu", .precision = {}, .batch = batch}; }
    std::string classifier(const char* name = "pointnet-cls", uint64_t seed = 3) const {
        return save_random(folder / (std::string(name) + ".safetensors"), "pointnet-classifier",
                           {{"classes", "4"}, {"feature_transform", "false"}}, seed);
    }
    std::string sampler(const std::string& name, std::map<std::string, std::string> config, uint64_t seed = 4) const {
        return save_random(folder / (name + ".safetensors"), "samplenet", config, seed);
    }
    SamplingPlan plan() const {
        SamplingPlan plan;
        plan.set = &set;
        plan.tasks = sampling_tasks();
        plan.methods = sampling_methods();
        plan.sizes = {16, 8};
        plan.folder = folder / "out";
        plan.device = "cpu";
        plan.batch = 5;
        plan.find_sampler = [this](const std::string& name) {
            return find_study_weights(name, {folder.path()}, false);
        };
        return plan;
    }

    test::TemporaryFolder folder;
    data::DataSet set = toy_set();
};

TEST(SamplingStudyNames, FollowOneScheme) {
    EXPECT_EQ(sampler_name(SamplingMethod::samplenet, SamplingTask::classification, "robust", 32), "samplenet-cls-32");
    EXPECT_EQ(sampler_name(SamplingMethod::samplenet, SamplingTask::classification, "plain", 32),
              "samplenet-cls-plain-32");
    EXPECT_EQ(sampler_name(SamplingMethod::progressive, SamplingTask::registration, "pcrnet", 16),
              "samplenet-reg-progressive");
    EXPECT_EQ(sampler_name(SamplingMethod::snet, SamplingTask::reconstruction, "autoencoder", 64), "snet-rec-64");
    EXPECT_EQ(sampler_name(SamplingMethod::gumbel, SamplingTask::classification, "robust", 8), "gumbel-cls-8");
    EXPECT_THROW(sampler_name(SamplingMethod::fps, SamplingTask::classification, "robust", 8), Error);
    for (const SamplingMethod method : sampling_methods()) EXPECT_EQ(sampling_method_by_name(name_of(method)), method);
    for (const SamplingTask task : sampling_tasks()) EXPECT_EQ(sampling_task_by_name(name_of(task)), task);
    EXPECT_TRUE(contains(message_of([] { sampling_method_by_name("all"); }), "there are random, fps, voxel"));
    for (const char* name : {"samplenet-cls-32", "samplenet-cls-plain-32", "pointnet-plain", "autoencoder"})
        EXPECT_TRUE(contains(sampler_scheme(), name)) << name;
    EXPECT_EQ(training_of(SamplingMethod::gumbel, SamplingTask::classification, 8, "c.st"),
              (std::vector<std::string>{"gumbel-subset", "--task", "cls", "--network", "c.st", "--count", "8"}));
    const std::vector<std::string> call = training_of(SamplingMethod::snet, SamplingTask::registration, 16, "p.st");
    for (const char* word : {"--task", "reg", "--network", "p.st", "16", "model.neighbours=0", "data.classes=car"})
        EXPECT_NE(std::find(call.begin(), call.end(), word), call.end()) << word;
}

TEST_F(SamplingStudy, CloudsAreTheFirstPointsOfTheTasksClasses) {
    const SamplingClouds cls = sampling_clouds(set, SamplingTask::classification, {});
    EXPECT_EQ(cls.size(), 12);
    EXPECT_EQ(cls.n, kStored);  // the protocol's 1024 are not there
    EXPECT_TRUE(cls.is_short);
    EXPECT_TRUE(std::equal(set.clouds.points.begin(), set.clouds.points.end(), cls.points.data()));
    const SamplingClouds few = sampling_clouds(set, SamplingTask::classification, {.clouds = 5});
    EXPECT_EQ(few.items, (std::vector<int64_t>{0, 2, 4, 7, 9}));
    set.classes[1] = "boat";
    EXPECT_TRUE(contains(message_of([&] { sampling_clouds(set, SamplingTask::registration, {}); }), "\"car\""));
    set.labels.clear();
    EXPECT_TRUE(contains(message_of([&] { sampling_clouds(set, SamplingTask::classification, {}); }), "no classes"));
}

TEST_F(SamplingStudy, PairsAreTheSameCloudTurnedAndShuffled) {
    const SamplingClouds pairs = sampling_clouds(set, SamplingTask::registration, {.turns = 4, .seed = 9});
    ASSERT_EQ(pairs.size(), 12);  // three cars, four turns
    const int64_t n = pairs.n;
    int64_t in_place = 0;
    double largest = 0;
    for (int64_t c = 0; c < pairs.size(); ++c) {
        EXPECT_EQ(set.labels[static_cast<size_t>(pairs.items[static_cast<size_t>(c)])], 1);
        const metrics::Motion& motion = pairs.motions[static_cast<size_t>(c)];
        metrics::require_motion("test", motion);
        metrics::Motion still = {};
        still[0] = still[5] = still[10] = still[15] = 1;
        largest = std::max(largest, metrics::rotation_error(motion, still));
        std::set<int64_t> found;
        for (int64_t i = 0; i < n; ++i) {
            const float* p = pairs.points.data() + 3 * (c * n + i);
            float moved[3];
            for (size_t axis = 0; axis < 3; ++axis)
                moved[axis] = static_cast<float>(motion[4 * axis] * p[0] + motion[4 * axis + 1] * p[1] +
                                                 motion[4 * axis + 2] * p[2]);
            for (int64_t j = 0; j < n; ++j)
                if (distance_sq(moved, pairs.templates.data() + 3 * (c * n + j)) < 1e-10) {
                    found.insert(j);
                    in_place += i == j;
                }
        }
        EXPECT_EQ(found.size(), static_cast<size_t>(n));
    }
    EXPECT_LT(in_place, pairs.size() * n / 10);
    EXPECT_GT(largest, 20);
    EXPECT_LT(largest, 90);
    // Fewer pairs are some of these.
    const SamplingClouds few = sampling_clouds(set, SamplingTask::registration, {.clouds = 3, .turns = 4, .seed = 9});
    ASSERT_EQ(few.size(), 3);
    for (const int64_t c : {0, 1, 2}) {
        EXPECT_EQ(few.motions[static_cast<size_t>(c)], pairs.motions[static_cast<size_t>(4 * c)]);
        EXPECT_TRUE(std::equal(few.templates.data() + 3 * c * n, few.templates.data() + 3 * (c + 1) * n,
                               pairs.templates.data() + 3 * 4 * c * n));
    }
    EXPECT_NE(fingerprint(few), fingerprint(pairs));
}

TEST_F(SamplingStudy, VoxelsAreOfTheFinestGridThatFits) {
    const SamplingClouds clouds = sampling_clouds(set, SamplingTask::classification, {.clouds = 4});
    for (int64_t c = 0; c < 4; ++c) {
        const View<const float, 2> cloud = equal(clouds).part(c, c + 1);
        double longest = 0;
        for (int axis = 0; axis < 3; ++axis) {
            double low = INFINITY, high = -INFINITY;
            for (int64_t i = 0; i < kStored; ++i)
                low = std::min(low, double{cloud(i, axis)}), high = std::max(high, double{cloud(i, axis)});
            longest = std::max(longest, high - low);
        }
        const auto cell_of = [&](int64_t i, double edge) {
            std::array<int64_t, 3> cell;
            for (int axis = 0; axis < 3; ++axis)
                cell[static_cast<size_t>(axis)] =
                    static_cast<int64_t>(std::floor(double{cloud(i, axis)} / static_cast<float>(edge)));
            return cell;
        };
        const auto cells = [&](double edge) {
            std::set<std::array<int64_t, 3>> occupied;
            for (int64_t i = 0; i < kStored; ++i) occupied.insert(cell_of(i, edge));
            return static_cast<int64_t>(occupied.size());
        };
        for (const int64_t m : {8, 16, 30, 70}) {
            const std::vector<int32_t> chosen = voxel_choice(cloud, m);
            const auto count = static_cast<int64_t>(chosen.size());
            EXPECT_LE(count, m);
            double finest = 0;
            for (int i = 0; i <= 160 && cells(longest * std::exp2(-i / 8.0)) <= m; ++i)
                finest = longest * std::exp2(-i / 8.0);
            ASSERT_GT(finest, 0);
            EXPECT_EQ(count, cells(finest)) << m;
        }
    }
    Array<float, 2> same({5, 3});
    std::fill_n(same.data(), 15, 0.25f);
    EXPECT_EQ(voxel_choice(same.view(), 3), std::vector<int32_t>{0});
}

TEST_F(SamplingStudy, SamplersTakeDistinctPointsWhateverTheBatches) {
    const SamplingClouds clouds = sampling_clouds(set, SamplingTask::classification, {});
    const std::string weights = classifier(), fixed = sampler("samplenet-cls-16", {{"count", "16"}}),
                      snet = sampler("snet-cls-16", {{"count", "16"}, {"neighbours", "0"}}),
                      any = sampler("samplenet-cls-progressive", {{"count", "24"}, {"progressive", "true"}});
    const std::string gumbel = save_random(folder / "gumbel-cls-16.safetensors", "gumbel-subset", {{"count", "16"}});
    const std::map<SamplingMethod, std::string> paths = {{SamplingMethod::critical, weights},
                                                         {SamplingMethod::gumbel, gumbel},
                                                         {SamplingMethod::snet, snet},
                                                         {SamplingMethod::samplenet, fixed},
                                                         {SamplingMethod::progressive, any}};
    for (const SamplingMethod method : sampling_methods()) {
        SCOPED_TRACE(name_of(method));
        const std::string path = paths.contains(method) ? paths.at(method) : "";
        const int64_t size = method == SamplingMethod::progressive ? 0 : 16;
        const auto choose = [&](int64_t m, int64_t batch) {
            return StudySampler(method, path, size, where(batch)).choose(equal(clouds), m, 7);
        };
        const Array<int32_t, 2> chosen = choose(16, 5);
        for (int64_t c = 0; c < clouds.size(); ++c) {
            const std::set<int32_t> different(chosen.data() + 16 * c, chosen.data() + 16 * (c + 1));
            EXPECT_EQ(different.size(), 16u);
            EXPECT_GE(*different.begin(), 0);
            EXPECT_LT(*different.rbegin(), clouds.n);
        }
        const Array<int32_t, 2> others = choose(16, 3);
        EXPECT_TRUE(std::equal(chosen.data(), chosen.data() + chosen.elements(), others.data()));
        if (!has_prefixes(method)) continue;
        for (const int64_t m : {8, 40}) {
            const Array<int32_t, 2> more = choose(m, 5);
            for (int64_t c = 0; c < clouds.size(); ++c)
                EXPECT_TRUE(std::equal(chosen.data() + 16 * c, chosen.data() + 16 * c + std::min<int64_t>(m, 16),
                                       more.data() + m * c));
        }
    }
    const auto refused = [&](SamplingMethod method, const std::string& path, int64_t size) {
        return message_of([&] { StudySampler(method, path, size, where()); });
    };
    EXPECT_TRUE(contains(refused(SamplingMethod::samplenet, snet, 16), "is an S-NET"));
    EXPECT_TRUE(contains(refused(SamplingMethod::snet, fixed, 16), "no S-NET"));
    EXPECT_TRUE(contains(refused(SamplingMethod::samplenet, fixed, 8), "chooses 16 points, not 8"));
    EXPECT_TRUE(contains(refused(SamplingMethod::progressive, fixed, 0), "is not progressive"));
    EXPECT_TRUE(contains(refused(SamplingMethod::gumbel, fixed, 16), "is a samplenet"));
}

/// A sampler whose proposals for these clouds lie among their points: random weights alone send them far away, where
/// every projection is the nearest point.
std::string save_near_sampler(const std::string& path, int64_t neighbours, const SamplingClouds& clouds) {
    const network::Network net = models::build_model("samplenet", {{"shape", "reconstruction"},
                                                                   {"count", "6"},
                                                                   {"neighbours", std::to_string(neighbours)},
                                                                   {"min_sigma", "0.02"}});
    network::Weights weights = test::random_weights(net, 8);
    network::set_config(weights, net);
    const auto run = test::run_reference(net, weights, ops::Batch::dense(clouds.size(), clouds.n),
                                         {{"points", clouds.points.view()}});
    double largest = 0;
    for (const double x : run.output("simplified").values) largest = std::max(largest, std::abs(x));
    for (const char* name : {"out.weight", "out.bias"})
        for (float& value : weights.tensors.at(name).values) value /= static_cast<float>(largest);
    if (neighbours > 0) weights.tensors.at("temperature.value").values = {0.45f};
    network::save_weights(path, weights, network::WeightStorage::f32, Overwrite::allow);
    return path;
}

// Proposals of the plain reading of the network, then the softmax as the paper writes it.
TEST_F(SamplingStudy, SoftPointsAreTheDefinition) {
    const SamplingClouds clouds = sampling_clouds(set, SamplingTask::classification, {.clouds = 3});
    const std::string path = save_near_sampler(folder / "soft.safetensors", 5, clouds);
    const models::Model model = models::load_model(path);
    const auto run = test::run_reference(model.network, model.weights, ops::Batch::dense(3, clouds.n),
                                         {{"points", clouds.points.view()}});
    const double t = model.weights.tensors.at("temperature.value").values[0];
    const double trained = std::max(t * t, 0.02);
    SoftSampler soft(path, where(2));
    EXPECT_NEAR(soft.sigma(), trained, 1e-6);
    const struct {
        SoftChange change;
        int64_t k;
    } cases[] = {{{}, 5}, {{.neighbours = 3}, 3}, {{.neighbours = 1}, 1}, {{.scale = 0.5}, 5}, {{.scale = 0}, 5}};
    for (const auto& [change, k] : cases) {
        const double sigma = trained * change.scale * change.scale;
        for (const int64_t m : {6, 4}) {
            const Array<float, 2> made = soft.project(equal(clouds), m, change);
            ASSERT_EQ(made.size(0), 3 * m);
            double off = 0;  // how far from the nearest point: a test of projections that do nothing tests nothing
            for (int64_t c = 0; c < 3; ++c)
                for (int64_t q = 0; q < m; ++q) {
                    const double* query = run.output("simplified").row(6 * c + q);
                    std::vector<std::pair<double, int64_t>> near;
                    for (int64_t i = 0; i < clouds.n; ++i) {
                        double d = 0;
                        for (int axis = 0; axis < 3; ++axis)
                            d += std::pow(clouds.points.view()(c * clouds.n + i, axis) - query[axis], 2);
                        near.emplace_back(d, c * clouds.n + i);
                    }
                    std::sort(near.begin(), near.end());
                    double sum = 0, expected[3] = {};
                    for (int64_t i = 0; i < k; ++i) {
                        const auto [d, row] = near[static_cast<size_t>(i)];
                        const double w = sigma > 0 ? std::exp(-(d - near[0].first) / sigma) : i == 0;
                        sum += w;
                        for (int axis = 0; axis < 3; ++axis) expected[axis] += w * clouds.points.view()(row, axis);
                    }
                    for (int axis = 0; axis < 3; ++axis) {
                        EXPECT_NEAR(made.view()(c * m + q, axis), expected[axis] / sum, 2e-5);
                        off = std::max(off, std::abs(double{made.view()(c * m + q, axis)} -
                                                     clouds.points.view()(near[0].second, axis)));
                    }
                }
            EXPECT_EQ(off > 0.05, k > 1 && sigma > 0) << k << " " << sigma;
        }
    }
    // S-NET hands over its points as they are.
    const std::string bare = save_near_sampler(folder / "bare.safetensors", 0, clouds);
    const models::Model snet = models::load_model(bare);
    const auto plain = test::run_reference(snet.network, snet.weights, ops::Batch::dense(3, clouds.n),
                                           {{"points", clouds.points.view()}});
    const Array<float, 2> made = SoftSampler(bare, where(2)).project(equal(clouds), 6);
    for (int64_t i = 0; i < 18; ++i)
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_NEAR(made.view()(i, axis), plain.output("simplified").row(i)[axis], 2e-5);
    EXPECT_TRUE(contains(message_of([&] { soft.project(equal(clouds), 7); }), "asked for 7 points"));
}

TEST_F(SamplingStudy, AccuracyIsTheShareOfRightAnswers) {
    const SamplingClouds clouds = sampling_clouds(set, SamplingTask::classification, {});
    const std::string path = classifier();
    const models::Model model = models::load_model(path);
    TaskJudge judge(path, set, clouds, where());
    const Array<int32_t, 2> chosen = StudySampler(SamplingMethod::fps, "", 0, where()).choose(equal(clouds), 20, 0);
    std::vector<Array<float, 2>> few;
    few.push_back(points_at(equal(clouds), chosen, 20));
    const auto run = test::run_reference(model.network, model.weights, ops::Batch::dense(clouds.size(), 20),
                                         {{"points", few[0].view()}});
    int64_t right = 0;
    for (int64_t c = 0; c < clouds.size(); ++c) {
        const double* logits = run.output("logits").row(c);
        right += std::max_element(logits, logits + 4) - logits == clouds.labels[static_cast<size_t>(c)];
    }
    const SamplingScores scores = judge.score(few, 20);
    EXPECT_DOUBLE_EQ(scores.accuracy, static_cast<double>(right) / 12);
    EXPECT_DOUBLE_EQ(scores.class_accuracy, static_cast<double>(right) / 12);  // classes are of one size
    EXPECT_TRUE(std::isnan(scores.rotation) && std::isnan(scores.nre));
    EXPECT_TRUE(contains(message_of([&] { judge.score(few, 19); }), "points for 12 clouds of 19"));
    const std::string other = save_random(folder / "other.safetensors", "pointnet-classifier",
                                          {{"classes", "7"}, {"feature_transform", "false"}});
    EXPECT_NE(message_of([&] { TaskJudge(other, set, clouds, where()); }), "");
}

TEST_F(SamplingStudy, PosesAndTheirConsistencyAreTheDefinition) {
    const SamplingClouds pairs = sampling_clouds(set, SamplingTask::registration, {.turns = 2});
    const std::string path =
        save_random(folder / "pcrnet.safetensors", "pcrnet", {{"features", "32"}, {"hidden", "16"}});
    const models::Model model = models::load_model(path);
    TaskJudge judge(path, set, pairs, where(4));
    std::vector<Array<float, 2>> few;
    for (int look = 0; look < 2; ++look)
        few.push_back(points_at(equal(pairs, look),
                                StudySampler(SamplingMethod::fps, "", 0, where()).choose(equal(pairs, look), 10, 0),
                                10));
    const ops::Batch batch = ops::Batch::dense(pairs.size(), 10);
    const auto run = test::run_reference(model.network, model.weights, {batch, batch},
                                         {{"source", few[0].view()}, {"template", few[1].view()}});
    double sum = 0, consistency = 0;
    int64_t below = 0;
    std::vector<double> angles;
    for (int64_t c = 0; c < pairs.size(); ++c) {
        const double* r = run.output("rotation").row(c);
        const metrics::Motion& truth = pairs.motions[static_cast<size_t>(c)];
        double trace = 0;  // of found^T truth
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) trace += r[3 * i + j] * truth[4 * i + j];
        angles.push_back(std::acos(std::clamp((trace - 1) / 2, -1.0, 1.0)) * 180 / M_PI);
        sum += angles.back();
        below += angles.back() < 5;
        std::vector<float> back(30);
        for (size_t p = 0; p < 10; ++p)
            for (size_t axis = 0; axis < 3; ++axis)
                for (size_t from = 0; from < 3; ++from)
                    back[3 * p + axis] +=
                        static_cast<float>(truth[4 * from + axis]) *
                        few[1].data()[3 * (10 * c + static_cast<int64_t>(p)) + static_cast<int64_t>(from)];
        consistency += naive_chamfer(few[0].data() + 30 * c, 10, back.data(), 10);
    }
    std::sort(angles.begin(), angles.end());
    const SamplingScores scores = judge.score(few, 10);
    EXPECT_NEAR(scores.rotation, sum / 6, 1e-2);
    EXPECT_NEAR(scores.rotation_doubled, 2 * sum / 6, 2e-2);
    EXPECT_NEAR(scores.rotation_median, (angles[2] + angles[3]) / 2, 1e-2);
    EXPECT_DOUBLE_EQ(scores.below_5, static_cast<double>(below) / 6);
    EXPECT_NEAR(scores.consistency, consistency / 6, 1e-5);
    EXPECT_GT(scores.consistency, 1e-3);  // FPS begins anywhere
    // Of all points the two looks are the same shape.
    std::vector<Array<float, 2>> whole;
    whole.push_back(pairs.points.clone());
    whole.push_back(pairs.templates.clone());
    EXPECT_LT(judge.score(whole, pairs.n).consistency, 1e-10);
    EXPECT_TRUE(contains(message_of([&] { TaskJudge(classifier(), set, pairs, where()); }), "needs a pcrnet"));
}

TEST_F(SamplingStudy, NreIsTheMeanOfRatios) {
    const SamplingClouds clouds = sampling_clouds(set, SamplingTask::reconstruction, {});
    const std::string path = save_random(folder / "autoencoder.safetensors", "autoencoder",
                                         {{"count", "40"}, {"latent", "8"}, {"hidden", "8"}});
    const models::Model model = models::load_model(path);
    TaskJudge judge(path, set, clouds, where());
    std::vector<Array<float, 2>> few;
    few.push_back(
        points_at(equal(clouds), StudySampler(SamplingMethod::random, "", 0, where()).choose(equal(clouds), 9, 1), 9));
    const auto errors = [&](const Array<float, 2>& rows) {
        const auto run = test::run_reference(model.network, model.weights,
                                             ops::Batch::dense(clouds.size(), rows.size(0) / clouds.size()),
                                             {{"points", rows.view()}});
        std::vector<double> all;
        for (int64_t c = 0; c < clouds.size(); ++c) {
            std::vector<float> made;
            for (int64_t i = 0; i < 40; ++i)
                for (int axis = 0; axis < 3; ++axis)
                    made.push_back(static_cast<float>(run.output("reconstructed").row(40 * c + i)[axis]));
            all.push_back(naive_chamfer(clouds.points.data() + 3 * c * clouds.n, clouds.n, made.data(), 40));
        }
        return all;
    };
    const std::vector<double> of_few = errors(few[0]), of_whole = errors(clouds.points);
    double ratios = 0, mean = 0;
    for (size_t c = 0; c < of_few.size(); ++c) {
        ratios += of_few[c] / of_whole[c] / 12;
        mean += of_few[c] / 12;
    }
    const SamplingScores scores = judge.score(few, 9);
    EXPECT_NEAR(scores.nre, ratios, 1e-3);
    EXPECT_NEAR(scores.chamfer, mean, 1e-3 * mean);
    std::vector<Array<float, 2>> whole;
    whole.push_back(clouds.points.clone());
    EXPECT_DOUBLE_EQ(judge.score(whole, clouds.n).nre, 1);
}

TEST_F(SamplingStudy, RowsAreStoredAndOnlyWhatIsMissingIsComputed) {
    SamplingPlan how = plan();
    how.networks = {{"robust", classifier()},
                    {"autoencoder", save_random(folder / "ae.safetensors", "autoencoder",
                                                {{"count", "40"}, {"latent", "8"}, {"hidden", "8"}})}};
    sampler("samplenet-cls-8", {{"count", "8"}});
    sampler("snet-cls-16", {{"count", "16"}, {"neighbours", "0"}});
    sampler("samplenet-cls-progressive", {{"count", "12"}, {"progressive", "true"}});
    int64_t made = 0, told = 0;
    how.report = [&](const std::string&) { ++made; };
    how.advance = [&](int64_t rows) { told += rows; };
    const SamplingResult first = run_sampling_study(how);
    EXPECT_EQ(told, sampling_rows(how));
    EXPECT_EQ(told, static_cast<int64_t>(first.rows.size()));
    // Classification: all, four methods and one progressive by two sizes, SampleNet 8, S-NET 16, both sweeps.
    const auto count = [&](SamplingSweep sweep, SamplingTask task) {
        return std::count_if(first.rows.begin(), first.rows.end(),
                             [&](const SamplingRow& row) { return row.sweep == sweep && row.task == task; });
    };
    EXPECT_EQ(count(SamplingSweep::size, SamplingTask::classification), 1 + 5 * 2 + 2);
    EXPECT_EQ(count(SamplingSweep::neighbours, SamplingTask::classification), 4);
    EXPECT_EQ(count(SamplingSweep::temperature, SamplingTask::classification), 7);
    EXPECT_EQ(count(SamplingSweep::size, SamplingTask::reconstruction), 1 + 4 * 2);
    EXPECT_EQ(count(SamplingSweep::size, SamplingTask::registration), 0);
    for (const SamplingRow& row : first.rows) {
        const bool has_soft = row.sweep != SamplingSweep::size || row.method == SamplingMethod::snet ||
                              row.method == SamplingMethod::samplenet ||
                              (row.method == SamplingMethod::progressive && row.points <= 12);
        EXPECT_EQ(row.soft.is_empty(), !has_soft) << name_of(row.method) << row.points;
        EXPECT_EQ(row.hard.is_empty(), row.sweep != SamplingSweep::size);
    }
    std::string notes;
    for (const std::string& note : first.notes) notes += note + "\n";
    for (const char* text : {"plain: no weights pointnet-plain", "pcrnet: no weights pcrnet", "samplenet-cls-16",
                             "gumbel-cls-8, gumbel-cls-16", "samplenet-rec-progressive", "clouds of 70 points"})
        EXPECT_TRUE(contains(notes, text)) << text << "\n" << notes;
    EXPECT_FALSE(contains(notes, "samplenet-cls-8")) << notes;

    // Again: the same rows, none of them made. The file reads back to the last digit.
    made = 0;
    const SamplingResult again = run_sampling_study(how);
    EXPECT_EQ(made, 0);
    EXPECT_EQ(sampling_rows_to_csv(again.rows), sampling_rows_to_csv(first.rows));
    // Any number of threads.
    how.folder = folder / "threads";
    set_threads(3);
    EXPECT_EQ(sampling_rows_to_csv(run_sampling_study(how).rows), sampling_rows_to_csv(first.rows));
    set_threads(0);
    how.folder = folder / "out";
    // Another sampler: its rows alone, and those of its sweeps.
    made = 0;
    sampler("samplenet-cls-8", {{"count", "8"}}, 77);
    const SamplingResult changed = run_sampling_study(how);
    EXPECT_EQ(made, 1);
    EXPECT_EQ(changed.rows.size(), first.rows.size());
    EXPECT_NE(sampling_rows_to_csv(changed.rows), sampling_rows_to_csv(first.rows));
    // Other pairs of nothing: the seed changes what random takes.
    how.inputs.seed = 1;
    made = 0;
    run_sampling_study(how);
    EXPECT_GT(made, 20);
    test::write_file(folder / "out/results.csv", "sweep,task\nsize,cls\n");
    EXPECT_TRUE(contains(message_of([&] { run_sampling_study(how); }), "results.csv"));
}

TEST_F(SamplingStudy, TablesHaveSampledAndSoftInColumnsOfTheirOwn) {
    std::vector<SamplingRow> rows;
    const auto add = [&](const char* network, SamplingMethod method, int64_t points, double hard, double soft) {
        SamplingRow& row = rows.emplace_back();
        row.network = network;
        row.method = method;
        row.points = points;
        row.clouds = 10;
        row.hard.accuracy = hard;
        row.soft.accuracy = soft;
    };
    add("plain", SamplingMethod::all, 1024, 0.9, NAN);
    add("plain", SamplingMethod::samplenet, 32, 0.806, 0.83);
    add("robust", SamplingMethod::samplenet, 32, 0.865, 0.871);
    add("robust", SamplingMethod::fps, 32, 0.834, NAN);
    const std::vector<SamplingTable> tables = sampling_tables(rows);
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_EQ(tables[0].name, "classification");
    const std::string csv = to_csv(tables[0].table), tex = to_latex(tables[0].table, "t");
    EXPECT_TRUE(contains(csv, "method,points,plain_hard_accuracy,plain_soft_accuracy,robust_hard_accuracy")) << csv;
    EXPECT_TRUE(contains(csv, "SampleNet,32,0.806,0.83,0.865,0.871")) << csv;
    EXPECT_TRUE(contains(csv, "FPS,32,,,0.834,,")) << csv;
    EXPECT_TRUE(contains(tex, "SampleNet & 32 & 80.6 & 83.0 & 86.5 & 87.1")) << tex;
    EXPECT_TRUE(contains(to_csv(results_table(rows)), "size,cls,robust,samplenet,32,,1,,10,0.865")) << csv;
    EXPECT_TRUE(sampling_tables({}).empty());
    const std::vector<ReportTable> summaries = sampling_summaries(rows);
    ASSERT_EQ(summaries.size(), 2u);
    EXPECT_TRUE(contains(to_markdown(summaries[0]), "| SampleNet |  | 80.6 (83.0) |")) << to_markdown(summaries[0]);
    EXPECT_FALSE(contains(to_markdown(summaries[0]), "FPS"));
    EXPECT_TRUE(contains(to_markdown(summaries[1]), "| FPS |  | 83.4 |")) << to_markdown(summaries[1]);
}

TEST_F(SamplingStudy, PicturesAreShapeByShape) {
    SamplingPlan how = plan();
    how.networks = {{"robust", classifier()}};
    const std::vector<SamplePicture> pictures = sample_pictures(how, SamplingTask::classification, 8, 3);
    ASSERT_EQ(pictures.size(), 3u * 4);
    EXPECT_EQ(std::set<std::string>({pictures[0].shape, pictures[4].shape, pictures[8].shape}).size(), 3u);
    EXPECT_EQ(pictures[0].method, "random");
    EXPECT_EQ(pictures[3].method, "critical points");
    EXPECT_EQ(pictures[0].shape, pictures[3].shape);
    for (const SamplePicture& picture : pictures) {
        EXPECT_EQ(picture.cloud.size(), kStored);
        EXPECT_EQ(picture.chosen.size(), 8);
    }
    EXPECT_TRUE(sample_pictures(how, SamplingTask::registration, 8, 3).empty());
}

}  // namespace
}  // namespace stipple::tasks::study
