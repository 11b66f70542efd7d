// stipple.ops: products of rows, and batch norm.

#include "python/bindings/ops/common.h"
#include "stipple/ops/gram.h"
#include "stipple/ops/linear_max.h"
#include "stipple/ops/row_norm.h"

namespace stipple::python {
namespace {

struct LinearMax {
    static constexpr auto name = py::detail::const_name("LinearMax");
    static constexpr const char* fields[] = {"largest", "winners"};
};
struct ColumnStatistics {
    static constexpr auto name = py::detail::const_name("ColumnStatistics");
    static constexpr const char* fields[] = {"mean", "variance"};
};
struct NormColumnsRecord {
    static constexpr auto name = py::detail::const_name("NormColumns");
    static constexpr const char* fields[] = {"inverse", "scale", "shift"};
};
struct NormSums {
    static constexpr auto name = py::detail::const_name("NormSums");
    static constexpr const char* fields[] = {"sum_g", "sum_gx"};
};
struct Gram {
    static constexpr auto name = py::detail::const_name("Gram");
    static constexpr const char* fields[] = {"sum", "products"};
};

/// A matrix of the type and shape of another, to be written.
struct MatrixResult {
    Buffer buffer;
    DType dtype;
    int64_t shape[2];

    MatrixResult(Call& call, const ops::MatrixView& like) : dtype(like.dtype), shape{like.rows, like.columns} {
        buffer = call.allocate(dtype, shape);
    }
    ops::MutableMatrixView view() { return {buffer.data(), dtype, shape[0], shape[1], buffer.device()}; }
    ArrayResult give(const Call& call) { return call.give(std::move(buffer), dtype, shape); }
};

Record<LinearMax> linear_max(const ArrayLike& rows_, const ArrayLike& weight_, const OffsetsLike& offsets) {
    Call call;
    const auto [rows, form] = call.batch_matrix(rows_, "rows", offsets);
    const ops::MatrixView weight = call.matrix(weight_, "weight");
    auto largest = call.make<float, 2>({form.clouds(), weight.rows});
    auto winners = call.make<int32_t, 2>({form.clouds(), weight.rows});
    const ops::MatrixView& in = rows;
    const ops::Batch& batch = form.batch;
    call.run([&](Stream stream) { ops::linear_max(in, batch, weight, largest.view(), winners.view(), stream); });
    return record<LinearMax>(call.give_clouds(std::move(largest), form), call.give_clouds(std::move(winners), form));
}

void linear_max_backward_rows(const ArrayLike& weight_, const ArrayLike& winners_, const ArrayLike& dL_dlargest_,
                              const ArrayLike& dL_drows_, const ArrayLike& factor, const ArrayLike& constant,
                              const OffsetsLike& offsets) {
    Call call;
    const ops::MatrixView weight = call.matrix(weight_, "weight");
    call.any_writable(dL_drows_, "dL_drows");
    const auto [rows, form] = call.batch_matrix(dL_drows_, "dL_drows", offsets);
    const auto winners = call.per_cloud<int32_t, 2>(winners_, "winners", form);
    const auto dL_dlargest = call.per_cloud<float, 2>(dL_dlargest_, "dL_dlargest", form);
    const ops::RowsBefore before{call.array_or_none<float, 1>(factor, "factor"),
                                 call.array_or_none<float, 1>(constant, "constant")};
    const ops::MutableMatrixView dL_drows{const_cast<void*>(rows.data), rows.dtype, rows.rows, rows.columns,
                                          rows.device};
    const ops::Batch& batch = form.batch;
    call.run([&](Stream stream) {
        ops::linear_max_backward_rows(batch, weight, winners, dL_dlargest, dL_drows, before, stream);
    });
}

ArrayResult linear_max_backward_weight(const ArrayLike& rows_, const ArrayLike& winners_, const ArrayLike& dL_dlargest_,
                                       const OffsetsLike& offsets) {
    Call call;
    const auto [rows, form] = call.batch_matrix(rows_, "rows", offsets);
    const auto winners = call.per_cloud<int32_t, 2>(winners_, "winners", form);
    const auto dL_dlargest = call.per_cloud<float, 2>(dL_dlargest_, "dL_dlargest", form);
    auto dL_dweight = call.make<float, 2>({winners.size(1), rows.columns});
    const ops::MatrixView& in = rows;
    const ops::Batch& batch = form.batch;
    call.run([&](Stream stream) {
        ops::linear_max_backward_weight(in, batch, winners, dL_dlargest, dL_dweight.view(), stream);
    });
    return call.give(std::move(dL_dweight));
}

Record<ColumnStatistics> column_statistics(const ArrayLike& rows_) {
    Call call;
    const ops::MatrixView rows = call.matrix(rows_, "rows");
    auto mean = call.make<float, 1>({rows.columns}), variance = call.make<float, 1>({rows.columns});
    call.run([&](Stream stream) { ops::column_statistics(rows, mean.view(), variance.view(), stream); });
    return record<ColumnStatistics>(call.give(std::move(mean)), call.give(std::move(variance)));
}

Record<NormColumnsRecord> norm_columns(const ArrayLike& mean_, const ArrayLike& variance_, double count,
                                       const ArrayLike& gamma, const ArrayLike& beta, const ArrayLike& running_mean_,
                                       const ArrayLike& running_variance_, const ArrayLike& offset, double eps,
                                       double momentum) {
    Call call;
    const auto mean = call.array<float, 1>(mean_, "mean"), variance = call.array<float, 1>(variance_, "variance");
    const ops::NormParameters parameters{call.array<float, 1>(gamma, "gamma"), call.array<float, 1>(beta, "beta"),
                                         call.array_or_none<float, 1>(offset, "offset"), eps, momentum};
    const auto running_mean = call.writable<float, 1>(running_mean_, "running_mean");
    const auto running_variance = call.writable<float, 1>(running_variance_, "running_variance");
    auto inverse = call.make<float, 1>(mean.shape()), scale = call.make<float, 1>(mean.shape()),
         shift = call.make<float, 1>(mean.shape());
    call.run([&](Stream stream) {
        ops::norm_columns(mean, variance, count, parameters, running_mean, running_variance, inverse.view(),
                          scale.view(), shift.view(), stream);
    });
    return record<NormColumnsRecord>(call.give(std::move(inverse)), call.give(std::move(scale)),
                                     call.give(std::move(shift)));
}

ArrayResult normalise_rows(const ArrayLike& rows_, const ArrayLike& scale_, const ArrayLike& shift_, bool has_relu) {
    Call call;
    const ops::MatrixView rows = call.matrix(rows_, "rows");
    const auto scale = call.array<float, 1>(scale_, "scale"), shift = call.array<float, 1>(shift_, "shift");
    MatrixResult out(call, rows);
    call.run([&](Stream stream) { ops::normalise_rows(rows, scale, shift, has_relu, out.view(), stream); });
    return out.give(call);
}

ops::NormColumns columns_of(Call& call, const ArrayLike& mean, const ArrayLike& inverse, const ArrayLike& scale,
                            const ArrayLike& shift) {
    return {call.array<float, 1>(mean, "mean"), call.array<float, 1>(inverse, "inverse"),
            call.array<float, 1>(scale, "scale"), call.array<float, 1>(shift, "shift")};
}

Record<NormSums> norm_backward_sums(const ArrayLike& dL_dout_, const ArrayLike& rows_, const ArrayLike& mean,
                                    const ArrayLike& inverse, const ArrayLike& scale, const ArrayLike& shift,
                                    bool has_relu) {
    Call call;
    const ops::MatrixView dL_dout = call.matrix(dL_dout_, "dL_dout"), rows = call.matrix(rows_, "rows");
    const ops::NormColumns columns = columns_of(call, mean, inverse, scale, shift);
    auto sum_g = call.make<float, 1>({rows.columns}), sum_gx = call.make<float, 1>({rows.columns});
    call.run([&](Stream stream) {
        ops::norm_backward_sums(dL_dout, rows, columns, has_relu, sum_g.view(), sum_gx.view(), stream);
    });
    return record<NormSums>(call.give(std::move(sum_g)), call.give(std::move(sum_gx)));
}

ArrayResult norm_backward_rows(const ArrayLike& dL_dout_, const ArrayLike& rows_, const ArrayLike& mean,
                               const ArrayLike& inverse, const ArrayLike& scale, const ArrayLike& shift,
                               const ArrayLike& sum_g_, const ArrayLike& sum_gx_, double count, bool has_relu) {
    Call call;
    const ops::MatrixView dL_dout = call.matrix(dL_dout_, "dL_dout"), rows = call.matrix(rows_, "rows");
    const ops::NormColumns columns = columns_of(call, mean, inverse, scale, shift);
    const auto sum_g = call.array<float, 1>(sum_g_, "sum_g"), sum_gx = call.array<float, 1>(sum_gx_, "sum_gx");
    MatrixResult dL_drows(call, rows);
    call.run([&](Stream stream) {
        ops::norm_backward_rows(dL_dout, rows, columns, sum_g, sum_gx, count, has_relu, dL_drows.view(), stream);
    });
    return dL_drows.give(call);
}

Record<Gram> gram(const ArrayLike& rows_) {
    Call call;
    const ops::MatrixView rows = call.matrix(rows_, "rows");
    auto sum = call.make<double, 1>({rows.columns});
    auto products = call.make<double, 2>({rows.columns, rows.columns});
    call.run([&](Stream stream) { ops::gram(rows, sum.view(), products.view(), stream); });
    return record<Gram>(call.give(std::move(sum)), call.give(std::move(products)));
}

}  // namespace

void bind_products(py::module_& ops) {
    add_record<LinearMax>(ops);
    add_record<ColumnStatistics>(ops);
    add_record<NormColumnsRecord>(ops);
    add_record<NormSums>(ops);
    add_record<Gram>(ops);
    const auto none = py::none();
    ops.def("linear_max", &linear_max, py::arg("rows"), py::arg("weight"), py::kw_only(), py::arg("offsets") = none,
            doc::ops::linear_max);
    ops.def("can_linear_max_cuda", &ops::can_linear_max_cuda, py::arg("k"), py::arg("channels"),
            doc::ops::can_linear_max_cuda);
    ops.def("linear_max_backward_rows", &linear_max_backward_rows, py::arg("weight"), py::arg("winners"),
            py::arg("dL_dlargest"), py::arg("dL_drows"), py::kw_only(), py::arg("factor") = none,
            py::arg("constant") = none, py::arg("offsets") = none, doc::ops::linear_max_backward_rows);
    ops.def("linear_max_backward_weight", &linear_max_backward_weight, py::arg("rows"), py::arg("winners"),
            py::arg("dL_dlargest"), py::kw_only(), py::arg("offsets") = none, doc::ops::linear_max_backward_weight);
    ops.def("column_statistics", &column_statistics, py::arg("rows"), doc::ops::column_statistics);
    ops.def("norm_columns", &norm_columns, py::arg("mean"), py::arg("variance"), py::arg("count"), py::arg("gamma"),
            py::arg("beta"), py::arg("running_mean"), py::arg("running_variance"), py::kw_only(),
            py::arg("offset") = none, py::arg("eps") = 1e-5, py::arg("momentum") = 0.1, doc::ops::norm_columns);
    ops.def("normalise_rows", &normalise_rows, py::arg("rows"), py::arg("scale"), py::arg("shift"),
            py::arg("has_relu") = false, doc::ops::normalise_rows);
    ops.def("norm_backward_sums", &norm_backward_sums, py::arg("dL_dout"), py::arg("rows"), py::arg("mean"),
            py::arg("inverse"), py::arg("scale"), py::arg("shift"), py::arg("has_relu") = false,
            doc::ops::norm_backward_sums);
    ops.def("norm_backward_rows", &norm_backward_rows, py::arg("dL_dout"), py::arg("rows"), py::arg("mean"),
            py::arg("inverse"), py::arg("scale"), py::arg("shift"), py::arg("sum_g"), py::arg("sum_gx"),
            py::arg("count"), py::arg("has_relu") = false, doc::ops::norm_backward_rows);
    ops.def("gram", &gram, py::arg("rows"), doc::ops::gram);
    ops.def("can_gram_cuda", &ops::can_gram_cuda, py::arg("k"), doc::ops::can_gram_cuda);
}

}  // namespace stipple::python
