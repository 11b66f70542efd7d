#include "stipple/ops/group.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/grouping_cpu.h"

namespace stipple::ops {
namespace cpu {
namespace {

void group(const Clouds& rows, const Neighbours& neighbours, const float* centres, float* out) {
    const int64_t k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, k * c, [&](const Neighbourhood& near) {
        const float* centre = centres + near.row * c;
        for (int64_t j = 0; j < k; ++j) {
            float* __restrict to = out + (near.row * k + j) * c;
            const int64_t row = near.named(j);
            if (row < 0) {
                std::fill_n(to, c, 0.0f);
                continue;
            }
            const float* __restrict from = rows.rows.data() + row * rows.rows.stride(0);
            if (centres == nullptr) {
                for (int64_t l = 0; l < c; ++l) to[l] = from[l];
            } else {
                for (int64_t l = 0; l < c; ++l) to[l] = from[l] - centre[l];
            }
        }
    });
}

void group_backward_centres(const Neighbours& neighbours, const Batch& rows, View<const float, 3> dL_dout,
                            float* dL_dcentres) {
    const int64_t k = neighbours.k(), c = dL_dout.size(2);
    for_each_neighbourhood(neighbours, rows, k * c, [&](const Neighbourhood& near) {
        for (int64_t begin = 0; begin < c; begin += kColumns) {
            const int64_t columns = std::min(kColumns, c - begin);
            double sum[kColumns] = {};
            for (int64_t j = 0; j < k; ++j) {
                if (near.named(j) < 0) continue;
                const float* gradient = dL_dout.data() + (near.row * k + j) * c + begin;
                for (int64_t l = 0; l < columns; ++l) sum[l] += gradient[l];
            }
            float* to = dL_dcentres + near.row * c + begin;
            for (int64_t l = 0; l < columns; ++l) to[l] = static_cast<float>(-sum[l]);
        }
    });
}

}  // namespace
}  // namespace cpu

void group(const Clouds& rows, const Neighbours& neighbours, View<const float, 2> centres, View<float, 3> out,
           [[maybe_unused]] Stream stream) {
    const int64_t m = neighbours.rows(), k = neighbours.k(), c = rows.dimension();
    require_neighbours("group", neighbours, rows.batch, rows.device());
    const bool local = centres.shape() != View<const float, 2>().shape();
    if (local) require_output<const float, 2>("group", "centres", centres, {m, c}, rows.device());
    require_output<float, 3>("group", "out", out, {m, k, c}, rows.device());
    if (out.elements() == 0) return;
    const float* centre_rows = local ? centres.data() : nullptr;
    switch (rows.device().type) {
        case DeviceType::cpu: return cpu::group(rows, neighbours, centre_rows, out.data());
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::group, rows, neighbours, centre_rows, out, stream);
    }
}

void group_backward_centres(const Neighbours& neighbours, const Batch& rows, View<const float, 3> dL_dout,
                            View<float, 2> dL_dcentres, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "group_backward_centres";
    const int64_t m = neighbours.rows(), k = neighbours.k(), c = dL_dout.size(2);
    const Device device = neighbours.device();
    require_neighbours(kOp, neighbours, rows, device);
    require_output<const float, 3>(kOp, "dL_dout", dL_dout, {m, k, c}, device);
    require_output<float, 2>(kOp, "dL_dcentres", dL_dcentres, {m, c}, device);
    if (dL_dcentres.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu: return cpu::group_backward_centres(neighbours, rows, dL_dout, dL_dcentres.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::group_backward_centres, neighbours, rows, dL_dout, dL_dcentres, stream);
    }
}

}  // namespace stipple::ops
