#include <omp.h>

#include <cmath>
#include <cstring>
#include <embree3/rtcore.h>
#include <limits>
#include <memory>

#include "mesh_peers.h"

namespace peer {
namespace {

struct Scene {
    RTCDevice device;
    RTCScene scene = nullptr;

    explicit Scene(const char* settings) : device(rtcNewDevice(settings)) {}
    ~Scene() {
        if (scene) rtcReleaseScene(scene);
        rtcReleaseDevice(device);
    }
    void build(const MeshJob& job) {
        if (scene) rtcReleaseScene(scene);
        scene = rtcNewScene(device);
        RTCGeometry geometry = rtcNewGeometry(device, RTC_GEOMETRY_TYPE_TRIANGLE);
        void* vertices = rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, 12,
                                                 static_cast<size_t>(job.n));
        std::memcpy(vertices, job.vertices, static_cast<size_t>(job.n) * 12);
        void* corners = rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 12,
                                                static_cast<size_t>(job.m));
        std::memcpy(corners, job.triangles, static_cast<size_t>(job.m) * 12);
        rtcCommitGeometry(geometry);
        rtcAttachGeometry(scene, geometry);
        rtcReleaseGeometry(geometry);
        rtcCommitScene(scene);
    }
};

std::shared_ptr<Scene> scene_for(int threads) {
    return std::make_shared<Scene>(threads == 1 ? "threads=1" : "threads=2");
}

struct Vec {
    float x, y, z;
};
Vec operator-(Vec a, Vec b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
float dot(Vec a, Vec b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

/// Squared distance of a point to a triangle, by the region of its plane the point lies over.
float distance_sq(Vec p, Vec a, Vec b, Vec c) {
    const Vec ab = b - a, ac = c - a, ap = p - a;
    const auto from = [&](float v, float w) {
        const Vec d = {ap.x - v * ab.x - w * ac.x, ap.y - v * ab.y - w * ac.y, ap.z - v * ab.z - w * ac.z};
        return dot(d, d);
    };
    const float d1 = dot(ab, ap), d2 = dot(ac, ap);
    if (d1 <= 0 && d2 <= 0) return from(0, 0);
    const Vec bp = p - b;
    const float d3 = dot(ab, bp), d4 = dot(ac, bp);
    if (d3 >= 0 && d4 <= d3) return from(1, 0);
    const float vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) return from(d1 / (d1 - d3), 0);
    const Vec cp = p - c;
    const float d5 = dot(ab, cp), d6 = dot(ac, cp);
    if (d6 >= 0 && d5 <= d6) return from(0, 1);
    const float vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) return from(0, d2 / (d2 - d6));
    const float va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
        const float w = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        return from(1 - w, w);
    }
    const float scale = 1 / (va + vb + vc);
    return from(vb * scale, vc * scale);
}

bool closer(RTCPointQueryFunctionArguments* arguments) {
    const MeshJob& job = *static_cast<const MeshJob*>(arguments->userPtr);
    const auto at = [&](int corner) {
        const float* v = job.vertices + 3 * job.triangles[3 * arguments->primID + corner];
        return Vec{v[0], v[1], v[2]};
    };
    const float sq = distance_sq({arguments->query->x, arguments->query->y, arguments->query->z}, at(0), at(1), at(2));
    const float distance = std::sqrt(sq);
    if (!(distance < arguments->query->radius)) return false;
    arguments->query->radius = distance;
    return true;
}

}  // namespace

MeshRun embree_closest(const MeshJob& job) {
    return {[=](int threads, std::vector<float>& values) {
        const auto scene = scene_for(threads);
        scene->build(job);
        values.resize(static_cast<size_t>(job.count));
#pragma omp parallel for schedule(dynamic, 1024) num_threads(threads)
        for (int64_t i = 0; i < job.count; ++i) {
            RTCPointQueryContext context;
            rtcInitPointQueryContext(&context);
            const float* p = job.queries + 3 * i;
            RTCPointQuery query{p[0], p[1], p[2], 0, std::numeric_limits<float>::infinity()};
            rtcPointQuery(scene->scene, &query, &context, closer, const_cast<MeshJob*>(&job));
            values[static_cast<size_t>(i)] = query.radius;
        }
    }};
}

MeshRun embree_rays_1(const MeshJob& job) {
    const auto scene = scene_for(2);
    scene->build(job);
    return {[=](int threads, std::vector<float>& values) {
        values.resize(static_cast<size_t>(job.count));
#pragma omp parallel for schedule(dynamic, 1024) num_threads(threads)
        for (int64_t i = 0; i < job.count; ++i) {
            RTCIntersectContext context;
            rtcInitIntersectContext(&context);
            const float *o = job.queries + 3 * i, *d = job.directions + 3 * i;
            RTCRayHit ray = {};
            ray.ray.org_x = o[0], ray.ray.org_y = o[1], ray.ray.org_z = o[2];
            ray.ray.dir_x = d[0], ray.ray.dir_y = d[1], ray.ray.dir_z = d[2];
            ray.ray.tfar = std::numeric_limits<float>::infinity();
            ray.ray.mask = ~0u;
            ray.hit.geomID = RTC_INVALID_GEOMETRY_ID;
            rtcIntersect1(scene->scene, &context, &ray);
            values[static_cast<size_t>(i)] =
                ray.hit.geomID == RTC_INVALID_GEOMETRY_ID ? std::numeric_limits<float>::infinity() : ray.ray.tfar;
        }
    }};
}

MeshRun embree_rays_4(const MeshJob& job) {
    const auto scene = scene_for(2);
    scene->build(job);
    return {[=](int threads, std::vector<float>& values) {
        values.resize(static_cast<size_t>(job.count));
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
        for (int64_t first = 0; first < job.count; first += 4) {
            RTCIntersectContext context;
            rtcInitIntersectContext(&context);
            alignas(16) int valid[4];
            RTCRayHit4 ray = {};
            for (int k = 0; k < 4; ++k) {
                const int64_t i = first + k < job.count ? first + k : job.count - 1;
                const float *o = job.queries + 3 * i, *d = job.directions + 3 * i;
                valid[k] = first + k < job.count ? -1 : 0;
                ray.ray.org_x[k] = o[0], ray.ray.org_y[k] = o[1], ray.ray.org_z[k] = o[2];
                ray.ray.dir_x[k] = d[0], ray.ray.dir_y[k] = d[1], ray.ray.dir_z[k] = d[2];
                ray.ray.tfar[k] = std::numeric_limits<float>::infinity();
                ray.ray.mask[k] = ~0u;
                ray.hit.geomID[k] = RTC_INVALID_GEOMETRY_ID;
            }
            rtcIntersect4(valid, scene->scene, &context, &ray);
            for (int k = 0; k < 4 && first + k < job.count; ++k)
                values[static_cast<size_t>(first + k)] = ray.hit.geomID[k] == RTC_INVALID_GEOMETRY_ID
                                                             ? std::numeric_limits<float>::infinity()
                                                             : ray.ray.tfar[k];
        }
    }};
}

}  // namespace peer
