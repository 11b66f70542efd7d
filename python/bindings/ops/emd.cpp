// stipple.ops: earth mover's distances.

#include "stipple/ops/emd.h"

#include "python/bindings/ops/common.h"
#include "stipple/ops/emd_exact.h"
#include "stipple/ops/emd_transport.h"

namespace stipple::python {
namespace {

struct EmdResult {
    static constexpr auto name = py::detail::const_name("EmdResult");
    static constexpr const char* fields[] = {"cost", "lower_bound", "matching"};
};
struct EmdExactResult {
    static constexpr auto name = py::detail::const_name("EmdExactResult");
    static constexpr const char* fields[] = {"cost", "matching", "dual_a", "dual_b"};
};

Record<EmdResult> emd(const ArrayLike& a_, const ArrayLike& b_, std::string_view norm, float relative, float absolute,
                      const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::EmdOptions options{norm_of(norm), relative, absolute};
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    auto cost = call.make<float, 1>({a.form.clouds()}), lower_bound = call.make<float, 1>({a.form.clouds()});
    auto matching = call.make<int32_t, 1>({a.form.rows()});
    call.run([&](Stream stream) {
        ops::emd(a.clouds, b.clouds, {cost.view(), lower_bound.view(), matching.view()}, options, stream);
    });
    return record<EmdResult>(call.give_clouds(std::move(cost), a.form),
                             call.give_clouds(std::move(lower_bound), a.form),
                             call.give_rows(std::move(matching), a.form));
}

Record<PairGradients> emd_backward(const ArrayLike& a_, const ArrayLike& b_, const ArrayLike& matching_,
                                   const ArrayLike& dL_dcost_, std::string_view norm_, const OffsetsLike& a_offsets,
                                   const OffsetsLike& b_offsets) {
    const ops::DistanceNorm norm = norm_of(norm_);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    const auto matching = call.rows<int32_t, 1>(matching_, "matching", a.form);
    const auto dL_dcost = call.per_cloud<float, 1>(dL_dcost_, "dL_dcost", a.form);
    auto dL_da = call.make<float, 2>({a.form.rows(), 3}), dL_db = call.make<float, 2>({b.form.rows(), 3});
    call.run([&](Stream stream) {
        ops::emd_backward(a.clouds, b.clouds, norm, matching, dL_dcost, dL_da.view(), dL_db.view(), stream);
    });
    return record<PairGradients>(call.give_rows(std::move(dL_da), a.form), call.give_rows(std::move(dL_db), b.form));
}

Record<EmdExactResult> emd_exact(const ArrayLike& a_, const ArrayLike& b_, std::string_view norm_,
                                 const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::DistanceNorm norm = norm_of(norm_);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    auto cost = call.make<double, 1>({a.form.clouds()});
    auto matching = call.make<int32_t, 1>({a.form.rows()});
    auto dual_a = call.make<double, 1>({a.form.rows()}), dual_b = call.make<double, 1>({b.form.rows()});
    call.run([&](Stream) {
        ops::emd_exact(a.clouds, b.clouds, {cost.view(), matching.view(), dual_a.view(), dual_b.view()}, norm);
    });
    return record<EmdExactResult>(call.give_clouds(std::move(cost), a.form),
                                  call.give_rows(std::move(matching), a.form),
                                  call.give_rows(std::move(dual_a), a.form), call.give_rows(std::move(dual_b), b.form));
}

/// A plan lives on the host whatever the points' device; its parts are numpy arrays, copied when they are asked for.
template <class T, class Get>
py::object column(int64_t count, Get get) {
    Array<T, 1> made({count});
    for (int64_t i = 0; i < count; ++i) made.data()[i] = get(static_cast<size_t>(i));
    const Call call;
    return call.give(std::move(made));
}

ops::EmdPlan emd_transport(const ArrayLike& a_, const ArrayLike& b_, std::string_view norm_,
                           const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::DistanceNorm norm = norm_of(norm_);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    ops::EmdPlan plan;
    call.run([&](Stream) { plan = ops::emd_transport(a.clouds, b.clouds, norm); });
    return plan;
}

ops::EmdPlan emd_transport_auction(const ArrayLike& a_, const ArrayLike& b_, std::string_view norm, float relative,
                                   float absolute, const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::EmdOptions options{norm_of(norm), relative, absolute};
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    ops::EmdPlan plan;
    call.run([&](Stream stream) { plan = ops::emd_transport_auction(a.clouds, b.clouds, options, stream); });
    return plan;
}

Record<PairGradients> emd_transport_backward(const ArrayLike& a_, const ArrayLike& b_, const ops::EmdPlan& plan,
                                             const ArrayLike& dL_dcost_, std::string_view norm_,
                                             const OffsetsLike& a_offsets, const OffsetsLike& b_offsets) {
    const ops::DistanceNorm norm = norm_of(norm_);
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    const auto dL_dcost = call.per_cloud<float, 1>(dL_dcost_, "dL_dcost", a.form);
    auto dL_da = call.make<float, 2>({a.form.rows(), 3}), dL_db = call.make<float, 2>({b.form.rows(), 3});
    call.run([&](Stream) {
        ops::emd_transport_backward(a.clouds, b.clouds, norm, plan, dL_dcost, dL_da.view(), dL_db.view());
    });
    return record<PairGradients>(call.give_rows(std::move(dL_da), a.form), call.give_rows(std::move(dL_db), b.form));
}

}  // namespace

void bind_emd(py::module_& ops) {
    add_record<EmdResult>(ops);
    add_record<EmdExactResult>(ops);
    const auto none = py::none();
    using Plan = ops::EmdPlan;
    py::class_<Plan>(ops, "EmdPlan", "What emd_transport found: how much mass goes from which point to which.")
        .def_property_readonly(
            "source",
            [](const Plan& p) { return column<int32_t>(p.flows.size(), [&](size_t i) { return p.flows[i].from; }); },
            "[flows] points of a, counted within their clouds.")
        .def_property_readonly(
            "target",
            [](const Plan& p) { return column<int32_t>(p.flows.size(), [&](size_t i) { return p.flows[i].to; }); },
            "[flows] points of b.")
        .def_property_readonly(
            "mass",
            [](const Plan& p) { return column<double>(p.flows.size(), [&](size_t i) { return p.flows[i].mass; }); },
            "[flows] of the cloud's 1.")
        .def_property_readonly(
            "offsets",
            [](const Plan& p) { return column<int64_t>(p.offsets.size(), [&](size_t i) { return p.offsets[i]; }); },
            "[clouds + 1] where a cloud's flows begin.")
        .def_property_readonly(
            "cost", [](const Plan& p) { return column<double>(p.cost.size(), [&](size_t i) { return p.cost[i]; }); },
            "[clouds] sum of mass times cost.")
        .def_property_readonly(
            "lower_bound",
            [](const Plan& p) {
                return column<double>(p.lower_bound.size(), [&](size_t i) { return p.lower_bound[i]; });
            },
            "[clouds] no plan costs less.");
    ops.def("emd", &emd, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("norm") = "euclidean",
            py::arg("relative") = 0.01f, py::arg("absolute") = 0.0f, py::arg("a_offsets") = none,
            py::arg("b_offsets") = none, doc::ops::emd);
    ops.def("emd_backward", &emd_backward, py::arg("a"), py::arg("b"), py::arg("matching"), py::arg("dL_dcost"),
            py::kw_only(), py::arg("norm") = "euclidean", py::arg("a_offsets") = none, py::arg("b_offsets") = none,
            doc::ops::emd_backward);
    ops.def("emd_exact", &emd_exact, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("norm") = "euclidean",
            py::arg("a_offsets") = none, py::arg("b_offsets") = none, doc::ops::emd_exact);
    ops.def("emd_transport", &emd_transport, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("norm") = "euclidean",
            py::arg("a_offsets") = none, py::arg("b_offsets") = none, doc::ops::emd_transport);
    ops.def("emd_transport_auction", &emd_transport_auction, py::arg("a"), py::arg("b"), py::kw_only(),
            py::arg("norm") = "euclidean", py::arg("relative") = 0.01f, py::arg("absolute") = 0.0f,
            py::arg("a_offsets") = none, py::arg("b_offsets") = none, doc::ops::emd_transport_auction);
    ops.def("emd_transport_backward", &emd_transport_backward, py::arg("a"), py::arg("b"), py::arg("plan"),
            py::arg("dL_dcost"), py::kw_only(), py::arg("norm") = "euclidean", py::arg("a_offsets") = none,
            py::arg("b_offsets") = none, doc::ops::emd_transport_backward);
}

}  // namespace stipple::python
