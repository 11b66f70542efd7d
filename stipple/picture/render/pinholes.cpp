#include <algorithm>
#include <utility>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/picture/render/splat.h"

namespace stipple::picture {
namespace {

constexpr int64_t kRows = 16;   // of one task
constexpr int64_t kRun = 8;     // samples
constexpr float kBehind = 4;    // pixels of depth: less is the surface itself
constexpr float kTogether = 6;  // pixels of depth, and as much per pixel between them, that one surface may span

class Closer {
public:
    Closer(const Visibility& target, const Camera& camera, int64_t reach)
        : target_(target), camera_(camera), reach_(reach) {}

    // Only smaller keys lie before a sample with this key.
    uint64_t limit_of(uint64_t own) const {
        if (own == kNothing) return kNothing;
        const float depth = depth_of(own);
        return make_key(std::max(depth - kBehind / static_cast<float>(camera_.pixels_per_unit(depth)), 0.f), 0);
    }

    // The key that the sample should have, or its own. The nearest sample around tells the surface; it must lie on all
    // sides.
    uint64_t closed(int64_t x, int64_t y) const {
        static constexpr int kWays[8][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
        const uint64_t own = key_at(x, y);
        uint64_t nearest = kNothing;
        for (const auto& way : kWays)
            for (int64_t step = 1; step <= reach_; ++step)
                nearest = std::min(nearest, key_at(x + way[0] * step, y + way[1] * step));
        if (nearest >= limit_of(own)) return own;
        const float depth = depth_of(nearest);
        const float pixels = kTogether * (1 + static_cast<float>(reach_) / static_cast<float>(target_.samples));
        const uint64_t limit =
            std::min(limit_of(own), make_key(depth + pixels / static_cast<float>(camera_.pixels_per_unit(depth)), 0));
        uint64_t best = kNothing;
        int64_t best_distance = reach_ + 1;
        for (const auto& way : kWays) {
            int64_t step = 1;
            uint64_t found = kNothing;
            for (; step <= reach_ && found == kNothing; ++step) {
                const uint64_t key = key_at(x + way[0] * step, y + way[1] * step);
                if (key < limit) found = key;
            }
            if (found == kNothing) return own;
            if (step - 1 < best_distance || (step - 1 == best_distance && found < best)) {
                best = found;
                best_distance = step - 1;
            }
        }
        return best;
    }

private:
    uint64_t key_at(int64_t x, int64_t y) const {
        if (x < 0 || y < 0 || x >= target_.sample_width() || y >= target_.sample_height()) return kNothing;
        return target_.keys.data()[y * target_.sample_width() + x];
    }

    const Visibility& target_;
    const Camera& camera_;
    int64_t reach_;
};

}  // namespace

void close_pinholes(Visibility& target, const Camera& camera, double radius) {
    const double pixels = splat_pixels(camera, radius, camera.depth_middle());
    if (ball_of(pixels) > 0) return;  // points that stand apart are meant to be seen through
    const auto reach = static_cast<int64_t>(2 * pixels * static_cast<double>(target.samples) + 0.5);
    const Closer closer(target, camera, reach);
    // Found first and written afterwards, so that no hole's filling fills another.
    const int64_t width = target.sample_width(), height = target.sample_height();
    std::vector<std::vector<std::pair<int64_t, uint64_t>>> found(static_cast<size_t>((height + kRows - 1) / kRows));
    parallel_for(height, kRows, [&](int64_t begin, int64_t end) {
        auto& list = found[static_cast<size_t>(begin / kRows)];
        // The least key of each run of samples: where a surface or the background goes on, one look to each side tells.
        std::vector<uint64_t> runs(static_cast<size_t>((width + kRun - 1) / kRun));
        for (int64_t y = begin; y < end; ++y) {
            const uint64_t* row = target.keys.data() + y * width;
            std::fill(runs.begin(), runs.end(), kNothing);
            for (int64_t x = 0; x < width; ++x) {
                uint64_t& run = runs[static_cast<size_t>(x / kRun)];
                run = std::min(run, row[x]);
            }
            const auto least = [&](int64_t from, int64_t to) {
                uint64_t key = kNothing;
                for (int64_t run = std::max<int64_t>(from, 0) / kRun; run <= std::min(to, width - 1) / kRun; ++run)
                    key = std::min(key, runs[static_cast<size_t>(run)]);
                return key;
            };
            for (int64_t x = 0; x < width; ++x) {
                const uint64_t limit = closer.limit_of(row[x]);
                if (least(x + 1, x + reach) >= limit || least(x - reach, x - 1) >= limit) continue;
                const uint64_t key = closer.closed(x, y);
                if (key != target.keys.data()[y * width + x]) list.emplace_back(y * width + x, key);
            }
        }
    });
    for (const auto& list : found)
        for (const auto& [at, key] : list) target.keys.data()[at] = key;
}

}  // namespace stipple::picture
