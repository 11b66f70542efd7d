#include "stipple/learn/upsampling/pair_patches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/geometry/normals.h"
#include "stipple/learn/upsampling/patch_cut.h"

namespace stipple::learn {
namespace {

constexpr int kPairNormalNeighbours = 12;
constexpr double kPatchArea = M_PI;  // of a patch of radius 1, nearly flat

bool is_pair_name(std::string_view name) {
    for (const char* end : {".h5", ".hdf5", ".tfrecord", ".tfrecords"})
        if (name.ends_with(end)) return true;
    return false;
}

/// A mixture would be read in part, silently.
void require_one_kind(const std::string& folder) {
    std::string hdf5, records;
    for (const std::string& name : list_folder(folder)) {
        if (name[0] == '.') continue;
        if (!is_pair_name(name) && is_mesh_name(name))
            throw Error(ErrorCode::bad_file, Place{folder},
                        fmt::format("has patches and meshes ({}): one kind a folder", in_quotes(name)));
        if (is_pair_name(name)) (name.find(".tfrecord") == std::string::npos ? hdf5 : records) = name;
    }
    if (!hdf5.empty() && !records.empty())
        throw Error(ErrorCode::bad_file, Place{folder},
                    fmt::format("has {} and {}: one kind a folder", in_quotes(hdf5), in_quotes(records)));
}

/// Of the sparse patch: what becomes 0 and 1.
struct PatchUnit {
    Vec3d mean;
    double radius = 1;
};

PatchUnit unit_of(View<const float, 2> points) {
    const auto row = [&](int64_t i) { return Vec3d{points(i, 0), points(i, 1), points(i, 2)}; };
    const int64_t n = points.size(0);
    PatchUnit made;
    for (int64_t i = 0; i < n; ++i) made.mean = made.mean + (1.0 / static_cast<double>(n)) * row(i);
    double radius = 0;
    for (int64_t i = 0; i < n; ++i) radius = std::max(radius, length(row(i) - made.mean));
    if (radius > 0 && std::isfinite(radius)) made.radius = radius;
    return made;
}

void append_moved(View<const float, 2> points, const PatchUnit& base, std::vector<float>& rows) {
    for (int64_t i = 0; i < points.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis)
            rows.push_back(static_cast<float>((points(i, axis) - base.mean[axis]) / base.radius));
}

int64_t nearest_to_middle(const std::vector<float>& rows) {
    std::pair<float, int64_t> best = {INFINITY, 0};
    for (size_t i = 0; i + 2 < rows.size(); i += 3)
        best = std::min(best, {rows[i] * rows[i] + rows[i + 1] * rows[i + 1] + rows[i + 2] * rows[i + 2],
                               static_cast<int64_t>(i / 3)});
    return best.second;
}

}  // namespace

bool names_pairs(const std::string& path) {
    if (!is_folder(path)) return is_pair_name(path);
    const std::vector<std::string> files = list_folder(path);
    return std::any_of(files.begin(), files.end(),
                       [](const std::string& name) { return name[0] != '.' && is_pair_name(name); });
}

SurfaceSet make_pairs(PatchPairs pairs, double held_out) {
    SurfaceSet set;
    set.pairs = std::move(pairs);
    const data::Clouds &sparse = set.pairs.sparse, &dense = set.pairs.dense;
    if (sparse.size() != dense.size() || sparse.common_size() < 0 || dense.common_size() < 0)
        throw Error(ErrorCode::bad_file, fmt::format("{} sparse patches and {} dense ones: as many of each are wanted, "
                                                     "all sparse ones of one size and all dense ones of one",
                                                     sparse.size(), dense.size()));
    split_items(sparse.size(), held_out, set.train, set.held_out);
    if (set.train.empty()) throw Error(ErrorCode::bad_config, "no patches to train on");
    return set;
}

SurfaceSet load_pairs(const std::string& path, double held_out, std::vector<std::string>& warnings,
                      ProgressMode progress) {
    if (is_folder(path)) require_one_kind(path);
    data::DataSetOptions options;
    std::optional<Progress> bar;
    options.on_progress = [&](int64_t done, int64_t total) {
        if (!bar) bar.emplace("read patches", total, progress, "files");
        if (done > 0) bar->add();
    };
    data::DataSet set = data::load_data_set(path, options, warnings);
    if (!set.is_pairs())
        throw Error(ErrorCode::bad_file, Place{path},
                    fmt::format("is a data set of layout {}, which has no pairs of patches", set.layout),
                    "patches are HDF5 files with poisson_256 and poisson_1024, or TFRecord files");
    try {
        return make_pairs({std::move(set.clouds), std::move(set.targets)}, held_out);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

PatchFrame make_pair_patch(const PatchPairs& pairs, const PatchOptions& options, const PatchPlan& plan,
                           const PatchKey& key, const PatchArrays& arrays, PatchScratch& scratch) {
    STIPPLE_REQUIRE(plan.shape >= 0 && plan.shape < pairs.sparse.size(), "make_pair_patch: pair {} of {}", plan.shape,
                    pairs.sparse.size());
    const View<const float, 2> sparse = pairs.sparse.of(plan.shape), dense = pairs.dense.of(plan.shape);
    const int64_t n = sparse.size(0), t = dense.size(0);
    STIPPLE_REQUIRE(n < t && arrays.points.size(0) == n && arrays.surface.size(0) == t && arrays.normals.size(0) == t,
                    "make_pair_patch: arrays of {}, {} and {} points for a pair of {} and {}", arrays.points.size(0),
                    arrays.surface.size(0), arrays.normals.size(0), n, t);
    const PatchRandom random(key);
    const PatchUnit base = unit_of(sparse);
    scratch.dense.clear();
    append_moved(dense, base, scratch.dense);
    const View<const float, 2> moved(scratch.dense.data(), {t, 3});
    if (plan.sampling == PatchSampling::uniform) {
        scratch.sparse.clear();
        append_moved(sparse, base, scratch.sparse);
        scratch.chosen.resize(static_cast<size_t>(n));
        std::iota(scratch.chosen.begin(), scratch.chosen.end(), 0);
        take_points({scratch.sparse.data(), {n, 3}}, plan.noise, random.of(Draws::noise), scratch);
    } else {
        choose_points(moved, kPatchArea, plan.sampling, n, random.of(Draws::cloud), scratch);
        take_points(moved, plan.noise, random.of(Draws::noise), scratch);
    }
    scratch.order.resize(static_cast<size_t>(t));
    std::iota(scratch.order.begin(), scratch.order.end(), 0);
    const TruthSource truth = {moved, scratch.order, options.inner_share == 1};
    const PatchFrame frame = cut_patch(nearest_to_middle(scratch.cloud), truth, options, random, arrays, scratch);
    for (int64_t i = 0; i < t; ++i) to_patch(frame, moved.data() + 3 * i, arrays.surface.data() + 3 * i);
    geometry::estimate_normals(arrays.surface, arrays.normals, {}, kPairNormalNeighbours);
    return frame;
}

}  // namespace stipple::learn
