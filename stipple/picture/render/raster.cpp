#include "stipple/picture/render/raster.h"

#include <algorithm>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::picture {
namespace {

constexpr int64_t kChunk = int64_t{1} << 16;  // triangles in flight
constexpr int64_t kBlock = int64_t{1} << 12;  // triangles of one task
constexpr double kFar = 1e30;

struct Corner {
    double x, y;       // samples
    double inverse_z;  // linear on the screen; for an orthographic camera the depth itself
};

struct ScreenTriangle {
    Corner corner[3];
    uint32_t id;
    int32_t x0, x1, y0, y1;  // samples, inclusive
};

// value(x, y) = a x + b y + c, positive on the inner side. Built from the end points in a fixed order, so that the two
// triangles at an edge compute exactly opposite values and no sample falls between them.
struct Edge {
    double a, b, c;

    Edge(const Corner& p, const Corner& q) {
        const bool swap = q.y < p.y || (q.y == p.y && q.x < p.x);
        const Corner &u = swap ? q : p, &v = swap ? p : q;
        a = u.y - v.y;
        b = v.x - u.x;
        c = -(a * u.x + b * u.y);
        if (swap) a = -a, b = -b, c = -c;
    }
};

class Rasterizer {
public:
    Rasterizer(Visibility& target, const Mesh& mesh, const Camera& camera)
        : target_(target), mesh_(mesh), camera_(camera), offset_(camera.offset_of(mesh.vertices)) {}

    int64_t draw() {
        int64_t nonfinite = 0;
        for (int64_t begin = 0; begin < mesh_.faces(); begin += kChunk) {
            check_interrupted();
            nonfinite += draw_chunk(begin, std::min(mesh_.faces(), begin + kChunk));
        }
        return nonfinite;
    }

private:
    Corner to_screen(Vec3d view) const {
        const Projected at = camera_.project_view(view);
        const double scale = static_cast<double>(target_.samples);
        return {at.x * scale, at.y * scale, camera_.perspective ? 1 / view.z : view.z};
    }

    void add(const Vec3d view[3], uint32_t id, std::vector<ScreenTriangle>& out) const {
        ScreenTriangle t;
        t.id = id;
        for (int k = 0; k < 3; ++k) t.corner[k] = to_screen(view[k]);
        const double left = std::min({t.corner[0].x, t.corner[1].x, t.corner[2].x});
        const double right = std::max({t.corner[0].x, t.corner[1].x, t.corner[2].x});
        const double top = std::min({t.corner[0].y, t.corner[1].y, t.corner[2].y});
        const double bottom = std::max({t.corner[0].y, t.corner[1].y, t.corner[2].y});
        const double w = static_cast<double>(target_.sample_width()), h = static_cast<double>(target_.sample_height());
        if (!(right >= 0 && left <= w && bottom >= 0 && top <= h)) return;
        t.x0 = static_cast<int32_t>(std::ceil(std::max(left, 0.0) - 0.5));
        t.x1 = static_cast<int32_t>(std::floor(std::min(right, w) - 0.5));
        t.y0 = static_cast<int32_t>(std::ceil(std::max(top, 0.0) - 0.5));
        t.y1 = static_cast<int32_t>(std::floor(std::min(bottom, h) - 0.5));
        if (t.x0 <= t.x1 && t.y0 <= t.y1) out.push_back(t);
    }

    // The part in front of the near plane: none, one or two triangles.
    bool set_up(int64_t face, std::vector<ScreenTriangle>& out) const {
        Vec3d view[3];
        int in_front = 0;
        for (int k = 0; k < 3; ++k) {
            const float* p = mesh_.vertices.positions.data() + 3 * int64_t{mesh_.triangles.data()[3 * face + k]};
            if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) return false;
            view[k] = camera_.to_view({p[0], p[1], p[2]}, offset_);
            if (view[k].z > kFar) return true;
            in_front += view[k].z > kNear;
        }
        const uint32_t id = kIsTriangle | static_cast<uint32_t>(face);
        if (in_front == 3) {
            add(view, id, out);
        } else if (in_front > 0) {
            Vec3d polygon[4];
            int n = 0;
            for (int k = 0; k < 3; ++k) {
                const Vec3d p = view[k], q = view[(k + 1) % 3];
                if (p.z > kNear) polygon[n++] = p;
                if ((p.z > kNear) != (q.z > kNear)) polygon[n++] = mix(p, q, (kNear - p.z) / (q.z - p.z));
            }
            for (int k = 2; k < n; ++k) {
                const Vec3d part[3] = {polygon[0], polygon[k - 1], polygon[k]};
                add(part, id, out);
            }
        }
        return true;
    }

    int64_t draw_chunk(int64_t begin, int64_t end) {
        const int64_t blocks = (end - begin + kBlock - 1) / kBlock;
        std::vector<std::vector<ScreenTriangle>> parts(static_cast<size_t>(blocks));
        std::vector<int64_t> nonfinite(static_cast<size_t>(blocks));
        parallel_for(blocks, 1, [&](int64_t block, int64_t) {
            auto& part = parts[static_cast<size_t>(block)];
            part.reserve(kBlock);
            const int64_t last = std::min(end, begin + (block + 1) * kBlock);
            for (int64_t face = begin + block * kBlock; face < last; ++face)
                if (!set_up(face, part)) ++nonfinite[static_cast<size_t>(block)];
        });
        // Lists of triangles per tile.
        const int64_t tiles_x = target_.tiles_x(), tiles = tiles_x * target_.tiles_y();
        std::vector<int64_t> start(static_cast<size_t>(tiles + 1));
        const auto for_tiles = [&](const ScreenTriangle& t, const auto& body) {
            for (int64_t y = t.y0 / kTile; y <= t.y1 / kTile; ++y)
                for (int64_t x = t.x0 / kTile; x <= t.x1 / kTile; ++x) body(static_cast<size_t>(y * tiles_x + x));
        };
        for (const auto& part : parts)
            for (const ScreenTriangle& t : part) for_tiles(t, [&](size_t tile) { ++start[tile + 1]; });
        for (size_t tile = 0; tile < static_cast<size_t>(tiles); ++tile) start[tile + 1] += start[tile];
        std::vector<const ScreenTriangle*> list(static_cast<size_t>(start.back()));
        std::vector<int64_t> next(start.begin(), start.end() - 1);
        for (const auto& part : parts)
            for (const ScreenTriangle& t : part)
                for_tiles(t, [&](size_t tile) { list[static_cast<size_t>(next[tile]++)] = &t; });
        parallel_for(tiles, 1, [&](int64_t tile, int64_t) {
            const int64_t x0 = tile % tiles_x * kTile, y0 = tile / tiles_x * kTile;
            const int64_t x1 = std::min(x0 + kTile, target_.sample_width()) - 1;
            const int64_t y1 = std::min(y0 + kTile, target_.sample_height()) - 1;
            for (int64_t k = start[static_cast<size_t>(tile)]; k < start[static_cast<size_t>(tile) + 1]; ++k)
                draw_triangle(*list[static_cast<size_t>(k)], x0, x1, y0, y1);
        });
        int64_t sum = 0;
        for (int64_t n : nonfinite) sum += n;
        return sum;
    }

    void draw_triangle(const ScreenTriangle& t, int64_t x0, int64_t x1, int64_t y0, int64_t y1) {
        const Corner* p = t.corner;
        const double area = (p[1].x - p[0].x) * (p[2].y - p[0].y) - (p[1].y - p[0].y) * (p[2].x - p[0].x);
        if (area == 0 || !std::isfinite(area)) return;
        const double sign = area > 0 ? 1 : -1;
        const Edge edge[3] = {{p[1], p[2]}, {p[2], p[0]}, {p[0], p[1]}};
        x0 = std::max<int64_t>(x0, t.x0), x1 = std::min<int64_t>(x1, t.x1);
        y0 = std::max<int64_t>(y0, t.y0), y1 = std::min<int64_t>(y1, t.y1);
        const bool perspective = camera_.perspective;
        // 1 / z (or z) over the screen is an affine function: its gradient and a base point that keeps precision.
        const double u1 = p[1].inverse_z - p[0].inverse_z, u2 = p[2].inverse_z - p[0].inverse_z;
        const double gx = (u1 * (p[2].y - p[0].y) - u2 * (p[1].y - p[0].y)) / area;
        const double gy = (u2 * (p[1].x - p[0].x) - u1 * (p[2].x - p[0].x)) / area;
        const double low = std::min({p[0].inverse_z, p[1].inverse_z, p[2].inverse_z});
        const double high = std::max({p[0].inverse_z, p[1].inverse_z, p[2].inverse_z});
        for (int64_t y = y0; y <= y1; ++y) {
            const double cy = static_cast<double>(y) + 0.5;
            double row[3];
            for (int k = 0; k < 3; ++k) row[k] = edge[k].b * cy + edge[k].c;
            const double base = p[0].inverse_z + gy * (cy - p[0].y) - gx * p[0].x;
            uint64_t* keys = target_.keys.data() + y * target_.sample_width();
            for (int64_t x = x0; x <= x1; ++x) {
                const double cx = static_cast<double>(x) + 0.5;
                const double e0 = (edge[0].a * cx + row[0]) * sign, e1 = (edge[1].a * cx + row[1]) * sign,
                             e2 = (edge[2].a * cx + row[2]) * sign;
                if (e0 < 0 || e1 < 0 || e2 < 0) continue;
                // Slivers extrapolate; their depth stays between the corners'.
                const double u = std::clamp(base + gx * cx, low, high);
                const uint64_t key = make_key(static_cast<float>(perspective ? 1 / u : u), t.id);
                keys[x] = std::min(keys[x], key);
            }
        }
    }

    Visibility& target_;
    const Mesh& mesh_;
    const Camera& camera_;
    Vec3d offset_;
};

}  // namespace

int64_t draw_triangles(Visibility& target, const Mesh& mesh, const Camera& camera) {
    STIPPLE_REQUIRE(mesh.faces() < int64_t{kIsTriangle}, "a picture of {} triangles", mesh.faces());
    return Rasterizer(target, mesh, camera).draw();
}

std::vector<Vec3f> corner_normals(const Mesh& mesh) {
    constexpr double kCrease = 0.5;  // cosine of 60 degrees
    constexpr int64_t kManyFaces = 64;
    const int64_t n = mesh.vertices.size(), m = mesh.faces();
    const int32_t* corners = mesh.triangles.data();
    std::vector<Vec3f> normals(static_cast<size_t>(3 * m));
    const Attribute* given = find(mesh.vertices.attributes, "normal");
    if (given && given->components() == 3 && given->rows() == n) {
        parallel_for(3 * m, 1 << 14, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                normals[static_cast<size_t>(i)] = normalized(Vec3f{static_cast<float>(given->value(corners[i], 0)),
                                                                   static_cast<float>(given->value(corners[i], 1)),
                                                                   static_cast<float>(given->value(corners[i], 2))});
        });
        return normals;
    }
    // Face normals as long as twice the area.
    const float* p = mesh.vertices.positions.data();
    const auto at = [&](int64_t i) { return Vec3d{p[3 * i], p[3 * i + 1], p[3 * i + 2]}; };
    std::vector<Vec3d> face_normals(static_cast<size_t>(m));
    parallel_for(m, 1 << 14, [&](int64_t begin, int64_t end) {
        for (int64_t face = begin; face < end; ++face) {
            const Vec3d a = at(corners[3 * face]);
            const Vec3d normal = cross(at(corners[3 * face + 1]) - a, at(corners[3 * face + 2]) - a);
            const bool good = std::isfinite(normal.x + normal.y + normal.z);
            face_normals[static_cast<size_t>(face)] = good ? normal : Vec3d{};
        }
    });
    // The corners around each vertex, in order.
    std::vector<int64_t> start(static_cast<size_t>(n + 1));
    for (int64_t i = 0; i < 3 * m; ++i) ++start[static_cast<size_t>(corners[i]) + 1];
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) start[i + 1] += start[i];
    std::vector<int32_t> around(static_cast<size_t>(3 * m));
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < 3 * m; ++i)
        around[static_cast<size_t>(next[static_cast<size_t>(corners[i])]++)] = static_cast<int32_t>(i / 3);
    parallel_for(n, 1 << 12, [&](int64_t begin, int64_t end) {
        for (int64_t vertex = begin; vertex < end; ++vertex) {
            const int64_t first = start[static_cast<size_t>(vertex)], last = start[static_cast<size_t>(vertex) + 1];
            const bool many = last - first > kManyFaces;
            Vec3d all;
            for (int64_t k = first; many && k < last; ++k)
                all = all + face_normals[static_cast<size_t>(around[static_cast<size_t>(k)])];
            for (int64_t k = first; k < last; ++k) {
                const int64_t face = around[static_cast<size_t>(k)];
                const Vec3d own = face_normals[static_cast<size_t>(face)];
                Vec3d sum = all;
                for (int64_t j = first; !many && j < last; ++j) {
                    const Vec3d other = face_normals[static_cast<size_t>(around[static_cast<size_t>(j)])];
                    const double cosine = dot(own, other), limit = kCrease * length(own) * length(other);
                    if (cosine >= limit) sum = sum + other;
                }
                const Vec3d unit = normalized(sum, normalized(own));
                for (int c = 0; c < 3; ++c)
                    if (corners[3 * face + c] == vertex)
                        normals[static_cast<size_t>(3 * face + c)] = {
                            static_cast<float>(unit.x), static_cast<float>(unit.y), static_cast<float>(unit.z)};
            }
        }
    });
    return normals;
}

}  // namespace stipple::picture
