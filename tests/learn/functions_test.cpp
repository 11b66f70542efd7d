// The ops as functions of tensors: against formulas in double, finite differences, and their promises.

#include "stipple/learn/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/core/rng.h"
#include "stipple/learn/stream.h"
#include "stipple/learn/torch_compat.h"
#include "tests/learn/gradients.h"

namespace stipple::learn {
namespace {

using ops::Batch;
using ops::DistanceNorm;
using test::GradientCase;
using test::normal_tensor;
using test::Tensors;

/// Rows and queries: dense, ragged, and one cloud.
struct Batches {
    Batch of_rows, of_queries;
};
std::vector<Batches> batches_of_functions() {
    return {{Batch::dense(2, 9), Batch::dense(2, 5)},
            {Batch::ragged({0, 5, 14}), Batch::ragged({0, 6, 9})},
            {Batch::single(8), Batch::single(8)}};
}

torch::Tensor rows_of_cloud(const torch::Tensor& rows, const Batch& batch, int64_t cloud) {
    return rows.narrow(0, batch.begin(cloud), batch.size(cloud));
}

/// Some of the rows, some of them missing, and one row without any.
torch::Tensor some_neighbours(const Batches& batches, int64_t k, uint64_t seed) {
    torch::Tensor indices = torch::empty({batches.of_queries.rows(), k}, torch::kInt32);
    const Rng rng(seed, 1);
    int32_t* at = indices.data_ptr<int32_t>();
    for (int64_t cloud = 0; cloud < batches.of_queries.clouds(); ++cloud)
        for (int64_t i = batches.of_queries.begin(cloud); i < batches.of_queries.end(cloud); ++i)
            for (int64_t j = 0; j < k; ++j) {
                const uint64_t draw = rng.bits(static_cast<uint64_t>(i * k + j));
                const bool is_missing = i == 1 || draw % 7 == 0;
                at[i * k + j] =
                    is_missing ? -1
                               : static_cast<int32_t>((draw >> 8) % static_cast<uint64_t>(batches.of_rows.size(cloud)));
            }
    return indices;
}

/// [m, k] as bool: the neighbour is there. [m, k, c]: its row, 0 for none. By index_select.
torch::Tensor present(const torch::Tensor& indices) {
    return indices >= 0;
}
torch::Tensor named_rows(const torch::Tensor& rows, const torch::Tensor& indices, const Batches& batches) {
    std::vector<int64_t> global;
    for (int64_t cloud = 0; cloud < batches.of_queries.clouds(); ++cloud)
        for (int64_t i = batches.of_queries.begin(cloud); i < batches.of_queries.end(cloud); ++i)
            for (int64_t j = 0; j < indices.size(1); ++j)
                global.push_back(std::max<int64_t>(0, indices[i][j].item<int32_t>()) + batches.of_rows.begin(cloud));
    return rows.index_select(0, torch::tensor(global, torch::kInt64))
               .view({indices.size(0), indices.size(1), rows.size(1)}) *
           present(indices).unsqueeze(2).to(rows.scalar_type());
}

/// By all distances in double, ties to the lowest index: [m, k] int32.
torch::Tensor slow_knn(const torch::Tensor& points, const torch::Tensor& queries, const Batches& batches, int64_t k) {
    Tensors found;
    for (int64_t cloud = 0; cloud < batches.of_rows.clouds(); ++cloud) {
        const torch::Tensor d = (rows_of_cloud(queries, batches.of_queries, cloud).unsqueeze(1) -
                                 rows_of_cloud(points, batches.of_rows, cloud).unsqueeze(0))
                                    .square()
                                    .sum(2);
        found.push_back(std::get<1>(torch::sort(d, /*stable=*/true, /*dim=*/1, /*descending=*/false))
                            .narrow(1, 0, k)
                            .to(torch::kInt32));
    }
    return torch::cat(found);
}

torch::Tensor pair_costs(const torch::Tensor& a, const torch::Tensor& b, DistanceNorm norm) {
    const torch::Tensor squares = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(2);
    return norm == DistanceNorm::squared ? squares : squares.sqrt();
}

class LearnFunctions : public testing::TestWithParam<Device> {
protected:
    torch::Device device() const { return test::torch_device(GetParam()); }
};
STIPPLE_ON_EVERY_TORCH_DEVICE(LearnFunctions);

TEST_P(LearnFunctions, ChamferIsTheMeanOfNearestDistances) {
    for (const Batches& batches : batches_of_functions())
        for (const DistanceNorm norm : {DistanceNorm::squared, DistanceNorm::euclidean}) {
            GradientCase tested;
            tested.name = norm == DistanceNorm::squared ? "squared" : "euclidean";
            tested.inputs = {normal_tensor({batches.of_rows.rows(), 3}, 1),
                             normal_tensor({batches.of_queries.rows(), 3}, 2)};
            tested.function = [=](const Tensors& x) -> Tensors {
                const ChamferMeans means = chamfer({x[0], batches.of_rows}, {x[1], batches.of_queries}, norm);
                return {means.a_to_b, means.b_to_a};
            };
            tested.oracle = [=](const Tensors& x) -> Tensors {
                Tensors there, back;
                for (int64_t cloud = 0; cloud < batches.of_rows.clouds(); ++cloud) {
                    const torch::Tensor costs = pair_costs(rows_of_cloud(x[0], batches.of_rows, cloud),
                                                           rows_of_cloud(x[1], batches.of_queries, cloud), norm);
                    there.push_back(costs.gather(1, costs.detach().argmin(1, true)).mean());
                    back.push_back(costs.gather(0, costs.detach().argmin(0, true)).mean());
                }
                return {torch::stack(there), torch::stack(back)};
            };
            test::check_gradients(tested, device());
        }
}

TEST_P(LearnFunctions, OneDirectionOfChamferHasItsOwnGradient) {
    const Batch batch = Batch::dense(2, 7);
    const torch::Tensor a = normal_tensor({14, 3}, 1).to(device()).set_requires_grad(true),
                        b = normal_tensor({14, 3}, 2).to(device()).set_requires_grad(true);
    const auto means = [&] { return chamfer({a, batch}, {b, batch}, DistanceNorm::squared); };
    const Tensors there = torch::autograd::grad({means().a_to_b.sum()}, {a, b}),
                  back = torch::autograd::grad({means().b_to_a.sum()}, {a, b});
    const ChamferMeans both = means();
    const Tensors sum = torch::autograd::grad({(both.a_to_b + both.b_to_a).sum()}, {a, b});
    for (size_t i = 0; i < 2; ++i) EXPECT_LE(test::relative_difference(there[i] + back[i], sum[i]), 1e-6);
}

TEST_P(LearnFunctions, EmdIsTheCheapestMatching) {
    const Batches all[] = {{Batch::dense(2, 5), Batch::dense(2, 5)},
                           {Batch::ragged({0, 4, 10}), Batch::ragged({0, 4, 10})}};
    for (const Batches& batches : all)
        for (const DistanceNorm norm : {DistanceNorm::squared, DistanceNorm::euclidean}) {
            GradientCase tested;
            tested.name = "emd";
            const int64_t n = batches.of_rows.rows();
            tested.inputs = {normal_tensor({n, 3}, 3), normal_tensor({n, 3}, 4)};
            tested.function = [=](const Tensors& x) -> Tensors {
                return {
                    emd({x[0], batches.of_rows}, {x[1], batches.of_queries}, {.norm = norm, .relative = 1e-5f}).cost};
            };
            tested.oracle = [=](const Tensors& x) -> Tensors {
                Tensors found;
                for (int64_t cloud = 0; cloud < batches.of_rows.clouds(); ++cloud) {
                    const torch::Tensor costs = pair_costs(rows_of_cloud(x[0], batches.of_rows, cloud),
                                                           rows_of_cloud(x[1], batches.of_queries, cloud), norm);
                    std::vector<int64_t> order(static_cast<size_t>(costs.size(0))), best;
                    std::iota(order.begin(), order.end(), 0);
                    const torch::Tensor plain = costs.detach();
                    const auto numbers = plain.accessor<double, 2>();
                    double least = INFINITY;
                    do {
                        double sum = 0;
                        for (size_t i = 0; i < order.size(); ++i) sum += numbers[static_cast<int64_t>(i)][order[i]];
                        if (sum < least) least = sum, best = order;
                    } while (std::next_permutation(order.begin(), order.end()));
                    found.push_back(costs.gather(1, torch::tensor(best, torch::kInt64).unsqueeze(1)).mean());
                }
                return {torch::stack(found)};
            };
            test::check_gradients(tested, device());
        }
}

TEST_P(LearnFunctions, SinkhornIsTheLimitOfItsIteration) {
    for (const Batches& batches : batches_of_functions())
        for (const DistanceNorm norm : {DistanceNorm::squared, DistanceNorm::euclidean}) {
            GradientCase tested;
            tested.name = "sinkhorn";
            constexpr double kEpsilon = 0.5;
            tested.inputs = {normal_tensor({batches.of_rows.rows(), 3}, 5),
                             normal_tensor({batches.of_queries.rows(), 3}, 6)};
            tested.function = [=](const Tensors& x) -> Tensors {
                return {sinkhorn({x[0], batches.of_rows}, {x[1], batches.of_queries},
                                 {.norm = norm, .epsilon = kEpsilon, .max_iterations = 300, .tolerance = 0})
                            .dual};
            };
            tested.oracle = [=](const Tensors& x) -> Tensors {  // by differentiating every iteration
                Tensors found;
                for (int64_t cloud = 0; cloud < batches.of_rows.clouds(); ++cloud) {
                    const torch::Tensor costs = pair_costs(rows_of_cloud(x[0], batches.of_rows, cloud),
                                                           rows_of_cloud(x[1], batches.of_queries, cloud), norm);
                    const double log_n = std::log(costs.size(0)), log_m = std::log(costs.size(1));
                    torch::Tensor f = torch::zeros({costs.size(0)}, torch::kFloat64), g;
                    for (int step = 0; step < 300; ++step) {
                        g = -kEpsilon * (torch::logsumexp((f.unsqueeze(1) - costs) / kEpsilon, 0) - log_n);
                        f = -kEpsilon * (torch::logsumexp((g.unsqueeze(0) - costs) / kEpsilon, 1) - log_m);
                    }
                    found.push_back(f.mean() + g.mean());
                }
                return {torch::stack(found)};
            };
            tested.tolerance = 2e-4;
            test::check_gradients(tested, device());
        }
}

TEST_P(LearnFunctions, KnnHasTheSlopesOfItsDistances) {
    for (const Batches& batches : batches_of_functions()) {
        GradientCase tested;
        tested.name = "knn";
        tested.inputs = {normal_tensor({batches.of_rows.rows(), 4}, 7),
                         normal_tensor({batches.of_queries.rows(), 4}, 8)};
        tested.function = [=](const Tensors& x) -> Tensors {
            return {knn({x[0], batches.of_rows}, {x[1], batches.of_queries}, 3).distances_sq};
        };
        tested.oracle = [=](const Tensors& x) -> Tensors {
            const torch::Tensor indices = slow_knn(x[0].detach(), x[1].detach(), batches, 3);
            return {(named_rows(x[0], indices, batches) - x[1].unsqueeze(1)).square().sum(2)};
        };
        test::check_gradients(tested, device());
    }
}

TEST_P(LearnFunctions, GatherAndGroupMoveRows) {
    for (const Batches& batches : batches_of_functions()) {
        const torch::Tensor indices = some_neighbours(batches, 4, 9);
        const torch::Tensor rows = normal_tensor({batches.of_rows.rows(), 5}, 10),
                            centres = normal_tensor({batches.of_queries.rows(), 5}, 11);
        GradientCase of_gather{"gather", {rows}, {}, {}};
        of_gather.function = [=](const Tensors& x) -> Tensors {
            return {gather({x[0], batches.of_rows}, indices.select(1, 2).to(x[0].device()), batches.of_queries)};
        };
        of_gather.oracle = [=](const Tensors& x) -> Tensors {
            return {named_rows(x[0], indices, batches).select(1, 2)};
        };
        test::check_gradients(of_gather, device());

        GradientCase of_group{"group", {rows}, {}, {}};
        of_group.function = [=](const Tensors& x) -> Tensors {
            return {group({x[0], batches.of_rows}, {indices.to(x[0].device()), batches.of_queries})};
        };
        of_group.oracle = [=](const Tensors& x) -> Tensors { return {named_rows(x[0], indices, batches)}; };
        test::check_gradients(of_group, device());

        GradientCase centred{"group around centres", {rows, centres}, {}, {}};
        centred.function = [=](const Tensors& x) -> Tensors {
            return {group({x[0], batches.of_rows}, {indices.to(x[0].device()), batches.of_queries}, x[1])};
        };
        centred.oracle = [=](const Tensors& x) -> Tensors {
            const torch::Tensor offsets = named_rows(x[0], indices, batches) - x[1].unsqueeze(1);
            return {offsets * present(indices).unsqueeze(2).to(torch::kFloat64)};
        };
        test::check_gradients(centred, device());
    }
}

TEST_P(LearnFunctions, InterpolateIsAWeightedSum) {
    for (const Batches& batches : batches_of_functions()) {
        const torch::Tensor indices = some_neighbours(batches, 4, 12);
        GradientCase tested{
            "interpolate",
            {normal_tensor({batches.of_rows.rows(), 5}, 13), normal_tensor({batches.of_queries.rows(), 2, 4}, 14)},
            {},
            {}};
        tested.function = [=](const Tensors& x) -> Tensors {
            return {interpolate({x[0], batches.of_rows}, {indices.to(x[0].device()), batches.of_queries}, x[1])};
        };
        tested.oracle = [=](const Tensors& x) -> Tensors {
            return {torch::bmm(x[1], named_rows(x[0], indices, batches))};
        };
        test::check_gradients(tested, device());
    }
}

torch::Tensor inverse_distance_weights(const torch::Tensor& squares, ops::InverseDistance::Power power) {
    const torch::Tensor d = power == ops::InverseDistance::Power::squared ? squares : squares.sqrt();
    const torch::Tensor inverse = 1 / (d + 1e-2);
    return inverse / inverse.sum(1, true);
}

TEST_P(LearnFunctions, ThreeInterpolateWeighsByInverseDistance) {
    for (const Batches& batches : batches_of_functions())
        for (const auto power : {ops::InverseDistance::Power::squared, ops::InverseDistance::Power::plain}) {
            const ops::InverseDistance options{.power = power, .epsilon = 1e-2f};
            GradientCase weights{"three_weights", {normal_tensor({6, 3}, 15).square()}, {}, {}};
            weights.function = [=](const Tensors& x) -> Tensors { return {three_weights(x[0], options)}; };
            weights.oracle = [=](const Tensors& x) -> Tensors { return {inverse_distance_weights(x[0], power)}; };
            weights.step = 1e-4;
            test::check_gradients(weights, device());

            GradientCase tested{
                "three_interpolate",
                {normal_tensor({batches.of_rows.rows(), 5}, 16), normal_tensor({batches.of_rows.rows(), 3}, 17),
                 normal_tensor({batches.of_queries.rows(), 3}, 18)},
                {},
                {}};
            tested.function = [=](const Tensors& x) -> Tensors {
                return {three_interpolate(x[0], {x[1], batches.of_rows}, {x[2], batches.of_queries}, 3, options)};
            };
            tested.oracle = [=](const Tensors& x) -> Tensors {
                const torch::Tensor near = slow_knn(x[1].detach(), x[2].detach(), batches, 3);
                const torch::Tensor squares = (named_rows(x[1], near, batches) - x[2].unsqueeze(1)).square().sum(2);
                const torch::Tensor w = inverse_distance_weights(squares, power).unsqueeze(1);
                return {torch::bmm(w, named_rows(x[0], near, batches)).squeeze(1)};
            };
            tested.step = 0;  // where the third neighbour becomes the fourth, the sum jumps
            test::check_gradients(tested, device());
        }
}

TEST_P(LearnFunctions, KernelWeightsAreTheirFormula) {
    using ops::KernelWeights;
    for (const Batches& batches : batches_of_functions())
        for (const auto shape : {KernelWeights::Shape::trilinear, KernelWeights::Shape::gaussian})
            for (const auto normalise :
                 {KernelWeights::Normalise::none, KernelWeights::Normalise::sum, KernelWeights::Normalise::count}) {
                const torch::Tensor indices = some_neighbours(batches, 4, 19);
                const KernelWeights options{.shape = shape, .width = 1.5f, .normalise = normalise};
                GradientCase tested{"kernel_weights",
                                    {normal_tensor({batches.of_rows.rows(), 3}, 20),
                                     normal_tensor({batches.of_queries.rows(), 3}, 21), normal_tensor({3, 3}, 22)},
                                    {},
                                    {}};
                tested.function = [=](const Tensors& x) -> Tensors {
                    return {kernel_weights({x[0], batches.of_rows}, {x[1], batches.of_queries},
                                           indices.to(x[0].device()), x[2], options)};
                };
                tested.oracle = [=](const Tensors& x) -> Tensors {
                    const torch::Tensor d = (named_rows(x[0], indices, batches) - x[1].unsqueeze(1)).unsqueeze(1) -
                                            x[2].view({1, 3, 1, 3});  // [m, q, k, 3]
                    torch::Tensor w = shape == KernelWeights::Shape::trilinear
                                          ? (1 - d.abs() / 1.5).clamp_min(0).prod(3)
                                          : torch::exp(-d.square().sum(3) / (2 * 1.5 * 1.5));
                    w = w * present(indices).unsqueeze(1).to(torch::kFloat64);
                    torch::Tensor by = torch::ones({1, 1, 1}, torch::kFloat64);
                    if (normalise == KernelWeights::Normalise::sum) by = w.sum(2, true);
                    if (normalise == KernelWeights::Normalise::count) by = (w > 0).to(torch::kFloat64).sum(2, true);
                    return {w / torch::where(by > 0, by, torch::ones_like(by))};
                };
                tested.step = shape == KernelWeights::Shape::gaussian ? 1e-3 : 0;
                tested.tolerance = 5e-5;
                test::check_gradients(tested, device());
            }
}

TEST_P(LearnFunctions, BilateralWeightsAreTheirFormula) {
    for (const Batches& batches : batches_of_functions()) {
        const torch::Tensor indices = some_neighbours(batches, 4, 23);
        const torch::Tensor rows = normal_tensor({batches.of_rows.rows(), 5}, 24);
        GradientCase similarity{
            "bilateral_similarity", {rows, normal_tensor({batches.of_queries.rows(), 5}, 25)}, {}, {}};
        similarity.function = [=](const Tensors& x) -> Tensors {
            return {bilateral_similarity({x[0], batches.of_rows}, {x[1], batches.of_queries}, indices.to(x[0].device()),
                                         0.2f)};
        };
        similarity.oracle = [=](const Tensors& x) -> Tensors {
            const torch::Tensor d = (named_rows(x[0], indices, batches) - x[1].unsqueeze(1)).square().sum(2);
            return {torch::exp(-static_cast<double>(0.2f) * d) * present(indices).to(torch::kFloat64)};
        };
        test::check_gradients(similarity, device());

        const auto positive = [&](uint64_t seed) {
            return normal_tensor({batches.of_queries.rows(), 4, 5}, seed).abs() + 0.1;
        };
        GradientCase combine{"bilateral_combine", {rows, positive(26), positive(27)}, {}, {}};
        combine.function = [=](const Tensors& x) -> Tensors {
            return {bilateral_combine({x[0], batches.of_rows}, {indices.to(x[0].device()), batches.of_queries}, x[1],
                                      x[2], 1e-6f)};
        };
        combine.oracle = [=](const Tensors& x) -> Tensors {
            const torch::Tensor w = x[1] * x[2] * present(indices).unsqueeze(2).to(torch::kFloat64);
            return {(w * named_rows(x[0], indices, batches)).sum(1) / w.sum(1).clamp_min(1e-6)};
        };
        test::check_gradients(combine, device());
    }
}

TEST_P(LearnFunctions, SoftProjectIsASoftmaxOverNeighbours) {
    for (const Batches& batches : batches_of_functions()) {
        const torch::Tensor indices = some_neighbours(batches, 4, 28);
        const torch::Tensor points = normal_tensor({batches.of_rows.rows(), 3}, 29);
        GradientCase tested{
            "soft_project", {normal_tensor({batches.of_queries.rows(), 3}, 30), torch::full({1}, 1.3f)}, {}, {}};
        tested.function = [=](const Tensors& x) -> Tensors {
            const SoftProjection found =
                soft_project({points.to(x[0].device()), batches.of_rows}, {x[0], batches.of_queries},
                             indices.to(x[0].device()), x[1], 1e-2f);
            return {found.projected, found.weights};
        };
        tested.oracle = [=](const Tensors& x) -> Tensors {
            const torch::Tensor near = named_rows(points.to(torch::kFloat64), indices, batches);
            const torch::Tensor d = (near - x[0].unsqueeze(1)).square().sum(2);
            torch::Tensor w = torch::exp(-d / x[1].square()) * present(indices).to(torch::kFloat64);
            const torch::Tensor sum = w.sum(1, true);
            w = w / torch::where(sum > 0, sum, torch::ones_like(sum));
            return {(w.unsqueeze(2) * near).sum(1), w};
        };
        test::check_gradients(tested, device());

        // The points get none, and weights alone are enough for one.
        const torch::Tensor wanted = points.to(device()).set_requires_grad(true);
        const torch::Tensor queries = tested.inputs[0].to(device()).clone().set_requires_grad(true);
        soft_project({wanted, batches.of_rows}, {queries, batches.of_queries}, indices.to(device()),
                     tested.inputs[1].to(device()), 1e-2f)
            .weights.square()
            .sum()
            .backward();
        EXPECT_FALSE(wanted.grad().defined());
        EXPECT_GT(queries.grad().abs().max().item<float>(), 0);
    }
}

TEST_P(LearnFunctions, TheSlopeOfADistanceOfZeroIsZero) {
    const Batch batch = Batch::dense(2, 6);
    const torch::Tensor points = normal_tensor({12, 3}, 31).to(device());
    const auto expect_zero = [&](const char* name, const auto& distance) {
        const torch::Tensor a = points.clone().set_requires_grad(true), b = points.clone().set_requires_grad(true);
        torch::Tensor found = distance(Clouds{a, batch}, Clouds{b, batch});
        EXPECT_EQ(found.abs().max().template item<float>(), 0) << name;
        found.sum().backward();
        EXPECT_TRUE(torch::equal(a.grad(), torch::zeros_like(a))) << name;
        EXPECT_TRUE(torch::equal(b.grad(), torch::zeros_like(b))) << name;
    };
    expect_zero("chamfer", [](const Clouds& a, const Clouds& b) {
        const ChamferMeans means = chamfer(a, b, DistanceNorm::euclidean);
        return means.a_to_b + means.b_to_a;
    });
    expect_zero("emd", [](const Clouds& a, const Clouds& b) { return emd(a, b).cost; });
    expect_zero("knn", [](const Clouds& a, const Clouds& b) { return knn(a, b, 1).distances_sq; });

    const Batch ones = Batch::dense(12, 1);  // the plan of single points is all on the pair
    const torch::Tensor a = points.clone().set_requires_grad(true);
    sinkhorn({a, ones}, {points, ones}).dual.sum().backward();
    EXPECT_TRUE(torch::equal(a.grad(), torch::zeros_like(a)));
}

TEST_P(LearnFunctions, ANumberThatIsNotFiniteSpoilsItsCloud) {
    for (const Batch& batch : {Batch::dense(2, 6), Batch::ragged({0, 4, 12})})
        for (const float bad : {NAN, INFINITY})
            for (const bool is_in_a : {true, false}) {
                torch::Tensor a = normal_tensor({12, 3}, 32), b = normal_tensor({12, 3}, 33);
                (is_in_a ? a : b)[2][1] = bad;
                const auto expect_nan = [&](const char* name, const auto& distance) {
                    SCOPED_TRACE(name);
                    const torch::Tensor x = a.to(device()).clone().set_requires_grad(true),
                                        y = b.to(device()).clone().set_requires_grad(true);
                    const torch::Tensor found = distance(Clouds{x, batch}, Clouds{y, batch});
                    EXPECT_TRUE(std::isnan(found[0].template item<float>()));
                    EXPECT_TRUE(std::isfinite(found[1].template item<float>()));
                    found.sum().backward();
                    for (const torch::Tensor& gradient : {x.grad(), y.grad()}) {
                        EXPECT_TRUE(gradient.narrow(0, 0, batch.end(0)).isnan().any().item<bool>());
                        EXPECT_TRUE(gradient.narrow(0, batch.begin(1), batch.size(1)).isfinite().all().item<bool>());
                    }
                };
                for (const DistanceNorm norm : {DistanceNorm::squared, DistanceNorm::euclidean}) {
                    expect_nan("a to b", [&](const Clouds& x, const Clouds& y) { return chamfer(x, y, norm).a_to_b; });
                    expect_nan("b to a", [&](const Clouds& x, const Clouds& y) { return chamfer(x, y, norm).b_to_a; });
                }
                expect_nan("emd", [](const Clouds& x, const Clouds& y) { return emd(x, y).cost; });
                expect_nan("sinkhorn", [](const Clouds& x, const Clouds& y) { return sinkhorn(x, y).dual; });
            }
}

TEST_P(LearnFunctions, AQueryThatIsNotFiniteGetsNan) {
    const Batches batches = {Batch::dense(2, 6), Batch::dense(2, 3)};
    const torch::Tensor points = normal_tensor({12, 3}, 34).to(device());
    torch::Tensor queries = normal_tensor({6, 3}, 35).to(device());
    queries[4][0] = INFINITY;
    const torch::Tensor indices = torch::zeros({6, 2}, points.options().dtype(torch::kInt32));
    const Clouds from{points, batches.of_rows}, at{queries, batches.of_queries};
    const SoftProjection soft = soft_project(from, at, indices, torch::ones({1}, points.options()), 0.01f);
    for (const torch::Tensor& found :
         {three_interpolate(points, from, at), soft.projected, soft.weights,
          kernel_weights(from, at, indices, points.narrow(0, 0, 2), {.width = 1}).flatten(1)})
        for (int64_t row = 0; row < 6; ++row) EXPECT_EQ(found[row].isnan().all().item<bool>(), row == 4) << row;
}

TEST_P(LearnFunctions, AnInputThatWasChangedIsNoticed) {
    const Batch batch = Batch::single(5);
    const torch::Tensor a = normal_tensor({5, 3}, 36).to(device()).set_requires_grad(true);
    const torch::Tensor b = normal_tensor({5, 3}, 37).to(device());
    const torch::Tensor loss = chamfer({a, batch}, {b, batch}, DistanceNorm::squared).a_to_b.sum();
    b.add_(1);
    EXPECT_THROW(loss.backward(), std::exception);
}

TEST_P(LearnFunctions, EmptyCloudsAreNoTrouble) {
    const Batch none = Batch::dense(2, 0), some = Batch::ragged({0, 0, 3});
    const torch::Tensor nothing = torch::empty({0, 3}, torch::TensorOptions(device())).set_requires_grad(true);
    const torch::Tensor points = normal_tensor({3, 3}, 38).to(device()).set_requires_grad(true);
    const torch::Tensor no_indices = torch::empty({0, 4}, torch::TensorOptions(device()).dtype(torch::kInt32));
    EXPECT_EQ(group({points, some}, {no_indices, none}).sizes(), (torch::IntArrayRef{0, 4, 3}));
    const torch::Tensor loss = gather({points, some}, no_indices.select(1, 0), none).sum();
    loss.backward();
    EXPECT_TRUE(torch::equal(points.grad(), torch::zeros_like(points)));
    const ChamferMeans means = chamfer({points, some}, {nothing, none}, DistanceNorm::squared);
    EXPECT_TRUE(means.a_to_b.isnan().all().item<bool>() && means.b_to_a.isnan().all().item<bool>());
}

TEST_P(LearnFunctions, WrongTensorsAreNamed) {
    const Batch batch = Batch::single(4);
    const torch::Tensor points = torch::zeros({4, 3}, torch::TensorOptions(device()));
    const torch::Tensor indices = torch::zeros({4, 2}, points.options().dtype(torch::kInt32));
    const auto message = [](const auto& f) { return test::bad_argument_of([&] { f(); }); };
    const Clouds good{points, batch};
    EXPECT_EQ(message([&] {
                  chamfer(good, {points.to(torch::kFloat64), batch}, DistanceNorm::squared);
              }),
              "chamfer: b must be float32, got Double");
    EXPECT_EQ(message([&] { emd({points.to(torch::kHalf), batch}, good); }), "emd: a must be float32, got Half");
    EXPECT_EQ(message([&] {
                  group(good, {indices.to(torch::kInt64), batch});
              }),
              "group: indices must be int32, got Long");
    EXPECT_EQ(message([&] { sinkhorn(good, {torch::Tensor(), batch}); }), "sinkhorn: b is an undefined tensor");
    EXPECT_EQ(message([&] { gather(good, indices, batch); }), "gather: indices must have 1 dimensions, got 2");
    const torch::Tensor elsewhere = torch::empty({4, 3}, torch::TensorOptions(torch::kMeta));
    EXPECT_EQ(message([&] {
                  chamfer(good, {elsewhere, batch}, DistanceNorm::squared);
              }),
              "chamfer: b is on meta, others on " + points.device().str());
    EXPECT_EQ(message([&] {
                  chamfer({elsewhere, batch}, good, DistanceNorm::squared);
              }),
              "a tensor on meta: only CPU and CUDA are supported");
    message([&] { chamfer({points, Batch::single(3)}, good, DistanceNorm::squared); });  // the op's
    message([&] { knn(good, good, 0); });
    message([&] { interpolate(good, {indices, batch}, torch::zeros({4, 1, 3}, points.options())); });
}

/// Sizes of what torch allocates on this thread.
class AllocationLog : public c10::MemoryReportingInfoBase {
public:
    void reportMemoryUsage(void*, int64_t bytes, ReportedBytes, ReportedBytes, c10::Device) override {
        if (bytes > 0) sizes.push_back(bytes);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t at_least(int64_t bytes) const {
        return std::count_if(sizes.begin(), sizes.end(), [&](int64_t size) { return size >= bytes; });
    }
    std::vector<int64_t> sizes;
};

TEST_P(LearnFunctions, OpsWorkOnTheTensorsThemselves) {
    constexpr int64_t kPoints = 4096, kBytes = kPoints * 3 * sizeof(float);
    const Batch batch = Batch::single(kPoints), few = Batch::single(4);
    const torch::Tensor a = normal_tensor({kPoints, 3}, 39).to(device()).set_requires_grad(true),
                        b = normal_tensor({kPoints, 3}, 40).to(device()).set_requires_grad(true);
    const torch::Tensor indices = torch::zeros({4}, a.options().dtype(torch::kInt32));
    const auto log = std::make_shared<AllocationLog>();
    const auto large_ones_of = [&](const auto& f) {
        log->sizes.clear();
        const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, log);
        f();
        return log->at_least(kBytes);
    };
    torch::Tensor loss;
    EXPECT_EQ(large_ones_of([&] {
                  const ChamferMeans means = chamfer({a, batch}, {b, batch}, DistanceNorm::squared);
                  loss = (means.a_to_b + means.b_to_a).sum();
              }),
              0);
    EXPECT_GT(log->sizes.size(), 0u);
    EXPECT_EQ(large_ones_of([&] { gather({a, batch}, indices, few); }), 0);
    EXPECT_EQ(large_ones_of([&] { a.clone(); }), 1);  // a copy is seen
    EXPECT_EQ(large_ones_of([&] { gather({a.t().contiguous().t(), batch}, indices, few); }), 2);
    if (GetParam().type == DeviceType::cuda) return;        // the backward pass has a thread of its own there
    EXPECT_EQ(large_ones_of([&] { loss.backward(); }), 2);  // the two gradients
}

TEST(LearnStream, TheCpuHasTheDefaultOne) {
    EXPECT_EQ(current_stream(torch::zeros({1})).handle, nullptr);
}

}  // namespace
}  // namespace stipple::learn
