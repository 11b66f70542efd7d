// stipple.ops: PointIndex, knn, radius_search, ball_query, nearest_pairs; the registry.

#include "python/bindings/ops/common.h"
#include "stipple/core/synchronize.h"
#include "stipple/ops/ball_query.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/nearest_pairs.h"
#include "stipple/ops/radius_search.h"
#include "stipple/ops/registry.h"

namespace stipple::python {
namespace {

struct KnnResult {
    static constexpr auto name = py::detail::const_name("KnnResult");
    static constexpr const char* fields[] = {"indices", "distances_sq"};
};
struct RadiusResult {
    static constexpr auto name = py::detail::const_name("RadiusResult");
    static constexpr const char* fields[] = {"offsets", "indices", "distances_sq"};
};
struct BallResult {
    static constexpr auto name = py::detail::const_name("BallResult");
    static constexpr const char* fields[] = {"indices", "counts"};
};
struct NearestPairs {
    static constexpr auto name = py::detail::const_name("NearestPairs");
    static constexpr const char* fields[] = {"b_of_a", "sq_of_a", "a_of_b", "sq_of_b"};
};

constexpr Word<ops::NeighbourOrder> kOrders[] = {{"nearest", ops::NeighbourOrder::nearest},
                                                 {"index", ops::NeighbourOrder::index}};

/// An index, and the stream that built it and will free it.
struct IndexObject {
    ops::PointIndex index;
    Stream stream;
};

/// Points to search in, given as an index or as the points themselves, and the queries, by default the points.
struct Search {
    std::optional<ops::PointIndex> index;
    std::optional<CloudsArgument> points, queries;
    Stream built_on;

    Search(Call& call, const py::object& points_, const py::object& queries_, const py::object& points_offsets,
           const py::object& queries_offsets) {
        if (py::isinstance<IndexObject>(points_)) {
            const auto& object = points_.cast<const IndexObject&>();
            index = object.index;
            built_on = object.stream;
            STIPPLE_REQUIRE(!queries_.is_none(), "queries: wanted, for an index keeps no points to ask with");
            STIPPLE_REQUIRE(points_offsets.is_none(), "points_offsets: an index has its own");
            call.set_device(index->device(), "points");
        } else {
            points = call.clouds(points_, "points", points_offsets);
        }
        if (!queries_.is_none())
            queries = call.clouds(queries_, "queries", queries_offsets);
        else
            STIPPLE_REQUIRE(queries_offsets.is_none(), "queries_offsets: given without queries");
    }
    const CloudsArgument& asked() const { return queries ? *queries : *points; }
    /// Builds the index where there is none yet. Without the GIL.
    const ops::PointIndex& built(Stream stream) {
        if (!index) {
            index.emplace(points->clouds, stream);
            built_on = stream;
        }
        return *index;
    }
    /// An index is freed in the order of its own stream: what another still does with it has to end first.
    void end(Stream stream) const {
        if (index && stream.handle != built_on.handle) synchronize(index->device(), stream);
    }
};

Record<KnnResult> knn(const ArrayLike& points, int64_t k, const ArrayLike& queries, const OffsetsLike& points_offsets,
                      const OffsetsLike& queries_offsets) {
    STIPPLE_REQUIRE(k >= 1 && k <= 128, "k: {}; wanted is 1 to 128", k);
    Call call;
    Search search(call, points, queries, points_offsets, queries_offsets);
    const CloudsArgument& asked = search.asked();
    auto indices = call.make<int32_t, 2>({asked.form.rows(), k});
    auto distances_sq = call.make<float, 2>({asked.form.rows(), k});
    call.run([&](Stream stream) {
        if (search.index)
            ops::knn(*search.index, asked.clouds, indices.view(), distances_sq.view(), stream);
        else
            ops::knn(search.points->clouds, asked.clouds, indices.view(), distances_sq.view(), stream);
        search.end(stream);
    });
    return record<KnnResult>(call.give_rows(std::move(indices), asked.form),
                             call.give_rows(std::move(distances_sq), asked.form));
}

ArrayResult radius_count(const ArrayLike& points, float radius, const ArrayLike& queries,
                         const OffsetsLike& points_offsets, const OffsetsLike& queries_offsets) {
    Call call;
    Search search(call, points, queries, points_offsets, queries_offsets);
    const CloudsArgument& asked = search.asked();
    auto counts = call.make<int32_t, 1>({asked.form.rows()});
    call.run([&](Stream stream) {
        ops::radius_count(search.built(stream), asked.clouds, radius, counts.view(), stream);
        search.end(stream);
    });
    return call.give_rows(std::move(counts), asked.form);
}

ArrayResult radius_offsets(const ArrayLike& counts_) {
    Call call;
    const auto counts = call.array<int32_t, 1>(counts_, "counts");
    auto offsets = call.make<int64_t, 1>({counts.size(0) + 1});
    call.run([&](Stream stream) { ops::radius_offsets(counts, offsets.view(), stream); });
    return call.give(std::move(offsets));
}

Record<RadiusResult> radius_search(const ArrayLike& points, float radius, const ArrayLike& queries,
                                   std::string_view order_, const OffsetsLike& points_offsets,
                                   const OffsetsLike& queries_offsets) {
    const ops::NeighbourOrder order = choice(order_, "order", kOrders);
    Call call;
    Search search(call, points, queries, points_offsets, queries_offsets);
    const CloudsArgument& asked = search.asked();
    const int64_t m = asked.form.rows();
    auto counts = call.make<int32_t, 1>({m});
    auto offsets = call.make<int64_t, 1>({m + 1});
    Array<int32_t, 1> indices;
    Array<float, 1> distances_sq;
    call.run([&](Stream stream) {
        const ops::PointIndex& index = search.built(stream);
        ops::radius_count(index, asked.clouds, radius, counts.view(), stream);
        const int64_t total = ops::radius_offsets(std::as_const(counts).view(), offsets.view(), stream);
        indices = call.make<int32_t, 1>({total});
        distances_sq = call.make<float, 1>({total});
        ops::radius_search(index, asked.clouds, radius, std::as_const(offsets).view(), indices.view(),
                           distances_sq.view(), order, stream);
        search.end(stream);
    });
    return record<RadiusResult>(call.give(std::move(offsets)), call.give(std::move(indices)),
                                call.give(std::move(distances_sq)));
}

Record<BallResult> ball_query(const ArrayLike& points, float radius, int64_t samples, const ArrayLike& queries,
                              std::string_view order_, const OffsetsLike& points_offsets,
                              const OffsetsLike& queries_offsets) {
    const ops::NeighbourOrder order = choice(order_, "order", kOrders);
    STIPPLE_REQUIRE(samples >= 1, "samples: {}; wanted is at least 1", samples);
    Call call;
    Search search(call, points, queries, points_offsets, queries_offsets);
    const CloudsArgument& asked = search.asked();
    auto indices = call.make<int32_t, 2>({asked.form.rows(), samples});
    auto counts = call.make<int32_t, 1>({asked.form.rows()});
    call.run([&](Stream stream) {
        ops::ball_query(search.built(stream), asked.clouds, radius, indices.view(), counts.view(), order, stream);
        search.end(stream);
    });
    return record<BallResult>(call.give_rows(std::move(indices), asked.form),
                              call.give_rows(std::move(counts), asked.form));
}

Record<NearestPairs> nearest_pairs(const ArrayLike& a_, const ArrayLike& b_, const OffsetsLike& a_offsets,
                                   const OffsetsLike& b_offsets) {
    Call call;
    const CloudsArgument a = call.clouds(a_, "a", a_offsets, 3), b = call.clouds(b_, "b", b_offsets, 3);
    auto b_of_a = call.make<int32_t, 1>({a.form.rows()}), a_of_b = call.make<int32_t, 1>({b.form.rows()});
    auto sq_of_a = call.make<float, 1>({a.form.rows()}), sq_of_b = call.make<float, 1>({b.form.rows()});
    call.run([&](Stream stream) {
        ops::nearest_pairs(a.clouds, b.clouds, b_of_a.view(), sq_of_a.view(), a_of_b.view(), sq_of_b.view(), stream);
    });
    return record<NearestPairs>(call.give_rows(std::move(b_of_a), a.form), call.give_rows(std::move(sq_of_a), a.form),
                                call.give_rows(std::move(a_of_b), b.form), call.give_rows(std::move(sq_of_b), b.form));
}

py::list registry() {
    py::list all;
    for (const ops::OpInfo& info : ops::registry()) {
        py::dict entry;
        entry["name"] = info.name;
        entry["group"] = info.group;
        entry["summary"] = info.summary;
        entry["cpu"] = info.cpu;
        entry["cuda"] = info.cuda;
        entry["gradient"] = info.gradient;
        entry["cost"] = info.cost;
        all.append(entry);
    }
    return all;
}

}  // namespace

void bind_search(py::module_& ops) {
    add_record<KnnResult>(ops);
    add_record<RadiusResult>(ops);
    add_record<BallResult>(ops);
    add_record<NearestPairs>(ops);
    add_record<PairGradients>(ops);
    py::class_<IndexObject>(ops, "PointIndex", doc::ops::PointIndex)
        .def(py::init([](const ArrayLike& points_, const OffsetsLike& offsets) {
                 Call call;
                 const CloudsArgument points = call.clouds(points_, "points", offsets);
                 std::optional<IndexObject> made;
                 call.run([&](Stream stream) {
                     made = IndexObject{ops::PointIndex(points.clouds, stream), stream};
                     synchronize(call.device(), stream);  // searches may come on other streams
                 });
                 return std::move(*made);
             }),
             py::arg("points"), py::kw_only(), py::arg("offsets") = py::none(),
             "points [n, c], [b, n, c], or [total, c] with offsets. Copies what it needs.")
        .def_property_readonly(
            "dimension", [](const IndexObject& o) { return o.index.dimension(); }, "Numbers of a point.")
        .def_property_readonly(
            "clouds", [](const IndexObject& o) { return o.index.batch().clouds(); }, "How many clouds it holds.")
        .def_property_readonly(
            "rows", [](const IndexObject& o) { return o.index.batch().rows(); }, "Points of all clouds.")
        .def_property_readonly(
            "device", [](const IndexObject& o) { return to_string(o.index.device()); }, "Where it is.")
        .def("__repr__", [](const IndexObject& o) {
            const ops::PointIndex& index = o.index;
            return fmt::format("stipple.ops.PointIndex({} points of {} numbers in {} clouds on {})",
                               index.batch().rows(), index.dimension(), index.batch().clouds(), index.device());
        });
    ops.def("knn", &knn, py::arg("points"), py::arg("k"), py::arg("queries") = py::none(), py::kw_only(),
            py::arg("points_offsets") = py::none(), py::arg("queries_offsets") = py::none(), doc::ops::knn);
    ops.def("radius_count", &radius_count, py::arg("points"), py::arg("radius"), py::arg("queries") = py::none(),
            py::kw_only(), py::arg("points_offsets") = py::none(), py::arg("queries_offsets") = py::none(),
            doc::ops::radius_count);
    ops.def("radius_offsets", &radius_offsets, py::arg("counts"), doc::ops::radius_offsets);
    ops.def("radius_search", &radius_search, py::arg("points"), py::arg("radius"), py::arg("queries") = py::none(),
            py::kw_only(), py::arg("order") = "nearest", py::arg("points_offsets") = py::none(),
            py::arg("queries_offsets") = py::none(), doc::ops::radius_search);
    ops.def("ball_query", &ball_query, py::arg("points"), py::arg("radius"), py::arg("samples"),
            py::arg("queries") = py::none(), py::kw_only(), py::arg("order") = "index",
            py::arg("points_offsets") = py::none(), py::arg("queries_offsets") = py::none(), doc::ops::ball_query);
    ops.def("nearest_pairs", &nearest_pairs, py::arg("a"), py::arg("b"), py::kw_only(),
            py::arg("a_offsets") = py::none(), py::arg("b_offsets") = py::none(), doc::ops::nearest_pairs);
    ops.def("registry", &registry, "The list of ops: docs/ops.md as dicts.");
}

}  // namespace stipple::python
