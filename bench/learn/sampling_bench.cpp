// sampling_bench [WEIGHTS] [BATCH] [ROUNDS] [ENGINE]: samples 1024 -> 64 by a SampleNet on all cores of the CPU, beside
// the same in LibTorch (PyTorch's kernels), in one run, alternately, the best round of each. WEIGHTS: of a samplenet
// for classification; "" for random ones. ENGINE: the same network built by `stipple engine build`, in int8 say.
//
// Peers: "Conv1d" as the published programs write it, convolutions of one point, batch norm, ReLU; "Linear" the same
// over rows; "folded" with batch norms folded into Linear, as good as it gets without a compiler. Matching is by one
// batched product, without gradients. Their samples are compared with ours before anything is timed. "network and
// matching" ends with the nearest input point of every proposal; "whole sample" goes on to distinct points and
// completes them by farthest point sampling, in LibTorch batched over all clouds.
//
// CPU ms is the time of all threads together: on a machine that others use as well it is what can be compared, with
// OMP_WAIT_POLICY=passive, so that threads that wait do not count.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <torch/torch.h>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/learn/loop/memory.h"
#include "stipple/models/registry.h"
#include "stipple/models/samplenet.h"
#include "stipple/tasks/network_sample.h"

namespace {

using namespace stipple;
using torch::Tensor;

constexpr int64_t kPoints = 1024, kSampled = 64;

tasks::ModelOrEngine load(const std::string& path) {
    if (!path.empty()) return tasks::load_model_or_engine(path);
    tasks::ModelOrEngine source;
    source.path = "random";
    models::Model model;
    model.network = models::samplenet({.count = kSampled, .points = kPoints});
    model.weights = network::initial_weights(model.network, 0);
    network::set_config(model.weights, model.network);
    // Of the points that come out: as far apart as a cloud is wide.
    for (float& x : model.weights.tensors.at("out.norm.weight").values) x = 0.5f;
    source.model = std::move(model);
    return source;
}

enum class Form { conv, rows, folded };

/// SampleNet for classification.
class TorchSampler {
public:
    TorchSampler(const network::Weights& weights, Form form) : form_(form) {
        for (const char* name : {"conv1", "conv2", "conv3", "conv4", "conv5"})
            of_points_.push_back(layer(weights, name, form == Form::folded));
        for (const char* name : {"fc1", "fc2", "fc3", "out"})
            of_clouds_.push_back(layer(weights, name, form == Form::folded));
    }

    /// [B, n, 3] -> [B, m] int64: the nearest input point of every proposal.
    Tensor propose(const Tensor& clouds) const {
        Tensor x = form_ == Form::conv ? clouds.transpose(1, 2).contiguous() : clouds.reshape({-1, 3});
        for (const Layer& layer : of_points_) x = (form_ == Form::conv ? layer.convolve(x) : layer(x)).relu_();
        x = form_ == Form::conv ? x.amax(2) : x.reshape({clouds.size(0), clouds.size(1), -1}).amax(1);
        for (size_t i = 0; i < of_clouds_.size(); ++i) {
            x = of_clouds_[i](x);
            if (i + 1 < of_clouds_.size()) x.relu_();
        }
        const Tensor proposals = x.reshape({clouds.size(0), -1, 3});
        // |p|^2 - 2 <q, p>: what decides which p is nearest.
        const Tensor squares = clouds.square().sum(2).unsqueeze(1);
        return torch::baddbmm(squares, proposals, clouds.transpose(1, 2), 1, -2).argmin(2);
    }

    /// [B, m] of them: distinct ones in their order, then by farthest point sampling.
    static Tensor complete(const Tensor& clouds, const Tensor& proposals) {
        const int64_t b = clouds.size(0), m = proposals.size(1);
        const Tensor equal = proposals.unsqueeze(2).eq(proposals.unsqueeze(1)).tril(-1);
        const Tensor is_first = equal.any(2).logical_not();
        const Tensor place = is_first.cumsum(1) - 1;
        const Tensor count = place.select(1, m - 1) + 1;
        // Those that come again go to a column of their own, which is cut off.
        Tensor found = torch::zeros({b, m + 1}, torch::kInt64)
                           .scatter_(1, torch::where(is_first, place, torch::full_like(place, m)), proposals)
                           .slice(1, 0, m)
                           .contiguous();
        const auto points_at = [&](const Tensor& index) {
            return clouds.gather(1, index.unsqueeze(2).expand({b, index.size(1), 3}));
        };
        Tensor nearest = (clouds.unsqueeze(2) - points_at(proposals).unsqueeze(1)).square_().sum(3).amin(2);  // [B, n]
        for (int64_t i = count.min().item<int64_t>(); i < m; ++i) {
            const Tensor next = torch::where(count.le(i), nearest.argmax(1), found.select(1, i)).unsqueeze(1);
            found.select(1, i).copy_(next.squeeze(1));
            nearest = torch::minimum(nearest, (clouds - points_at(next)).square_().sum(2));
        }
        return found;
    }

private:
    struct Layer {
        Tensor weight, bias;                // [in, out], [out]
        Tensor scale, shift, mean, square;  // of a batch norm that is not folded: gamma, beta, running statistics

        Tensor operator()(const Tensor& x) const { return normed(torch::addmm(bias, x, weight)); }
        Tensor convolve(const Tensor& x) const {  // [B, c, n]
            return normed(torch::conv1d(x, weight.t().unsqueeze(2), bias));
        }
        Tensor normed(const Tensor& y) const {
            return scale.defined() ? torch::batch_norm(y, scale, shift, mean, square, false, 0, kEps, false) : y;
        }
    };
    static Tensor tensor_of(const network::Weights& weights, const std::string& name) {
        const auto& found = weights.tensors.at(name);
        const std::vector<int64_t> shape(found.shape.begin(), found.shape.end());
        return torch::from_blob(const_cast<float*>(found.values.data()), shape).clone();
    }
    static Layer layer(const network::Weights& weights, const std::string& name, bool is_folded) {
        Layer made = {tensor_of(weights, name + ".weight"), tensor_of(weights, name + ".bias"), {}, {}, {}, {}};
        if (weights.tensors.count(name + ".norm.weight") > 0) {
            made.scale = tensor_of(weights, name + ".norm.weight");
            made.shift = tensor_of(weights, name + ".norm.bias");
            made.mean = tensor_of(weights, name + ".norm.running_mean");
            made.square = tensor_of(weights, name + ".norm.running_var");
        }
        if (is_folded && made.scale.defined()) {
            const Tensor scale = made.scale / (made.square + kEps).sqrt();
            made.bias = (made.bias - made.mean) * scale + made.shift;
            made.weight = made.weight * scale.unsqueeze(1);
            made.scale = Tensor();
        }
        made.weight = made.weight.t().contiguous();
        return made;
    }
    static constexpr double kEps = 1e-3;  // of the TensorFlow form

    Form form_;
    std::vector<Layer> of_points_, of_clouds_;
};

/// Of one call: of the clock, and of all threads together.
struct Took {
    double seconds = 1e30, cpu = 1e30;

    void call(const std::function<void()>& work) {
        const auto begin = std::chrono::steady_clock::now();
        const std::clock_t cpu_begin = std::clock();
        work();
        cpu = std::min(cpu, static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
        seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
};

}  // namespace

int main(int argc, char** argv) try {
    const std::string path = argc > 1 ? argv[1] : "";
    const int64_t batch = argc > 2 ? std::atoll(argv[2]) : 32, rounds = argc > 3 ? std::atoll(argv[3]) : 20;
    learn::keep_freed_memory();
    torch::set_num_threads(threads());
    const torch::NoGradGuard no_gradients;
    tasks::ModelOrEngine source = load(path);
    const network::Weights weights = source.model->weights;
    const TorchSampler peers[] = {{weights, Form::conv}, {weights, Form::rows}, {weights, Form::folded}};
    tasks::NetworkSampler sampler(std::move(source), {.device = "cpu", .batch = batch, .points = kPoints});
    const int64_t m = sampler.count();
    std::optional<tasks::NetworkSampler> built;
    if (argc > 4)
        built.emplace(tasks::load_model_or_engine(argv[4]), tasks::RunnerOptions{.device = "cpu", .batch = batch});

    // Points of spheres that are stretched at random.
    Array<float, 2> points({batch * kPoints, 3});
    for (int64_t i = 0; i < points.size(0); ++i) {
        const Rng rng(1, static_cast<uint64_t>(i / kPoints));
        float p[3], length = 0;
        for (int axis = 0; axis < 3; ++axis) {
            p[axis] = 2 * rng.uniform(static_cast<uint64_t>(16 + 4 * (i % kPoints) + axis)) - 1;
            length += p[axis] * p[axis];
        }
        for (int axis = 0; axis < 3; ++axis)
            points.view()(i, axis) =
                (0.3f + 0.7f * rng.uniform(static_cast<uint64_t>(axis))) * p[axis] / std::sqrt(length);
    }
    const ops::Clouds clouds(points.view(), ops::Batch::dense(batch, kPoints));
    const Tensor rows = torch::from_blob(points.data(), {batch, kPoints, 3});

    Array<int32_t, 1> indices({batch * m});
    Array<float, 1> distances_sq({batch * m});
    Array<int32_t, 2> proposed;
    Tensor of_peer, sampled_by_peer;
    const auto ours = [&](tasks::NetworkSampler& by, bool is_whole) {
        proposed = by.propose(clouds, 0);
        if (is_whole) by.choose(clouds, proposed, m, indices.view(), distances_sq.view());
    };
    const auto theirs = [&](const TorchSampler& by, bool is_whole) {
        of_peer = by.propose(rows);
        if (is_whole) sampled_by_peer = TorchSampler::complete(rows, of_peer);
    };
    const auto proposed_by_us = [&] {
        return torch::from_blob(proposed.data(), {batch, m}, torch::kInt32).to(torch::kInt64);
    };
    const auto share = [](const Tensor& a, const Tensor& b) {
        return a.eq(b).to(torch::kFloat64).mean().item<double>();
    };
    double same_built = 1, same = 1, same_sample = 1;
    ours(sampler, true);
    const Tensor exact = proposed_by_us();
    const Tensor sample = torch::from_blob(indices.data(), {batch, m}, torch::kInt32).clone();
    for (const TorchSampler& peer : peers) {
        theirs(peer, true);
        same = std::min(same, share(exact, of_peer));
        same_sample = std::min(same_sample, share(sample, sampled_by_peer));
    }
    if (built) {
        ours(*built, false);
        same_built = share(exact, proposed_by_us());
    }
    double distinct = 0;
    for (int64_t i = 0; i < batch; ++i)
        distinct += static_cast<double>(std::get<0>(at::_unique(exact[i])).size(0)) / static_cast<double>(batch);
    if (same < 0.99) throw Error(ErrorCode::check_failed, fmt::format("equal proposals: {:.4f}", same));

    struct Work {
        const char* name;
        std::function<void(bool is_whole)> run;
        Took took[2] = {};  // network and matching, whole sample
    };
    std::vector<Work> works = {{"LibTorch, Conv1d", [&](bool is_whole) { theirs(peers[0], is_whole); }},
                               {"LibTorch, Linear", [&](bool is_whole) { theirs(peers[1], is_whole); }},
                               {"LibTorch, folded", [&](bool is_whole) { theirs(peers[2], is_whole); }},
                               {"stipple", [&](bool is_whole) { ours(sampler, is_whole); }}};
    if (built) works.push_back({"stipple, engine", [&](bool is_whole) { ours(*built, is_whole); }});
    for (int64_t round = 0; round < rounds; ++round)
        for (const bool is_whole : {false, true})
            for (Work& work : works) work.took[is_whole].call([&] { work.run(is_whole); });
    fmt::print(
        "{} clouds of {} points, {} of them sampled, {:.1f} distinct before completion; {} threads, best of {} rounds; "
        "equal: {:.4f} of the proposals, {:.4f} of the samples; {:.4f} of the engine's proposals\n\n"
        "| work | program | ms | clouds/s | CPU ms | times Conv1d | times folded | of CPU time |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|\n",
        batch, kPoints, m, distinct, threads(), rounds, same, same_sample, same_built);
    for (const bool is_whole : {false, true})
        for (const Work& work : works) {
            const Took& took = work.took[is_whole];
            fmt::print("| {} | {} | {:.2f} | {:.0f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n",
                       is_whole ? "whole sample" : "network and matching", work.name, 1e3 * took.seconds,
                       static_cast<double>(batch) / took.seconds, 1e3 * took.cpu,
                       works[0].took[is_whole].seconds / took.seconds, works[2].took[is_whole].seconds / took.seconds,
                       works[2].took[is_whole].cpu / took.cpu);
        }
    return 0;
} catch (const Error& error) {
    fmt::print(stderr, "sampling_bench: {}\n", error.what());
    return rule_of(error.code()).exit_code;
}
