// stipple.ops: distances between clouds by nearest points and by entropic transport.

#include "python/bindings/ops/common.h"
#include "stipple/ops/chamfer.h"
#include "stipple/ops/hausdorff.h"
#include "stipple/ops/sinkhorn.h"

namespace stipple::python {
namespace {

struct ChamferSideRecord {
    static constexpr auto name = py::detail::const_name("ChamferSide");
    static constexpr const char* fields[] = {"nearest", "distances_sq", "mean", "used"};
};
struct ChamferResult {
    static constexpr auto name = py::detail::const_name("ChamferResult");
    static constexpr const char* fields[] = {"a_to_b", "b_to_a"};
};
struct HausdorffResult {
    static constexpr auto name = py::detail::const_name("HausdorffResult");
    static constexpr const char* fields[] = {"distance", "pair"};
};
struct SinkhornRecord {
    static constexpr auto name = py::detail::const_name("SinkhornResult");
    static constexpr const char* fields[] = {"cost", "dual", "error", "iterations", "converged", "f", "g"};
};

/// The arrays of one direction, on their way to Python.
struct Side {
    Array<int32_t, 1> nearest;
    Array<float, 1> distances_sq, mean;
    Array<int32_t, 1> used;

    Side(Call& call, const BatchForm& form)
        : nearest(call.make<int32_t, 1>({form.rows()})),
          distances_sq(call.make<float, 1>({form.rows()})),
          mean(call.make<float, 1>({form.clouds()})),
          used(call.make<int32_t, 1>({form.clouds()})) {}
    ops::ChamferSide view() { return {nearest.view(), distances_sq.view(), mean.view(), used.view()}; }
    py::object give(const Call& call, const BatchForm& form) {
        return record<ChamferSideRecord>(
            call.give_rows(std::move(nearest), form), call.give_rows(std::move(distances_sq), form),
            call.give_clouds(std::move(mean), form), call.give_clouds(std::move(used), form));
    }
};

Record<ChamferResult> chamfer(const ArrayLike& a_, const ArrayLike& b_, std::string_view norm_,
                              const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::DistanceNorm norm = norm_of(norm_);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    Side a_to_b(call, a.form), b_to_a(call, b.form);
    call.run([&](Stream stream) { ops::chamfer(a.clouds, b.clouds, norm, a_to_b.view(), b_to_a.view(), stream); });
    return record<ChamferResult>(a_to_b.give(call, a.form), b_to_a.give(call, b.form));
}

/// (dL_dmean, nearest, used), or None: the direction has no part in the loss.
ops::ChamferSideGradient side_gradient(Call& call, const py::object& side, const char* name, const BatchForm& form) {
    if (side.is_none()) return {};
    const std::string text(name);
    return {call.per_cloud<float, 1>(part_of(side, name, 3, 0), (text + "[0], dL_dmean").c_str(), form),
            call.rows<int32_t, 1>(part_of(side, name, 3, 1), (text + "[1], nearest").c_str(), form),
            call.per_cloud<int32_t, 1>(part_of(side, name, 3, 2), (text + "[2], used").c_str(), form)};
}

Record<PairGradients> chamfer_backward(const ArrayLike& a_, const ArrayLike& b_, const py::object& a_to_b_,
                                       const py::object& b_to_a_, std::string_view norm_, const OffsetsLike& a_offsets,
                                       const OffsetsLike& b_offsets) {
    const ops::DistanceNorm norm = norm_of(norm_);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    const ops::ChamferSideGradient a_to_b = side_gradient(call, a_to_b_, "a_to_b", a.form);
    const ops::ChamferSideGradient b_to_a = side_gradient(call, b_to_a_, "b_to_a", b.form);
    auto dL_da = call.make<float, 2>({a.form.rows(), 3}), dL_db = call.make<float, 2>({b.form.rows(), 3});
    call.run([&](Stream stream) {
        ops::chamfer_backward(a.clouds, b.clouds, norm, a_to_b, b_to_a, dL_da.view(), dL_db.view(), stream);
    });
    return record<PairGradients>(call.give_rows(std::move(dL_da), a.form), call.give_rows(std::move(dL_db), b.form));
}

Record<HausdorffResult> hausdorff(const ArrayLike& a_, const ArrayLike& b_, std::string_view direction_,
                                  const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    constexpr Word<ops::Direction> kDirections[] = {
        {"a_to_b", ops::Direction::a_to_b}, {"b_to_a", ops::Direction::b_to_a}, {"both", ops::Direction::both}};
    const ops::Direction direction = choice(direction_, "direction", kDirections);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    auto distance = call.make<float, 1>({a.form.clouds()});
    auto pair = call.make<int32_t, 2>({a.form.clouds(), 2});
    call.run(
        [&](Stream stream) { ops::hausdorff(a.clouds, b.clouds, direction, distance.view(), pair.view(), stream); });
    return record<HausdorffResult>(call.give_clouds(std::move(distance), a.form),
                                   call.give_clouds(std::move(pair), a.form));
}

Record<PairGradients> hausdorff_backward(const ArrayLike& a_, const ArrayLike& b_, const ArrayLike& pair_,
                                         const ArrayLike& dL_ddistance_, const OffsetsLike& a_offsets,
                                         const OffsetsLike& b_offsets) {
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    const auto pair = call.per_cloud<int32_t, 2>(pair_, "pair", a.form);
    const auto dL_ddistance = call.per_cloud<float, 1>(dL_ddistance_, "dL_ddistance", a.form);
    auto dL_da = call.make<float, 2>({a.form.rows(), 3}), dL_db = call.make<float, 2>({b.form.rows(), 3});
    call.run([&](Stream stream) {
        ops::hausdorff_backward(a.clouds, b.clouds, pair, dL_ddistance, dL_da.view(), dL_db.view(), stream);
    });
    return record<PairGradients>(call.give_rows(std::move(dL_da), a.form), call.give_rows(std::move(dL_db), b.form));
}

Record<SinkhornRecord> sinkhorn(const ArrayLike& a_, const ArrayLike& b_, const ArrayLike& weights_a_,
                                const ArrayLike& weights_b_, std::string_view norm, float epsilon, float epsilon_start,
                                float epsilon_ratio, int max_iterations, float tolerance, int check_every,
                                const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::SinkhornOptions options{norm_of(norm),  epsilon,   epsilon_start, epsilon_ratio,
                                       max_iterations, tolerance, check_every};
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    const auto weights_a = call.rows_or_none<float, 1>(weights_a_, "weights_a", a.form);
    const auto weights_b = call.rows_or_none<float, 1>(weights_b_, "weights_b", b.form);
    const int64_t clouds = a.form.clouds();
    auto cost = call.make<float, 1>({clouds}), dual = call.make<float, 1>({clouds}),
         error = call.make<float, 1>({clouds});
    auto iterations = call.make<int32_t, 1>({clouds}), converged = call.make<int32_t, 1>({clouds});
    auto f = call.make<float, 1>({a.form.rows()}), g = call.make<float, 1>({b.form.rows()});
    call.run([&](Stream stream) {
        ops::sinkhorn(a.clouds, b.clouds, weights_a, weights_b, options,
                      {cost.view(), dual.view(), error.view(), iterations.view(), converged.view(), f.view(), g.view()},
                      stream);
    });
    return record<SinkhornRecord>(call.give_clouds(std::move(cost), a.form), call.give_clouds(std::move(dual), a.form),
                                  call.give_clouds(std::move(error), a.form),
                                  call.give_clouds(std::move(iterations), a.form),
                                  call.give_clouds(std::move(converged), a.form), call.give_rows(std::move(f), a.form),
                                  call.give_rows(std::move(g), b.form));
}

Record<PairGradients> sinkhorn_backward(const ArrayLike& a_, const ArrayLike& b_, const ArrayLike& f_,
                                        const ArrayLike& g_, const ArrayLike& dL_ddual_, const ArrayLike& weights_a_,
                                        const ArrayLike& weights_b_, std::string_view norm, float epsilon,
                                        const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    ops::SinkhornOptions options;
    options.norm = norm_of(norm);
    options.epsilon = epsilon;
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    const auto f = call.rows<float, 1>(f_, "f", a.form), g = call.rows<float, 1>(g_, "g", b.form);
    const auto dL_ddual = call.per_cloud<float, 1>(dL_ddual_, "dL_ddual", a.form);
    const auto weights_a = call.rows_or_none<float, 1>(weights_a_, "weights_a", a.form);
    const auto weights_b = call.rows_or_none<float, 1>(weights_b_, "weights_b", b.form);
    auto dL_da = call.make<float, 2>({a.form.rows(), 3}), dL_db = call.make<float, 2>({b.form.rows(), 3});
    call.run([&](Stream stream) {
        ops::sinkhorn_backward(a.clouds, b.clouds, weights_a, weights_b, options, f, g, dL_ddual, dL_da.view(),
                               dL_db.view(), stream);
    });
    return record<PairGradients>(call.give_rows(std::move(dL_da), a.form), call.give_rows(std::move(dL_db), b.form));
}

}  // namespace

void bind_distance(py::module_& ops) {
    add_record<ChamferSideRecord>(ops);
    add_record<ChamferResult>(ops);
    add_record<HausdorffResult>(ops);
    add_record<SinkhornRecord>(ops);
    const auto none = py::none();
    const ops::SinkhornOptions defaults;
    ops.def("chamfer", &chamfer, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("norm") = "squared",
            py::arg("a_offsets") = none, py::arg("b_offsets") = none, doc::ops::chamfer);
    ops.def("chamfer_backward", &chamfer_backward, py::arg("a"), py::arg("b"), py::arg("a_to_b"), py::arg("b_to_a"),
            py::kw_only(), py::arg("norm") = "squared", py::arg("a_offsets") = none, py::arg("b_offsets") = none,
            doc::ops::chamfer_backward);
    ops.def("hausdorff", &hausdorff, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("direction") = "both",
            py::arg("a_offsets") = none, py::arg("b_offsets") = none, doc::ops::hausdorff);
    ops.def("hausdorff_backward", &hausdorff_backward, py::arg("a"), py::arg("b"), py::arg("pair"),
            py::arg("dL_ddistance"), py::kw_only(), py::arg("a_offsets") = none, py::arg("b_offsets") = none,
            doc::ops::hausdorff_backward);
    ops.def("sinkhorn", &sinkhorn, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("weights_a") = none,
            py::arg("weights_b") = none, py::arg("norm") = "euclidean", py::arg("epsilon") = defaults.epsilon,
            py::arg("epsilon_start") = defaults.epsilon_start, py::arg("epsilon_ratio") = defaults.epsilon_ratio,
            py::arg("max_iterations") = defaults.max_iterations, py::arg("tolerance") = defaults.tolerance,
            py::arg("check_every") = defaults.check_every, py::arg("a_offsets") = none, py::arg("b_offsets") = none,
            doc::ops::sinkhorn);
    ops.def("sinkhorn_backward", &sinkhorn_backward, py::arg("a"), py::arg("b"), py::arg("f"), py::arg("g"),
            py::arg("dL_ddual"), py::kw_only(), py::arg("weights_a") = none, py::arg("weights_b") = none,
            py::arg("norm") = "euclidean", py::arg("epsilon") = defaults.epsilon, py::arg("a_offsets") = none,
            py::arg("b_offsets") = none, doc::ops::sinkhorn_backward);
}

}  // namespace stipple::python
