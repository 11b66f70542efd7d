#include "stipple/tasks/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/inverse_density.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/ops/random_sample.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::tasks {
namespace {

using ops::Batch;
using ops::VoxelGrid;

/// Elimination takes time with the square of n / m, and more than this adds little to what it chooses.
constexpr int64_t kPoissonCandidates = 10;

using Indices = Array<int32_t, 1>;

Indices random_indices(int64_t n, int64_t count, uint64_t seed) {
    Indices indices({count});
    ops::random_sample(Batch::single(n), Batch::single(count), seed, indices.view());
    return indices;
}

/// The points chosen, by every method but voxel, spacing and those of networks.
Indices choose(const PointCloud& cloud, const SampleSettings& settings, Device device) {
    const int64_t n = cloud.size(), m = settings.count;
    STIPPLE_REQUIRE(m <= n, "asked for {} of {} points", m, n);
    if (settings.method == SampleMethod::random) return random_indices(n, m, settings.seed);
    const Array<float, 2> copy = device == Device{} ? Array<float, 2>() : cloud.positions.to(device);
    const View<const float, 2> points = device == Device{} ? cloud.positions.view() : copy.view();
    Indices indices({m}, device);
    switch (settings.method) {
        case SampleMethod::fps: {
            STIPPLE_REQUIRE(settings.start < n, "start {} of {} points", settings.start, n);
            ops::FarthestPointOptions options;
            options.start = static_cast<int32_t>(settings.start);
            ops::farthest_point_sample(points, Batch::single(m), indices.view(), {}, options);
            break;
        }
        case SampleMethod::poisson:
            ops::poisson_disk(points, Batch::single(m), indices.view(),
                              {static_cast<float>(settings.radius), settings.progressive});
            break;
        case SampleMethod::inverse_density: {
            ops::InverseDensityOptions options{settings.k, settings.dimension};
            options.k = static_cast<int>(std::min<int64_t>(options.k, n - 1));
            if (options.k == 0) return random_indices(n, m, settings.seed);  // a single point has no neighbours
            ops::inverse_density_sample(points, Batch::single(m), settings.seed, indices.view(), options);
            break;
        }
        default: STIPPLE_ASSERT(false);
    }
    return indices.to(Device{});
}

/// The grid of a cloud as the CPU sees it.
struct Cells {
    int64_t count = 0;
    Array<int32_t, 1> order;
    Array<int64_t, 1> offsets;
};

/// The mean of each cell: floating point as it is, colours rounded, normals of unit length again.
template <class T>
Attribute mean_of(const Attribute& attribute, const Cells& cells, const Attribute& nearest) {
    const int64_t columns = attribute.components();
    Attribute mean(attribute.name(), attribute.dtype(), cells.count, columns);
    const bool is_normal = attribute.name() == "normal" && columns == 3;
    const View<const T, 2> from = attribute.as<T>(), instead = nearest.as<T>();
    const View<T, 2> to = mean.as<T>();
    parallel_for(cells.count, 1024, [&](int64_t begin, int64_t end) {
        std::vector<double> sum(static_cast<size_t>(columns));
        for (int64_t cell = begin; cell < end; ++cell) {
            std::fill(sum.begin(), sum.end(), 0.0);
            const int64_t first = cells.offsets.data()[cell], last = cells.offsets.data()[cell + 1];
            for (int64_t i = first; i < last; ++i)
                for (int64_t c = 0; c < columns; ++c) sum[c] += static_cast<double>(from(cells.order.data()[i], c));
            double divisor = static_cast<double>(last - first);
            if (is_normal) divisor = std::sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
            for (int64_t c = 0; c < columns; ++c) {
                const double value = sum[c] / divisor;
                if (is_normal && !std::isfinite(value))
                    to(cell, c) = instead(cell, c);  // normals that cancel
                else if constexpr (std::is_integral_v<T>)
                    to(cell, c) = static_cast<T>(std::lround(value));
                else
                    to(cell, c) = static_cast<T>(value);
            }
        }
    });
    return mean;
}

/// Attributes of the cells: means where a mean makes sense, else those of the point nearest to the centroid.
Attributes cell_attributes(const PointCloud& cloud, const Cells& cells, const Indices& nearest) {
    Attributes attributes;
    for (const Attribute& attribute : cloud.attributes) {
        Attribute chosen = select(attribute, nearest.view());
        const bool is_color = attribute.name() == "color";
        if (attribute.dtype() == DType::f32)
            chosen = mean_of<float>(attribute, cells, chosen);
        else if (attribute.dtype() == DType::f64)
            chosen = mean_of<double>(attribute, cells, chosen);
        else if (is_color && attribute.dtype() == DType::u8)
            chosen = mean_of<uint8_t>(attribute, cells, chosen);
        else if (is_color && attribute.dtype() == DType::u16)
            chosen = mean_of<uint16_t>(attribute, cells, chosen);
        attributes.push_back(std::move(chosen));
    }
    return attributes;
}

PointCloud sample_by_voxels(const PointCloud& cloud, const SampleSettings& settings, Device device) {
    const auto size = static_cast<float>(settings.voxel);
    STIPPLE_REQUIRE(size > 0 && std::isfinite(size), "voxel must be above 0, got {}", settings.voxel);
    // Cells begin at multiples of the size in the world, whatever origin the cloud was given.
    std::array<double, 3> origin;
    for (int axis = 0; axis < 3; ++axis) origin[axis] = -std::fmod(cloud.origin[axis], settings.voxel);
    const Array<float, 2> points = cloud.positions.to(device);
    const VoxelGrid grid = ops::voxel_grid(points.view(), size, origin);
    const int64_t count = grid.cells.rows();
    Indices nearest({count}, device);
    if (settings.keep == CellPoint::nearest) {
        ops::voxel_representatives(grid, points.view(), nearest.view());
        return select(cloud, nearest.to(Device{}).view());
    }
    Array<float, 2> means({count, 3}, device);
    ops::voxel_centroids(grid, points.view(), means.view());
    ops::voxel_representatives(grid, points.view(), means.view(), nearest.view());
    PointCloud sampled;
    sampled.positions = means.to(Device{});
    sampled.origin = cloud.origin;
    sampled.facts = cloud.facts;
    sampled.attributes =
        cell_attributes(cloud, {count, grid.order.to(Device{}), grid.offsets.to(Device{})}, nearest.to(Device{}));
    return sampled;
}

}  // namespace

const Fields& sample_fields() {
    using Settings = SampleSettings;
    static const Fields fields = {
        field<&Settings::count>("count", "Points wanted").short_name('n').from(0).no_default(),
        field<&Settings::ratio>("ratio", "Points wanted, of those there are: 0.1").between(0, 1).no_default(),
        field<&Settings::method>("method",
                                 "random, fps, voxel, poisson, inverse-density, spacing; by a network: samplenet-cls, "
                                 "samplenet-reg, samplenet-rec, snet, gumbel, critical")
            .words(kSampleMethodWords)
            .shown("METHOD"),
        field<&Settings::model>("model", "by a network: its weights by path or name, or an engine"),
        field<&Settings::voxel>("voxel", "voxel: edge of a cell, one point for each")
            .unit("unit of the cloud")
            .from(0)
            .no_default()
            .only_with("method", "voxel"),
        field<&Settings::keep>("keep", "voxel: centroid, or the point nearest to the middle")
            .words(kCellPointWords)
            .only_with("method", "voxel"),
        field<&Settings::start>("start", "fps: the first point, from 0").from(0).only_with("method", "fps"),
        field<&Settings::radius>("radius", "poisson: of the discs; 0 chooses")
            .unit("unit of the cloud")
            .from(0)
            .only_with("method", "poisson"),
        field<&Settings::progressive>("progressive", "poisson: in an order whose beginnings are spread too")
            .only_with("method", "poisson"),
        field<&Settings::spacing>("spacing", "spacing: no two points within it, however many that leaves")
            .unit("unit of the cloud")
            .from(0)
            .shown("D")
            .no_default(),
        field<&Settings::k>("k", "inverse-density: neighbours that tell density, 1 to 127")
            .between(1, 127)
            .only_with("method", "inverse-density"),
        field<&Settings::dimension>("dimension", "inverse-density: 1, 2 surface, 3 solid")
            .between(1, 3)
            .only_with("method", "inverse-density")};
    return fields;
}

SampleSettings resolved(SampleSettings settings) {
    if (settings.spacing != 0 && settings.method == SampleSettings().method) settings.method = SampleMethod::spacing;
    check_fields(sample_fields(), &settings, as_option);
    STIPPLE_REQUIRE(settings.model.empty() || has_network(settings.method),
                    "--model is for methods with a network: samplenet-cls, -reg and -rec, snet, gumbel, critical");
    STIPPLE_REQUIRE(settings.spacing == 0 || settings.method == SampleMethod::spacing,
                    "--spacing is for --method spacing");
    const bool has_count = settings.count != 0 || settings.ratio != 0;
    if (settings.method == SampleMethod::voxel) {
        STIPPLE_REQUIRE(!has_count, "--method voxel takes no count: --voxel decides");
        STIPPLE_REQUIRE(settings.voxel != 0, "--method voxel needs --voxel SIZE");
    } else if (settings.method == SampleMethod::spacing) {
        STIPPLE_REQUIRE(!has_count, "--spacing takes no count: the distance decides");
        STIPPLE_REQUIRE(settings.spacing != 0, "--method spacing needs --spacing D");
    } else {
        STIPPLE_REQUIRE((settings.count == 0) != (settings.ratio == 0),
                        "how many points? Give -n COUNT, --ratio R or --spacing D");
    }
    return settings;
}

int64_t wanted_count(const SampleSettings& settings, int64_t n) {
    if (settings.ratio == 0) return settings.count;
    return std::max<int64_t>(1, std::llround(settings.ratio * static_cast<double>(n)));
}

SampleMethod sample_method_by_name(std::string_view name) {
    for (size_t i = 0; i < std::size(kSampleMethodWords); ++i)
        if (name == kSampleMethodWords[i]) return static_cast<SampleMethod>(i);
    throw Error(ErrorCode::bad_argument, fmt::format("unknown method \"{}\"", name),
                fmt::format("methods: {}", fmt::join(kSampleMethodWords, ", ")));
}

std::string_view name_of(SampleMethod method) {
    return kSampleMethodWords[static_cast<int>(method)];
}

bool has_network(SampleMethod method) {
    return method >= SampleMethod::samplenet_cls;
}

PointCloud sample_cloud(const PointCloud& cloud, const SampleSettings& settings, Device device) {
    STIPPLE_REQUIRE(!has_network(settings.method), "{} needs a network", name_of(settings.method));
    check_fields(sample_fields(), &settings);
    if (settings.method == SampleMethod::spacing) {
        const auto spacing = static_cast<float>(settings.spacing);
        STIPPLE_REQUIRE(spacing > 0 && std::isfinite(spacing), "spacing must be above 0, got {}", settings.spacing);
        return geometry::dedupe_points(cloud, spacing);
    }
    if (settings.method == SampleMethod::voxel) return sample_by_voxels(cloud, settings, device);
    const int64_t most = kPoissonCandidates * settings.count;
    if (settings.method == SampleMethod::poisson && cloud.size() > most)
        return sample_cloud(select(cloud, random_indices(cloud.size(), most, settings.seed).view()), settings, device);
    return select(cloud, choose(cloud, settings, device).view());
}

}  // namespace stipple::tasks
