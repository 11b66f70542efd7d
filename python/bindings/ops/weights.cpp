// stipple.ops: weights of neighbours, by distance, kernel, softmax and features.

#include "python/bindings/ops/common.h"
#include "stipple/ops/bilateral_weights.h"
#include "stipple/ops/kernel_interpolate.h"
#include "stipple/ops/soft_project.h"
#include "stipple/ops/three_interpolate.h"

namespace stipple::python {
namespace {

struct KernelGradients {
    static constexpr auto name = py::detail::const_name("KernelGradients");
    static constexpr const char* fields[] = {"dL_doffsets", "dL_dkernel"};
};
struct BilateralSum {
    static constexpr auto name = py::detail::const_name("BilateralSum");
    static constexpr const char* fields[] = {"out", "denominator"};
};
struct BilateralGradients {
    static constexpr auto name = py::detail::const_name("BilateralGradients");
    static constexpr const char* fields[] = {"dL_dth", "dL_dpsi", "dL_drows"};
};
struct SoftProjection {
    static constexpr auto name = py::detail::const_name("SoftProjection");
    static constexpr const char* fields[] = {"weights", "projected"};
};
struct SoftProjectionGradients {
    static constexpr auto name = py::detail::const_name("SoftProjectionGradients");
    static constexpr const char* fields[] = {"dL_dqueries", "dL_dtemperature"};
};

/// Two clouds, and the neighbours in the first of each point of the second.
struct Queried {
    CloudsArgument points, queries;
    ops::Neighbours neighbours;

    Queried(Call& call, const py::object& points_, const char* name, const py::object& queries_,
            const py::object& neighbours_, const py::object& points_offsets, const py::object& queries_offsets,
            int64_t columns)
        : points(call.clouds(points_, name, points_offsets, columns)),
          queries(call.clouds(queries_, "queries", queries_offsets, columns)),
          neighbours(call.rows<int32_t, 2>(neighbours_, "neighbours", queries.form), queries.form.batch) {}
    int64_t m() const { return queries.form.rows(); }
    int64_t k() const { return neighbours.k(); }
};

ops::InverseDistance inverse_distance(std::string_view power, float epsilon) {
    using Power = ops::InverseDistance::Power;
    constexpr Word<Power> kPowers[] = {{"squared", Power::squared}, {"plain", Power::plain}};
    return {choice(power, "power", kPowers), epsilon};
}

ArrayResult three_weights(const ArrayLike& distances_sq_, std::string_view power, float epsilon) {
    const ops::InverseDistance options = inverse_distance(power, epsilon);
    Call call;
    const ArrayInfo shape = call.any(distances_sq_, "distances_sq");
    const auto distances_sq = call.folded<float, 2>(distances_sq_, "distances_sq");
    auto weights = call.make<float, 2>({distances_sq.size(0), distances_sq.size(1)});
    call.run([&](Stream stream) { ops::three_weights(distances_sq, options, weights.view(), stream); });
    return call.give_as_shape(std::move(weights), shape);
}

ArrayResult three_weights_backward(const ArrayLike& distances_sq_, const ArrayLike& dL_dweights_,
                                   std::string_view power, float epsilon) {
    const ops::InverseDistance options = inverse_distance(power, epsilon);
    Call call;
    const ArrayInfo shape = call.any(distances_sq_, "distances_sq");
    const auto distances_sq = call.folded<float, 2>(distances_sq_, "distances_sq");
    const auto dL_dweights = call.folded<float, 2>(dL_dweights_, "dL_dweights");
    auto gradient = call.make<float, 2>({distances_sq.size(0), distances_sq.size(1)});
    call.run([&](Stream stream) {
        ops::three_weights_backward(distances_sq, options, dL_dweights, gradient.view(), stream);
    });
    return call.give_as_shape(std::move(gradient), shape);
}

py::object kernel_lattice(int64_t side, float spacing) {
    Array<float, 2> lattice = without_gil([&] { return ops::kernel_lattice(side, spacing); });
    const Call call;  // without arguments: numpy
    return call.give(std::move(lattice));
}

ops::KernelWeights kernel_options(std::string_view shape, float width, std::string_view normalise) {
    using Shape = ops::KernelWeights::Shape;
    using Normalise = ops::KernelWeights::Normalise;
    constexpr Word<Shape> kShapes[] = {{"trilinear", Shape::trilinear}, {"gaussian", Shape::gaussian}};
    constexpr Word<Normalise> kNormalise[] = {
        {"none", Normalise::none}, {"sum", Normalise::sum}, {"count", Normalise::count}};
    return {choice(shape, "shape", kShapes), width, choice(normalise, "normalise", kNormalise)};
}

ArrayResult kernel_weights(const ArrayLike& points_, const ArrayLike& queries_, const ArrayLike& neighbours_,
                           const ArrayLike& kernel_, std::string_view shape, float width, std::string_view normalise,
                           const OffsetsLike& points_offsets, const OffsetsLike& queries_offsets) {
    const ops::KernelWeights options = kernel_options(shape, width, normalise);
    Call call;
    const Queried in(call, points_, "points", queries_, neighbours_, points_offsets, queries_offsets, 3);
    const auto kernel = call.array<float, 2>(kernel_, "kernel");
    auto weights = call.make<float, 3>({in.m(), kernel.size(0), in.k()});
    call.run([&](Stream stream) {
        ops::kernel_weights(in.points.clouds, in.queries.clouds, in.neighbours, kernel, options, weights.view(),
                            stream);
    });
    return call.give_rows(std::move(weights), in.queries.form);
}

Record<KernelGradients> kernel_weights_backward(const ArrayLike& points_, const ArrayLike& queries_,
                                                const ArrayLike& neighbours_, const ArrayLike& kernel_,
                                                const ArrayLike& dL_dweights_, std::string_view shape, float width,
                                                std::string_view normalise, const OffsetsLike& points_offsets,
                                                const OffsetsLike& queries_offsets) {
    const ops::KernelWeights options = kernel_options(shape, width, normalise);
    Call call;
    const Queried in(call, points_, "points", queries_, neighbours_, points_offsets, queries_offsets, 3);
    const auto kernel = call.array<float, 2>(kernel_, "kernel");
    const auto dL_dweights = call.rows<float, 3>(dL_dweights_, "dL_dweights", in.queries.form);
    auto dL_doffsets = call.make<float, 3>({in.m(), in.k(), 3});
    auto dL_dkernel = call.make<float, 2>({kernel.size(0), 3});
    call.run([&](Stream stream) {
        ops::kernel_weights_backward(in.points.clouds, in.queries.clouds, in.neighbours, kernel, options, dL_dweights,
                                     dL_doffsets.view(), dL_dkernel.view(), stream);
    });
    return record<KernelGradients>(call.give_rows(std::move(dL_doffsets), in.queries.form),
                                   call.give(std::move(dL_dkernel)));
}

ArrayResult bilateral_similarity(const ArrayLike& rows_, const ArrayLike& queries_, const ArrayLike& neighbours_,
                                 float beta, const OffsetsLike& rows_offsets, const OffsetsLike& queries_offsets) {
    Call call;
    const Queried in(call, rows_, "rows", queries_, neighbours_, rows_offsets, queries_offsets, -1);
    auto similarity = call.make<float, 2>({in.m(), in.k()});
    call.run([&](Stream stream) {
        ops::bilateral_similarity(in.points.clouds, in.queries.clouds, in.neighbours, beta, similarity.view(), stream);
    });
    return call.give_rows(std::move(similarity), in.queries.form);
}

ArrayResult bilateral_similarity_backward(const ArrayLike& rows_, const ArrayLike& queries_,
                                          const ArrayLike& neighbours_, float beta, const ArrayLike& similarity_,
                                          const ArrayLike& dL_dsimilarity_, const OffsetsLike& rows_offsets,
                                          const OffsetsLike& queries_offsets) {
    Call call;
    const Queried in(call, rows_, "rows", queries_, neighbours_, rows_offsets, queries_offsets, -1);
    const auto similarity = call.rows<float, 2>(similarity_, "similarity", in.queries.form);
    const auto dL_dsimilarity = call.rows<float, 2>(dL_dsimilarity_, "dL_dsimilarity", in.queries.form);
    auto dL_doffsets = call.make<float, 3>({in.m(), in.k(), in.queries.clouds.dimension()});
    call.run([&](Stream stream) {
        ops::bilateral_similarity_backward(in.points.clouds, in.queries.clouds, in.neighbours, beta, similarity,
                                           dL_dsimilarity, dL_doffsets.view(), stream);
    });
    return call.give_rows(std::move(dL_doffsets), in.queries.form);
}

Record<BilateralSum> bilateral_combine(const ArrayLike& rows_, const ArrayLike& neighbours_, const ArrayLike& th_,
                                       const ArrayLike& psi_, float guard, const OffsetsLike& rows_offsets,
                                       const OffsetsLike& neighbours_offsets) {
    Call call;
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const auto th = call.rows<float, 3>(th_, "th", neighbours.form);
    const auto psi = call.rows<float, 3>(psi_, "psi", neighbours.form);
    auto out = call.make<float, 2>({neighbours.form.rows(), rows.clouds.dimension()});
    auto denominator = call.make<float, 2>({neighbours.form.rows(), rows.clouds.dimension()});
    call.run([&](Stream stream) {
        ops::bilateral_combine(rows.clouds, neighbours.neighbours, th, psi, guard, out.view(), denominator.view(),
                               stream);
    });
    return record<BilateralSum>(call.give_rows(std::move(out), neighbours.form),
                                call.give_rows(std::move(denominator), neighbours.form));
}

Record<BilateralGradients> bilateral_combine_backward(const ArrayLike& rows_, const ArrayLike& neighbours_,
                                                      const py::object& inverse_, const ArrayLike& th_,
                                                      const ArrayLike& psi_, float guard, const ArrayLike& out_,
                                                      const ArrayLike& denominator_, const ArrayLike& dL_dout_,
                                                      const OffsetsLike& rows_offsets,
                                                      const OffsetsLike& neighbours_offsets) {
    Call call;
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const BatchForm& form = neighbours.form;
    const ops::InvertedIndex inverse = inverse_of(call, inverse_);
    const auto th = call.rows<float, 3>(th_, "th", form), psi = call.rows<float, 3>(psi_, "psi", form);
    const auto out = call.rows<float, 2>(out_, "out", form);
    const auto denominator = call.rows<float, 2>(denominator_, "denominator", form);
    const auto dL_dout = call.rows<float, 2>(dL_dout_, "dL_dout", form);
    auto dL_dth = call.make<float, 3>(th.shape()), dL_dpsi = call.make<float, 3>(psi.shape());
    auto dL_drows = call.make<float, 2>({rows.form.rows(), rows.clouds.dimension()});
    call.run([&](Stream stream) {
        ops::bilateral_combine_backward(rows.clouds, neighbours.neighbours, inverse, th, psi, guard, out, denominator,
                                        dL_dout, dL_dth.view(), dL_dpsi.view(), dL_drows.view(), stream);
    });
    return record<BilateralGradients>(call.give_rows(std::move(dL_dth), form), call.give_rows(std::move(dL_dpsi), form),
                                      call.give_rows(std::move(dL_drows), rows.form));
}

Record<SoftProjection> soft_project(const ArrayLike& points_, const ArrayLike& queries_, const ArrayLike& neighbours_,
                                    const ArrayLike& temperature_, float min_sigma, const OffsetsLike& points_offsets,
                                    const OffsetsLike& queries_offsets) {
    Call call;
    const Queried in(call, points_, "points", queries_, neighbours_, points_offsets, queries_offsets, 3);
    const auto temperature = call.array<float, 1>(temperature_, "temperature");
    auto weights = call.make<float, 2>({in.m(), in.k()}), projected = call.make<float, 2>({in.m(), 3});
    call.run([&](Stream stream) {
        ops::soft_project(in.points.clouds, in.queries.clouds, in.neighbours, temperature, min_sigma, weights.view(),
                          projected.view(), stream);
    });
    return record<SoftProjection>(call.give_rows(std::move(weights), in.queries.form),
                                  call.give_rows(std::move(projected), in.queries.form));
}

Record<SoftProjectionGradients> soft_project_backward(const ArrayLike& points_, const ArrayLike& queries_,
                                                      const ArrayLike& neighbours_, const ArrayLike& temperature_,
                                                      float min_sigma, const ArrayLike& dL_dprojected_,
                                                      const ArrayLike& dL_dweights_, const OffsetsLike& points_offsets,
                                                      const OffsetsLike& queries_offsets) {
    Call call;
    const Queried in(call, points_, "points", queries_, neighbours_, points_offsets, queries_offsets, 3);
    const auto temperature = call.array<float, 1>(temperature_, "temperature");
    const auto dL_dprojected = call.rows_or_none<float, 2>(dL_dprojected_, "dL_dprojected", in.queries.form);
    const auto dL_dweights = call.rows_or_none<float, 2>(dL_dweights_, "dL_dweights", in.queries.form);
    auto dL_dqueries = call.make<float, 2>({in.m(), 3});
    auto dL_dtemperature = call.make<float, 1>({1});
    call.run([&](Stream stream) {
        ops::soft_project_backward(in.points.clouds, in.queries.clouds, in.neighbours, temperature, min_sigma,
                                   dL_dprojected, dL_dweights, dL_dqueries.view(), dL_dtemperature.view(), stream);
    });
    return record<SoftProjectionGradients>(call.give_rows(std::move(dL_dqueries), in.queries.form),
                                           call.give(std::move(dL_dtemperature)));
}

}  // namespace

void bind_weights(py::module_& ops) {
    add_record<KernelGradients>(ops);
    add_record<BilateralSum>(ops);
    add_record<BilateralGradients>(ops);
    add_record<SoftProjection>(ops);
    add_record<SoftProjectionGradients>(ops);
    const auto none = py::none();
    ops.def("three_weights", &three_weights, py::arg("distances_sq"), py::kw_only(), py::arg("power") = "squared",
            py::arg("epsilon") = 1e-8f, doc::ops::three_weights);
    ops.def("three_weights_backward", &three_weights_backward, py::arg("distances_sq"), py::arg("dL_dweights"),
            py::kw_only(), py::arg("power") = "squared", py::arg("epsilon") = 1e-8f, doc::ops::three_weights_backward);
    ops.def("kernel_lattice", &kernel_lattice, py::arg("side"), py::arg("spacing"), doc::ops::kernel_lattice);
    ops.def("kernel_weights", &kernel_weights, py::arg("points"), py::arg("queries"), py::arg("neighbours"),
            py::arg("kernel"), py::kw_only(), py::arg("shape") = "trilinear", py::arg("width") = 1.0f,
            py::arg("normalise") = "sum", py::arg("points_offsets") = none, py::arg("queries_offsets") = none,
            doc::ops::kernel_weights);
    ops.def("kernel_weights_backward", &kernel_weights_backward, py::arg("points"), py::arg("queries"),
            py::arg("neighbours"), py::arg("kernel"), py::arg("dL_dweights"), py::kw_only(),
            py::arg("shape") = "trilinear", py::arg("width") = 1.0f, py::arg("normalise") = "sum",
            py::arg("points_offsets") = none, py::arg("queries_offsets") = none, doc::ops::kernel_weights_backward);
    ops.def("bilateral_similarity", &bilateral_similarity, py::arg("rows"), py::arg("queries"), py::arg("neighbours"),
            py::arg("beta"), py::kw_only(), py::arg("rows_offsets") = none, py::arg("queries_offsets") = none,
            doc::ops::bilateral_similarity);
    ops.def("bilateral_similarity_backward", &bilateral_similarity_backward, py::arg("rows"), py::arg("queries"),
            py::arg("neighbours"), py::arg("beta"), py::arg("similarity"), py::arg("dL_dsimilarity"), py::kw_only(),
            py::arg("rows_offsets") = none, py::arg("queries_offsets") = none, doc::ops::bilateral_similarity_backward);
    ops.def("bilateral_combine", &bilateral_combine, py::arg("rows"), py::arg("neighbours"), py::arg("th"),
            py::arg("psi"), py::arg("guard"), py::kw_only(), py::arg("rows_offsets") = none,
            py::arg("neighbours_offsets") = none, doc::ops::bilateral_combine);
    ops.def("bilateral_combine_backward", &bilateral_combine_backward, py::arg("rows"), py::arg("neighbours"),
            py::arg("inverse"), py::arg("th"), py::arg("psi"), py::arg("guard"), py::arg("out"), py::arg("denominator"),
            py::arg("dL_dout"), py::kw_only(), py::arg("rows_offsets") = none, py::arg("neighbours_offsets") = none,
            doc::ops::bilateral_combine_backward);
    ops.def("soft_project", &soft_project, py::arg("points"), py::arg("queries"), py::arg("neighbours"),
            py::arg("temperature"), py::arg("min_sigma") = 0.0f, py::kw_only(), py::arg("points_offsets") = none,
            py::arg("queries_offsets") = none, doc::ops::soft_project);
    ops.def("soft_project_backward", &soft_project_backward, py::arg("points"), py::arg("queries"),
            py::arg("neighbours"), py::arg("temperature"), py::arg("min_sigma") = 0.0f, py::arg("dL_dprojected") = none,
            py::arg("dL_dweights") = none, py::kw_only(), py::arg("points_offsets") = none,
            py::arg("queries_offsets") = none, doc::ops::soft_project_backward);
}

}  // namespace stipple::python
