// stipple.ops: rows by index, and sums of them.

#include "python/bindings/ops/common.h"
#include "stipple/ops/gather.h"
#include "stipple/ops/group.h"
#include "stipple/ops/interpolate.h"
#include "stipple/ops/scatter_add.h"

namespace stipple::python {
namespace {

struct InvertedIndexRecord {
    static constexpr auto name = py::detail::const_name("InvertedIndex");
    static constexpr const char* fields[] = {"ranges", "positions"};
};

ArrayResult gather(const ArrayLike& rows_, const ArrayLike& indices_, const OffsetsLike& rows_offsets,
                   const OffsetsLike& indices_offsets) {
    Call call;
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const NeighboursArgument indices = call.neighbours(indices_, "indices", indices_offsets, false);
    auto out = call.make<float, 2>({indices.form.rows(), rows.clouds.dimension()});
    call.run([&](Stream stream) { ops::gather(rows.clouds, indices.neighbours, out.view(), stream); });
    return call.give_rows(std::move(out), indices.form);
}

ArrayResult group(const ArrayLike& rows_, const ArrayLike& neighbours_, const ArrayLike& centres_,
                  const OffsetsLike& rows_offsets, const OffsetsLike& neighbours_offsets) {
    Call call;
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const auto centres = call.rows_or_none<float, 2>(centres_, "centres", neighbours.form);
    auto out = call.make<float, 3>({neighbours.form.rows(), neighbours.neighbours.k(), rows.clouds.dimension()});
    call.run([&](Stream stream) { ops::group(rows.clouds, neighbours.neighbours, centres, out.view(), stream); });
    return call.give_rows(std::move(out), neighbours.form);
}

ArrayResult group_backward_centres(const ArrayLike& neighbours_, const ArrayLike& rows_, const ArrayLike& dL_dout_,
                                   const OffsetsLike& neighbours_offsets, const OffsetsLike& rows_offsets) {
    Call call;
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const auto dL_dout = call.rows<float, 3>(dL_dout_, "dL_dout", neighbours.form);
    auto dL_dcentres = call.make<float, 2>({neighbours.form.rows(), dL_dout.size(2)});
    call.run([&](Stream stream) {
        ops::group_backward_centres(neighbours.neighbours, rows.form.batch, dL_dout, dL_dcentres.view(), stream);
    });
    return call.give_rows(std::move(dL_dcentres), neighbours.form);
}

Record<InvertedIndexRecord> invert_index(const ArrayLike& neighbours_, const ArrayLike& rows_,
                                         const OffsetsLike& neighbours_offsets, const OffsetsLike& rows_offsets) {
    Call call;
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    auto ranges = call.make<int32_t, 2>({rows.form.rows(), 2});
    auto positions = call.make<int32_t, 1>({neighbours.neighbours.entries()});
    call.run([&](Stream stream) {
        ops::invert_index(neighbours.neighbours, rows.form.batch, ranges.view(), positions.view(), stream);
    });
    return record<InvertedIndexRecord>(call.give(std::move(ranges)), call.give(std::move(positions)));
}

ArrayResult scatter_add(const ArrayLike& values_, const py::object& inverse_) {
    Call call;
    const auto values = call.folded<float, 2>(values_, "values");
    const ops::InvertedIndex inverse = inverse_of(call, inverse_);
    auto out = call.make<float, 2>({inverse.ranges.size(0), values.size(1)});
    call.run([&](Stream stream) { ops::scatter_add(values, inverse, out.view(), stream); });
    return call.give(std::move(out));
}

ArrayResult interpolate(const ArrayLike& rows_, const ArrayLike& neighbours_, const ArrayLike& weights_,
                        const OffsetsLike& rows_offsets, const OffsetsLike& neighbours_offsets) {
    Call call;
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const auto weights = call.rows<float, 3>(weights_, "weights", neighbours.form);
    auto out = call.make<float, 3>({neighbours.form.rows(), weights.size(1), rows.clouds.dimension()});
    call.run([&](Stream stream) { ops::interpolate(rows.clouds, neighbours.neighbours, weights, out.view(), stream); });
    return call.give_rows(std::move(out), neighbours.form);
}

ArrayResult interpolate_backward_rows(const ArrayLike& weights_, const py::object& inverse_,
                                      const ArrayLike& dL_dout_) {
    Call call;
    const auto weights = call.folded<float, 3>(weights_, "weights");
    const ops::InvertedIndex inverse = inverse_of(call, inverse_);
    const auto dL_dout = call.folded<float, 3>(dL_dout_, "dL_dout");
    auto dL_drows = call.make<float, 2>({inverse.ranges.size(0), dL_dout.size(2)});
    call.run(
        [&](Stream stream) { ops::interpolate_backward_rows(weights, inverse, dL_dout, dL_drows.view(), stream); });
    return call.give(std::move(dL_drows));
}

ArrayResult interpolate_backward_weights(const ArrayLike& rows_, const ArrayLike& neighbours_,
                                         const ArrayLike& dL_dout_, const OffsetsLike& rows_offsets,
                                         const OffsetsLike& neighbours_offsets) {
    Call call;
    const CloudsArgument rows = call.clouds(rows_, "rows", rows_offsets);
    const NeighboursArgument neighbours = call.neighbours(neighbours_, "neighbours", neighbours_offsets);
    const auto dL_dout = call.rows<float, 3>(dL_dout_, "dL_dout", neighbours.form);
    auto dL_dweights = call.make<float, 3>({neighbours.form.rows(), dL_dout.size(1), neighbours.neighbours.k()});
    call.run([&](Stream stream) {
        ops::interpolate_backward_weights(rows.clouds, neighbours.neighbours, dL_dout, dL_dweights.view(), stream);
    });
    return call.give_rows(std::move(dL_dweights), neighbours.form);
}

}  // namespace

void bind_grouping(py::module_& ops) {
    add_record<InvertedIndexRecord>(ops);
    const auto none = py::none();
    ops.def("gather", &gather, py::arg("rows"), py::arg("indices"), py::kw_only(), py::arg("rows_offsets") = none,
            py::arg("indices_offsets") = none, doc::ops::gather);
    ops.def("group", &group, py::arg("rows"), py::arg("neighbours"), py::arg("centres") = none, py::kw_only(),
            py::arg("rows_offsets") = none, py::arg("neighbours_offsets") = none, doc::ops::group);
    ops.def("group_backward_centres", &group_backward_centres, py::arg("neighbours"), py::arg("rows"),
            py::arg("dL_dout"), py::kw_only(), py::arg("neighbours_offsets") = none, py::arg("rows_offsets") = none,
            doc::ops::group_backward_centres);
    ops.def("invert_index", &invert_index, py::arg("neighbours"), py::arg("rows"), py::kw_only(),
            py::arg("neighbours_offsets") = none, py::arg("rows_offsets") = none, doc::ops::invert_index);
    ops.def("scatter_add", &scatter_add, py::arg("values"), py::arg("inverse"), doc::ops::scatter_add);
    ops.def("interpolate", &interpolate, py::arg("rows"), py::arg("neighbours"), py::arg("weights"), py::kw_only(),
            py::arg("rows_offsets") = none, py::arg("neighbours_offsets") = none, doc::ops::interpolate);
    ops.def("interpolate_backward_rows", &interpolate_backward_rows, py::arg("weights"), py::arg("inverse"),
            py::arg("dL_dout"), doc::ops::interpolate_backward_rows);
    ops.def("interpolate_backward_weights", &interpolate_backward_weights, py::arg("rows"), py::arg("neighbours"),
            py::arg("dL_dout"), py::kw_only(), py::arg("rows_offsets") = none, py::arg("neighbours_offsets") = none,
            doc::ops::interpolate_backward_weights);
}

}  // namespace stipple::python
