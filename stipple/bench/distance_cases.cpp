#include "stipple/bench/prepare.h"
#include "stipple/ops/chamfer.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd_exact.h"
#include "stipple/ops/emd_transport.h"
#include "stipple/ops/hausdorff.h"
#include "stipple/ops/sinkhorn.h"

namespace stipple::bench {
namespace {

std::shared_ptr<Array<float, 1>> ones(int64_t n, Device device) {
    Array<float, 1> values({n});
    for (float& value : values.span()) value = 1;
    return keep(values.to(device));
}

/// What chamfer writes for one direction.
struct Side {
    std::shared_ptr<Array<int32_t, 1>> nearest, used;
    std::shared_ptr<Array<float, 1>> distances_sq, mean;

    Side(int64_t clouds, int64_t rows, Device device)
        : nearest(room_for_indices(rows, device)),
          used(room_for_indices(clouds, device)),
          distances_sq(room_for_floats(rows, device)),
          mean(room_for_floats(clouds, device)) {}
    ops::ChamferSide out() const { return {nearest->view(), distances_sq->view(), mean->view(), used->view()}; }
    ops::ChamferSideGradient gradient(const Array<float, 1>& dL_dmean) const {
        return {dL_dmean.view(), std::as_const(*nearest).view(), std::as_const(*used).view()};
    }
};

/// Both ways, and the gradient for both clouds: a training step's share.
Case chamfer_case(int64_t clouds, int64_t n) {
    const int64_t rows = clouds * n;
    return {.op = "chamfer",
            .shape = fmt::format("{}, with gradient", shape_of(clouds, n)),
            .points = 2 * rows,
            .bytes = 2 * rows * (12 + 8 + 12 + 4 + 12),
            .prepare = [=](Device device) {
                const auto a = keep(wavy_tori(clouds, n, 1).to(device)), b = keep(wavy_tori(clouds, n, 2).to(device));
                const Side of_a(clouds, rows, device), of_b(clouds, rows, device);
                const auto dL_da = room_for_rows(rows, 3, device), dL_db = room_for_rows(rows, 3, device);
                const auto dL_dmean = ones(clouds, device);
                return [=] {
                    constexpr auto kNorm = ops::DistanceNorm::squared;
                    ops::chamfer(a->view(), b->view(), kNorm, of_a.out(), of_b.out());
                    ops::chamfer_backward(a->view(), b->view(), kNorm, of_a.gradient(*dL_dmean),
                                          of_b.gradient(*dL_dmean), dL_da->view(), dL_db->view());
                };
            }};
}

Case hausdorff_case(int64_t clouds, int64_t n) {
    return {.op = "hausdorff",
            .shape = shape_of(clouds, n),
            .points = 2 * clouds * n,
            .bytes = 2 * clouds * n * 12,
            .prepare = [=](Device device) {
                const auto a = keep(wavy_tori(clouds, n, 1).to(device)), b = keep(wavy_tori(clouds, n, 2).to(device));
                const auto distance = room_for_floats(clouds, device);
                const auto pair = room<int32_t, 2>({clouds, 2}, device);
                return
                    [=] { ops::hausdorff(a->view(), b->view(), ops::Direction::both, distance->view(), pair->view()); };
            }};
}

Case sinkhorn_case(int64_t clouds, int64_t n, int iterations) {
    const int64_t rows = clouds * n;
    return {.op = "sinkhorn",
            .shape = fmt::format("{}, {} iterations", shape_of(clouds, n), iterations),
            .points = 2 * rows,
            .bytes = 2 * rows * (12 + 4),
            .on_cpu = clouds == 1,  // 32 take 20 s there
            .prepare = [=](Device device) {
                const auto a = keep(wavy_tori(clouds, n, 1).to(device)), b = keep(wavy_tori(clouds, n, 2).to(device));
                const auto cost = room_for_floats(clouds, device), dual = room_for_floats(clouds, device);
                const auto error = room_for_floats(clouds, device);
                const auto done = room_for_indices(clouds, device), converged = room_for_indices(clouds, device);
                const auto f = room_for_floats(rows, device), g = room_for_floats(rows, device);
                ops::SinkhornOptions options;
                options.epsilon = 0.005f;
                options.max_iterations = iterations;
                options.tolerance = 0;
                return [=] {
                    ops::sinkhorn(a->view(), b->view(), {}, {}, options,
                                  {cost->view(), dual->view(), error->view(), done->view(), converged->view(),
                                   f->view(), g->view()});
                };
            }};
}

/// By auction, to a gap of 1 %.
Case emd_case(int64_t clouds, int64_t n) {
    const int64_t rows = clouds * n;
    return {.op = "emd",
            .shape = fmt::format("{}, gap 1 %", shape_of(clouds, n)),
            .points = 2 * rows,
            .bytes = 2 * rows * 12 + 4 * rows,
            .prepare = [=](Device device) {
                const auto a = keep(wavy_tori(clouds, n, 1).to(device)), b = keep(wavy_tori(clouds, n, 2).to(device));
                const auto cost = room_for_floats(clouds, device), bound = room_for_floats(clouds, device);
                const auto matching = room_for_indices(rows, device);
                return [=] { ops::emd(a->view(), b->view(), {cost->view(), bound->view(), matching->view()}); };
            }};
}

Case emd_exact_case(int64_t n) {
    return {.op = "emd_exact",
            .shape = shape_of(1, n),
            .points = 2 * n,
            .bytes = 2 * n * 12 + 4 * n,
            .on_cuda = false,
            .prepare = [=](Device) {
                const auto a = keep(wavy_torus(n, 1)), b = keep(wavy_torus(n, 2));
                const auto cost = room<double, 1>({1}, {});
                const auto matching = room_for_indices(n, {});
                return [=] { ops::emd_exact(a->view(), b->view(), {cost->view(), matching->view(), {}, {}}); };
            }};
}

Case emd_transport_case(int64_t n, int64_t m) {
    return {.op = "emd_transport",
            .shape = fmt::format("{} to {}", n, m),
            .points = n + m,
            .bytes = (n + m) * 12,
            .on_cuda = false,
            .prepare = [=](Device) {
                const auto a = keep(wavy_torus(n, 1)), b = keep(wavy_torus(m, 2));
                return [=] { ops::emd_transport(a->view(), b->view()); };
            }};
}

/// Unequal sizes by auction.
Case emd_copies_case(int64_t n, int64_t m) {
    return {.op = "emd_transport",
            .shape = fmt::format("{} x {}, gap 1 %", n, m),
            .points = n + m,
            .bytes = (n + m) * 12,
            .prepare = [=](Device device) {
                const auto a = keep(wavy_torus(n, 1).to(device)), b = keep(wavy_torus(m, 2).to(device));
                return [=] { ops::emd_transport_auction(a->view(), b->view()); };
            }};
}

}  // namespace

std::vector<Case> distance_cases(Size size) {
    if (size == Size::tiny)
        return {chamfer_case(2, 40), hausdorff_case(2, 40),    sinkhorn_case(1, 20, 2), emd_case(2, 12),
                emd_exact_case(8),   emd_transport_case(6, 4), emd_copies_case(6, 4)};
    return {chamfer_case(32, 2048),
            chamfer_case(32, 8192),
            chamfer_case(1, 100'000),
            chamfer_case(1, 1'000'000),
            hausdorff_case(1, 100'000),
            sinkhorn_case(1, 2048, 100),
            sinkhorn_case(32, 2048, 100),
            emd_case(32, 2048),
            emd_case(1, 8192),
            emd_exact_case(2048),
            emd_transport_case(1024, 768),
            emd_copies_case(512, 2048)};
}

}  // namespace stipple::bench
