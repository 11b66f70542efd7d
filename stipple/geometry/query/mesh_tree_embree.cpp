#ifdef STIPPLE_WITH_EMBREE

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/query/embree_scene.h"

namespace stipple::geometry::cpu {
namespace {

constexpr int64_t kGrain = 4096;
constexpr float kMostMiter = 4096;  // how far the corner of a sliver may move, in kWiden

void check(RTCDevice device) {
    const RTCError code = rtcGetDeviceError(device);
    if (code == RTC_ERROR_NONE) return;
    if (code == RTC_ERROR_OUT_OF_MEMORY) throw Error(ErrorCode::out_of_memory, "MeshIndex: Embree has no memory");
    throw Error(ErrorCode::internal, fmt::format("MeshIndex: Embree failed with code {}", static_cast<int>(code)));
}

/// Every edge moved outwards by kWiden. The longest edge, before that.
float widen_faces(EmbreeScene& scene, Triangles& triangles, int64_t begin, int64_t end) {
    float longest_of_all = 0;
    for (int64_t face = begin; face < end; ++face) {
        float corner[3][3];
        for (int k = 0; k < 3; ++k) {
            const Vec3d p = to_local(scene, triangles.corner(static_cast<int32_t>(face), k));
            corner[k][0] = static_cast<float>(p.x);
            corner[k][1] = static_cast<float>(p.y);
            corner[k][2] = static_cast<float>(p.z);
        }
        float edge[3][3], length[3];  // edge k: from corner k to the next
        for (int k = 0; k < 3; ++k) {
            float sum = 0;
            for (int axis = 0; axis < 3; ++axis) {
                edge[k][axis] = corner[(k + 1) % 3][axis] - corner[k][axis];
                sum += edge[k][axis] * edge[k][axis];
            }
            length[k] = std::sqrt(sum);
        }
        const float *e = edge[0], *f = edge[1];
        const float x = e[1] * f[2] - e[2] * f[1], y = e[2] * f[0] - e[0] * f[2], z = e[0] * f[1] - e[1] * f[0];
        const float area = std::sqrt(x * x + y * y + z * z);  // twice the triangle's
        const float longest = std::max(length[0], std::max(length[1], length[2]));
        longest_of_all = std::max(longest_of_all, longest);
        const float height = longest > 0 ? area / longest : 0;
        triangles.faces.data()[16 * face + 9] = height / (3 * kWiden);
        triangles.faces.data()[16 * face + 10] = longest > 0 ? 1 / (kError * longest) : 0;
        for (int k = 0; k < 3; ++k) {
            const int before = (k + 2) % 3;
            float* to = scene.corners.data() + 4 * (3 * face + k);
            const float sides = length[before] * length[k];
            const float miter = area > 0 ? kWiden * std::min(kMostMiter, sides / area) : 0;  // over the sine
            for (int axis = 0; axis < 3; ++axis) {
                const float away = area > 0 ? edge[before][axis] / length[before] - edge[k][axis] / length[k] : 0;
                to[axis] = corner[k][axis] + miter * away;
            }
            to[3] = 0;
            scene.faces.data()[3 * face + k] = static_cast<int32_t>(3 * face + k);
        }
    }
    return longest_of_all;
}

struct PointContext {
    const Triangles* triangles;
    Vec3d query;
    NearestFace best;
    double scale;
    float slack;

    /// No face beyond this many of Embree's lengths can be as near as the best.
    float radius() const { return static_cast<float>(best.distance * scale * (1 + 0x1p-20)) + slack; }
};

bool offer_face(RTCPointQueryFunctionArguments* args) {
    auto& context = *static_cast<PointContext*>(args->userPtr);
    const auto face = static_cast<int32_t>(args->primID);
    if (!context.best.offer(closest_on_triangle(context.query, (*context.triangles)(face)), face)) return false;
    args->query->radius = context.radius();
    return true;
}

}  // namespace

std::string embree_version() {
    return fmt::format("Embree {}.{}.{}", RTC_VERSION_MAJOR, RTC_VERSION_MINOR, RTC_VERSION_PATCH);
}

std::shared_ptr<const EmbreeScene> build_embree(Triangles& triangles) {
    const int64_t m = triangles.size();
    if (m == 0 || m > INT32_MAX / 3) return nullptr;  // its corners are numbered by 32 bits
    auto built = std::make_shared<EmbreeScene>();
    const float *low = triangles.box.low, *high = triangles.box.high;
    built->center = {(double{low[0]} + high[0]) / 2, (double{low[1]} + high[1]) / 2, (double{low[2]} + high[2]) / 2};
    double extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, double{high[axis]} - low[axis]);
    if (extent > 0) built->scale = std::ldexp(1.0, -std::ilogb(extent));
    built->corners = Array<float, 2>({3 * m, 4});
    built->faces = Array<int32_t, 2>({m, 3});
    std::vector<float> longest(static_cast<size_t>((m + kGrain - 1) / kGrain));
    parallel_for(m, kGrain, [&](int64_t begin, int64_t end) {
        longest[begin / kGrain] = widen_faces(*built, triangles, begin, end);
    });
    built->longest = *std::max_element(longest.begin(), longest.end());

    built->device = rtcNewDevice(nullptr);
    check(built->device);
    built->scene = rtcNewScene(built->device);
    check(built->device);
    rtcSetSceneFlags(built->scene, static_cast<RTCSceneFlags>(RTC_SCENE_FLAG_CONTEXT_FILTER_FUNCTION));
    const RTCGeometry geometry = rtcNewGeometry(built->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    check(built->device);
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, built->corners.data(), 0, 16,
                               static_cast<size_t>(3 * m));
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, built->faces.data(), 0, 12,
                               static_cast<size_t>(m));
    rtcCommitGeometry(geometry);
    rtcAttachGeometry(built->scene, geometry);
    rtcReleaseGeometry(geometry);  // the scene keeps it
    check(built->device);
    rtcCommitScene(built->scene);
    check(built->device);
    return built;
}

NearestFace nearest_face(const EmbreeScene& scene, const Triangles& triangles, const float* query, int32_t guess) {
    const Vec3d local = to_local(scene, query);
    const double far = std::max(std::abs(local.x), std::max(std::abs(local.y), std::abs(local.z)));
    PointContext context{&triangles, {query[0], query[1], query[2]}, {}, scene.scale, 0};
    context.slack = static_cast<float>(0x1p-21 * (far + 2));
    if (guess >= 0) context.best.offer(closest_on_triangle(context.query, triangles(guess)), guess);
    RTCPointQuery point;
    point.x = static_cast<float>(local.x);
    point.y = static_cast<float>(local.y);
    point.z = static_cast<float>(local.z);
    point.time = 0;
    point.radius = context.radius();
    RTCPointQueryContext stack;
    rtcInitPointQueryContext(&stack);
    rtcPointQuery(scene.scene, &point, &stack, offer_face, &context);
    return context.best;
}

}  // namespace stipple::geometry::cpu

#endif
