#include "stipple/ops/kernel_interpolate.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/grouping_cpu.h"
#include "stipple/ops/grouping/kernel_interpolate_term.h"

namespace stipple::ops {
namespace cpu {
namespace {

/// The offsets of a query's neighbours, one array an axis; missing ones are marked.
struct Offsets {
    std::vector<float> x, y, z, weight;
    std::vector<uint8_t> named;

    explicit Offsets(int64_t k) : x(k), y(k), z(k), weight(k), named(k) {}

    void load(const Neighbourhood& near, const Clouds& points, const float* query) {
        for (size_t j = 0; j < named.size(); ++j) {
            const int64_t row = near.named(static_cast<int64_t>(j));
            named[j] = row >= 0;
            const float* p = row >= 0 ? points.rows.data() + row * points.rows.stride(0) : query;
            x[j] = p[0] - query[0], y[j] = p[1] - query[1], z[j] = p[2] - query[2];
        }
    }

    /// T at a kernel point for every neighbour, 0 for missing ones.
    void weigh(const KernelTerm& term, const float* at) {
        if (term.shape == KernelWeights::Shape::trilinear) {  // apart: this loop becomes vector code
            for (size_t j = 0; j < named.size(); ++j)
                weight[j] = term.hat(x[j] - at[0]) * term.hat(y[j] - at[1]) * term.hat(z[j] - at[2]);
        } else {
            for (size_t j = 0; j < named.size(); ++j) weight[j] = term.weight(x[j] - at[0], y[j] - at[1], z[j] - at[2]);
        }
        for (size_t j = 0; j < named.size(); ++j) weight[j] = named[j] ? weight[j] : 0;
    }

    KernelPoint normaliser(const KernelWeights& options, const float* dL_dweights) const {
        double sum = 0, gradient_sum = 0;
        int64_t count = 0;
        for (size_t j = 0; j < named.size(); ++j) {
            sum += weight[j];
            count += weight[j] != 0;
        }
        for (size_t j = 0; j < named.size() && dL_dweights != nullptr; ++j)
            if (weight[j] != 0) gradient_sum += static_cast<double>(weight[j]) * dL_dweights[j];
        return {options.normalise, sum, static_cast<double>(count), gradient_sum};
    }
};

void kernel_weights(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                    View<const float, 2> kernel, const KernelWeights& options, float* weights) {
    const int64_t q = kernel.size(0), k = neighbours.k();
    const KernelTerm term(options);
    for_each_neighbourhood(
        neighbours, points.batch, 16 * q * k, [k] { return Offsets(k); },
        [&](const Neighbourhood& near, Offsets& offsets) {
            offsets.load(near, points, queries.rows.data() + near.row * queries.rows.stride(0));
            for (int64_t r = 0; r < q; ++r) {
                offsets.weigh(term, kernel.data() + 3 * r);
                const double inverse = offsets.normaliser(options, nullptr).inverse;
                float* to = weights + (near.row * q + r) * k;
                for (int64_t j = 0; j < k; ++j) to[j] = static_cast<float>(offsets.weight[j] * inverse);
            }
        });
}

/// Adds the gradient of one kernel point: to every neighbour's offset, and its sum (the kernel point's, but for the
/// sign) to `total`.
void add_gradient(const Offsets& offsets, const KernelTerm& term, const KernelWeights& options, const float* at,
                  const float* dL_dweights, double* dL_doffsets, double total[3]) {
    const KernelPoint point = offsets.normaliser(options, dL_dweights);
    for (size_t j = 0; j < offsets.named.size(); ++j) {
        if (!offsets.named[j] || offsets.weight[j] == 0) continue;
        double slope[3];
        term.gradient(offsets.x[j] - at[0], offsets.y[j] - at[1], offsets.z[j] - at[2], slope);
        const double scale = point.backward(dL_dweights[j]);
        for (int axis = 0; axis < 3; ++axis) {
            dL_doffsets[3 * j + axis] += scale * slope[axis];
            total[axis] += scale * slope[axis];
        }
    }
}

void kernel_weights_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                             View<const float, 2> kernel, const KernelWeights& options, const float* dL_dweights,
                             float* dL_doffsets, float* dL_dkernel) {
    const int64_t m = neighbours.rows(), q = kernel.size(0), k = neighbours.k();
    const KernelTerm term(options);
    const int64_t sums = dL_dkernel == nullptr ? 0 : (m + kQueriesPerSum - 1) / kQueriesPerSum;
    std::vector<double> partial(static_cast<size_t>(std::max<int64_t>(1, sums) * q * 3));
    struct Scratch {
        Offsets offsets;
        std::vector<double> gradients;
    };
    const auto backward = [&](const Neighbourhood& near, Scratch& scratch) {
        const auto& [offsets, gradients] = scratch;
        scratch.offsets.load(near, points, queries.rows.data() + near.row * queries.rows.stride(0));
        std::fill(scratch.gradients.begin(), scratch.gradients.end(), 0.0);
        for (int64_t r = 0; r < q; ++r) {
            scratch.offsets.weigh(term, kernel.data() + 3 * r);
            double total[3] = {};
            add_gradient(offsets, term, options, kernel.data() + 3 * r, dL_dweights + (near.row * q + r) * k,
                         scratch.gradients.data(), total);
            if (sums == 0) continue;
            for (int axis = 0; axis < 3; ++axis) partial[(near.row / kQueriesPerSum * q + r) * 3 + axis] += total[axis];
        }
        for (int64_t i = 0; i < 3 * k; ++i) dL_doffsets[near.row * 3 * k + i] = static_cast<float>(gradients[i]);
    };
    // Chunks of exactly one partial sum each, so that no two threads meet in one.
    for_each_neighbourhood(
        neighbours, points.batch, 32768 / kQueriesPerSum,
        [k] {
            return Scratch{Offsets(k), std::vector<double>(static_cast<size_t>(3 * k))};
        },
        backward);
    if (dL_dkernel == nullptr) return;
    for (int64_t i = 0; i < 3 * q; ++i) {
        double total = 0;
        for (int64_t sum = 0; sum < sums; ++sum) total += partial[sum * 3 * q + i];
        dL_dkernel[i] = static_cast<float>(-total);
    }
}

}  // namespace
}  // namespace cpu

namespace {

void require_arguments(const char* op, const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                       View<const float, 2> kernel, const KernelWeights& options) {
    require_clouds(op, "points", points);
    require_clouds(op, "queries", queries);
    require_same_batch(op, queries.batch, points.batch);
    require_device(op, "queries", points.device(), queries.device());
    require_neighbours(op, neighbours, points.batch, points.device());
    STIPPLE_REQUIRE(neighbours.rows() == queries.rows.size(0), "{}: {} rows of indices for {} queries", op,
                    neighbours.rows(), queries.rows.size(0));
    const int64_t q = kernel.size(0);
    STIPPLE_REQUIRE(q >= 1 && q <= kMostKernelPoints, "{}: {} kernel points; 1 to {} are possible", op, q,
                    kMostKernelPoints);
    STIPPLE_REQUIRE(queries.rows.size(0) <= (int64_t{1} << 33) / q && queries.rows.size(0) < int64_t{1} << 31,
                    "{}: {} queries with {} kernel points are too many", op, queries.rows.size(0), q);
    require_output<const float, 2>(op, "kernel", kernel, {q, 3}, points.device());
    STIPPLE_REQUIRE(options.width >= std::numeric_limits<float>::min() &&  // its inverse must be a float
                        options.width <= std::numeric_limits<float>::max(),
                    "{}: width must be positive and finite, got {}", op, options.width);
}

}  // namespace

Array<float, 2> kernel_lattice(int64_t side, float spacing) {
    STIPPLE_REQUIRE(side >= 1 && side * side * side <= kMostKernelPoints,
                    "kernel_lattice: a side of {} points; 1 to 10 are possible", side);
    STIPPLE_REQUIRE(spacing > 0 && spacing <= std::numeric_limits<float>::max(),
                    "kernel_lattice: spacing must be positive and finite, got {}", spacing);
    Array<float, 2> kernel({side * side * side, 3});
    const auto coordinate = [&](int64_t i) {
        return (static_cast<float>(i) - 0.5f * static_cast<float>(side - 1)) * spacing;
    };
    for (int64_t i = 0; i < side * side * side; ++i) {
        kernel.data()[3 * i] = coordinate(i % side);
        kernel.data()[3 * i + 1] = coordinate(i / side % side);
        kernel.data()[3 * i + 2] = coordinate(i / (side * side));
    }
    return kernel;
}

void kernel_weights(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                    View<const float, 2> kernel, const KernelWeights& options, View<float, 3> weights,
                    [[maybe_unused]] Stream stream) {
    require_arguments("kernel_weights", points, queries, neighbours, kernel, options);
    require_output<float, 3>("kernel_weights", "weights", weights, {neighbours.rows(), kernel.size(0), neighbours.k()},
                             points.device());
    if (weights.elements() == 0) return;
    switch (points.device().type) {
        case DeviceType::cpu: return cpu::kernel_weights(points, queries, neighbours, kernel, options, weights.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::kernel_weights, points, queries, neighbours, kernel, options, weights, stream);
    }
}

void kernel_weights_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                             View<const float, 2> kernel, const KernelWeights& options,
                             View<const float, 3> dL_dweights, View<float, 3> dL_doffsets, View<float, 2> dL_dkernel,
                             [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "kernel_weights_backward";
    const int64_t m = neighbours.rows(), q = kernel.size(0), k = neighbours.k();
    const Device device = points.device();
    require_arguments(kOp, points, queries, neighbours, kernel, options);
    require_output<const float, 3>(kOp, "dL_dweights", dL_dweights, {m, q, k}, device);
    require_output<float, 3>(kOp, "dL_doffsets", dL_doffsets, {m, k, 3}, device);
    const bool learned = dL_dkernel.elements() > 0;
    if (learned) require_output<float, 2>(kOp, "dL_dkernel", dL_dkernel, {q, 3}, device);
    if (m * k == 0 && !learned) return;
    switch (device.type) {
        case DeviceType::cpu:
            return cpu::kernel_weights_backward(points, queries, neighbours, kernel, options, dL_dweights.data(),
                                                dL_doffsets.data(), learned ? dL_dkernel.data() : nullptr);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::kernel_weights_backward, points, queries, neighbours, kernel, options, dL_dweights,
                              dL_doffsets, dL_dkernel, stream);
    }
}

}  // namespace stipple::ops
