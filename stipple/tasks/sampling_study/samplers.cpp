#include "stipple/tasks/sampling_study/samplers.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/samplenet.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/random_sample.h"
#include "stipple/ops/soft_project.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::tasks::study {
namespace {

using ops::Batch;
using ops::Clouds;

/// Work on batches of clouds in order; [begin, end) and the clouds of the part on a device.
template <class Work>
void in_batches(const EqualClouds& clouds, int64_t batch, Device device, const Work& work) {
    for (int64_t begin = 0; begin < clouds.size(); begin += batch) {
        check_interrupted();
        const int64_t end = std::min(begin + batch, clouds.size());
        const View<const float, 2> part = clouds.part(begin, end);
        Array<float, 2> points({part.size(0), 3});
        std::copy_n(part.data(), 3 * part.size(0), points.data());
        if (device != Device{}) points = points.to(device);
        work(begin, end, Clouds(points.view(), Batch::dense(end - begin, clouds.n)));
    }
}

std::map<std::string, std::string> sampler_config(const ModelOrEngine& source) {
    network::Weights carried;
    carried.metadata = source.metadata();
    return network::config_of(carried);
}

void require_method(const ModelOrEngine& source, SamplingMethod method, int64_t size) {
    const auto misfit = [&](const std::string& what) {
        throw Error(ErrorCode::bad_file, Place{source.path}, what, "stipple weights info shows what a file is");
    };
    if (method == SamplingMethod::critical) return;
    if (method == SamplingMethod::gumbel) {
        if (source.name() != "gumbel-subset") misfit(fmt::format("is a {}, no gumbel-subset", source.name()));
        const int64_t count = models::gumbel_subset_options(sampler_config(source)).count;
        if (size > 0 && count != size) misfit(fmt::format("chooses {} points, not {}", count, size));
        return;
    }
    if (source.name() != "samplenet") misfit(fmt::format("is a {}, no samplenet", source.name()));
    const models::SampleNetOptions options = models::samplenet_options(sampler_config(source));
    const bool is_snet = options.neighbours == 0;
    if (is_snet != (method == SamplingMethod::snet))
        misfit(is_snet ? "is an S-NET, without projection" : "is a SampleNet, with a projection: no S-NET");
    if (method == SamplingMethod::progressive) {
        if (!options.progressive) misfit("is not progressive");
        return;
    }
    if (size > 0 && options.count != size) misfit(fmt::format("chooses {} points, not {}", options.count, size));
}

/// Points that are there, then farthest ones: positions of the part's clouds into rows of `chosen`.
void complete(const Clouds& clouds, const std::vector<int32_t>& begun, const Batch& begun_batch, int64_t m,
              int32_t* chosen) {
    Array<int32_t, 1> indices({clouds.batch.clouds() * m}), given({static_cast<int64_t>(begun.size())});
    std::copy(begun.begin(), begun.end(), given.data());
    ops::FarthestPointOptions options;
    if (!begun.empty()) {
        options.chosen = given.view();
        options.chosen_batch = begun_batch;
    }
    ops::farthest_point_sample(clouds, Batch::dense(clouds.batch.clouds(), m), indices.view(), {}, options);
    std::copy_n(indices.data(), indices.elements(), chosen);
}

void choose_voxels(const Clouds& clouds, int64_t m, int32_t* chosen) {
    const int64_t count = clouds.batch.clouds();
    std::vector<std::vector<int32_t>> of_cloud(static_cast<size_t>(count));
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) of_cloud[static_cast<size_t>(c)] = voxel_choice(clouds.cloud(c), m);
    });
    std::vector<int32_t> all;
    std::vector<int64_t> offsets = {0};
    for (const std::vector<int32_t>& one : of_cloud) {
        all.insert(all.end(), one.begin(), one.end());
        offsets.push_back(static_cast<int64_t>(all.size()));
    }
    complete(clouds, all, Batch::ragged(std::move(offsets)), m, chosen);
}

/// As random_sample of the whole would: positions depend on the seed and the cloud's number alone.
void choose_at_random(int64_t first, int64_t count, int64_t n, int64_t m, uint64_t seed, int32_t* chosen) {
    Array<int32_t, 1> indices({m});
    for (int64_t c = 0; c < count; ++c) {
        const RandomBlock words = Rng(seed, static_cast<uint64_t>(first + c)).block(0);
        ops::random_sample(Batch::single(n), Batch::single(m), uint64_t{words.word[0]} << 32 | words.word[1],
                           indices.view(), {.order = ops::SampleOrder::random});
        std::copy_n(indices.data(), m, chosen + c * m);
    }
}

int64_t occupied_cells(const Clouds& cloud, double edge) {
    return ops::voxel_grid(cloud, static_cast<float>(edge)).cells.rows();
}

}  // namespace

Array<float, 2> points_at(const EqualClouds& clouds, const Array<int32_t, 2>& chosen, int64_t m) {
    STIPPLE_REQUIRE(chosen.size(0) == clouds.size() && chosen.size(1) >= m, "{} choices of {} for {} clouds and {}",
                    chosen.size(0), chosen.size(1), clouds.size(), m);
    Array<float, 2> points({clouds.size() * m, 3});
    for (int64_t c = 0; c < clouds.size(); ++c)
        for (int64_t i = 0; i < m; ++i) {
            const int32_t index = chosen.view()(c, i);
            STIPPLE_REQUIRE(index >= 0 && index < clouds.n, "cloud {} has no point {}", c, index);
            for (int axis = 0; axis < 3; ++axis)
                points.view()(c * m + i, axis) = clouds.rows(c * clouds.n + index, axis);
        }
    return points;
}

StudySampler::StudySampler(SamplingMethod method, const std::string& weights, int64_t size,
                           const RunnerOptions& options)
    : method_(method), device_(parse_device(options.device)), batch_(options.batch) {
    if (!is_trained(method) && method != SamplingMethod::critical) return;
    ModelOrEngine source = load_model_or_engine(weights);
    require_method(source, method, size);
    network_ = std::make_unique<NetworkSampler>(std::move(source), options);
    device_ = network_->runner().device();
}

Array<int32_t, 2> StudySampler::choose(const EqualClouds& clouds, int64_t m, uint64_t seed) {
    const int64_t n = clouds.n;
    STIPPLE_REQUIRE(m >= 1 && m <= n, "asked for {} of {} points", m, n);
    Array<int32_t, 2> chosen({clouds.size(), m});
    const Device device = network_ ? device_ : Device{};
    in_batches(clouds, batch_, device, [&](int64_t begin, int64_t end, const Clouds& part) {
        int32_t* rows = chosen.data() + begin * m;
        if (network_) {
            const Array<int32_t, 2> proposals = network_->propose(part, seed);
            Array<int32_t, 1> indices({(end - begin) * m}, device);
            Array<float, 1> distances_sq({(end - begin) * m}, device);
            network_->choose(part, proposals, m, indices.view(), distances_sq.view());
            const Array<int32_t, 1> host = indices.to(Device{});
            std::copy_n(host.data(), host.elements(), rows);
            return;
        }
        switch (method_) {
            case SamplingMethod::random: return choose_at_random(begin, end - begin, n, m, seed, rows);
            case SamplingMethod::fps: return complete(part, {}, {}, m, rows);
            case SamplingMethod::voxel: return choose_voxels(part, m, rows);
            default:
                for (int64_t i = 0; i < (end - begin) * m; ++i) rows[i] = static_cast<int32_t>(i % m);
        }
    });
    return chosen;
}

std::vector<int32_t> voxel_choice(View<const float, 2> cloud, int64_t m) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, longest = 0;
    for (int64_t i = 0; i < cloud.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], double{cloud(i, axis)});
            high[axis] = std::max(high[axis], double{cloud(i, axis)});
        }
    for (int axis = 0; axis < 3; ++axis) longest = std::max(longest, high[axis] - low[axis]);
    if (!(longest > 0) || m < 1) return {0};
    // More cells with smaller edges, nearly always: the first edge that gives too many ends the search.
    const Clouds one(cloud);
    double best = 2 * longest;  // one cell, or the few around a corner
    for (int i = 0; i <= 160; ++i) {
        const double edge = longest * std::exp2(-i / 8.0);
        const int64_t cells = occupied_cells(one, edge);
        if (cells > m) break;
        best = edge;
        if (cells == std::min(m, cloud.size(0))) break;
    }
    const ops::VoxelGrid grid = ops::voxel_grid(one, static_cast<float>(best));
    Array<int32_t, 1> nearest({grid.cells.rows()});
    ops::voxel_representatives(grid, cloud, nearest.view());
    std::vector<int32_t> chosen(nearest.data(), nearest.data() + nearest.elements());
    chosen.resize(std::min(chosen.size(), static_cast<size_t>(m)));  // around a corner there may be 8 cells
    return chosen;
}

SoftSampler::SoftSampler(const std::string& weights, const RunnerOptions& options)
    : runner_(load_model_or_engine(weights), options) {
    const ModelOrEngine& source = runner_.source();
    if (source.name() != "samplenet" || !source.model)
        throw Error(ErrorCode::bad_file, Place{source.path}, fmt::format("is a {}, no samplenet", source.name()));
    const models::SampleNetOptions trained = models::samplenet_options(source.model->network.config);
    count_ = trained.count;
    neighbours_ = trained.neighbours;
    if (neighbours_ == 0) return;
    const auto& tensor = source.model->weights.tensors.at("temperature.value");
    const double t = tensor.values[0];
    sigma_ = std::max(t * t, double{trained.min_sigma});
}

Array<float, 2> SoftSampler::project(const EqualClouds& clouds, int64_t m, const SoftChange& change) {
    STIPPLE_REQUIRE(m >= 1 && m <= count_, "asked for {} points, the network has {}", m, count_);
    const int64_t k = change.neighbours > 0 ? change.neighbours : neighbours_;
    STIPPLE_REQUIRE(k <= clouds.n, "{} neighbours of {} points", k, clouds.n);
    const Device device = runner_.device();
    Array<float, 2> result({clouds.size() * m, 3});
    Array<float, 1> temperature({1});
    temperature.data()[0] = static_cast<float>(change.scale * std::sqrt(sigma_));
    if (device != Device{}) temperature = temperature.to(device);
    in_batches(clouds, runner_.max_batch(), device, [&](int64_t begin, int64_t end, const Clouds& part) {
        const int64_t b = end - begin;
        Array<float, 2> simplified({b * count_, 3}, device);
        runner_.reserve(part.batch.rows())
            .run(part.batch, {{"points", part.rows}}, {{"simplified", simplified.view()}});
        Array<float, 2> made;
        if (neighbours_ == 0) {
            made = simplified.to(Device{});
        } else {
            const Clouds queries(simplified.view(), Batch::dense(b, count_));
            Array<int32_t, 2> near({b * count_, k}, device);
            Array<float, 2> weights({b * count_, k}, device), projected({b * count_, 3}, device);
            ops::knn(ops::PointIndex(part), queries, near.view(), {});
            ops::soft_project(part, queries, ops::Neighbours(near.view(), queries.batch), temperature.view(), 0,
                              weights.view(), projected.view());
            made = projected.to(Device{});
        }
        for (int64_t c = 0; c < b; ++c)
            std::copy_n(made.data() + 3 * c * count_, 3 * m, result.data() + 3 * (begin + c) * m);
    });
    return result;
}

}  // namespace stipple::tasks::study
