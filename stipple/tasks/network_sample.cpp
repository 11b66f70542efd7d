#include "stipple/tasks/network_sample.h"

#include <algorithm>
#include <set>

#include "stipple/core/error.h"
#include "stipple/core/program_files.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/samplenet.h"
#include "stipple/ops/argmax_points.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/gather.h"
#include "stipple/ops/nearest_pairs.h"
#include "stipple/ops/random_sample.h"
#include "stipple/tasks/sample/critical_points.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {
namespace {

using ops::Batch;
using ops::Clouds;

/// What a sampler's network says of itself, in the file that it came from: an engine has no network any more.
struct Trained {
    int64_t count = 0, points = 0;
    bool progressive = false;
};

std::map<std::string, std::string> config_of(const ModelOrEngine& source) {
    network::Weights carried;
    carried.metadata = source.metadata();
    return network::config_of(carried);
}

void require_sampler(const ModelOrEngine& source) {
    if (source.name() == "samplenet" || source.name() == "gumbel-subset" || is_classifier(source)) return;
    throw Error(ErrorCode::bad_argument,
                fmt::format("{} chooses no points; samplenet, gumbel-subset and pointnet-classifier do", source.name()),
                "stipple weights info shows what a file is");
}

Trained trained_of(const ModelOrEngine& source) {
    require_sampler(source);
    if (source.name() == "gumbel-subset") {
        const models::GumbelSubsetOptions options = models::gumbel_subset_options(config_of(source));
        return {options.count, options.points, options.progressive};
    }
    const models::SampleNetOptions options = models::samplenet_options(config_of(source));
    return {options.count, options.points, options.progressive};
}

View<const int32_t, 1> flat(const Array<int32_t, 2>& indices) {
    return {indices.data(), {indices.elements()}, indices.device()};
}

/// What the network sees of clouds: all points, or a random subset of those that have more than `most`.
struct Seen {
    Array<float, 2> copy;
    View<const float, 2> rows;
    Batch batch;
};
Seen thin(const Clouds& clouds, int64_t most, uint64_t seed, Stream stream) {
    Seen seen{{}, clouds.rows, clouds.batch};
    if (clouds.batch.largest() <= most) return seen;
    std::vector<int64_t> offsets = {0};
    for (int64_t i = 0; i < clouds.batch.clouds(); ++i)
        offsets.push_back(offsets.back() + std::min(most, clouds.batch.size(i)));
    seen.batch = Batch::ragged(std::move(offsets));
    Array<int32_t, 1> subset({seen.batch.rows()}, clouds.device());
    ops::random_sample(clouds.batch, seen.batch, seed, subset.view(), {}, stream);
    seen.copy = Array<float, 2>({seen.batch.rows(), 3}, clouds.device());
    ops::gather(clouds, ops::Neighbours(subset.view(), seen.batch), seen.copy.view(), stream);
    seen.rows = seen.copy.view();
    return seen;
}

}  // namespace

NetworkSampler::NetworkSampler(ModelOrEngine source, const RunnerOptions& options)
    : runner_(is_classifier(source) ? split_classifier(std::move(source), critical_) : std::move(source), options) {
    if (critical_) {
        count_ = critical_->channels();
        points_ = kCriticalPoints;
        is_progressive_ = true;
        return;
    }
    const ModelOrEngine& loaded = runner_.source();
    try {
        const Trained trained = trained_of(loaded);
        count_ = trained.count;
        points_ = trained.points;
        is_progressive_ = trained.progressive;
        has_scores_ = loaded.name() == "gumbel-subset";
    } catch (const Error& error) {
        throw error.at_path(loaded.path);
    }
}

Array<int32_t, 2> NetworkSampler::propose(const Clouds& clouds, uint64_t seed, Stream stream) {
    const Device device = runner_.device();
    const int64_t b = clouds.batch.clouds();
    STIPPLE_REQUIRE(clouds.device() == device, "the network is on {}, the clouds on {}", device, clouds.device());
    const Seen seen = thin(clouds, points_, seed, stream);
    engine::Context& context = runner_.reserve(seen.batch.rows());
    const std::vector<engine::Input> inputs = {{"points", seen.rows}};
    Array<float, 2> places({b * count_, 3}, device);
    Array<int32_t, 2> indices({b, count_}, device);
    if (critical_) {
        Array<float, 2> features({seen.batch.rows(), critical_->inputs()}, device);
        context.run(seen.batch, inputs, {{kPointFeatures, features.view()}}, stream);
        indices = rank_critical_points(*critical_, features, seen.batch, stream);
    } else if (has_scores_) {
        Array<float, 2> scores({seen.batch.rows(), count_}, device);
        context.run(seen.batch, inputs, {{"scores", scores.view()}}, stream);
        ops::argmax_points(Clouds(scores.view(), seen.batch), indices.view(), {}, stream);
    } else {
        context.run(seen.batch, inputs, {{"simplified", places.view()}}, stream);
    }
    const bool has_indices = critical_ || has_scores_;
    if (has_indices && seen.copy.elements() == 0) return indices;
    const Batch proposals = Batch::dense(b, count_);
    if (has_indices)  // of the subset: the points there, which are then found in the cloud
        ops::gather(Clouds(seen.rows, seen.batch), ops::Neighbours(flat(indices), proposals), places.view(), stream);
    Array<float, 1> distances_sq({b * count_}, device);
    ops::nearest_pairs(Clouds(places.view(), proposals), clouds, View<int32_t, 1>(indices.data(), {b * count_}, device),
                       distances_sq.view(), {}, {}, stream);
    return indices;
}

void NetworkSampler::choose(const Clouds& clouds, const Array<int32_t, 2>& proposals, int64_t m,
                            View<int32_t, 1> indices, View<float, 1> distances_sq, Stream stream) const {
    if (m < count_ && !is_progressive_)
        throw Error(ErrorCode::bad_argument, Place{runner_.source().path},
                    fmt::format("these weights choose {} points at once: {} of them are no sample", count_, m),
                    fmt::format("-n {} or more, or progressive weights, which give any number", count_));
    const int64_t b = clouds.batch.clouds();
    ops::FarthestPointOptions options;
    options.chosen = flat(proposals);
    options.chosen_batch = Batch::dense(b, proposals.size(1));
    ops::farthest_point_sample(clouds, Batch::dense(b, m), indices, distances_sq, options, stream);
}

namespace {

/// The method that a model is of, by its network and what its file says.
SampleMethod method_of(const ModelOrEngine& source) {
    if (is_classifier(source)) return SampleMethod::critical;
    if (source.name() == "gumbel-subset") return SampleMethod::gumbel;
    const models::SampleNetOptions options = models::samplenet_options(config_of(source));
    if (options.neighbours == 0) return SampleMethod::snet;
    switch (options.shape) {
        case models::SamplerShape::classification: return SampleMethod::samplenet_cls;
        case models::SamplerShape::registration: return SampleMethod::samplenet_reg;
        case models::SamplerShape::reconstruction: return SampleMethod::samplenet_rec;
    }
    STIPPLE_ASSERT(false);
}

std::string path_of_weights(SampleMethod method, const std::string& model, int64_t m) {
    if (!model.empty()) return model;
    if (method == SampleMethod::critical) return shipped_weights(kClassifierWeights);
    const std::string name(name_of(method));
    for (const std::string& wanted : {fmt::format("{}-{}", name, m), name + "-progressive"})
        if (const std::string path = find_weights(wanted); is_file(path)) return path;
    throw Error(
        ErrorCode::bad_argument,
        fmt::format("--method {} needs --model WEIGHTS: none of that name are installed", name),
        fmt::format("{0}-{1}.safetensors or {0}-progressive.safetensors in a folder of $STIPPLE_WEIGHTS is found "
                    "by itself",
                    name, m));
}

}  // namespace

NetworkSampler load_sampler(SampleMethod method, const std::string& model, int64_t m, const RunnerOptions& options) {
    ModelOrEngine source = load_model_or_engine(path_of_weights(method, model, m));
    try {
        require_sampler(source);
        const SampleMethod its = method_of(source);
        if (its != method)
            throw Error(ErrorCode::bad_argument, fmt::format("these weights are not of --method {}", name_of(method)),
                        fmt::format("--method {}", name_of(its)));
    } catch (const Error& error) {
        throw error.at_path(source.path);
    }
    return {std::move(source), options};
}

NetworkSample sample_by_network(NetworkSampler& sampler, const PointCloud& cloud, int64_t m, uint64_t seed) {
    STIPPLE_REQUIRE(m <= cloud.size(), "asked for {} of {} points", m, cloud.size());
    const Device device = sampler.runner().device();
    Array<float, 2> points = network_points(cloud, {.points = 0});
    if (device != Device{}) points = points.to(device);
    Array<int32_t, 1> indices({m}, device);
    Array<float, 1> distances_sq({m}, device);
    const Array<int32_t, 2> proposals = sampler.propose(points.view(), seed);
    sampler.choose(points.view(), proposals, m, indices.view(), distances_sq.view());

    const Array<int32_t, 1> chosen = indices.to(Device{});
    const Array<float, 1> apart_sq = distances_sq.to(Device{});
    const auto distinct = std::count_if(apart_sq.data(), apart_sq.data() + m, [](float d) { return d > 0; });
    STIPPLE_REQUIRE(distinct == m, "asked for {} points, the cloud has {} distinct ones", m, distinct);
    const Array<int32_t, 2> wanted = proposals.to(Device{});
    std::set<int32_t> different(wanted.data(), wanted.data() + wanted.elements());
    different.erase(-1);
    NetworkSample sample;
    sample.indices.assign(chosen.data(), chosen.data() + m);
    sample.proposed = std::min(m, static_cast<int64_t>(different.size()));
    sample.cloud = select(cloud, chosen.view());
    return sample;
}

const Fields& sampled_fields() {
    static const Fields fields = {
        field<&Sampled::method>("method", "How they were chosen").words(kSampleMethodWords),
        field<&Sampled::sampled>("sampled", "Points of the sample"),
        field<&Sampled::proposed>("proposed", "By a network: points that it chose itself; fps chose the others"),
        field<&Sampled::voxel>("voxel", "Edge of a cell").unit("unit of the cloud"),
        field<&Sampled::spacing>("spacing", "Distance that the points keep").unit("unit of the cloud")};
    return fields;
}

CloudSampler::CloudSampler(const SampleSettings& settings, const std::string& device)
    : settings_(settings), device_(parse_device(device)) {
    if (has_network(settings_.method))
        network_ = load_sampler(settings_.method, settings_.model, settings_.count, {.device = device});
}

Sampled CloudSampler::sample(const PointCloud& cloud) {
    SampleSettings settings = settings_;
    settings.count = wanted_count(settings_, cloud.size());
    settings.ratio = 0;
    STIPPLE_REQUIRE(settings.start < cloud.size(), "--start {} of {} points", settings.start, cloud.size());
    Sampled sampled;
    sampled.method = settings.method, sampled.points = cloud.size();
    if (network_) {
        NetworkSample chosen = sample_by_network(*network_, cloud, settings.count, settings.seed);
        sampled.cloud = std::move(chosen.cloud);
        sampled.proposed = chosen.proposed;
    } else {
        sampled.cloud = sample_cloud(cloud, settings, device_);
    }
    sampled.sampled = sampled.cloud.size();
    if (settings.method == SampleMethod::voxel) sampled.voxel = settings.voxel;
    if (settings.method == SampleMethod::spacing) sampled.spacing = settings.spacing;
    return sampled;
}

}  // namespace stipple::tasks
