// The families of flows of PU-Flow, each with conditions that do not move: there and back, log-determinants against
// autograd's brute force, and training that leaves memory as it was.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/learn/flows/lipschitz.h"
#include "stipple/learn/module.h"
#include "stipple/learn/optimizer.h"
#include "stipple/learn/torch_compat.h"
#include "stipple/models/puflow/flow.h"
#include "tests/learn/gradients.h"
#include "tests/learn/learn.h"
#include "tests/support/allocation.h"
#include "tests/support/reference_weights.h"

namespace stipple::learn {
namespace {

using models::FlowFamily;
using network::Network;
using torch::Tensor;

constexpr int64_t kFeatures = 16;

/// All blocks of a family: x [B, N, c] and features [B, N, 16] -> z, log_det [B, 1], nll [B, 1] and back [B, N, 3].
Network family_network(FlowFamily family) {
    models::PuFlowOptions options;
    options.family = family;
    options.augmented_channels = 4;
    options.steps = 6;
    network::Builder build("family");
    models::puflow_parts::PatchFlow flow(build, options);
    const network::Tensor x = build.input("x", network::points_of(flow.channels()));
    const network::Tensor features = build.input("features", network::points_of(kFeatures));
    for (int i = 0; i < models::puflow_parts::kBlocks; ++i) flow.add_condition(features);
    network::Tensor z = x;
    for (int i = 0; i < models::puflow_parts::kBlocks; ++i) z = flow.forward(i, z);
    build.output("z", z);
    const network::Tensor log_det = flow.log_determinant(x);
    build.output("log_det", log_det);
    const network::Tensor density = build.gaussian_log_density("density", z);
    build.output("nll", build.scale("nll", build.add("likelihood", density, log_det), -1));
    build.output("back", flow.decode("back.", z, 1));
    return build.finish();
}

/// A narrow block of the residual family, for thousands of steps.
Network block_network() {
    network::Builder build("block");
    const network::Tensor x = build.input("x", network::points_of(3));
    const network::Tensor features = build.input("features", network::points_of(kFeatures));
    const network::Tensor condition = build.linear("condition", features, network::flow_condition_channels(3, 16));
    const network::Tensor start = build.actnorm("actnorm", x);
    const network::Tensor moved = build.flow_step("step", start, condition, {.hidden = 16, .log_det = true});
    const network::Tensor z = build.slice("moved", moved, 0, 3);
    const network::Tensor of_step = build.sum_points("of_step", build.slice("log_dets", moved, 3, 4));
    const network::Tensor log_det = build.add("log_det", of_step, build.flow_log_det("of_actnorm", x, "actnorm"));
    const network::Tensor density = build.gaussian_log_density("density", z);
    build.output("nll", build.scale("nll", build.add("likelihood", density, log_det), -1));
    const network::Tensor back = build.flow_step("back_step", z, condition, {.hidden = 16, .inverse = true}, "step");
    build.output("back", build.actnorm("back_actnorm", back, true, "actnorm"));
    return build.finish();
}

struct FamilyRun {
    Network network;
    Module module;
    ops::Batch batch;
    Tensor x, features;

    FamilyRun(Network of, torch::Dtype type, const ops::Batch& clouds)
        : network(std::move(of)),
          module(network, test::random_weights(network, 6), torch::kCPU, type),
          batch(clouds),
          x(test::normal_tensor({clouds.rows(), network.layers[0].type.channels}, 1).to(type)),
          features(test::normal_tensor({clouds.rows(), kFeatures}, 2).to(type)) {}

    std::map<std::string, Tensor> run(const RunOptions& options = {}) {
        return module.run(batch, {{"x", x}, {"features", features}}, options);
    }
};

constexpr FlowFamily kFlows[] = {FlowFamily::coupling, FlowFamily::residual, FlowFamily::continuous,
                                 FlowFamily::augmented};

std::string name_of_family(FlowFamily family) {
    return models::kFlowFamilyWords[static_cast<size_t>(family)];
}

TEST(FlowFamilies, BackIsWhereItCameFrom) {
    for (const FlowFamily family : kFlows)
        for (const torch::Dtype type : {torch::kFloat64, torch::kFloat32}) {
            // Of a continuous flow fixed steps are no inverse of each other: adaptive ones are, in double.
            const bool is_continuous = family == FlowFamily::continuous;
            if (is_continuous && type == torch::kFloat32) continue;
            FamilyRun flow(family_network(family), type, ops::Batch::dense(2, 300));
            const torch::NoGradGuard no_gradients;
            const auto outputs = flow.run({.ode_tolerance = is_continuous ? 1e-7 : 0});
            const double error = torch::abs(outputs.at("back") - flow.x.narrow(1, 0, 3)).max().item<double>();
            EXPECT_LE(error, type == torch::kFloat32 ? 1e-5 : is_continuous ? 1e-6 : 1e-9) << name_of_family(family);
        }
}

TEST(FlowFamilies, LogDeterminantsAreThoseOfAutograd) {
    for (const FlowFamily family : kFlows) {
        FamilyRun flow(family_network(family), torch::kFloat64, ops::Batch::ragged({0, 5, 12}));
        flow.x.requires_grad_(true);
        const auto outputs = flow.run({.ode_tolerance = 1e-10});
        std::vector<Tensor> rows;
        for (int64_t i = 0; i < flow.x.size(1); ++i)
            rows.push_back(torch::autograd::grad({outputs.at("z").select(1, i).sum()}, {flow.x}, {}, true)[0]);
        const Tensor of_points = std::get<1>(torch::slogdet(torch::stack(rows, 1)));
        const double got[2] = {outputs.at("log_det")[0].item<double>(), outputs.at("log_det")[1].item<double>()};
        EXPECT_NEAR(got[0], of_points.narrow(0, 0, 5).sum().item<double>(), 1e-7) << name_of_family(family);
        EXPECT_NEAR(got[1], of_points.narrow(0, 5, 7).sum().item<double>(), 1e-7) << name_of_family(family);
    }
}

/// Counts bytes that torch holds on the CPU.
class HeldBytes : public c10::MemoryReportingInfoBase {
public:
    void reportMemoryUsage(void*, int64_t bytes, ReportedBytes, ReportedBytes, c10::Device) override { held += bytes; }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t held = 0;
};

/// Steps of training and of validation by turns, the estimators by turns.
void train_and_validate(FamilyRun& flow, Optimizer& optimizer, int64_t first, int64_t steps) {
    for (int64_t step = first; step < first + steps; ++step) {
        RunOptions options{.is_training = true, .seed = 5, .step = step};
        const LogDetMethod methods[] = {LogDetMethod::neumann, LogDetMethod::hutchinson, LogDetMethod::power_series,
                                        LogDetMethod::exact};
        options.log_det.method = methods[step % 4];
        options.log_det.length = step % 8 < 4 ? SeriesLength::poisson : SeriesLength::geometric;
        options.log_det.rate = step % 8 < 4 ? 2 : 0.5;
        optimizer.zero_gradients();
        const auto outputs = flow.run(options);
        const Tensor loss = outputs.at("nll").mean() / 256 + torch::abs(outputs.at("back")).mean();
        loss.backward();
        ASSERT_TRUE(std::isfinite(loss.item<double>())) << step;
        optimizer.step(1e-3);
        bound_residual_steps(flow.network, flow.module.parameters());
        const torch::NoGradGuard no_gradients;
        options.is_training = false;
        ASSERT_TRUE(std::isfinite(flow.run(options).at("nll").sum().item<double>())) << step;
    }
}

// STIPPLE_TEST_ITERATIONS=10000 for the long run.
TEST(FlowFamilies, TrainingOfTheResidualFamilyLeavesMemoryFlat) {
    const char* given = std::getenv("STIPPLE_TEST_ITERATIONS");
    const int64_t iterations = given ? std::max<int64_t>(200, std::atoll(given)) : 200;
    FamilyRun flow(block_network(), torch::kFloat32, ops::Batch::dense(8, 256));
    Optimizer optimizer({}, flow.module.parameters());
    const auto counter = std::make_shared<HeldBytes>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
    train_and_validate(flow, optimizer, 0, 16);  // every estimator, and the optimiser's own tensors
    const int64_t held = counter->held, blocks = test::live_allocations();
    train_and_validate(flow, optimizer, 16, iterations - 16);
    EXPECT_EQ(counter->held, held);
    EXPECT_NEAR(static_cast<double>(test::live_allocations()), static_cast<double>(blocks), 50);
    // What training left is invertible still.
    for (const auto& [name, tensor] : flow.module.parameters()) {
        if (!name.starts_with("step.")) continue;
        EXPECT_LE(spectral_norm_bound(tensor).item<double>(), std::cbrt(kLipschitzBound / 1.21) * (1 + 1e-5)) << name;
    }
    const torch::NoGradGuard no_gradients;
    EXPECT_LE(torch::abs(flow.run().at("back") - flow.x).max().item<double>(), 1e-4);
}

}  // namespace
}  // namespace stipple::learn
