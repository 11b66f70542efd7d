#pragma once
// Patches of surfaces for training an upsampler: input points, candidates around them and evenly spread truth, cut from
// meshes, whose surface is known exactly, from virtual scans of meshes (virtual_scan.h), of which what was seen is the
// surface, or from scans, dense clouds whose surface is that of scan_surface.h; pairs of patches that come from files
// are in pair_patches.h. No torch here.
//
//   const SurfaceSet set = load_surfaces(folder, {.held_out = 0.1}, warnings, progress);
//   const PatchPlan plan = plan_patch(set.train, options, {seed, epoch, item});
//   const PatchFrame frame = make_patch(set.shapes[plan.shape], options, plan, {seed, epoch, item}, arrays, scratch);
//
// Everything random is a function of (seed, epoch, item): any number of threads, in any order, and after a restart.

#include <array>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/core/progress.h"
#include "stipple/data/data_set.h"
#include "stipple/learn/upsampling/patch_options.h"

namespace stipple::learn {

/// Points of a surface: of a mesh uniform by area and independent of each other; of a scan some of its own, as dense as
/// they are there, in random order.
struct SurfacePool {
    Array<float, 2> points;      // [n, 3]
    std::vector<int32_t> order;  // all of them: the first half in farthest point order, then the rest as stored
    // A virtual scan has ScanErrors of its points here; other shapes have none.
    Array<float, 2> noise, mixed;
};

struct SurfaceShape {
    std::string name;  // of its file, and which region of that
    Mesh mesh;         // or the surface of a scan, or what a virtual one has seen; its box about 0, largest distance 1
    double area = 0;
    std::vector<SurfacePool> pools;
};

/// Patches of files: as many sparse ones as dense ones, each kind of one size.
struct PatchPairs {
    data::Clouds sparse, dense;
};

/// Shapes, or pairs.
struct SurfaceSet {
    std::vector<SurfaceShape> shapes;
    PatchPairs pairs;
    std::vector<int64_t> train, held_out;  // numbers of shapes or pairs; may be none held out

    bool is_pairs() const { return pairs.sparse.size() > 0; }
};

struct SurfaceOptions {
    double held_out = 0;  // of meshes and scans, with all regions: every round(1 / held_out)-th, the last of each such
                          // run; 0: none
    int64_t pools = 3;    // 2 or more: of a patch's points, and of its truth
    int64_t samples = 16384;
    int64_t scans = 0;        // virtual ones of each mesh, which are shapes beside it
    int64_t region = 262144;  // points of a scan that are one shape, at least samples
    uint64_t seed = 0;
};

/// Splits, moves and samples meshes; one without faces is a scan. Of a scan all points that are finite and at different
/// places count, which must be `samples` or more; one of more points than `region` becomes up to 16 shapes, each of the
/// points nearest to a random one, so that memory is bounded by regions. Throws Error{bad_file} naming the mesh for one
/// without area or with too few points, and for a mixture of meshes and scans, Error{bad_config} where none is left to
/// train on. Files are worked on in parallel.
SurfaceSet make_surfaces(std::vector<Mesh> meshes, std::vector<std::string> names, const SurfaceOptions& options,
                         ProgressMode progress);

/// All meshes or scans of a folder: in the order of manifest.tsv, whose first column names files below a header, or all
/// files with the extension of a format that has faces, by name; where the first of these has no faces, or there are
/// none, all files with the extension of a format but HDF5. As many files are in memory at once as there are threads.
/// Throws as io::load, Error{bad_file} for a folder without meshes or clouds and for what is no folder, and as
/// make_surfaces.
SurfaceSet load_surfaces(const std::string& folder, const SurfaceOptions& options, std::vector<std::string>& warnings,
                         ProgressMode progress);

/// Whether files of this name may have faces, by their extension.
bool is_mesh_name(const std::string& name);

/// Numbers 0 to count - 1: every round(1 / share)-th is held out, the last of each such run; share 0: none.
void split_items(int64_t count, double share, std::vector<int64_t>& train, std::vector<int64_t>& held_out);

/// Of what a patch is a function, besides shapes and options.
struct PatchKey {
    uint64_t seed = 0;
    int64_t epoch = 0, item = 0;
};

enum class PatchSampling { uniform, random, gradient, scan, voxel };

/// What is drawn before any point is: to be changed where patches of one kind are wanted.
struct PatchPlan {
    int64_t shape = 0;
    int64_t pool = 0, truth_pool = 1;  // different
    int64_t cloud = 0;                 // its points
    PatchSampling sampling = PatchSampling::uniform;
    double noise = 0;       // standard deviation of the cloud's points; the shape has radius 1
    double scan_noise = 0;  // likewise, of a virtual scan, along the rays
    double mixed = 0;       // share of the points of a virtual scan that may be mixed pixels which are
};

/// shapes[item % shapes.size()], so that an epoch has all alike, and the rest at random.
PatchPlan plan_patch(std::span<const int64_t> shapes, const PatchOptions& options, const PatchKey& key);

/// From the coordinates of a patch back to those of its shape: x = scale R^T p + centre.
struct PatchFrame {
    std::array<float, 9> rotation = {};  // R, by rows
    std::array<float, 3> centre = {};
    float scale = 1;
};

/// Where a patch is written, each [rows, 3] and contiguous; truth may have no rows, and the last two are for pairs.
struct PatchArrays {
    View<float, 2> points, queries, truth;
    View<float, 2> surface = {}, normals = {};
};

/// Memory that calls use again; one for each thread.
struct PatchScratch {
    std::vector<float> cloud, patch, sparse, dense;
    std::vector<std::pair<float, int32_t>> keyed;
    std::vector<std::pair<uint64_t, int32_t>> cells;
    std::vector<int32_t> chosen, which, truth, order;
};

/// A patch of a cloud of the shape, centred at one of its points and turned at random, in units of spacings.
///
/// points   those of the cloud that are nearest to the centre, nearest first; not more than the plan's cloud has
/// queries  candidates (data::neighbour_queries) around the inner_share of the points, as many of each up to one, some
///          of them moved; may have no rows
/// truth    points of the other pool within truth_radius of that share's radius, those first that spread evenly; they
///          come again where there are fewer
///
/// Coordinates are p = R (x - centre) / scale, where scale is the patch's data::mean_spacing times a random factor.
/// Throws Error{bad_argument} for plans and arrays that do not fit the shape. A millisecond or two for patches of 512
/// points; opens no threads for those of up to 2048.
PatchFrame make_patch(const SurfaceShape& shape, const PatchOptions& options, const PatchPlan& plan,
                      const PatchKey& key, const PatchArrays& arrays, PatchScratch& scratch);

}  // namespace stipple::learn
