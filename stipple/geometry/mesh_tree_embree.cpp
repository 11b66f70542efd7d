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

// Embree rounds distances in its own way. What it may leave out is therefore farther than the best so far by this part,
// many roundings of a float; the exact test of triangle.h decides.
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

constexpr int kPacket = 4;  // native on every machine

/// A power of two that brings the direction near length 1: t of Embree = t * scale. Nothing is rounded.
float scale_of(const Ray& ray) {
    const float* d = ray.direction;
    const float longest = std::max(std::abs(d[0]), std::max(std::abs(d[1]), std::abs(d[2])));
    if (longest > 0x1p-16f && longest < 0x1p16f) return 1;
    return std::ldexp(1.0f, std::ilogb(longest));
}

RTCRay embree_ray(const Ray& from, float scale, int id) {
    const float *o = from.origin, *d = from.direction;
    RTCRay ray;
    ray.org_x = o[0], ray.org_y = o[1], ray.org_z = o[2];
    ray.dir_x = d[0] / scale, ray.dir_y = d[1] / scale, ray.dir_z = d[2] / scale;
    ray.tnear = from.t_near * scale;
    ray.tfar = from.t_far * scale;
    ray.time = 0;
    ray.mask = 0xffffffffu;  // a mask of 0 hits nothing
    ray.id = static_cast<unsigned>(id);
    ray.flags = 0;
    return ray;
}

void put(RTCRay4& packet, int lane, const RTCRay& ray) {
    packet.org_x[lane] = ray.org_x, packet.org_y[lane] = ray.org_y, packet.org_z[lane] = ray.org_z;
    packet.dir_x[lane] = ray.dir_x, packet.dir_y[lane] = ray.dir_y, packet.dir_z[lane] = ray.dir_z;
    packet.tnear[lane] = ray.tnear, packet.tfar[lane] = ray.tfar, packet.time[lane] = ray.time;
    packet.mask[lane] = ray.mask, packet.id[lane] = ray.id, packet.flags[lane] = ray.flags;
}

/// What Embree knows of a hit.
struct EmbreeHit {
    float t;
    uint32_t face;
    float u, v;
};

/// Embree says which face is hit; where exactly is computed in double [Moeller and Trumbore 1997], since Embree's
/// single precision suffers from slivers. A face that Embree, which says yes to at least one side of every edge, takes
/// beyond its border by more than a rounding is seen all but edge-on: there its word stands.
RayHit refine(const Triangles& triangles, const Ray& ray, float scale, const EmbreeHit& hit) {
    const auto face = static_cast<int32_t>(hit.face);
    const Triangle triangle = triangles(face);
    const Vec3 origin = {ray.origin[0], ray.origin[1], ray.origin[2]};
    const Vec3 direction = {ray.direction[0], ray.direction[1], ray.direction[2]};
    const Vec3 ab = triangle.b - triangle.a, ac = triangle.c - triangle.a, from_a = origin - triangle.a;
    const Vec3 h = cross(direction, ac), q = cross(from_a, ab);
    const double inverse = 1 / dot(ab, h);
    const double v = dot(from_a, h) * inverse, w = dot(direction, q) * inverse, t = dot(ac, q) * inverse;
    constexpr double kBorder = 1e-3;
    const bool is_near = v > -kBorder && w > -kBorder && v + w < 1 + kBorder;
    RayHit refined = {is_near ? static_cast<float>(t) : hit.t / scale, face, is_near ? v : hit.u, is_near ? w : hit.v};
    refined.t = std::min(std::max(refined.t, ray.t_near), ray.t_far) + 0.0f;  // no -0
    return refined;
}

struct RayContext {
    RTCIntersectContext embree;  // first: Embree hands its address on
    float t[kRayBatch];          // of the nearest hit so far, by the ray's id
    uint32_t face[kRayBatch];
    std::vector<EmbreeHit>* all = nullptr;

    RayContext(bool coherent, RTCFilterFunctionN filter) {
        rtcInitIntersectContext(&embree);
        if (coherent) embree.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
        embree.filter = filter;
    }
};

/// Of equal t the lowest face, whatever the order in which Embree finds them.
void keep_lowest(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    for (unsigned lane = 0; lane < args->N; ++lane) {
        if (args->valid[lane] != -1) continue;
        const unsigned id = RTCRayN_id(args->ray, args->N, lane);
        const float t = RTCRayN_tfar(args->ray, args->N, lane);
        const uint32_t face = RTCHitN_primID(args->hit, args->N, lane);
        if (t == context.t[id] && face > context.face[id]) {
            args->valid[lane] = 0;
        } else {
            context.t[id] = t;
            context.face[id] = face;
        }
    }
}

void keep_all(const RTCFilterFunctionNArguments* args) {
    reinterpret_cast<RayContext*>(args->context)
        ->all->push_back({RTCRayN_tfar(args->ray, 1, 0), RTCHitN_primID(args->hit, 1, 0), RTCHitN_u(args->hit, 1, 0),
                          RTCHitN_v(args->hit, 1, 0)});
    args->valid[0] = 0;  // go on
}

void forget_hit(RTCHit& hit) {
    hit.geomID = hit.primID = hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
}

}  // namespace

std::string embree_version() {
    return fmt::format("Embree {}.{}.{}", RTC_VERSION_MAJOR, RTC_VERSION_MINOR, RTC_VERSION_PATCH);
}

std::shared_ptr<const EmbreeScene> build_embree(const Triangles& triangles) {
    float extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, triangles.high[axis] - triangles.low[axis]);
    if (triangles.faces() == 0 || triangles.largest() > kLargest || extent < kSmallestExtent) return nullptr;
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

void first_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray* rays, int count, bool coherent,
                FirstHit* hits) {
    RayContext context(coherent, keep_lowest);
    float scales[kRayBatch];
    EmbreeHit found[kRayBatch];
    for (int i = 0; i < count; ++i) {
        scales[i] = scale_of(rays[i]);
        context.t[i] = static_cast<float>(kFarAway);
        context.face[i] = RTC_INVALID_GEOMETRY_ID;
    }
    if (coherent) {  // as a stream, which shares the traversal
        RTCRayHit queries[kRayBatch];
        for (int i = 0; i < count; ++i) {
            queries[i].ray = embree_ray(rays[i], scales[i], i);
            forget_hit(queries[i].hit);
        }
        rtcIntersect1M(scene.scene, &context.embree, queries, static_cast<unsigned>(count), sizeof(RTCRayHit));
        for (int i = 0; i < count; ++i)
            found[i] = {queries[i].ray.tfar, queries[i].hit.primID, queries[i].hit.u, queries[i].hit.v};
    } else {
        for (int first = 0; first < count; first += kPacket) {
            alignas(16) int valid[kPacket];
            RTCRayHit4 packet;
            for (int lane = 0; lane < kPacket; ++lane) {
                const int i = std::min(first + lane, count - 1);
                valid[lane] = first + lane < count ? -1 : 0;
                put(packet.ray, lane, embree_ray(rays[i], scales[i], i));
                packet.hit.geomID[lane] = packet.hit.primID[lane] = packet.hit.instID[0][lane] =
                    RTC_INVALID_GEOMETRY_ID;
            }
            rtcIntersect4(valid, scene.scene, &context.embree, &packet);
            for (int lane = 0; lane < kPacket && first + lane < count; ++lane)
                found[first + lane] = {packet.ray.tfar[lane], packet.hit.primID[lane], packet.hit.u[lane],
                                       packet.hit.v[lane]};
        }
    }
    for (int i = 0; i < count; ++i) {
        hits[i] = {};
        if (found[i].face == RTC_INVALID_GEOMETRY_ID) continue;
        const RayHit refined = refine(triangles, rays[i], scales[i], found[i]);
        hits[i].offer(refined.t, refined.v, refined.w, refined.face);
    }
}

void any_hits(const EmbreeScene& scene, const Triangles&, const Ray* rays, int count, bool coherent, bool* hits) {
    RayContext context(coherent, nullptr);
    if (coherent) {
        RTCRay queries[kRayBatch];
        for (int i = 0; i < count; ++i) queries[i] = embree_ray(rays[i], scale_of(rays[i]), i);
        rtcOccluded1M(scene.scene, &context.embree, queries, static_cast<unsigned>(count), sizeof(RTCRay));
        for (int i = 0; i < count; ++i) hits[i] = queries[i].tfar < 0;
        return;
    }
    for (int first = 0; first < count; first += kPacket) {
        alignas(16) int valid[kPacket];
        RTCRay4 packet;
        for (int lane = 0; lane < kPacket; ++lane) {
            const int i = std::min(first + lane, count - 1);
            valid[lane] = first + lane < count ? -1 : 0;
            put(packet, lane, embree_ray(rays[i], scale_of(rays[i]), i));
        }
        rtcOccluded4(valid, scene.scene, &context.embree, &packet);
        for (int lane = 0; lane < kPacket && first + lane < count; ++lane) hits[first + lane] = packet.tfar[lane] < 0;
    }
}

void all_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits) {
    std::vector<EmbreeHit> found;
    RayContext context(/*coherent=*/false, keep_all);
    context.all = &found;
    const float scale = scale_of(ray);
    RTCRayHit query;
    query.ray = embree_ray(ray, scale, 0);
    forget_hit(query.hit);
    rtcIntersect1(scene.scene, &context.embree, &query);
    for (const EmbreeHit& hit : found) hits.push_back(refine(triangles, ray, scale, hit));
}

}  // namespace stipple::geometry::cpu

#endif
