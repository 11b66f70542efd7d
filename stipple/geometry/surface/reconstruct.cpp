#include "stipple/geometry/reconstruct.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "stipple/core/box.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/components.h"
#include "stipple/geometry/marching_cubes.h"
#include "stipple/geometry/surface/separate_sheets.h"
#include "stipple/geometry/winding_number.h"

namespace stipple::geometry {
namespace {

constexpr const char* kWho = "reconstruct_surface";
constexpr int kSide = SparseGrid::kSide, kCorners = SparseGrid::kCorners;

using BlockPlace = std::array<int32_t, 3>;

/// Orders blocks and finds them.
uint64_t key_of(const BlockPlace& block) {
    uint64_t key = 0;
    for (int axis = 2; axis >= 0; --axis) key = key << 21 | (static_cast<uint64_t>(block[axis] + (1 << 20)) & 0x1fffff);
    return key;
}
BlockPlace block_of(uint64_t key) {
    BlockPlace block;
    for (int axis = 0; axis < 3; ++axis, key >>= 21) block[axis] = static_cast<int32_t>(key & 0x1fffff) - (1 << 20);
    return block;
}

void sort_unique(std::vector<uint64_t>& keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

/// The points that count, with normals of unit length.
struct OrientedPoints {
    Array<float, 2> points, normals;
    Box<float> box = Box<float>::none();

    int64_t size() const { return points.size(0); }
};

OrientedPoints usable(View<const float, 2> points, View<const float, 2> normals) {
    std::vector<int64_t> kept;
    const auto length_of = [&](int64_t i) {
        const float* n = normals.data() + 3 * i;
        return std::sqrt(double{n[0]} * n[0] + double{n[1]} * n[1] + double{n[2]} * n[2]);
    };
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        const double length = length_of(i);
        if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]) && std::isfinite(length) && length > 0)
            kept.push_back(i);
    }
    constexpr size_t kFewest = 4;
    STIPPLE_REQUIRE(kept.size() >= kFewest, "{}: {} of {} points are finite with a normal, at least {} are needed",
                    kWho, kept.size(), points.size(0), kFewest);
    OrientedPoints result;
    const auto n = static_cast<int64_t>(kept.size());
    result.points = Array<float, 2>({n, 3});
    result.normals = Array<float, 2>({n, 3});
    for (int64_t i = 0; i < n; ++i) {
        const double length = length_of(kept[i]);
        for (int axis = 0; axis < 3; ++axis) {
            const float x = points.data()[3 * kept[i] + axis];
            result.points.data()[3 * i + axis] = x;
            result.normals.data()[3 * i + axis] = static_cast<float>(normals.data()[3 * kept[i] + axis] / length);
            result.box.add(axis, x);
        }
    }
    return result;
}

/// Moves the points along their normals.
void shift(OrientedPoints& cloud, const std::vector<float>& by) {
    cloud.box = Box<float>::none();
    for (int64_t i = 0; i < 3 * cloud.size(); ++i) {
        cloud.points.data()[i] += by[i / 3] * cloud.normals.data()[i];
        cloud.box.add(static_cast<int>(i % 3), cloud.points.data()[i]);
    }
}

double median_of(std::vector<float> values) {
    const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// The field on blocks near a surface, and the blocks that the surface needs.
class FieldGrid {
public:
    FieldGrid(const WindingIndex& field, const OrientedPoints& cloud, double step, float accuracy)
        : field_(field), accuracy_(accuracy) {
        for (int axis = 0; axis < 3; ++axis) grid_.low[axis] = cloud.box.low[axis];
        grid_.step = step;
        std::vector<uint64_t> keys;
        for (int64_t i = 0; i < cloud.size(); ++i) add_blocks_around(cloud.points.data() + 3 * i, keys);
        sort_unique(keys);
        add(keys);
    }

    /// Follows the surface until every edge that it crosses has its four cells: then it is closed.
    const SparseGrid& complete(float level) {
        for (std::vector<uint64_t> missing = missing_blocks(level); !missing.empty(); missing = missing_blocks(level))
            add(missing);
        return grid_;
    }

private:
    void add_blocks_around(const float* p, std::vector<uint64_t>& keys) const {
        BlockPlace first, last;  // those of the corners of the point's cell and of the cells next to it
        for (int axis = 0; axis < 3; ++axis) {
            const double cell = std::floor((p[axis] - grid_.low[axis]) / grid_.step);
            first[axis] = static_cast<int32_t>(std::floor((cell - 1) / kSide));
            last[axis] = static_cast<int32_t>(std::floor((cell + 2) / kSide));
        }
        for (int32_t z = first[2]; z <= last[2]; ++z) {
            for (int32_t y = first[1]; y <= last[1]; ++y) {
                for (int32_t x = first[0]; x <= last[0]; ++x) {
                    const uint64_t key = key_of({x, y, z});
                    if (keys.empty() || keys.back() != key) keys.push_back(key);
                }
            }
        }
    }

    void add(const std::vector<uint64_t>& keys) {
        const size_t before = grid_.blocks.size();
        for (uint64_t key : keys) {
            number_.emplace(key, static_cast<int32_t>(grid_.blocks.size()));
            grid_.blocks.push_back(block_of(key));
        }
        grid_.values.resize(grid_.blocks.size() * kCorners);
        constexpr int64_t kBlocks = 1 << 14;  // evaluated at once
        for (size_t first = before; first < grid_.blocks.size(); first += kBlocks) {
            const auto blocks = static_cast<int64_t>(std::min<size_t>(kBlocks, grid_.blocks.size() - first));
            Array<float, 2> corners({blocks * kCorners, 3});
            for (int64_t i = 0; i < blocks * kCorners; ++i) {
                const BlockPlace& block = grid_.blocks[first + i / kCorners];
                const int local[3] = {static_cast<int>(i % kSide), static_cast<int>(i / kSide % kSide),
                                      static_cast<int>(i / (kSide * kSide) % kSide)};
                for (int axis = 0; axis < 3; ++axis)
                    corners.data()[3 * i + axis] =
                        static_cast<float>(grid_.low[axis] + grid_.step * (int64_t{block[axis]} * kSide + local[axis]));
            }
            winding_number(field_, corners.view(),
                           View<float, 1>(grid_.values.data() + first * kCorners, {blocks * kCorners}), accuracy_);
        }
    }

    const float* values_of(const BlockPlace& block) const {
        const auto found = number_.find(key_of(block));
        return found == number_.end() ? nullptr : grid_.values.data() + int64_t{found->second} * kCorners;
    }

    std::vector<uint64_t> missing_blocks(float level) const {
        const auto n = static_cast<int64_t>(grid_.blocks.size());
        constexpr int64_t kGrain = 512;
        std::vector<std::vector<uint64_t>> found(static_cast<size_t>((n + kGrain - 1) / kGrain));
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t block = begin; block < end; ++block)
                find_missing(grid_.blocks[block], level, found[begin / kGrain]);
        });
        std::vector<uint64_t> keys;
        for (const auto& some : found) keys.insert(keys.end(), some.begin(), some.end());
        sort_unique(keys);
        return keys;
    }

    /// The blocks not there that hold corners of cells about a crossed edge which begins in this block.
    void find_missing(const BlockPlace& block, float level, std::vector<uint64_t>& to) const {
        const float* values = values_of(block);
        bool needed[3][3][3] = {};
        for (int axis = 0; axis < 3; ++axis) {
            BlockPlace after = block;
            ++after[axis];
            const float* next_values = values_of(after);
            constexpr int kStep[3] = {1, kSide, kSide * kSide};
            for (int corner = 0; corner < kCorners; ++corner) {
                const int local[3] = {corner % kSide, corner / kSide % kSide, corner / (kSide * kSide)};
                const bool last = local[axis] == kSide - 1;
                if (last && next_values == nullptr) continue;
                const float next =
                    last ? next_values[corner - (kSide - 1) * kStep[axis]] : values[corner + kStep[axis]];
                if ((values[corner] >= level) == (next >= level)) continue;
                int from[3], upto[3];  // blocks to each side, as -1, 0, 1
                for (int i = 0; i < 3; ++i) {
                    from[i] = i != axis && local[i] == 0 ? -1 : 0;
                    upto[i] = local[i] == kSide - 1 ? 1 : 0;
                }
                for (int z = from[2]; z <= upto[2]; ++z) {
                    for (int y = from[1]; y <= upto[1]; ++y) {
                        for (int x = from[0]; x <= upto[0]; ++x) needed[z + 1][y + 1][x + 1] = true;
                    }
                }
            }
        }
        for (int i = 0; i < 27; ++i) {
            if (!needed[i / 9][i / 3 % 3][i % 3]) continue;
            const BlockPlace place = {block[0] + i % 3 - 1, block[1] + i / 3 % 3 - 1, block[2] + i / 9 - 1};
            if (values_of(place) == nullptr) to.push_back(key_of(place));
        }
    }

    const WindingIndex& field_;
    float accuracy_;
    SparseGrid grid_;
    std::unordered_map<uint64_t, int32_t> number_;  // of a block, by its key
};

/// The median of the field at the points, within what keeps the surface bounded: towards 0 and 1 it goes anywhere.
float level_of(const WindingIndex& field, const OrientedPoints& cloud, float accuracy) {
    constexpr int64_t kMost = 1 << 16;
    const int64_t stride = (cloud.size() + kMost - 1) / kMost, n = (cloud.size() + stride - 1) / stride;
    Array<float, 2> some({n, 3});
    for (int64_t i = 0; i < n; ++i) std::copy_n(cloud.points.data() + 3 * stride * i, 3, some.data() + 3 * i);
    std::vector<float> values(static_cast<size_t>(n));
    winding_number(field, some.view(), View<float, 1>(values.data(), {n}), accuracy);
    const double median = median_of(std::move(values));
    STIPPLE_REQUIRE(median > -0.25, "{}: the normals point inwards", kWho);
    return static_cast<float>(std::clamp(median, 0.25, 0.75));
}

}  // namespace

const Fields& reconstruct_fields() {
    using Options = ReconstructOptions;
    static const Fields fields = {
        field<&Options::resolution>("resolution", "Cells along the longest side; 0: by the points' spacing")
            .between(0, 1 << 20),
        field<&Options::softening>("softening", "More is smoother, less keeps detail and noise").from(0),
        field<&Options::min_component>("min_component", "Leave out parts of less than this share of the area")
            .between(0, 1),
        field<&Options::k>("area_k", "Neighbours that tell the area of a point").between(1, 127),
        field<&Options::thinnest>("thinnest", "Spacings between sheets that are kept apart; 0 lets them melt")
            .between(0, 2),
        field<&Options::accuracy>("accuracy", "Of the winding number: more is more exact and slower")
            .above(0)
            .may_be_infinite()};
    return fields;
}

Mesh reconstruct_surface(View<const float, 2> points, View<const float, 2> normals, const ReconstructOptions& options) {
    for (const auto& rows : {points, normals}) {
        STIPPLE_REQUIRE(rows.device() == Device{}, "{}: points on {}; this runs on the CPU", kWho, rows.device());
        STIPPLE_REQUIRE(rows.size(1) == 3 && rows.is_contiguous() && rows.size(0) == points.size(0),
                        "{}: points {} and normals {} must be [n, 3] without gaps", kWho,
                        shape_text(points.shape().data(), 2), shape_text(normals.shape().data(), 2));
    }
    check_fields(reconstruct_fields(), &options);
    OrientedPoints cloud = usable(points, normals);
    Array<float, 1> areas({cloud.size()});
    point_areas(cloud.points.view(), cloud.normals.view(), areas.view(), options.k);
    double extent = 0;
    for (int axis = 0; axis < 3; ++axis)
        extent = std::max(extent, double{cloud.box.high[axis]} - double{cloud.box.low[axis]});
    const double spacing = std::sqrt(median_of({areas.span().begin(), areas.span().end()}));
    STIPPLE_REQUIRE(extent > 0 && spacing > 0, "{}: half of the points lie in one place", kWho);
    constexpr int kFinest = 4096;
    const double step = options.resolution > 0 ? extent / options.resolution : std::max(spacing, extent / kFinest);

    WindingIndex field(cloud.points.view(), cloud.normals.view(), areas.view(), options.softening);
    std::vector<float> shifts;
    if (options.thinnest > 0)
        shifts = sheet_shifts(cloud.points.view(), cloud.normals.view(), areas.view(), static_cast<float>(spacing),
                              field, options.thinnest, options.accuracy);
    if (!shifts.empty()) {
        shift(cloud, shifts);
        field = WindingIndex(cloud.points.view(), cloud.normals.view(), areas.view(), options.softening);
    }
    const float level = level_of(field, cloud, options.accuracy);
    Mesh mesh = marching_cubes(FieldGrid(field, cloud, step, options.accuracy).complete(level), level);
    if (!shifts.empty())
        undo_shifts(cloud.points.view(), cloud.normals.view(), areas.view(), shifts, mesh.vertices.positions.view());
    if (options.min_component == 0) return mesh;
    double area = 0;
    for (double part : connected_components(mesh).areas) area += part;
    ComponentLimits limits;
    limits.min_area = options.min_component * area;
    return std::move(remove_small_components(mesh, limits).mesh);
}

}  // namespace stipple::geometry
