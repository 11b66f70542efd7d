// stipple.ops: subsets of clouds, voxel grids.

#include "python/bindings/ops/common.h"
#include "stipple/ops/argmax_points.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/inverse_density.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/ops/random_sample.h"
#include "stipple/ops/simplification.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::python {
namespace {

struct FarthestPoints {
    static constexpr auto name = py::detail::const_name("FarthestPoints");
    static constexpr const char* fields[] = {"indices", "distances_sq"};
};
struct Simplification {
    static constexpr auto name = py::detail::const_name("Simplification");
    static constexpr const char* fields[] = {"owners", "farthest", "terms"};
};

Record<FarthestPoints> farthest_point_sample(const ArrayLike& points_, const CountsLike& samples_, int32_t start,
                                             const ArrayLike& chosen, const OffsetsLike& offsets,
                                             const OffsetsLike& chosen_offsets) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", offsets, 3);
    const BatchForm samples = sample_form(samples_, "samples", points.form);
    ops::FarthestPointOptions options;
    options.start = start;
    NeighboursArgument given{ops::Neighbours(View<const int32_t, 1>()), {}};
    if (!chosen.is_none()) {
        given = call.neighbours(chosen, "chosen", chosen_offsets, false);
        options.chosen = View<const int32_t, 1>(given.neighbours.indices.data(), {given.form.rows()}, call.device());
        options.chosen_batch = given.form.batch;
    }
    auto indices = call.make<int32_t, 1>({samples.rows()});
    auto distances_sq = call.make<float, 1>({samples.rows()});
    call.run([&](Stream stream) {
        ops::farthest_point_sample(points.clouds, samples.batch, indices.view(), distances_sq.view(), options, stream);
    });
    return record<FarthestPoints>(call.give_rows(std::move(indices), samples),
                                  call.give_rows(std::move(distances_sq), samples));
}

ArrayResult random_sample(const ArrayLike& points_, const CountsLike& samples_, uint64_t seed, std::string_view order,
                          bool with_replacement, const OffsetsLike& offsets) {
    constexpr Word<ops::SampleOrder> kOrders[] = {{"by_index", ops::SampleOrder::by_index},
                                                  {"random", ops::SampleOrder::random}};
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", offsets);
    const BatchForm samples = sample_form(samples_, "samples", points.form);
    const ops::RandomSampleOptions options{choice(order, "order", kOrders), with_replacement};
    auto indices = call.make<int32_t, 1>({samples.rows()});
    call.run([&](Stream stream) {
        ops::random_sample(points.form.batch, samples.batch, seed, indices.view(), options, stream);
    });
    return call.give_rows(std::move(indices), samples);
}

ArrayResult inverse_density_sample(const ArrayLike& points_, const CountsLike& samples_, uint64_t seed, int k,
                                   int dimension, const OffsetsLike& offsets) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", offsets, 3);
    const BatchForm samples = sample_form(samples_, "samples", points.form);
    auto indices = call.make<int32_t, 1>({samples.rows()});
    call.run([&](Stream stream) {
        ops::inverse_density_sample(points.clouds, samples.batch, seed, indices.view(), {k, dimension}, stream);
    });
    return call.give_rows(std::move(indices), samples);
}

ArrayResult poisson_disk(const ArrayLike& points_, const CountsLike& samples_, float radius, bool progressive,
                         const OffsetsLike& offsets) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", offsets, 3);
    const BatchForm samples = sample_form(samples_, "samples", points.form);
    auto indices = call.make<int32_t, 1>({samples.rows()});
    call.run([&](Stream stream) {
        ops::poisson_disk(points.clouds, samples.batch, indices.view(), {radius, progressive}, stream);
    });
    return call.give_rows(std::move(indices), samples);
}

ArrayResult poisson_disk_of_part(const ArrayLike& points_, const ArrayLike& roles_, int64_t samples, float radius,
                                 const ArrayLike& factors_) {
    STIPPLE_REQUIRE(samples >= 0, "samples: {}", samples);
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", py::none(), 3);
    const auto roles = call.rows<uint8_t, 1>(roles_, "roles", points.form);
    const auto factors = call.rows_or_none<uint8_t, 1>(factors_, "factors", points.form);
    STIPPLE_REQUIRE(samples <= points.form.rows(), "samples: {} of {} points", samples, points.form.rows());
    auto indices = call.make<int32_t, 1>({samples});
    call.run([&](Stream) { ops::poisson_disk_of_part(points.clouds.rows, roles, factors, radius, indices.view()); });
    return call.give(std::move(indices));
}

float poisson_disk_radius(const ArrayLike& points_, int64_t m) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", py::none(), 3);
    STIPPLE_REQUIRE(points.form.is_single(), "points: one cloud is wanted, [n, 3]");
    float radius = 0;
    call.run([&](Stream stream) { radius = ops::poisson_disk_radius(points.clouds.rows, m, stream); });
    return radius;
}

ArrayResult argmax_points(const ArrayLike& scores_, float scale, uint64_t seed, const OffsetsLike& offsets) {
    Call call;
    const CloudsArgument scores = call.clouds(scores_, "scores", offsets);
    auto winners = call.make<int32_t, 2>({scores.form.clouds(), scores.clouds.dimension()});
    call.run([&](Stream stream) { ops::argmax_points(scores.clouds, winners.view(), {scale, seed}, stream); });
    return call.give_clouds(std::move(winners), scores.form);
}

Record<Simplification> simplification(const ArrayLike& points_, const ArrayLike& queries_, const py::object& sizes_,
                                      const ArrayLike& nearest_, const OffsetsLike& points_offsets) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", points_offsets, 3);
    const CloudsArgument queries = call.clouds(queries_, "queries", py::none(), 3);
    const std::vector<int64_t> sizes = whole_numbers(sizes_, "sizes");
    const auto nearest = call.rows<int32_t, 1>(nearest_, "nearest", queries.form);
    const auto count = static_cast<int64_t>(sizes.size());
    auto owners = call.make<int32_t, 2>({count, points.form.rows()});
    auto farthest = call.make<int32_t, 2>({queries.form.clouds(), count});
    auto terms = call.make<double, 3>({queries.form.clouds(), count, 3});
    call.run([&](Stream stream) {
        ops::simplification(points.clouds, queries.clouds, sizes, nearest, {owners.view(), farthest.view()},
                            terms.view(), stream);
    });
    return record<Simplification>(call.give(std::move(owners)), call.give(std::move(farthest)),
                                  call.give(std::move(terms)));
}

ArrayResult simplification_backward(const ArrayLike& points_, const ArrayLike& queries_, const py::object& sizes_,
                                    const ArrayLike& nearest_, const ArrayLike& owners_, const ArrayLike& farthest_,
                                    const ArrayLike& dL_dterms_, const OffsetsLike& points_offsets) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", points_offsets, 3);
    const CloudsArgument queries = call.clouds(queries_, "queries", py::none(), 3);
    const std::vector<int64_t> sizes = whole_numbers(sizes_, "sizes");
    const auto nearest = call.rows<int32_t, 1>(nearest_, "nearest", queries.form);
    const auto owners = call.array<int32_t, 2>(owners_, "owners");
    const auto farthest = call.array<int32_t, 2>(farthest_, "farthest");
    const auto dL_dterms = call.array<double, 3>(dL_dterms_, "dL_dterms");
    // The struct is that of the forward pass, which writes; here it is only read.
    const auto to_read = [](View<const int32_t, 2> view) {
        return View<int32_t, 2>(const_cast<int32_t*>(view.data()), view.shape(), view.device());
    };
    auto dL_dqueries = call.make<float, 2>({queries.form.rows(), 3});
    call.run([&](Stream stream) {
        ops::simplification_backward(points.clouds, queries.clouds, sizes, nearest,
                                     {to_read(owners), to_read(farthest)}, dL_dterms, dL_dqueries.view(), stream);
    });
    return call.give_rows(std::move(dL_dqueries), queries.form);
}

/// A grid, and the kind of arrays that its parts are shown as.
struct GridObject {
    std::shared_ptr<ops::VoxelGrid> grid;
    Kind kind;
    Stream stream;

    /// A view: it keeps the grid alive.
    template <class T, int Rank>
    ArrayResult view(Array<T, Rank>& array) const {
        ArrayObject object;
        const auto shape = array.shape();
        object.info.set_shape({shape.data(), shape.size()});
        object.info.data = array.data();
        object.info.dtype = dtype_of<T>;
        object.info.device = array.device();
        object.info.is_writable = false;
        object.owner = grid;
        object.stream = stream;
        const Kind shown = kind == Kind::other ? Kind::stipple : kind;
        return py::reinterpret_steal<ArrayResult>(give_as(std::move(object), shown, py::none()).release());
    }
};

std::vector<int64_t> offsets_of(const ops::Batch& batch) {
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i <= batch.clouds(); ++i) offsets.push_back(batch.begin(i));
    return offsets;
}

py::tuple tuple_of(const std::vector<int64_t>& numbers) {
    py::tuple made(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) made[i] = numbers[i];
    return made;
}

GridObject voxel_grid(const ArrayLike& points_, float size, const py::object& origin_, const OffsetsLike& offsets) {
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", offsets, 3);
    std::array<double, 3> origin = {};
    for (int i = 0; i < 3; ++i) origin[static_cast<size_t>(i)] = part_of(origin_, "origin", 3, i).cast<double>();
    GridObject made{nullptr, call.kind(), {}};
    call.run([&](Stream stream) {
        made.grid = std::make_shared<ops::VoxelGrid>(ops::voxel_grid(points.clouds, size, origin, stream));
        made.stream = stream;
    });
    return made;
}

ArrayResult voxel_centroids(const GridObject& object, const ArrayLike& rows_) {
    const ops::VoxelGrid& grid = *object.grid;
    Call call;
    CloudsArgument rows = call.clouds(rows_, "rows");
    auto out = call.make<float, 2>({grid.cells.rows(), rows.clouds.dimension()});
    call.run([&](Stream stream) { ops::voxel_centroids(grid, rows.clouds.rows, out.view(), stream); });
    return call.give(std::move(out));
}

ArrayResult voxel_representatives(const GridObject& object, const ArrayLike& points_, const ArrayLike& targets_) {
    const ops::VoxelGrid& grid = *object.grid;
    Call call;
    const CloudsArgument points = call.clouds(points_, "points", py::none(), 3);
    const auto targets = call.array_or_none<float, 2>(targets_, "targets");
    auto out = call.make<int32_t, 1>({grid.cells.rows()});
    call.run([&](Stream stream) {
        if (targets_.is_none())
            ops::voxel_representatives(grid, points.clouds.rows, out.view(), stream);
        else
            ops::voxel_representatives(grid, points.clouds.rows, targets, out.view(), stream);
    });
    return call.give(std::move(out));
}

void bind_grid(py::module_& ops) {
    py::class_<GridObject>(ops, "VoxelGrid", doc::ops::VoxelGrid)
        .def_property_readonly(
            "cell_of_point", [](const GridObject& o) { return o.view(o.grid->cell_of_point); },
            "[points] the cell in the point's cloud, -1 for a non-finite point")
        .def_property_readonly(
            "order", [](const GridObject& o) { return o.view(o.grid->order); },
            "[finite points] indices in their cloud, by cell, ascending within a cell")
        .def_property_readonly(
            "offsets", [](const GridObject& o) { return o.view(o.grid->offsets); },
            "[cells + 1] cell i holds order[offsets[i]] to order[offsets[i + 1] - 1]")
        .def_property_readonly(
            "coordinates", [](const GridObject& o) { return o.view(o.grid->coordinates); },
            "[cells, 3] the cell's x, y and z")
        .def_property_readonly(
            "cells_offsets", [](const GridObject& o) { return tuple_of(offsets_of(o.grid->cells)); },
            "Where the cells of each cloud begin.")
        .def_property_readonly(
            "points_offsets", [](const GridObject& o) { return tuple_of(offsets_of(o.grid->points)); },
            "Where the points of each cloud begin.")
        .def_property_readonly(
            "size", [](const GridObject& o) { return o.grid->size; }, "Edge of a cell.")
        .def_property_readonly(
            "origin",
            [](const GridObject& o) { return py::make_tuple(o.grid->origin[0], o.grid->origin[1], o.grid->origin[2]); },
            "Corner of cell (0, 0, 0).")
        .def("__len__", [](const GridObject& o) { return o.grid->cells.rows(); })
        .def("__repr__", [](const GridObject& o) {
            return fmt::format("stipple.ops.VoxelGrid({} cells of edge {} for {} points on {})", o.grid->cells.rows(),
                               o.grid->size, o.grid->points.rows(), o.grid->device());
        });
    ops.def("voxel_grid", &voxel_grid, py::arg("points"), py::arg("size"), py::kw_only(),
            py::arg("origin") = py::make_tuple(0.0, 0.0, 0.0), py::arg("offsets") = py::none(), doc::ops::voxel_grid);
    ops.def("voxel_centroids", &voxel_centroids, py::arg("grid"), py::arg("rows"), doc::ops::voxel_centroids);
    ops.def("voxel_representatives", &voxel_representatives, py::arg("grid"), py::arg("points"),
            py::arg("targets") = py::none(), doc::ops::voxel_representatives);
}

}  // namespace

void bind_sampling(py::module_& ops) {
    add_record<FarthestPoints>(ops);
    add_record<Simplification>(ops);
    bind_grid(ops);
    ops.def("farthest_point_sample", &farthest_point_sample, py::arg("points"), py::arg("samples"), py::kw_only(),
            py::arg("start") = 0, py::arg("chosen") = py::none(), py::arg("offsets") = py::none(),
            py::arg("chosen_offsets") = py::none(), doc::ops::farthest_point_sample);
    ops.def("random_sample", &random_sample, py::arg("points"), py::arg("samples"), py::arg("seed") = 0, py::kw_only(),
            py::arg("order") = "by_index", py::arg("with_replacement") = false, py::arg("offsets") = py::none(),
            doc::ops::random_sample);
    ops.def("inverse_density_sample", &inverse_density_sample, py::arg("points"), py::arg("samples"),
            py::arg("seed") = 0, py::kw_only(), py::arg("k") = 16, py::arg("dimension") = 2,
            py::arg("offsets") = py::none(), doc::ops::inverse_density_sample);
    ops.def("poisson_disk", &poisson_disk, py::arg("points"), py::arg("samples"), py::kw_only(), py::arg("radius") = 0,
            py::arg("progressive") = false, py::arg("offsets") = py::none(), doc::ops::poisson_disk);
    ops.def("poisson_disk_of_part", &poisson_disk_of_part, py::arg("points"), py::arg("roles"), py::arg("samples"),
            py::arg("radius"), py::arg("factors") = py::none(), doc::ops::poisson_disk_of_part);
    ops.def("poisson_disk_radius", &poisson_disk_radius, py::arg("points"), py::arg("m"),
            doc::ops::poisson_disk_radius);
    ops.def("poisson_disk_radius_of_area", &ops::poisson_disk_radius_of_area, py::arg("area"), py::arg("m"),
            doc::ops::poisson_disk_radius_of_area);
    ops.def("argmax_points", &argmax_points, py::arg("scores"), py::kw_only(), py::arg("scale") = 0,
            py::arg("seed") = 0, py::arg("offsets") = py::none(), doc::ops::argmax_points);
    ops.def("simplification", &simplification, py::arg("points"), py::arg("queries"), py::arg("sizes"),
            py::arg("nearest"), py::kw_only(), py::arg("points_offsets") = py::none(), doc::ops::simplification);
    ops.def("simplification_backward", &simplification_backward, py::arg("points"), py::arg("queries"),
            py::arg("sizes"), py::arg("nearest"), py::arg("owners"), py::arg("farthest"), py::arg("dL_dterms"),
            py::kw_only(), py::arg("points_offsets") = py::none(), doc::ops::simplification_backward);
}

}  // namespace stipple::python
