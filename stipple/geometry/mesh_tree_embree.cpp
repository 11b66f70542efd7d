#include "stipple/geometry/mesh_tree_embree.h"

#ifdef STIPPLE_WITH_EMBREE

#include <cmath>
#include <embree3/rtcore.h>

#include "stipple/core/parallel.h"

namespace stipple::geometry::cpu {

// Embree computes in single precision, and its rays do slip through vertices now and then. So it proposes and
// triangle.h decides: Embree gets a copy of the mesh about the origin, of size 1 to 2, in which every face is a little
// wider than it is, by more than its roundings. Whatever is hit is among its proposals; one well inside a face, before
// all others, is taken at its word.
struct EmbreeScene {
    RTCDevice device = nullptr;
    RTCScene scene = nullptr;
    Vec3 center = {0, 0, 0};  // a place p of the mesh is (p - center) * scale to Embree
    double scale = 1;         // a power of two
    Array<float, 2> corners;  // [3 m, 4]
    Array<int32_t, 2> faces;  // [m, 3]: 0, 1, 2 ...
    Array<float, 1> borders;  // [m]: a hit with all its weights above this is inside the face for sure

    EmbreeScene() = default;
    EmbreeScene(const EmbreeScene&) = delete;
    EmbreeScene& operator=(const EmbreeScene&) = delete;
    ~EmbreeScene() {
        if (scene) rtcReleaseScene(scene);
        if (device) rtcReleaseDevice(device);
    }
};

namespace {

constexpr float kWiden = 0x1p-18f;  // roundings of Embree about a mesh of size 1 to 2 are below 2^-21
constexpr float kMostMiter = 4096;  // how far the corner of a sliver may move, in kWiden
constexpr float kNear = 0x1p-14f;   // t that differ by less are compared in double
constexpr double kFar = 4;          // origins farther than this are brought nearer along the ray

void check(RTCDevice device) {
    const RTCError code = rtcGetDeviceError(device);
    if (code == RTC_ERROR_NONE) return;
    if (code == RTC_ERROR_OUT_OF_MEMORY) throw Error(ErrorCode::out_of_memory, "MeshIndex: Embree has no memory");
    throw Error(ErrorCode::internal, fmt::format("MeshIndex: Embree failed with code {}", static_cast<int>(code)));
}

Vec3 to_local(const EmbreeScene& scene, const float* p) {
    return {(p[0] - scene.center.x) * scene.scale, (p[1] - scene.center.y) * scene.scale,
            (p[2] - scene.center.z) * scene.scale};
}

/// Every edge moved outwards by kWiden.
void widen_faces(EmbreeScene& scene, const Triangles& triangles, int64_t begin, int64_t end) {
    for (int64_t face = begin; face < end; ++face) {
        float corner[3][3];
        for (int k = 0; k < 3; ++k) {
            const Vec3 p = to_local(scene, triangles.vertex(static_cast<int32_t>(face), k));
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
        const float height = area / std::max(length[0], std::max(length[1], length[2]));
        scene.borders.data()[face] = height > 0 ? std::min(1.0f, 4 * kWiden / height) : 1;
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
}

struct PointContext {
    const Triangles* triangles;
    Vec3 query;
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

/// Up to kRayBatch rays on their way through Embree, by their id.
struct RayContext {
    RTCIntersectContext embree;  // first: Embree hands its address on
    const EmbreeScene& scene;
    const Triangles& triangles;
    const Ray* rays;
    float low[kRayBatch], high[kRayBatch];    // t of Embree between which the range is out of doubt
    float best[kRayBatch], reach[kRayBatch];  // t of Embree: of the first hit so far, and up to which to look on
    int32_t face[kRayBatch];                  // of the first hit so far
    std::vector<RayHit>* all = nullptr;

    RayContext(const EmbreeScene& of, const Triangles& from, const Ray* cast, bool coherent, RTCFilterFunctionN filter)
        : scene(of), triangles(from), rays(cast) {
        rtcInitIntersectContext(&embree);
        if (coherent) embree.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
        embree.filter = filter;
    }

    OnRay meet(int ray, int32_t index) const {
        return meet_plane(origin_of(rays[ray]), direction_of(rays[ray]), triangles(index));
    }
    bool is_in_range(int ray, const OnRay& met) const { return met.t >= rays[ray].t_near && met.t <= rays[ray].t_far; }
    bool is_through(int ray, int32_t index) const {
        return passes_through(shear_ray(origin_of(rays[ray]), direction_of(rays[ray])), triangles(index));
    }

    /// A ray as Embree gets it; false when it passes the mesh by.
    bool localise(int id, RTCRay& to) {
        const Ray& ray = rays[id];
        Vec3 origin = to_local(scene, ray.origin);
        const float* d = ray.direction;
        const float longest = std::max(std::abs(d[0]), std::max(std::abs(d[1]), std::abs(d[2])));
        const double length = longest >= 0.5f && longest < 8 ? 1 : std::ldexp(1.0, std::ilogb(longest));
        const Vec3 direction = {d[0] / length, d[1] / length, d[2] / length};
        const double rate = length * scene.scale;  // t of Embree = t * rate - shift
        double shift = 0;
        if (std::max(std::abs(origin.x), std::max(std::abs(origin.y), std::abs(origin.z))) > kFar) {
            double enter = 0, leave = kFarAway;
            for (int axis = 0; axis < 3; ++axis) {
                const double at = along_axis(origin, axis), step = along_axis(direction, axis);
                constexpr double kSide = 1.25;
                if (step == 0) {
                    if (std::abs(at) > kSide) return false;
                    continue;
                }
                const double a = (-kSide - at) / step, b = (kSide - at) / step;
                enter = std::max(enter, std::min(a, b));
                leave = std::min(leave, std::max(a, b));
            }
            if (enter > leave) return false;
            shift = enter;
            origin = combine(origin, shift, direction, 0, direction);
        }
        const auto near = static_cast<float>(ray.t_near * rate - shift);
        const auto far = static_cast<float>(ray.t_far * rate - shift);
        to.org_x = static_cast<float>(origin.x);
        to.org_y = static_cast<float>(origin.y);
        to.org_z = static_cast<float>(origin.z);
        to.dir_x = static_cast<float>(direction.x);
        to.dir_y = static_cast<float>(direction.y);
        to.dir_z = static_cast<float>(direction.z);
        to.tnear = std::max(0.0f, near - kNear);
        to.tfar = far + kNear;
        to.time = 0;
        to.mask = 0xffffffffu;  // a mask of 0 hits nothing
        to.id = static_cast<unsigned>(id);
        to.flags = 0;
        low[id] = near + kNear;
        high[id] = far - kNear;
        best[id] = reach[id] = static_cast<float>(kFarAway);
        face[id] = -1;
        return to.tfar >= to.tnear;
    }
};

/// A proposal of Embree, and whether it is one.
struct Proposal {
    int ray;
    int32_t face;
    float t;

    Proposal(const RTCFilterFunctionNArguments* args, unsigned lane)
        : ray(static_cast<int>(RTCRayN_id(args->ray, args->N, lane))),
          face(static_cast<int32_t>(RTCHitN_primID(args->hit, args->N, lane))),
          t(RTCRayN_tfar(args->ray, args->N, lane)) {}

    bool is_hit(const RTCFilterFunctionNArguments* args, unsigned lane, const RayContext& context) const {
        const float u = RTCHitN_u(args->hit, args->N, lane), v = RTCHitN_v(args->hit, args->N, lane);
        const float border = context.scene.borders.data()[face];
        if (!(u > border && v > border && 1 - u - v > border) && !context.is_through(ray, face)) return false;
        return (t > context.low[ray] && t < context.high[ray]) || context.is_in_range(ray, context.meet(ray, face));
    }
};

void keep_first(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    for (unsigned lane = 0; lane < args->N; ++lane) {
        if (args->valid[lane] != -1) continue;
        const Proposal proposal(args, lane);
        const int ray = proposal.ray;
        bool is_first = proposal.is_hit(args, lane, context);
        if (is_first && context.face[ray] >= 0 && proposal.t > context.best[ray] - kNear) {
            const float t = context.meet(ray, proposal.face).t, other = context.meet(ray, context.face[ray]).t;
            is_first = t < other || (t == other && proposal.face < context.face[ray]);
        }
        if (!is_first) {
            args->valid[lane] = 0;
            continue;
        }
        context.best[ray] = proposal.t;
        context.face[ray] = proposal.face;
        context.reach[ray] = std::min(context.reach[ray], proposal.t + kNear);
        RTCRayN_tfar(args->ray, args->N, lane) = context.reach[ray];
    }
}

void keep_any(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    for (unsigned lane = 0; lane < args->N; ++lane) {
        if (args->valid[lane] == -1 && !Proposal(args, lane).is_hit(args, lane, context)) args->valid[lane] = 0;
    }
}

void keep_all(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    const int32_t face = Proposal(args, 0).face;
    if (context.is_through(0, face)) {
        const OnRay met = context.meet(0, face);
        if (context.is_in_range(0, met)) context.all->push_back({met, face});
    }
    args->valid[0] = 0;  // go on
}

constexpr int kPacket = 4;  // native on every machine

void put(RTCRay4& packet, int lane, const RTCRay& ray) {
    packet.org_x[lane] = ray.org_x, packet.org_y[lane] = ray.org_y, packet.org_z[lane] = ray.org_z;
    packet.dir_x[lane] = ray.dir_x, packet.dir_y[lane] = ray.dir_y, packet.dir_z[lane] = ray.dir_z;
    packet.tnear[lane] = ray.tnear, packet.tfar[lane] = ray.tfar, packet.time[lane] = ray.time;
    packet.mask[lane] = ray.mask, packet.id[lane] = ray.id, packet.flags[lane] = ray.flags;
}

void forget_hit(RTCHit& hit) {
    hit.geomID = hit.primID = hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
}

}  // namespace

std::string embree_version() {
    return fmt::format("Embree {}.{}.{}", RTC_VERSION_MAJOR, RTC_VERSION_MINOR, RTC_VERSION_PATCH);
}

std::shared_ptr<const EmbreeScene> build_embree(const Triangles& triangles) {
    const int64_t m = triangles.faces();
    if (m == 0 || m > INT32_MAX / 3) return nullptr;  // its corners are numbered by 32 bits
    auto built = std::make_shared<EmbreeScene>();
    const float *low = triangles.low, *high = triangles.high;
    built->center = {(double{low[0]} + high[0]) / 2, (double{low[1]} + high[1]) / 2, (double{low[2]} + high[2]) / 2};
    double extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, double{high[axis]} - low[axis]);
    if (extent > 0) built->scale = std::ldexp(1.0, -std::ilogb(extent));
    built->corners = Array<float, 2>({3 * m, 4});
    built->faces = Array<int32_t, 2>({m, 3});
    built->borders = Array<float, 1>({m});
    parallel_for(m, 4096, [&](int64_t begin, int64_t end) { widen_faces(*built, triangles, begin, end); });

    built->device = rtcNewDevice(nullptr);
    check(built->device);
    built->scene = rtcNewScene(built->device);
    check(built->device);
    rtcSetSceneFlags(built->scene,
                     static_cast<RTCSceneFlags>(RTC_SCENE_FLAG_ROBUST | RTC_SCENE_FLAG_CONTEXT_FILTER_FUNCTION));
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
    const Vec3 local = to_local(scene, query);
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

void first_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray* rays, int count, bool coherent,
                FirstHit* hits) {
    RayContext context(scene, triangles, rays, coherent, keep_first);
    RTCRayHit queries[kRayBatch];
    int cast = 0;
    for (int i = 0; i < count; ++i) {
        hits[i] = {};
        if (!context.localise(i, queries[cast].ray)) continue;
        forget_hit(queries[cast++].hit);
    }
    if (coherent) {  // as a stream, which shares the traversal
        rtcIntersect1M(scene.scene, &context.embree, queries, static_cast<unsigned>(cast), sizeof(RTCRayHit));
    } else {
        for (int first = 0; first < cast; first += kPacket) {
            alignas(16) int valid[kPacket];
            RTCRayHit4 packet;
            for (int lane = 0; lane < kPacket; ++lane) {
                valid[lane] = first + lane < cast ? -1 : 0;
                put(packet.ray, lane, queries[std::min(first + lane, cast - 1)].ray);
                packet.hit.geomID[lane] = packet.hit.primID[lane] = packet.hit.instID[0][lane] =
                    RTC_INVALID_GEOMETRY_ID;
            }
            rtcIntersect4(valid, scene.scene, &context.embree, &packet);
        }
    }
    for (int i = 0; i < cast; ++i) {
        const auto ray = static_cast<int>(queries[i].ray.id);
        if (context.face[ray] >= 0) hits[ray].offer(context.meet(ray, context.face[ray]), context.face[ray]);
    }
}

void any_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray* rays, int count, bool coherent,
              bool* hits) {
    RayContext context(scene, triangles, rays, coherent, keep_any);
    RTCRay queries[kRayBatch];
    int cast = 0;
    for (int i = 0; i < count; ++i) {
        hits[i] = false;
        cast += context.localise(i, queries[cast]);
    }
    if (coherent) {
        rtcOccluded1M(scene.scene, &context.embree, queries, static_cast<unsigned>(cast), sizeof(RTCRay));
    } else {
        for (int first = 0; first < cast; first += kPacket) {
            alignas(16) int valid[kPacket];
            RTCRay4 packet;
            for (int lane = 0; lane < kPacket; ++lane) {
                valid[lane] = first + lane < cast ? -1 : 0;
                put(packet, lane, queries[std::min(first + lane, cast - 1)]);
            }
            rtcOccluded4(valid, scene.scene, &context.embree, &packet);
            for (int lane = 0; lane < kPacket && first + lane < cast; ++lane)
                queries[first + lane].tfar = packet.tfar[lane];
        }
    }
    for (int i = 0; i < cast; ++i) hits[queries[i].id] = queries[i].tfar < 0;
}

void all_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits) {
    RayContext context(scene, triangles, &ray, /*coherent=*/false, keep_all);
    context.all = &hits;
    RTCRayHit query;
    if (!context.localise(0, query.ray)) return;
    forget_hit(query.hit);
    rtcIntersect1(scene.scene, &context.embree, &query);
}

}  // namespace stipple::geometry::cpu

#endif
