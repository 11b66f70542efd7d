#include "stipple/picture/render/shade.h"

#include <algorithm>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/picture/render/eye_dome.h"
#include "stipple/picture/render/splat.h"

namespace stipple::picture {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// View axes: x right, y up, z away from the eye.
const Vec3f kKeyLight = normalized(Vec3f{-0.42f, 0.62f, -0.72f});
const Vec3f kFillLight = normalized(Vec3f{0.75f, 0.05f, -0.66f});
const Vec3f kHalfway = normalized(kKeyLight + Vec3f{0, 0, -1});
constexpr float kAmbient = 0.53f, kKey = 0.49f, kFill = 0.16f;

struct Light {
    float factor;  // of the colour
    float gloss;   // added to it, 0..255
};

Light light_on(Vec3f normal, float gloss) {
    if (normal.z > 0) normal = -normal;  // both sides are lit
    const float key = std::max(0.f, dot(normal, kKeyLight)), fill = std::max(0.f, dot(normal, kFillLight));
    float shine = std::max(0.f, dot(normal, kHalfway));
    shine *= shine, shine *= shine, shine *= shine, shine *= shine;  // to the 16th
    return {kAmbient + kKey * key + kFill * fill, gloss * shine * shine};
}

class Shader {
public:
    Shader(const ShadeInput& input, Image& image, int64_t x, int64_t y)
        : in_(input),
          image_(image),
          left_(x),
          top_(y),
          width_(input.visibility->width),
          height_(input.visibility->height),
          samples_(input.visibility->samples),
          depth_({height_, width_}) {
        const Camera& camera = *in_.camera;
        near_ = static_cast<float>(camera.depth_low);
        depth_scale_ = static_cast<float>(1 / (camera.depth_high - camera.depth_low));
        if (in_.cloud) {
            offset_ = camera.offset_of(*in_.cloud);
            const double pixels = splat_pixels(camera, in_.splats.radius, camera.depth_middle());
            ball_ = ball_of(pixels);
            const Attribute* normals = find(in_.cloud->attributes, "normal");
            if (normals && normals->components() == 3 && normals->dtype() == DType::f32 &&
                normals->rows() == in_.cloud->size())
                point_normals_ = normals->as<float>().data();
            fit_step_ = std::clamp(static_cast<int>(std::lround(pixels)), 1, 3);
            fine_ = std::max(1, static_cast<int>(std::lround(pixels)));
        }
        if (in_.mesh) mesh_offset_ = camera.offset_of(in_.mesh->vertices);
        coarse_ = std::max({fine_ + 2, 3, static_cast<int>(static_cast<double>(std::min(width_, height_)) * 0.011)});
    }

    void run() {
        parallel_for(height_, 16, [&](int64_t begin, int64_t end) {
            for (int64_t y = begin; y < end; ++y) resolve_depth(y);
        });
        parallel_for(height_, 8, [&](int64_t begin, int64_t end) {
            for (int64_t y = begin; y < end; ++y) shade_row(y);
        });
    }

private:
    const uint64_t* sample_row(int64_t y, int64_t sub) const {
        return in_.visibility->keys.data() + (y * samples_ + sub) * in_.visibility->sample_width();
    }

    // The nearest depth in each pixel; infinite where there is nothing.
    void resolve_depth(int64_t y) {
        float* row = depth_.data() + y * width_;
        std::fill(row, row + width_, kInfinity);
        for (int64_t sub = 0; sub < samples_; ++sub) {
            const uint64_t* keys = sample_row(y, sub);
            for (int64_t x = 0; x < width_; ++x) {
                uint64_t nearest = keys[x * samples_];
                for (int64_t k = 1; k < samples_; ++k) nearest = std::min(nearest, keys[x * samples_ + k]);
                if (nearest != kNothing) row[x] = std::min(row[x], depth_of(nearest));
            }
        }
    }

    // What the surroundings of a pixel say about light at a depth; computed once for all samples of about that depth.
    struct Surroundings {
        float depth = -1;
        bool of_triangle = false;
        float open = 1;     // 1 minus occlusion
        float outline = 1;  // of eye-dome lighting
        Light light{1, 0};
    };

    void shade_row(int64_t y) {
        uint8_t* out = image_.at(left_, top_ + y);
        const Vec3f background = to_vec(in_.background);
        const float share = 1.f / static_cast<float>(samples_ * samples_);
        for (int64_t x = 0; x < width_; ++x, out += 3) {
            if (depth_.data()[y * width_ + x] == kInfinity) {
                out[0] = in_.background.r, out[1] = in_.background.g, out[2] = in_.background.b;
                continue;
            }
            Vec3f sum;
            Surroundings around;
            uint64_t last_key = kNothing;
            Vec3f last_color;
            for (int64_t sub = 0; sub < samples_; ++sub) {
                const uint64_t* keys = sample_row(y, sub) + x * samples_;
                for (int64_t k = 0; k < samples_; ++k) {
                    const uint64_t key = keys[k];
                    if (key == kNothing) {
                        sum = sum + background;
                        continue;
                    }
                    // Within a pixel the samples of one flat splat, and of one triangle, share all their terms.
                    const bool even = identity_of(key) & kIsTriangle ? !in_.mesh_edges : ball_ == 0;
                    const bool same = even && last_key != kNothing && identity_of(key) == identity_of(last_key);
                    if (!same) {
                        const float depth = depth_of(key);
                        const float pixel = pixel_size(depth);
                        const bool of_triangle = identity_of(key) & kIsTriangle;
                        if (of_triangle != around.of_triangle || std::abs(depth - around.depth) > 2 * pixel)
                            around = look_around(x, y, depth, pixel, key);
                        last_color = sample_color(x * samples_ + k, y * samples_ + sub, key, depth, around);
                        last_key = key;
                    }
                    sum = sum + last_color;
                }
            }
            const Rgb color = to_rgb(sum * share);
            out[0] = color.r, out[1] = color.g, out[2] = color.b;
        }
    }

    float pixel_size(float depth) const { return 1.f / static_cast<float>(in_.camera->pixels_per_unit(depth)); }

    Vec3f sample_color(int64_t sx, int64_t sy, uint64_t key, float depth, const Surroundings& around) const {
        const float depth01 = (depth - near_) * depth_scale_;
        const int64_t index = identity_of(key) & ~kIsTriangle;
        Vec3f color;
        Light light;
        if (identity_of(key) & kIsTriangle) {
            float weight[3];
            light = triangle_light(index, sx, sy, weight);
            color = in_.mesh_color->of_face(index, weight, depth01, *in_.scale);
        } else {
            color = in_.cloud_color->of_point(index, depth01, *in_.scale);
            light = point_light(index, sx, sy, around);
        }
        const float open = (1 - in_.occlusion * (1 - around.open)) * around.outline;
        const float factor = (1 + in_.light * (light.factor - 1)) * open, gloss = in_.light * light.gloss * open;
        return {std::min(255.f, color.x * factor + gloss), std::min(255.f, color.y * factor + gloss),
                std::min(255.f, color.z * factor + gloss)};
    }

    Light point_light(int64_t index, int64_t sx, int64_t sy, const Surroundings& around) const {
        Light light = around.light;
        if (point_normals_) {
            const float* n = point_normals_ + 3 * index;
            const Vec3f normal{n[0], n[1], n[2]};
            const float l = dot(normal, normal);
            if (l > 0 && std::isfinite(l)) light = light_on(to_view(normal * (1 / std::sqrt(l))), 10);
        }
        if (ball_ > 0) {
            const float* p = in_.cloud->positions.data() + 3 * index;
            const Vec3d view = in_.camera->to_view({p[0], p[1], p[2]}, offset_);
            const Projected at = in_.camera->project_view(view);
            const double radius = in_.splats.radius * static_cast<double>(in_.splats.factor_at(at.x, at.y));
            const double r = splat_pixels(*in_.camera, radius, view.z), s = static_cast<double>(samples_);
            const auto dx = static_cast<float>(((static_cast<double>(sx) + 0.5) / s - at.x) / r);
            const auto dy = static_cast<float>(((static_cast<double>(sy) + 0.5) / s - at.y) / r);
            const float dz = std::sqrt(std::max(0.f, 1 - dx * dx - dy * dy));
            const Light ball = light_on({dx, -dy, -dz}, 40);
            light.factor += ball_ * (ball.factor - light.factor);
            light.gloss += ball_ * (ball.gloss - light.gloss);
        }
        return light;
    }

    Vec3f to_view(Vec3f n) const {
        const Camera& c = *in_.camera;
        const Vec3d d{n.x, n.y, n.z};
        return {static_cast<float>(dot(d, c.right)), static_cast<float>(dot(d, c.up)),
                static_cast<float>(dot(d, c.forward))};
    }

    // Where the ray of the sample meets the triangle: weights of the corners, and the light on the normal there.
    Light triangle_light(int64_t face, int64_t sx, int64_t sy, float weight[3]) const {
        const Camera& camera = *in_.camera;
        const Mesh& mesh = *in_.mesh;
        const int32_t* corner = mesh.triangles.data() + 3 * face;
        Vec3d v[3];
        for (int k = 0; k < 3; ++k) {
            const float* p = mesh.vertices.positions.data() + 3 * int64_t{corner[k]};
            v[k] = camera.to_view({p[0], p[1], p[2]}, mesh_offset_);
        }
        const double px = (static_cast<double>(sx) + 0.5) / static_cast<double>(samples_) - camera.center_x;
        const double py = camera.center_y - (static_cast<double>(sy) + 0.5) / static_cast<double>(samples_);
        Vec3d ray{px / camera.focal, py / camera.focal, 1}, start{};
        if (!camera.perspective) {
            start = {px / camera.focal, py / camera.focal, 0};
            ray = {0, 0, 1};
        }
        // Signed volumes over the edges [Woop et al. 2013].
        const Vec3d a = v[0] - start, b = v[1] - start, c = v[2] - start;
        double w[3] = {dot(ray, cross(b, c)), dot(ray, cross(c, a)), dot(ray, cross(a, b))};
        const double sum = w[0] + w[1] + w[2];
        double total = 0;
        for (double& k : w) {
            k = sum != 0 && std::isfinite(sum) ? std::clamp(k / sum, 0.0, 1.0) : 1.0 / 3;
            total += k;
        }
        for (int k = 0; k < 3; ++k) weight[k] = static_cast<float>(w[k] / total);

        const Vec3d flat_view = normalized(cross(v[1] - v[0], v[2] - v[0]), Vec3d{0, 0, -1});
        const Vec3f flat{static_cast<float>(flat_view.x), static_cast<float>(flat_view.y),
                         static_cast<float>(flat_view.z)};
        Vec3f normal = flat;
        if (in_.mesh_normals) {
            Vec3f smooth;
            for (int k = 0; k < 3; ++k) {
                const Vec3f n = to_view((*in_.mesh_normals)[static_cast<size_t>(3 * face + k)]);
                smooth = smooth + (dot(n, flat) < 0 ? -n : n) * weight[k];  // normals and winding may disagree
            }
            normal = normalized(smooth, flat);
            // Interpolated normals may turn away from the eye at silhouettes; the face does not.
            if (flat.z * normal.z < 0) normal.z = 0;
        }
        Light light = light_on(normal, 26);
        if (in_.mesh_edges) {
            float nearest = kInfinity;  // pixels to the nearest edge
            for (int k = 0; k < 3; ++k) {
                const Projected p = camera.project_view(v[(k + 1) % 3]), q = camera.project_view(v[(k + 2) % 3]);
                const double ex = q.x - p.x, ey = q.y - p.y, l = std::sqrt(ex * ex + ey * ey);
                const double x = px + camera.center_x - p.x, y = camera.center_y - py - p.y;
                if (l > 0) nearest = std::min(nearest, static_cast<float>(std::abs(x * ey - y * ex) / l));
            }
            light.factor *= 0.45f + 0.55f * smooth_step(0.15f, 0.85f, nearest);
        }
        return light;
    }

    float depth_at(int64_t x, int64_t y) const {
        if (x < 0 || y < 0 || x >= width_ || y >= height_) return kInfinity;
        return depth_.data()[y * width_ + x];
    }

    Surroundings look_around(int64_t x, int64_t y, float depth, float pixel, uint64_t key) const {
        Surroundings around;
        around.depth = depth;
        around.of_triangle = identity_of(key) & kIsTriangle;
        if (in_.occlusion > 0) around.open = openness(x, y, depth, pixel, around.of_triangle);
        if (in_.eye_dome && !around.of_triangle) {
            const int reach = std::clamp(static_cast<int>(std::min(width_, height_) / 128), 4, 24);
            around.outline = eye_dome_light(depth_, x, y, depth, pixel, reach);
        }
        if (!(identity_of(key) & kIsTriangle) && !point_normals_ && ball_ < 1)
            around.light = fitted_light(x, y, depth, pixel);
        return around;
    }

    // How far the place lies behind opposite neighbours, near by and farther off.
    float openness(int64_t x, int64_t y, float depth, float pixel, bool of_triangle) const {
        static constexpr int kNear8[4][2] = {{2, 0}, {0, 2}, {2, 2}, {2, -2}};  // halves of a step
        static constexpr int kFar8[4][2] = {{4, 2}, {-2, 4}, {4, -2}, {2, 4}};  // quarters
        const float slack = of_triangle ? 0.4f : 0.15f;  // the edges of a coarse mesh are no corners
        float sum = 0;
        const auto pair = [&](int64_t dx, int64_t dy, float reach) {
            const float a = depth_at(x + dx, y + dy), b = depth_at(x - dx, y - dy);
            if (a == kInfinity || b == kInfinity) return 0.f;  // an outline against the background stays bright
            const float behind = (2 * depth - a - b) / (2 * reach * pixel);
            return std::clamp(behind - slack, 0.f, 1.2f);
        };
        for (const auto& d : kNear8)
            sum += 0.055f * pair(d[0] * fine_ / 2, d[1] * fine_ / 2, static_cast<float>(fine_));
        for (const auto& d : kFar8)
            sum += 0.09f * pair(d[0] * coarse_ / 4, d[1] * coarse_ / 4, static_cast<float>(coarse_));
        return 1 - std::min(sum, 0.6f);
    }

    // Light on the plane through the depths of 5 x 5 pixels around, those of other surfaces left out.
    Light fitted_light(int64_t x, int64_t y, float depth, float pixel) const {
        const float reach = 5.f * static_cast<float>(fit_step_) * pixel;
        float n = 0, sx = 0, sy = 0, sz = 0, sxx = 0, sxy = 0, syy = 0, sxz = 0, syz = 0, szz = 0;
        for (int j = -2; j <= 2; ++j)
            for (int i = -2; i <= 2; ++i) {
                const float z = depth_at(x + i * fit_step_, y + j * fit_step_) - depth;
                if (!(std::abs(z) < reach)) continue;
                const auto u = static_cast<float>(i), v = static_cast<float>(j);
                n += 1, sx += u, sy += v, sz += z;
                sxx += u * u, sxy += u * v, syy += v * v, sxz += u * z, syz += v * z, szz += z * z;
            }
        if (n < 5) return {0.86f, 0};
        const float inverse = 1 / n;
        const float cxx = sxx - sx * sx * inverse, cxy = sxy - sx * sy * inverse, cyy = syy - sy * sy * inverse;
        const float cxz = sxz - sx * sz * inverse, cyz = syz - sy * sz * inverse;
        const float determinant = cxx * cyy - cxy * cxy;
        if (determinant < 1) return {0.86f, 0};
        const float gx = (cxz * cyy - cyz * cxy) / determinant, gy = (cyz * cxx - cxz * cxy) / determinant;
        const float scale = 1 / (pixel * static_cast<float>(fit_step_));
        const Light light = light_on(normalized(Vec3f{gx * scale, -gy * scale, -1}), 10);
        // Where the depths are no plane (leaves, noise) the light is flat rather than random.
        const float variance = szz - sz * sz * inverse, left = variance - (gx * cxz + gy * cyz);
        const float rough = std::sqrt(std::max(0.f, left) * inverse) * scale;
        const float trust = (1 - smooth_step(0.35f, 1.4f, rough)) * smooth_step(5, 14, n);
        return {0.86f + trust * (light.factor - 0.86f), trust * light.gloss};
    }

    const ShadeInput& in_;
    Image& image_;
    int64_t left_, top_, width_, height_, samples_;
    Array<float, 2> depth_;
    Vec3d offset_{}, mesh_offset_{};
    float near_, depth_scale_;
    float ball_ = 0;  // 0: splats are pieces of a surface, 1: balls
    const float* point_normals_ = nullptr;
    int fit_step_ = 1;           // pixels between the depths of a plane fit
    int fine_ = 1, coarse_ = 3;  // pixels to the neighbours of the occlusion
};

}  // namespace

void shade(const ShadeInput& input, Image& image, int64_t x, int64_t y) {
    STIPPLE_REQUIRE(image.channels() == 3 && x >= 0 && y >= 0 && x + input.visibility->width <= image.width() &&
                        y + input.visibility->height <= image.height(),
                    "a view of {} x {} at ({}, {}) does not fit the picture", input.visibility->width,
                    input.visibility->height, x, y);
    Shader(input, image, x, y).run();
}

}  // namespace stipple::picture
