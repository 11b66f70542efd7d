#include "stipple/geometry/mesh_tree_embree.h"

#ifdef STIPPLE_WITH_EMBREE

#include <cmath>
#include <embree3/rtcore.h>

namespace stipple::geometry::cpu {

struct EmbreeScene {
    RTCDevice device = nullptr;
    RTCScene scene = nullptr;

    EmbreeScene() = default;
    EmbreeScene(const EmbreeScene&) = delete;
    EmbreeScene& operator=(const EmbreeScene&) = delete;
    ~EmbreeScene() {
        if (scene) rtcReleaseScene(scene);
        if (device) rtcReleaseDevice(device);
    }
};

namespace {

// Embree rounds distances and t in its own way. What it may leave out is therefore wider than the best so far by this
// part, many roundings of a float; the exact test of triangle.h decides.
constexpr float kMargin = 4e-6f;

// Embree's tests multiply up to three lengths.
constexpr float kLargest = 1e12f, kSmallestExtent = 1e-9f;

void check(RTCDevice device) {
    const RTCError code = rtcGetDeviceError(device);
    if (code == RTC_ERROR_NONE) return;
    if (code == RTC_ERROR_OUT_OF_MEMORY) throw Error(ErrorCode::out_of_memory, "MeshIndex: Embree has no memory");
    throw Error(ErrorCode::internal, fmt::format("MeshIndex: Embree failed with code {}", static_cast<int>(code)));
}

struct PointContext {
    const Triangles* triangles;
    Vec3 query;
    NearestFace best;
};

bool offer_face(RTCPointQueryFunctionArguments* args) {
    auto& context = *static_cast<PointContext*>(args->userPtr);
    const auto face = static_cast<int32_t>(args->primID);
    if (!context.best.offer(closest_on_triangle(context.query, (*context.triangles)(face)), face)) return false;
    args->query->radius = context.best.distance * (1 + kMargin);
    return true;
}

/// A ray as Embree gets it: directions of about length 1, and a range that is a little too wide.
struct ScaledRay {
    RTCRay ray;
    float scale;  // t of Embree = t * scale
};

ScaledRay scale_ray(const Triangles& triangles, const Ray& from) {
    const float* d = from.direction;
    const float longest = std::max(std::abs(d[0]), std::max(std::abs(d[1]), std::abs(d[2])));
    int exponent = 0;
    if (longest < 0x1p-16f || longest > 0x1p16f) std::frexp(longest, &exponent);
    const float inverse = std::ldexp(1.0f, -exponent);  // a power of two: nothing is rounded
    const float* o = from.origin;
    const float reach = triangles.largest + std::max(std::abs(o[0]), std::max(std::abs(o[1]), std::abs(o[2])));
    ScaledRay scaled;
    scaled.scale = std::ldexp(1.0f, exponent);
    const float slack = kMargin * reach / (longest * inverse);
    scaled.ray.org_x = o[0], scaled.ray.org_y = o[1], scaled.ray.org_z = o[2];
    scaled.ray.dir_x = d[0] * inverse, scaled.ray.dir_y = d[1] * inverse, scaled.ray.dir_z = d[2] * inverse;
    scaled.ray.tnear = std::max(0.0f, from.t_near * scaled.scale * (1 - kMargin) - slack);
    scaled.ray.tfar = from.t_far * scaled.scale * (1 + kMargin) + slack;
    scaled.ray.time = 0;
    scaled.ray.mask = 0xffffffffu;  // a mask of 0 hits nothing
    scaled.ray.id = 0;
    scaled.ray.flags = 0;
    return scaled;
}

struct RayContext {
    RTCIntersectContext embree;  // first: Embree hands its address on
    const Triangles* triangles;
    ShearedRay sheared;
    float t_near, t_far, scale;
    FirstHit best;
    std::vector<RayHit>* all;

    RayContext(const Triangles& of, const Ray& ray, float ray_scale, RTCFilterFunctionN filter)
        : triangles(&of),
          sheared(shear_ray({ray.origin[0], ray.origin[1], ray.origin[2]},
                            {ray.direction[0], ray.direction[1], ray.direction[2]})),
          t_near(ray.t_near),
          t_far(ray.t_far),
          scale(ray_scale),
          all(nullptr) {
        rtcInitIntersectContext(&embree);
        embree.filter = filter;
    }
};

/// Embree says which faces are hit, for it says yes to at least one side of every edge; where exactly is computed in
/// double. False when that is out of range.
bool locate(const RayContext& context, const RTCFilterFunctionNArguments* args, RayHit& hit) {
    hit.face = static_cast<int32_t>(RTCHitN_primID(args->hit, 1, 0));
    const OnRay met = meet_triangle(context.sheared, (*context.triangles)(hit.face));
    hit.t = static_cast<float>(met.t);
    hit.v = met.v / met.weight;
    hit.w = met.w / met.weight;
    if (!std::isfinite(hit.t)) {  // seen edge-on
        hit.t = RTCRayN_tfar(args->ray, 1, 0) / context.scale;
        hit.v = RTCHitN_u(args->hit, 1, 0);
        hit.w = RTCHitN_v(args->hit, 1, 0);
    }
    return hit.t >= context.t_near && hit.t <= context.t_far;
}

void keep_first(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    RayHit hit;
    if (!locate(context, args, hit)) {
        args->valid[0] = 0;
        return;
    }
    context.best.offer(hit.t, hit.v, hit.w, hit.face);
    const float reach = context.best.t * context.scale;
    RTCRayN_tfar(args->ray, 1, 0) = reach + kMargin * std::abs(reach);
}

void keep_any(const RTCFilterFunctionNArguments* args) {
    RayHit hit;
    if (!locate(*reinterpret_cast<RayContext*>(args->context), args, hit)) args->valid[0] = 0;
}

void keep_all(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    RayHit hit;
    if (locate(context, args, hit)) context.all->push_back(hit);
    args->valid[0] = 0;  // go on
}

RTCRayHit with_hit(const RTCRay& ray) {
    RTCRayHit query{};
    query.ray = ray;
    query.hit.geomID = RTC_INVALID_GEOMETRY_ID;
    query.hit.primID = RTC_INVALID_GEOMETRY_ID;
    query.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
    return query;
}

}  // namespace

std::string embree_version() {
    return fmt::format("Embree {}.{}.{}", RTC_VERSION_MAJOR, RTC_VERSION_MINOR, RTC_VERSION_PATCH);
}

std::shared_ptr<const EmbreeScene> build_embree(const Triangles& triangles) {
    if (triangles.faces() == 0 || triangles.largest > kLargest || triangles.extent < kSmallestExtent) return nullptr;
    auto built = std::make_shared<EmbreeScene>();
    built->device = rtcNewDevice(nullptr);
    check(built->device);
    built->scene = rtcNewScene(built->device);
    check(built->device);
    rtcSetSceneFlags(built->scene,
                     static_cast<RTCSceneFlags>(RTC_SCENE_FLAG_ROBUST | RTC_SCENE_FLAG_CONTEXT_FILTER_FUNCTION));
    const RTCGeometry geometry = rtcNewGeometry(built->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    check(built->device);
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, triangles.vertices.data(), 0, 16,
                               static_cast<size_t>(triangles.vertices.size(0)));
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, triangles.corners.data(), 0, 12,
                               static_cast<size_t>(triangles.faces()));
    rtcCommitGeometry(geometry);
    rtcAttachGeometry(built->scene, geometry);
    rtcReleaseGeometry(geometry);  // the scene keeps it
    check(built->device);
    rtcCommitScene(built->scene);
    check(built->device);
    return built;
}

NearestFace nearest_face(const EmbreeScene& scene, const Triangles& triangles, const float* query, int32_t guess) {
    PointContext context{&triangles, {query[0], query[1], query[2]}, {}};
    if (guess >= 0) context.best.offer(closest_on_triangle(context.query, triangles(guess)), guess);
    RTCPointQuery point;
    point.x = query[0], point.y = query[1], point.z = query[2];
    point.time = 0;
    point.radius = context.best.distance * (1 + kMargin);
    RTCPointQueryContext stack;
    rtcInitPointQueryContext(&stack);
    rtcPointQuery(scene.scene, &point, &stack, offer_face, &context);
    return context.best;
}

FirstHit first_hit(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray) {
    const ScaledRay scaled = scale_ray(triangles, ray);
    RayContext context(triangles, ray, scaled.scale, keep_first);
    RTCRayHit query = with_hit(scaled.ray);
    rtcIntersect1(scene.scene, &context.embree, &query);
    return context.best;
}

bool any_hit(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray) {
    ScaledRay scaled = scale_ray(triangles, ray);
    RayContext context(triangles, ray, scaled.scale, keep_any);
    rtcOccluded1(scene.scene, &context.embree, &scaled.ray);
    return scaled.ray.tfar < 0;
}

void all_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits) {
    const ScaledRay scaled = scale_ray(triangles, ray);
    RayContext context(triangles, ray, scaled.scale, keep_all);
    context.all = &hits;
    RTCRayHit query = with_hit(scaled.ray);
    rtcIntersect1(scene.scene, &context.embree, &query);
}

}  // namespace stipple::geometry::cpu

#endif
