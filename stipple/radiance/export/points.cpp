#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/random_sample.h"
#include "stipple/ops/voxel_grid.h"
#include "stipple/radiance/export.h"
#include "stipple/radiance/march/ray.h"
#include "stipple/radiance/render.h"
#include "stipple/radiance/render/cpu_field.h"

namespace stipple::radiance {
namespace {

constexpr int kVoxelsApart = 2;  // within which two depths are of the same surface

struct DepthMap {
    CameraView camera;
    Array<float, 3> depth;
};

struct SurfacePoint {
    Vec3f place, normal;
    std::array<uint8_t, 3> colour = {};
    float alpha;
    int32_t view;
};

/// The same picture with fewer pixels.
Camera reduced(const Camera& camera, int factor) {
    Camera smaller = camera;
    smaller.width = std::max(1, camera.width / factor);
    smaller.height = std::max(1, camera.height / factor);
    const float x = static_cast<float>(smaller.width) / static_cast<float>(camera.width);
    const float y = static_cast<float>(smaller.height) / static_cast<float>(camera.height);
    smaller.fx *= x, smaller.cx *= x;
    smaller.fy *= y, smaller.cy *= y;
    return smaller;
}

uint8_t byte_of(float value) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0f, 1.0f)));
}

bool is_in(const std::optional<Box<double>>& box, const std::array<double, 3>& origin, Vec3f p) {
    if (!box) return true;
    for (int axis = 0; axis < 3; ++axis) {
        const double at = origin[static_cast<size_t>(axis)] + p[axis];
        if (!(at >= box->low[axis] && at <= box->high[axis])) return false;
    }
    return true;
}

/// A point for each pixel in which the surface is seen.
void add_points(const RenderedView& view, const CameraView& camera, int32_t number, const Field& field,
                const PointsOptions& options, std::vector<SurfacePoint>& points) {
    for (int y = 0; y < camera.height; ++y)
        for (int x = 0; x < camera.width; ++x) {
            const int64_t pixel = static_cast<int64_t>(y) * camera.width + x;
            const float depth = view.depth.data()[pixel], alpha = view.alpha.data()[pixel];
            if (!std::isfinite(depth)) continue;
            const Ray ray = camera_ray(camera, x, y);
            SurfacePoint point;
            point.place = ray.origin + depth * ray.direction;
            if (!is_in(options.box, field.origin, point.place)) continue;
            for (int axis = 0; axis < 3; ++axis) point.normal[axis] = view.normal.data()[3 * pixel + axis];
            point.alpha = alpha;
            point.view = number;
            points.push_back(point);
        }
}

enum class Sight { outside, agrees, before, behind };

/// What a view says of a place: `behind`, it sees something further away there.
Sight sight_of(const DepthMap& map, Vec3f place, float apart) {
    const float* m = map.camera.to_world;
    const Vec3f from = place - Vec3f{m[3], m[7], m[11]};
    // The inverse of a rotation is its transpose.
    const float cx = m[0] * from.x + m[4] * from.y + m[8] * from.z, cy = m[1] * from.x + m[5] * from.y + m[9] * from.z;
    const float depth = -(m[2] * from.x + m[6] * from.y + m[10] * from.z);
    if (!(depth > 0)) return Sight::outside;
    const float u = map.camera.cx + map.camera.fx * cx / depth, v = map.camera.cy - map.camera.fy * cy / depth;
    if (!(u >= 0 && v >= 0 && u < static_cast<float>(map.camera.width) && v < static_cast<float>(map.camera.height)))
        return Sight::outside;
    const float seen = map.depth.view()(static_cast<int64_t>(v), static_cast<int64_t>(u), 0);
    if (std::fabs(seen - depth) <= apart) return Sight::agrees;
    return seen > depth ? Sight::behind : Sight::before;
}

float confidence_of(const SurfacePoint& point, const std::vector<DepthMap>& maps, float apart) {
    int agree = 0, free = 0;
    for (size_t i = 0; i < maps.size(); ++i) {
        if (static_cast<int32_t>(i) == point.view) continue;
        const Sight sight = sight_of(maps[i], point.place, apart);
        agree += sight == Sight::agrees;
        free += sight == Sight::behind;
    }
    return point.alpha * static_cast<float>(1 + agree) / static_cast<float>(1 + agree + free);
}

template <class Indices>
void keep(std::vector<SurfacePoint>& points, const Indices& indices) {
    std::vector<SurfacePoint> kept;
    for (int32_t i : indices) kept.push_back(points[static_cast<size_t>(i)]);
    points = std::move(kept);
}

/// One point for each cube of that edge.
void thin(std::vector<SurfacePoint>& points, double spacing) {
    const auto n = static_cast<int64_t>(points.size());
    if (n == 0) return;
    Array<float, 2> places({n, 3});
    for (int64_t i = 0; i < n; ++i)
        for (int axis = 0; axis < 3; ++axis) places.data()[3 * i + axis] = points[static_cast<size_t>(i)].place[axis];
    const View<const float, 2> rows = places.view();
    const ops::VoxelGrid grid = ops::voxel_grid(ops::Clouds(rows), static_cast<float>(spacing));
    Array<float, 2> means({grid.cells.rows(), 3});
    ops::voxel_centroids(grid, rows, means.view());
    Array<int32_t, 1> chosen({grid.cells.rows()});
    ops::voxel_representatives(grid, rows, means.view(), chosen.view());
    keep(points, chosen.span());
}

/// As the camera of each point sees the place itself: a pixel at a border would mix in what is behind it.
void add_colours(const Field& field, const std::vector<DepthMap>& maps, std::vector<SurfacePoint>& points) {
    const CpuField cpu(field);
    parallel_for(static_cast<int64_t>(points.size()), 256, [&](int64_t begin, int64_t end) {
        std::vector<float> part(kHidden);
        const float* view = part.data();
        for (int64_t i = begin; i < end; ++i) {
            SurfacePoint& point = points[static_cast<size_t>(i)];
            const float* m = maps[static_cast<size_t>(point.view)].camera.to_world;
            Vec3f place = point.place;
            for (int axis = 0; axis < 3; ++axis)
                place[axis] = std::clamp(place[axis], cpu.grid.low[axis], cpu.grid.high[axis]);
            float features[kFeatures], colour[3];
            cpu.features_at(cell_of(cpu.grid, to_nodes(cpu.grid, place)), features);
            if (cpu.colour.has_network()) cpu.colour.view_part(unit(place - Vec3f{m[3], m[7], m[11]}), part.data());
            cpu.colour.colours({features, kFeatures}, {&view, 1}, colour);
            for (size_t c = 0; c < 3; ++c) point.colour[c] = byte_of(colour[c]);
        }
    });
}

PointCloud cloud_of(const std::vector<SurfacePoint>& points, const std::vector<float>& confidences,
                    const std::array<double, 3>& origin) {
    const auto n = static_cast<int64_t>(points.size());
    PointCloud cloud(n);
    cloud.origin = origin;
    Attribute normal("normal", DType::f32, n, 3), colour("color", DType::u8, n, 3),
        confidence("confidence", DType::f32, n, 1);
    for (int64_t i = 0; i < n; ++i) {
        const SurfacePoint& point = points[static_cast<size_t>(i)];
        for (int axis = 0; axis < 3; ++axis) {
            cloud.positions.data()[3 * i + axis] = point.place[axis];
            normal.as<float>()(i, axis) = point.normal[axis];
            colour.as<uint8_t>()(i, axis) = point.colour[static_cast<size_t>(axis)];
        }
        confidence.as<float>()(i, 0) = confidences[static_cast<size_t>(i)];
    }
    cloud.attributes.push_back(std::move(normal));
    cloud.attributes.push_back(std::move(colour));
    cloud.attributes.push_back(std::move(confidence));
    return cloud;
}

/// All views with fewer pixels, their depths and a point for each pixel that sees the surface.
struct Surface {
    std::vector<DepthMap> maps;
    std::vector<SurfacePoint> points;
};

using Done = std::function<void(int64_t done, int64_t total)>;

Surface surface_of(Renderer& renderer, const Field& field, const PointsOptions& options, int reduction,
                   const Done& done) {
    Surface surface;
    const auto views = static_cast<int64_t>(field.cameras.size());
    for (const Camera& camera : field.cameras) {
        const Camera smaller = reduced(camera, reduction);
        RenderedView view = renderer.render(smaller, {.geometry = true, .colour = false});
        const CameraView camera_view = view_of(smaller);
        add_points(view, camera_view, static_cast<int32_t>(surface.maps.size()), field, options, surface.points);
        surface.maps.push_back({camera_view, std::move(view.depth)});
        if (done) done(static_cast<int64_t>(surface.maps.size()), views);
    }
    return surface;
}

/// The factor at which a picture still has two pixels for each spacing, or two points for each of the count; small
/// pictures tell how many pixels see the surface.
int reduction_for(Renderer& renderer, const Field& field, const PointsOptions& options) {
    double factor = 1;
    if (options.spacing > 0) {
        factor = INT16_MAX;
        for (const Camera& camera : field.cameras) {
            Vec3f away;
            for (int axis = 0; axis < 3; ++axis)
                away[axis] = 0.5f * (field.grid.box.low[axis] + field.grid.box.high[axis]) -
                             camera.to_world[static_cast<size_t>(4 * axis + 3)];
            factor = std::min(factor, 0.5 * options.spacing * std::min(camera.fx, camera.fy) / length(away));
        }
    } else if (options.count > 0) {
        constexpr int kProbe = 8;
        const Surface probe = surface_of(renderer, field, options, kProbe, {});
        factor =
            kProbe * std::sqrt(static_cast<double>(probe.points.size()) / (2.0 * static_cast<double>(options.count)));
    }
    return factor > 1 ? static_cast<int>(factor) : 1;
}

/// Thinned, with the confidences of the points that are sure enough.
std::vector<float> choose(Surface& surface, const Field& field, const PointsOptions& options) {
    std::vector<SurfacePoint>& points = surface.points;
    if (options.spacing > 0) thin(points, options.spacing);
    std::vector<float> confidences(points.size());
    const float apart = kVoxelsApart * field.grid.voxel;
    parallel_for(static_cast<int64_t>(points.size()), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            confidences[static_cast<size_t>(i)] = confidence_of(points[static_cast<size_t>(i)], surface.maps, apart);
    });
    std::vector<int32_t> sure;
    for (size_t i = 0; i < points.size(); ++i)
        if (confidences[i] >= static_cast<float>(options.least_confidence)) sure.push_back(static_cast<int32_t>(i));
    if (options.count > 0 && static_cast<int64_t>(sure.size()) > options.count) {
        Array<int32_t, 1> drawn({options.count});
        const auto all = static_cast<int64_t>(sure.size());
        ops::random_sample(ops::Batch::single(all), ops::Batch::single(options.count), options.seed, drawn.view());
        std::vector<int32_t> some;
        for (int32_t i : drawn.span()) some.push_back(sure[static_cast<size_t>(i)]);
        sure = std::move(some);
    }
    keep(points, sure);
    std::vector<float> kept;
    for (int32_t i : sure) kept.push_back(confidences[static_cast<size_t>(i)]);
    return kept;
}

}  // namespace

const Fields& point_export_fields() {
    using Options = PointsOptions;
    static const Fields fields = {
        field<&Options::count>("count", "Points wanted").from(0),
        field<&Options::spacing>("spacing", "Instead: one point for each cube of this edge")
            .unit("unit of the cameras")
            .shown("D")
            .from(0)
            .no_default(),
        field<&Options::least_confidence>("confidence", "Leave out points that have less, 0 to 1").between(0, 1)};
    return fields;
}

PointCloud export_points(const Field& field, const PointsOptions& options, Device device,
                         const std::function<void(int64_t done, int64_t total)>& done) {
    STIPPLE_REQUIRE(!field.cameras.empty(), "the field has no cameras: nothing tells what was seen of it");
    check_fields(point_export_fields(), &options);
    Renderer renderer(field, device);
    int reduction = reduction_for(renderer, field, options);
    for (;;) {
        Surface surface = surface_of(renderer, field, options, reduction, done);
        const std::vector<float> confidences = choose(surface, field, options);
        const bool is_enough = options.spacing > 0 || static_cast<int64_t>(confidences.size()) >= options.count;
        if (is_enough || reduction == 1) {
            add_colours(field, surface.maps, surface.points);
            return cloud_of(surface.points, confidences, field.origin);
        }
        reduction /= 2;  // fewer points were sure than the small pictures promised
    }
}

}  // namespace stipple::radiance
