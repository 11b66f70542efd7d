// learn_step_bench [BATCH] [POINTS] [STEPS] [plain]: times a training step on the CPU; plain: no layers are fused. Its
// peer: bench/learn/pytorch_step.py.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <torch/torch.h>

#include "stipple/learn/loop/memory.h"
#include "stipple/learn/losses.h"
#include "stipple/learn/module.h"
#include "stipple/learn/optimizer.h"
#include "stipple/models/pointnet.h"

int main(int argc, char** argv) {
    using namespace stipple;
    const int64_t batch = argc > 1 ? std::atoll(argv[1]) : 16, points = argc > 2 ? std::atoll(argv[2]) : 1024,
                  steps = argc > 3 ? std::atoll(argv[3]) : 6;
    const bool fuses = argc < 5;
    const network::Network network =
        models::pointnet_classifier({.classes = 40, .feature_transform = false, .dropout = 0.4f});
    learn::Module module(network, network::initial_weights(network, 0));
    learn::OptimizerOptions how;
    how.weight_decay = 0.05;
    learn::Optimizer optimizer(how, module.parameters());
    const std::vector<torch::Tensor> trained = module.trained();
    learn::keep_freed_memory();
    torch::manual_seed(0);
    const torch::Tensor cloud = torch::randn({batch * points, 3}), labels = torch::randint(40, {batch});
    learn::CrossEntropyOptions smoothing;
    smoothing.label_smoothing = 0.2;
    double best = 1e30;
    for (int64_t step = 0; step < steps; ++step) {
        const auto begin = std::chrono::steady_clock::now();
        optimizer.zero_gradients();
        const torch::Tensor logits = module
                                         .run(ops::Batch::dense(batch, points), {{"points", cloud}},
                                              {.is_training = true, .step = step, .fuses = fuses})
                                         .at("logits");
        learn::cross_entropy(logits, labels, smoothing).backward();
        const double norm = learn::gradient_norm(trained).item<double>();
        optimizer.step(1e-3, norm > 1 ? 1 / norm : 1);
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::printf("stipple: %.1f ms a step of %lld clouds of %lld points, %.1f clouds/s, %d threads\n", 1e3 * best,
                static_cast<long long>(batch), static_cast<long long>(points), static_cast<double>(batch) / best,
                torch::get_num_threads());
}
