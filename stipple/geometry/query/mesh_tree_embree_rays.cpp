#ifdef STIPPLE_WITH_EMBREE

#include <array>
#include <cmath>

#include "stipple/geometry/query/embree_scene.h"

namespace stipple::geometry::cpu {
namespace {

constexpr float kAbout = 0x1p-11f;  // how far from a place of doubt faces are tested
constexpr float kNear = 0x1p-14f;   // t that differ by less are compared in double
constexpr double kFar = 4;          // origins farther than this are brought nearer along the ray

/// Up to kRayBatch rays on their way through Embree, by their id.
struct RayContext {
    RTCIntersectContext embree;  // first: Embree hands its address on
    const EmbreeScene& scene;
    const Triangles& triangles;
    const Ray* rays;
    float low[kRayBatch], high[kRayBatch];    // t of Embree between which the range is out of doubt
    float best[kRayBatch], reach[kRayBatch];  // t of Embree: of the first hit so far, and up to which to look on
    int32_t face[kRayBatch];                  // of the first hit so far
    bool is_clear[kRayBatch];                 // whether that is beyond doubt
    struct Doubt {
        int ray;
        float t;
        std::array<float, 3> place;
    };
    std::vector<Doubt> doubts;
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
        face[id] = -1;
        const Ray& ray = rays[id];
        Vec3d origin = to_local(scene, ray.origin);
        const float* d = ray.direction;
        const float longest = std::max(std::abs(d[0]), std::max(std::abs(d[1]), std::abs(d[2])));
        // Directions of about length 1, by powers of two, which round nothing.
        const int exponent = longest >= 0.25f && longest < 16 ? 0 : std::ilogb(longest);
        const double shrink = exponent == 0 ? 1 : std::ldexp(1.0, -exponent);
        const Vec3d direction = {d[0] * shrink, d[1] * shrink, d[2] * shrink};
        const double rate = scene.scale / shrink;  // t of Embree = t * rate - shift
        double shift = -2 * kNear;                 // Embree takes no negative t: it starts a little before the origin
        if (std::max(std::abs(origin.x), std::max(std::abs(origin.y), std::abs(origin.z))) > kFar) {
            double enter = -kFarAway, leave = kFarAway;
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
            shift = std::max(shift, enter);
        }
        origin = combine(origin, shift, direction, 0, direction);
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
        is_clear[id] = false;
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

    /// How far the place is inside the widened face: 1 and more, by more than it was widened and Embree errs; below
    /// 0.5, within its errors of the true border. Its error across the ray counts the more the flatter the ray comes
    /// in. Most places are so deep inside that the longest edge of the mesh will do for the face's own.
    float depth(const RTCFilterFunctionNArguments* args, unsigned lane, const RayContext& context) const {
        RTCRayN* at = args->ray;
        RTCHitN* hit = args->hit;
        const unsigned n = args->N;
        const float u = RTCHitN_u(hit, n, lane), v = RTCHitN_v(hit, n, lane);
        const float lowest = std::min(std::min(u, v), 1 - u - v);
        const float x = RTCRayN_dir_x(at, n, lane), y = RTCRayN_dir_y(at, n, lane), z = RTCRayN_dir_z(at, n, lane);
        const float across = std::abs(RTCHitN_Ng_x(hit, n, lane) * x + RTCHitN_Ng_y(hit, n, lane) * y +
                                      RTCHitN_Ng_z(hit, n, lane) * z);  // the face's area, times a sine
        const float length = std::abs(x) + std::abs(y) + std::abs(z);
        if (lowest * across > 3 * kWiden * context.scene.longest * length) return 1.1f;
        const float* inverse = context.triangles.borders(face);
        return lowest * std::min(inverse[0], inverse[1] * across / length);
    }

    /// `inside` becomes the depth.
    bool is_hit(const RTCFilterFunctionNArguments* args, unsigned lane, RayContext& context, float& inside) const {
        inside = depth(args, lane, context);
        if (!(inside > 1)) {
            const bool is_through = context.is_through(ray, face);
            if (!is_through || !(inside > 0.5f)) context.doubts.push_back({ray, t, place(args, lane)});
            if (!is_through) return false;
        }
        return (t > context.low[ray] && t < context.high[ray]) || context.is_in_range(ray, context.meet(ray, face));
    }

    std::array<float, 3> place(const RTCFilterFunctionNArguments* args, unsigned lane) const {
        RTCRayN* at = args->ray;
        const unsigned n = args->N;
        return {RTCRayN_org_x(at, n, lane) + t * RTCRayN_dir_x(at, n, lane),
                RTCRayN_org_y(at, n, lane) + t * RTCRayN_dir_y(at, n, lane),
                RTCRayN_org_z(at, n, lane) + t * RTCRayN_dir_z(at, n, lane)};
    }
};

void keep_first(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    for (unsigned lane = 0; lane < args->N; ++lane) {
        if (args->valid[lane] != -1) continue;
        const Proposal proposal(args, lane);
        const int ray = proposal.ray;
        float inside;
        bool is_first = proposal.is_hit(args, lane, context, inside);
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
        context.is_clear[ray] = inside > 0.5f;
        context.reach[ray] = std::min(context.reach[ray], proposal.t + kNear);
        RTCRayN_tfar(args->ray, args->N, lane) = context.reach[ray];
        __builtin_prefetch(context.triangles.corner(proposal.face, 0));  // for the numbers in the end
    }
}

void keep_any(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    for (unsigned lane = 0; lane < args->N; ++lane) {
        float inside;
        if (args->valid[lane] == -1 && !Proposal(args, lane).is_hit(args, lane, context, inside)) args->valid[lane] = 0;
    }
}

void keep_all(const RTCFilterFunctionNArguments* args) {
    auto& context = *reinterpret_cast<RayContext*>(args->context);
    const Proposal proposal(args, 0);
    float inside;
    if (proposal.is_hit(args, 0, context, inside))
        context.all->push_back({context.meet(0, proposal.face), proposal.face});
    args->valid[0] = 0;  // go on
}

/// Calls take(met, face) for every face about a place of doubt that is hit.
template <class Take>
void resolve(const RayContext& context, const RayContext::Doubt& doubt, Take& take) {
    struct Search {
        const RayContext* context;
        int ray;
        Take* take;
    } search{&context, doubt.ray, &take};
    RTCPointQuery point;
    point.x = doubt.place[0], point.y = doubt.place[1], point.z = doubt.place[2];
    point.time = 0;
    point.radius = kAbout;
    RTCPointQueryContext stack;
    rtcInitPointQueryContext(&stack);
    rtcPointQuery(
        context.scene.scene, &point, &stack,
        [](RTCPointQueryFunctionArguments* args) {
            const auto& of = *static_cast<const Search*>(args->userPtr);
            const auto face = static_cast<int32_t>(args->primID);
            if (!of.context->is_through(of.ray, face)) return false;
            const OnRay met = of.context->meet(of.ray, face);
            if (of.context->is_in_range(of.ray, met)) (*of.take)(met, face);
            return false;
        },
        &search);
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

void first_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray* rays, int count, bool coherent,
                FirstHit* hits) {
    RayContext context(scene, triangles, rays, coherent, keep_first);
    int cast = 0;
    if (coherent) {  // as a stream, which shares the traversal
        RTCRayHit queries[kRayBatch];
        for (int i = 0; i < count; ++i) {
            if (!context.localise(i, queries[cast].ray)) continue;
            forget_hit(queries[cast++].hit);
        }
        rtcIntersect1M(scene.scene, &context.embree, queries, static_cast<unsigned>(cast), sizeof(RTCRayHit));
    } else {
        RTCRayHit4 packet;
        const auto trace = [&](int lanes) {
            alignas(16) int valid[kPacket];
            for (int lane = 0; lane < kPacket; ++lane) {
                valid[lane] = lane < lanes ? -1 : 0;
                packet.hit.geomID[lane] = packet.hit.primID[lane] = packet.hit.instID[0][lane] =
                    RTC_INVALID_GEOMETRY_ID;
            }
            rtcIntersect4(valid, scene.scene, &context.embree, &packet);
        };
        for (int i = 0; i < count; ++i) {
            RTCRay ray;
            if (!context.localise(i, ray)) continue;
            put(packet.ray, cast++ % kPacket, ray);
            if (cast % kPacket == 0) trace(kPacket);
        }
        if (cast % kPacket != 0) trace(cast % kPacket);
    }
    for (int i = 0; i < count; ++i) {
        hits[i] = {};
        if (context.face[i] >= 0) hits[i].offer(context.meet(i, context.face[i]), context.face[i]);
    }
    for (const RayContext::Doubt& doubt : context.doubts) {
        const auto offer = [&](const OnRay& met, int32_t face) { hits[doubt.ray].offer(met, face); };
        const float margin = context.is_clear[doubt.ray] ? -kNear : kNear;
        if (doubt.t < context.best[doubt.ray] + margin) resolve(context, doubt, offer);
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
    for (const RayContext::Doubt& doubt : context.doubts) {
        const auto found = [&](const OnRay&, int32_t) { hits[doubt.ray] = true; };
        if (!hits[doubt.ray]) resolve(context, doubt, found);
    }
}

void all_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits) {
    RayContext context(scene, triangles, &ray, /*coherent=*/false, keep_all);
    context.all = &hits;
    RTCRayHit query;
    if (!context.localise(0, query.ray)) return;
    forget_hit(query.hit);
    const size_t before = hits.size();
    rtcIntersect1(scene.scene, &context.embree, &query);
    for (const RayContext::Doubt& doubt : context.doubts) {
        const auto add = [&](const OnRay& met, int32_t face) {
            const auto is_same = [face](const RayHit& hit) { return hit.face == face; };
            if (std::none_of(hits.begin() + static_cast<int64_t>(before), hits.end(), is_same))
                hits.push_back({met, face});
        };
        resolve(context, doubt, add);
    }
}

}  // namespace stipple::geometry::cpu

#endif
