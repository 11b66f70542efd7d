#include "stipple/picture/render/splat.h"

#include <algorithm>
#include <vector>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/picture/render/sample.h"

namespace stipple::picture {
namespace {

constexpr int64_t kChunk = int64_t{1} << 21;  // points in flight
constexpr int64_t kBlock = int64_t{1} << 15;  // points of one task
constexpr float kFar = 1e30f;

// Samples, not pixels.
struct Splat {
    float x, y, depth, radius;
    uint32_t id;
};

// The affine map from positions to view space, with the scale folded in.
struct Transform {
    double m[3][3], t[3];

    Transform(const Camera& camera, Vec3d offset) {
        const Vec3d rows[3] = {camera.right, camera.up, camera.forward};
        for (int i = 0; i < 3; ++i) {
            m[i][0] = rows[i].x / camera.unit;
            m[i][1] = rows[i].y / camera.unit;
            m[i][2] = rows[i].z / camera.unit;
            t[i] = dot(rows[i], offset - camera.eye) / camera.unit;
        }
    }
    Vec3d operator()(const float* p) const {
        const double x = p[0], y = p[1], z = p[2];
        return {m[0][0] * x + m[0][1] * y + m[0][2] * z + t[0], m[1][0] * x + m[1][1] * y + m[1][2] * z + t[1],
                m[2][0] * x + m[2][1] * y + m[2][2] * z + t[2]};
    }
};

struct TileRange {
    int64_t x0, x1, y0, y1;  // inclusive; empty when x0 > x1
};

class Splatter {
public:
    Splatter(Visibility& target, const PointCloud& cloud, const Camera& camera, const SplatSizes& sizes)
        : target_(target),
          cloud_(cloud),
          camera_(camera),
          transform_(camera, camera.offset_of(cloud)),
          sizes_(sizes),
          bump_(0.25f + 0.75f * ball_of(splat_pixels(camera, sizes.radius, camera.depth_middle()))),
          width_(static_cast<float>(target.sample_width())),
          height_(static_cast<float>(target.sample_height())) {}

    SplatCounts draw() {
        SplatCounts counts;
        for (int64_t begin = 0; begin < cloud_.size(); begin += kChunk) {
            check_interrupted();
            draw_chunk(begin, std::min(cloud_.size(), begin + kChunk), counts);
        }
        return counts;
    }

private:
    float radius_at(const Projected& at) const {
        const double radius = sizes_.radius * static_cast<double>(sizes_.factor_at(at.x, at.y));
        return static_cast<float>(splat_pixels(camera_, radius, at.depth) * static_cast<double>(target_.samples));
    }

    // False when the point is not in the picture.
    bool project(int64_t i, Splat& splat, int64_t& nonfinite) const {
        const float* p = cloud_.positions.data() + 3 * i;
        if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) {
            ++nonfinite;
            return false;
        }
        const Vec3d view = transform_(p);
        if (!(view.z > kNear) || view.z > kFar) return false;
        const Projected at = camera_.project_view(view);
        const double scale = static_cast<double>(target_.samples);
        splat = {static_cast<float>(at.x * scale), static_cast<float>(at.y * scale), static_cast<float>(view.z),
                 radius_at(at), static_cast<uint32_t>(i)};
        const float r = splat.radius;
        return splat.x > -r && splat.x < width_ + r && splat.y > -r && splat.y < height_ + r;
    }

    TileRange tiles_of(const Splat& splat) const {
        const float r = splat.radius, step = 1.f / kTile;
        return {static_cast<int64_t>(std::max(0.f, (splat.x - r) * step)),
                static_cast<int64_t>(std::min(width_ - 1, splat.x + r) * step),
                static_cast<int64_t>(std::max(0.f, (splat.y - r) * step)),
                static_cast<int64_t>(std::min(height_ - 1, splat.y + r) * step)};
    }

    // Projects a chunk, sorts its splats by tile (counting sort, stable), draws each tile on one thread.
    void draw_chunk(int64_t begin, int64_t end, SplatCounts& counts) {
        const int64_t n = end - begin, blocks = (n + kBlock - 1) / kBlock;
        const int64_t tiles_x = target_.tiles_x(), tiles = tiles_x * target_.tiles_y();
        splats_.resize(static_cast<size_t>(n));
        std::vector<int64_t> kept(static_cast<size_t>(blocks)), nonfinite(static_cast<size_t>(blocks));
        std::vector<int64_t> starts(static_cast<size_t>(blocks * tiles + 1));
        const auto for_tiles = [&](const Splat& splat, const auto& body) {
            const TileRange range = tiles_of(splat);
            for (int64_t y = range.y0; y <= range.y1; ++y)
                for (int64_t x = range.x0; x <= range.x1; ++x) body(y * tiles_x + x);
        };
        parallel_for(blocks, 1, [&](int64_t block, int64_t) {
            Splat* out = splats_.data() + block * kBlock;
            int64_t count = 0, bad = 0;
            const int64_t last = std::min(end, begin + (block + 1) * kBlock);
            for (int64_t i = begin + block * kBlock; i < last; ++i)
                if (project(i, out[count], bad)) ++count;
            for (int64_t k = 0; k < count; ++k)
                for_tiles(out[k], [&](int64_t tile) { ++starts[static_cast<size_t>(tile * blocks + block)]; });
            kept[static_cast<size_t>(block)] = count;
            nonfinite[static_cast<size_t>(block)] = bad;
        });
        int64_t total = 0;
        for (int64_t& start : starts) {
            const int64_t count = start;
            start = total;
            total += count;
        }
        sorted_.resize(static_cast<size_t>(total));
        std::vector<int64_t> next = starts;
        parallel_for(blocks, 1, [&](int64_t block, int64_t) {
            const Splat* in = splats_.data() + block * kBlock;
            for (int64_t k = 0; k < kept[static_cast<size_t>(block)]; ++k)
                for_tiles(in[k], [&](int64_t tile) {
                    sorted_[static_cast<size_t>(next[static_cast<size_t>(tile * blocks + block)]++)] = in[k];
                });
        });
        parallel_for(tiles, 1, [&](int64_t tile, int64_t) {
            const int64_t x0 = tile % tiles_x * kTile, y0 = tile / tiles_x * kTile;
            const int64_t x1 = std::min(x0 + kTile, target_.sample_width());
            const int64_t y1 = std::min(y0 + kTile, target_.sample_height());
            const auto first = static_cast<size_t>(starts[static_cast<size_t>(tile * blocks)]);
            const auto last = static_cast<size_t>(starts[static_cast<size_t>((tile + 1) * blocks)]);
            for (size_t k = first; k < last; ++k) draw_splat(sorted_[k], x0, x1, y0, y1);
        });
        for (int64_t block = 0; block < blocks; ++block) {
            counts.drawn += kept[static_cast<size_t>(block)];
            counts.nonfinite += nonfinite[static_cast<size_t>(block)];
        }
    }

    void draw_splat(const Splat& splat, int64_t tile_x0, int64_t tile_x1, int64_t tile_y0, int64_t tile_y1) {
        const float r = splat.radius;
        // A cap in scene units; its rim lies at the point, so that points on a mesh show.
        const float height =
            bump_ * r / static_cast<float>(camera_.pixels_per_unit(splat.depth) * static_cast<double>(target_.samples));
        const float slope = height / (r * r);
        const int64_t y0 = std::max(tile_y0, static_cast<int64_t>(std::ceil(std::max(splat.y - r, 0.f) - 0.5f)));
        const int64_t y1 = std::min(tile_y1 - 1, static_cast<int64_t>(std::floor(splat.y + r - 0.5f)));
        for (int64_t y = y0; y <= y1; ++y) {
            const float dy = static_cast<float>(y) + 0.5f - splat.y;
            const float half = std::sqrt(std::max(r * r - dy * dy, 0.f));
            const auto x0 =
                static_cast<int32_t>(std::max(static_cast<float>(tile_x0), std::ceil(splat.x - half - 0.5f)));
            const auto x1 =
                static_cast<int32_t>(std::min(static_cast<float>(tile_x1 - 1), std::floor(splat.x + half - 0.5f)));
            uint64_t* row = target_.keys.data() + y * target_.sample_width();
            const float base = std::max(splat.depth - height, 1e-4f) + slope * dy * dy, shift = 0.5f - splat.x;
            for (int32_t x = x0; x <= x1; ++x) {
                const float dx = static_cast<float>(x) + shift;
                const uint64_t key = make_key(base + slope * dx * dx, splat.id);
                row[x] = key < row[x] ? key : row[x];
            }
        }
    }

    Visibility& target_;
    const PointCloud& cloud_;
    const Camera& camera_;
    Transform transform_;
    const SplatSizes& sizes_;
    float bump_;  // height of a splat in radii: ripples on a surface would be lit
    float width_, height_;
    std::vector<Splat> splats_, sorted_;
};

/// Of cells with fewer points than usual, the roots of how many times fewer. Cells at a rim are as full as those beside
/// them.
std::vector<float> thin_factors(const std::vector<int32_t>& count, int64_t cells_x, int64_t cells_y, double usual) {
    constexpr double kLargest = 1.5;
    std::vector<float> factors(count.size(), 1);
    for (int64_t y = 0; y < cells_y; ++y)
        for (int64_t x = 0; x < cells_x; ++x) {
            int32_t most = 1;
            for (int64_t v = std::max<int64_t>(0, y - 1); v <= std::min(cells_y - 1, y + 1); ++v)
                for (int64_t u = std::max<int64_t>(0, x - 1); u <= std::min(cells_x - 1, x + 1); ++u)
                    most = std::max(most, count[static_cast<size_t>(v * cells_x + u)]);
            factors[static_cast<size_t>(y * cells_x + x)] =
                static_cast<float>(std::clamp(std::sqrt(usual / most), 1.0, kLargest));
        }
    return factors;
}

}  // namespace

Visibility::Visibility(int64_t width_, int64_t height_, int64_t samples_)
    : width(width_), height(height_), samples(samples_), keys({height_ * samples_, width_ * samples_}) {
    uint64_t* data = keys.data();
    parallel_for(keys.elements(), 1 << 18,
                 [&](int64_t begin, int64_t end) { std::fill(data + begin, data + end, kNothing); });
}

SplatSizes choose_splat_sizes(const PointCloud& cloud, const Camera& camera, int64_t width, int64_t height) {
    constexpr int64_t kMaxSample = 50'000;
    constexpr double kLayers = 2;          // a closed surface is seen twice, its front and its back
    constexpr double kClosed = 1.3;        // spacings: leaves a hole in 200 samples of a random cloud
    constexpr double kApart = 0.42;        // spacings: points of an even cloud do not touch
    constexpr double kClosedEven = 0.62;   // spacings: closes an even cloud
    constexpr double kClosedPixels = 2.2;  // larger splats hide detail; only an even cloud may have them
    const double side = static_cast<double>(std::min(width, height));
    const Transform transform(camera, camera.offset_of(cloud));

    std::vector<Projected> seen;
    const int64_t step = for_sample(cloud.size(), kMaxSample, [&](int64_t i) {
        const Vec3d view = transform(cloud.positions.data() + 3 * i);
        if (!(view.z > kNear && view.z < kFar)) return;
        const Projected at = camera.project_view(view);
        if (at.x >= 0 && at.y >= 0 && at.x < static_cast<double>(width) && at.y < static_cast<double>(height))
            seen.push_back(at);
    });
    const double fallback = 0.0105 * side;
    SplatSizes sizes;
    sizes.radius = fallback / camera.pixels_per_unit(camera.depth_middle());
    if (seen.empty()) return sizes;

    // Cells large enough for about eight points each, were the points spread over a third of the picture.
    const double area = static_cast<double>(width * height);
    const double cell = std::clamp(std::sqrt(8 * area / 3 / static_cast<double>(seen.size())), 4.0, side / 6);
    const auto cells_x = static_cast<int64_t>(static_cast<double>(width) / cell) + 1;
    const auto cells_y = static_cast<int64_t>(static_cast<double>(height) / cell) + 1;
    std::vector<int32_t> count(static_cast<size_t>(cells_x * cells_y));
    const auto cell_of = [&](const Projected& at) {
        return static_cast<size_t>(static_cast<int64_t>(at.y / cell) * cells_x + static_cast<int64_t>(at.x / cell));
    };
    for (const Projected& at : seen) ++count[cell_of(at)];
    std::vector<int32_t> density;
    std::vector<double> depths;
    for (const Projected& at : seen) {
        density.push_back(count[cell_of(at)]);
        depths.push_back(at.depth);
    }
    // Pixels between neighbours, where a part `rank` of the points lies thinner.
    const auto spacing = [&](double rank) {
        const auto at = density.begin() + static_cast<std::ptrdiff_t>(rank * static_cast<double>(density.size() - 1));
        std::nth_element(density.begin(), at, density.end());
        return cell / std::sqrt(std::max(1, *at) * static_cast<double>(step) / kLayers);
    };
    const auto middle = depths.begin() + static_cast<std::ptrdiff_t>(depths.size() / 2);
    std::nth_element(depths.begin(), middle, depths.end());
    // Lines of a scanner look sparse by this measure and are not: points shrink with their number.
    const double most = 0.36 / std::sqrt(static_cast<double>(cloud.size())) * side;
    // A surface that faces the camera is seen thinner than one at a slant: the low ranks are its front. The outskirts
    // of a scan are thinner still and do not count.
    const double usual = spacing(0.5);
    const double usual_count = cell / usual * (cell / usual) * kLayers / static_cast<double>(step);
    const double even = std::clamp(kClosedEven * std::min(spacing(0.12), 1.4 * usual), kClosedPixels,
                                   std::max(kClosedPixels, 2 * most));
    const double closed = std::min(kClosed * std::min(spacing(0.06), 1.9 * usual), even);
    const double apart = std::min(kApart * spacing(0.3), most);
    sizes.radius = std::clamp(std::max(apart, closed), 0.8, fallback) / camera.pixels_per_unit(*middle);
    // Balls of different sizes would look like points of different importance.
    if (ball_of(splat_pixels(camera, sizes.radius, *middle)) > 0) return sizes;
    sizes.cell = cell;
    sizes.cells_x = cells_x;
    sizes.factors = thin_factors(count, cells_x, cells_y, usual_count);
    return sizes;
}

SplatCounts draw_splats(Visibility& target, const PointCloud& cloud, const Camera& camera, const SplatSizes& sizes) {
    STIPPLE_REQUIRE(cloud.size() < int64_t{kIsTriangle}, "a picture of {} points", cloud.size());
    return Splatter(target, cloud, camera, sizes).draw();
}

}  // namespace stipple::picture
