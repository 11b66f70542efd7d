#include "stipple/radiance/cpu/step.h"

#include <atomic>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/radiance/cpu/network.h"
#include "stipple/radiance/march/environment.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/march/skip.h"

namespace stipple::radiance::cpu {
namespace {

constexpr int64_t kRaysOfChunk = 64;
constexpr double kFixedOne = kGradientOne;

void add_gradient(std::vector<int64_t>& gradient, int64_t i, float value) {
    std::atomic_ref<int64_t> sum(gradient[static_cast<size_t>(i)]);
    sum.fetch_add(std::llrint(static_cast<double>(value) * kFixedOne), std::memory_order_relaxed);
}

struct Sample {
    Corners corners;
    float opacity = 0, weight = 0;  // weight 0: no colour
    int32_t kept = -1;              // place in the chunk's batch
    float colour[3] = {};
};

struct ChunkRay {
    DrawnRay drawn;
    size_t first = 0, end = 0;  // samples
    float left = 1;
    Texels behind = {};  // where the background is learned
};

struct Chunk {
    std::vector<ChunkRay> rays;
    std::vector<Sample> samples;
    NetworkBatch batch;
    std::vector<float> network_gradient;
    double squared_error = 0;
    SampleCounts counts;
};

void march_ray(const StepMemory& m, Chunk& chunk, int32_t r) {
    const StepConstants& c = m.constants;
    const GridView& view = m.bricks.view;
    ChunkRay ray;
    ray.drawn = draw_ray(m.photos, m.pool, c.draw, m.state.step, c.rays, r);
    if (c.environment_side > 0) {
        ray.behind = texels_of(ray.drawn.ray.direction, c.environment_side);
        for (int k = 0; k < 3; ++k)
            ray.drawn.background[k] = sigmoid(interpolate(ray.behind, m.environment.value.data(), k));
    }
    ray.first = chunk.samples.size();
    const March march = march_through(ray.drawn.ray, view.low, view.high, c.near, c.step, ray.drawn.offset);
    const Vec3f d = ray.drawn.ray.direction;
    float code[kViewCode];
    encode_view(d * (1 / std::sqrt(dot(d, d))), code);
    code[kViewInputs] = 1;
    const SampleRange inside = samples_inside(view, march);
    chunk.counts.in_box += inside.end - inside.begin;
    const Vec3f per_node = samples_per_node(view, march);
    for (int32_t i = inside.begin;; ++i) {
        i = next_sample(m.bricks, march, per_node, i, inside.end);
        if (i >= inside.end) break;
        const Vec3f node = to_nodes(view, march.at(i));
        if (!is_occupied(m.bricks, node)) continue;
        ++chunk.counts.in_mask;
        Sample sample;
        sample.corners = corners_of(m.bricks, node);
        sample.opacity = opacity(interpolate(sample.corners, m.density.value.data()) + c.shift, c.opacity_length);
        if (!(sample.opacity > c.threshold)) continue;
        ++chunk.counts.opaque;
        const float weight = ray.left * sample.opacity;
        ray.left *= 1 - sample.opacity;
        if (weight > c.threshold) {
            sample.weight = weight;
            sample.kept = static_cast<int32_t>(chunk.counts.kept++);
            float features[kFeatures] = {};
            for (int k = 0; k < 8; ++k) {
                const float* f = m.features.value.data() + int64_t{sample.corners.node[k]} * m.channels;
                for (int ch = 0; ch < m.channels; ++ch) features[ch] += sample.corners.weight[k] * f[ch];
            }
            if (m.channels == kFeatures) {
                chunk.batch.inputs.insert(chunk.batch.inputs.end(), features, features + kFeatures);
                chunk.batch.inputs.insert(chunk.batch.inputs.end(), code, code + kViewCode);
            } else {
                for (int k = 0; k < 3; ++k) sample.colour[k] = sigmoid(features[k]);
            }
        }
        chunk.samples.push_back(sample);
        if (ray.left < kLeastTransmittance) break;
    }
    ray.end = chunk.samples.size();
    chunk.rays.push_back(ray);
}

/// Losses, and the gradients of densities; those of colours before their sigmoids go to `to_colour` [kept, 3].
void go_back(StepMemory& m, Chunk& chunk, const ChunkRay& ray, std::vector<float>& to_colour) {
    const StepConstants& c = m.constants;
    const float per_ray = 1.0f / static_cast<float>(c.rays);
    float pixel[3] = {};
    for (size_t i = ray.first; i < ray.end; ++i) {
        for (int k = 0; k < 3; ++k) pixel[k] += chunk.samples[i].weight * chunk.samples[i].colour[k];
    }
    float slope[3], to_end = 0, entropy_slope = 0;
    for (int k = 0; k < 3; ++k) {
        const float difference = pixel[k] + ray.left * ray.drawn.background[k] - ray.drawn.colour[k];
        chunk.squared_error += double{difference} * difference;
        slope[k] = 2.0f / 3.0f * per_ray * difference;
        to_end += slope[k] * ray.drawn.background[k];
    }
    for (int k = 0; c.environment_side > 0 && k < 12; ++k) {
        const float colour = ray.drawn.background[k % 3];
        add_gradient(m.environment.gradient, int64_t{3} * ray.behind.texel[k / 3] + k % 3,
                     ray.behind.weight[k / 3] * (slope[k % 3] * ray.left * colour * (1 - colour)));
    }
    end_entropy(ray.left, entropy_slope);
    to_end += c.weight_entropy * per_ray * entropy_slope;
    float behind = to_end * ray.left;
    for (size_t i = ray.end; i-- > ray.first;) {
        const Sample& sample = chunk.samples[i];
        float by_weight = 0, before = 0;
        if (sample.weight > 0) {
            before = sample.weight / sample.opacity;
            for (int k = 0; k < 3; ++k) {
                const float rgb = sample.colour[k];
                by_weight += slope[k] * rgb;
                const float own = 2 * c.weight_rgbper * per_ray * (rgb - ray.drawn.colour[k]);
                to_colour[static_cast<size_t>(3 * sample.kept + k)] =
                    sample.weight * (slope[k] + own) * rgb * (1 - rgb);
            }
        }
        const float to_alpha = by_weight * before - behind / (1 - sample.opacity + 1e-10f);
        behind += by_weight * sample.weight;
        const float to_density = to_alpha * slope_of_opacity(sample.opacity, c.opacity_length);
        if (to_density == 0) continue;
        for (int k = 0; k < 8; ++k) {
            const int32_t node = sample.corners.node[k];
            add_gradient(m.density.gradient, node, sample.corners.weight[k] * to_density);
            std::atomic_ref<uint8_t>(m.touched[static_cast<size_t>(node / kBrickNodes)])
                .store(1, std::memory_order_relaxed);
        }
    }
}

void scatter(StepMemory& m, const Chunk& chunk, const float* gradients, int stride) {
    for (const Sample& sample : chunk.samples) {
        if (sample.kept < 0) continue;
        const float* g = gradients + int64_t{sample.kept} * stride;
        for (int k = 0; k < 8; ++k) {
            const int64_t node = sample.corners.node[k];
            for (int ch = 0; ch < m.channels; ++ch) {
                add_gradient(m.features.gradient, node * m.channels + ch, sample.corners.weight[k] * g[ch]);
            }
            std::atomic_ref<uint8_t>(m.touched[static_cast<size_t>(node / kBrickNodes)])
                .store(1, std::memory_order_relaxed);
        }
    }
}

void run_chunk(StepMemory& m, Chunk& chunk, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) march_ray(m, chunk, static_cast<int32_t>(r));
    const int64_t kept = chunk.counts.kept;
    if (m.channels == kFeatures) {
        forward(m.network.value.data(), kept, chunk.batch);
        for (Sample& sample : chunk.samples) {
            if (sample.kept < 0) continue;
            for (int k = 0; k < 3; ++k) {
                sample.colour[k] = sigmoid(chunk.batch.outputs[static_cast<size_t>(3 * sample.kept + k)]);
            }
        }
    } else {
        chunk.batch.outputs.resize(static_cast<size_t>(3 * kept));
    }
    for (const ChunkRay& ray : chunk.rays) go_back(m, chunk, ray, chunk.batch.outputs);
    if (m.channels == kFeatures) {
        chunk.network_gradient.assign(kNetworkNumbers, 0);
        backward(m.network.value.data(), kept, chunk.batch, chunk.network_gradient.data());
        scatter(m, chunk, chunk.batch.input_gradients.data(), kNetworkInputs);
    } else {
        scatter(m, chunk, chunk.batch.outputs.data(), 3);
    }
}

/// Elements without a gradient stay as they are where `masked`.
void update(Values& values, int64_t begin, int64_t end, float rate, bool masked, const float* rates) {
    for (int64_t j = begin; j < end; ++j) {
        const auto i = static_cast<size_t>(j);
        const float g = static_cast<float>(static_cast<double>(values.gradient[i]) / kFixedOne);
        values.gradient[i] = 0;
        if (masked && g == 0) continue;
        adam(values.value[i], values.mean[i], values.square[i], g, rates ? rate * rates[i] : rate);
    }
}

void add_variation(StepMemory& m) {
    const StepConstants& c = m.constants;
    const BrickGrid& b = m.bricks;
    const auto add = [&](Values& values, int channels, float weight) {
        if (!(weight > 0)) return;
        const std::vector<int64_t> before = values.gradient;
        parallel_for(b.view.size[0], 1, [&](int64_t x0, int64_t x1) {
            for (auto x = static_cast<int32_t>(x0); x < x1; ++x) {
                for (int32_t y = 0; y < b.view.size[1]; ++y) {
                    for (int32_t z = 0; z < b.view.size[2]; ++z) {
                        const int32_t brick = b.brick_of(x, y, z);
                        if (brick < 0 || !m.touched[static_cast<size_t>(brick)]) continue;
                        const int64_t node = int64_t{brick} * kBrickNodes + BrickGrid::place(x, y, z);
                        for (int ch = 0; ch < channels; ++ch) {
                            const auto i = static_cast<size_t>(node * channels + ch);
                            if (before[i] == 0) continue;
                            float sum = 0;
                            for (int side = 0; side < 6; ++side) {
                                int32_t at[3] = {x, y, z};
                                at[side / 2] += side % 2 == 0 ? -1 : 1;
                                if (at[side / 2] < 0 || at[side / 2] >= b.view.size[side / 2]) continue;
                                const int32_t other = b.brick_of(at[0], at[1], at[2]);
                                if (other < 0) continue;
                                const int64_t j = int64_t{other} * kBrickNodes + BrickGrid::place(at[0], at[1], at[2]);
                                const float difference =
                                    values.value[i] - values.value[static_cast<size_t>(j * channels + ch)];
                                sum += std::min(1.0f, std::max(-1.0f, difference));
                            }
                            values.gradient[i] += std::llrint(static_cast<double>(weight / 6 * sum) * kFixedOne);
                        }
                    }
                }
            }
        });
    };
    add(m.density, 1, c.weight_tv_density);
    add(m.features, m.channels, c.weight_tv_features);
}

}  // namespace

void compute_gradients(StepMemory& m) {
    const StepConstants& c = m.constants;
    const int64_t chunks = (c.rays + kRaysOfChunk - 1) / kRaysOfChunk;
    std::vector<ChunkSums>& all = m.sums;
    all.resize(static_cast<size_t>(chunks));
    parallel_for(c.rays, kRaysOfChunk, [&](int64_t begin, int64_t end) {
        thread_local Chunk chunk;  // keeps its memory from step to step
        chunk.rays.clear();
        chunk.samples.clear();
        chunk.batch.inputs.clear();
        chunk.squared_error = 0;
        chunk.counts = {};
        run_chunk(m, chunk, begin, end);
        ChunkSums& sums = all[static_cast<size_t>(begin / kRaysOfChunk)];
        sums.squared_error = chunk.squared_error;
        sums.counts = chunk.counts;
        sums.network_gradient.swap(chunk.network_gradient);
    });
    add_variation(m);
    m.counts = {};
    for (const ChunkSums& chunk : all) {
        m.state.squared_error += chunk.squared_error;
        m.counts.in_box += chunk.counts.in_box;
        m.counts.in_mask += chunk.counts.in_mask;
        m.counts.opaque += chunk.counts.opaque;
        m.counts.kept += chunk.counts.kept;
    }
    if (m.channels != kFeatures) return;
    m.network_gradient.assign(kNetworkNumbers, 0);
    for (const ChunkSums& chunk : all) {
        for (size_t i = 0; i < kNetworkNumbers; ++i) m.network_gradient[i] += chunk.network_gradient[i];
    }
}

void run_step(StepMemory& m) {
    compute_gradients(m);
    const StepConstants& c = m.constants;
    const bool fine = m.channels == kFeatures;
    const float rate = m.state.rate * m.state.correction;
    parallel_for(static_cast<int64_t>(m.touched.size()), 64, [&](int64_t begin, int64_t end) {
        for (int64_t brick = begin; brick < end; ++brick) {
            if (fine && !m.touched[static_cast<size_t>(brick)]) continue;
            m.touched[static_cast<size_t>(brick)] = 0;
            const int64_t first = brick * kBrickNodes, last = first + kBrickNodes;
            update(m.density, first, last, c.rate_density * rate, fine,
                   m.density_rate.empty() ? nullptr : m.density_rate.data());
            update(m.features, first * m.channels, last * m.channels, c.rate_features * rate, fine, nullptr);
        }
    });
    for (size_t i = 0; fine && i < kNetworkNumbers; ++i) {
        adam(m.network.value[i], m.network.mean[i], m.network.square[i], m.network_gradient[i], c.rate_network * rate);
    }
    parallel_for(static_cast<int64_t>(m.environment.value.size()), 4096, [&](int64_t begin, int64_t end) {
        update(m.environment, begin, end, c.rate_environment * rate, true, nullptr);
    });
    m.state.rays += c.rays;
    advance(m.state, c.decay);
}

}  // namespace stipple::radiance::cpu
