// Sinkhorn on the CPU: points in Morton order, the columns of a sum in tiles with a box each. A tile whose box is too
// far from a group of rows to matter is left out.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/fast_exp.h"
#include "stipple/ops/sinkhorn.h"
#include "stipple/ops/space_curve.h"

namespace stipple::ops::cpu {
namespace {

constexpr int kTile = 16;   // columns of a tile
constexpr int kGroup = 8;   // rows that share the list of tiles
constexpr int kFlush = 32;  // tiles between two additions to the double sum
constexpr double kLog2E = 1.44269504088896340736;

struct Box {
    float low[3], high[3];
};

/// The points of one cloud that carry mass, in Morton order, relative to an origin that both clouds share.
struct Side {
    int64_t count = 0;
    std::vector<int32_t> order;     // [count] their places in the cloud
    std::vector<float> x, y, z;     // [padded to tiles]
    std::vector<float> log_mass;    // [count] log2 of the weight
    std::vector<double> potential;  // [count] in units of the cost
    std::vector<float> exponent;    // [padded] log_mass + potential * log2(e) / epsilon: what a column adds
    std::vector<Box> boxes;         // [tiles]
    std::vector<float> highest;     // [tiles] largest exponent
    int64_t tiles() const { return static_cast<int64_t>(boxes.size()); }

    void set_exponents(double inverse_epsilon) {
        for (int64_t tile = 0; tile < tiles(); ++tile) {
            const int64_t end = std::min(count, (tile + 1) * kTile);
            float top = -std::numeric_limits<float>::infinity();
            for (int64_t i = tile * kTile; i < end; ++i) {
                exponent[i] = static_cast<float>(log_mass[i] + potential[i] * inverse_epsilon);
                top = std::max(top, exponent[i]);
            }
            highest[tile] = top;
        }
    }
};

bool has_mass(View<const float, 2> cloud, const float* weights, int64_t i) {
    const float* p = &cloud(i, 0);
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]) &&
           (!weights || (weights[i] > 0 && std::isfinite(weights[i])));
}

/// Every axis by its own extent: the tiles that this gives take a fifth less time than those of spatial_order.
std::vector<int32_t> morton_order(View<const float, 2> cloud, const float* weights) {
    float low[3], high[3];
    std::fill_n(low, 3, std::numeric_limits<float>::max());
    std::fill_n(high, 3, std::numeric_limits<float>::lowest());
    std::vector<std::pair<uint32_t, int32_t>> keys;
    for (int64_t i = 0; i < cloud.size(0); ++i) {
        if (!has_mass(cloud, weights, i)) continue;
        keys.emplace_back(0, static_cast<int32_t>(i));
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], cloud(i, axis));
            high[axis] = std::max(high[axis], cloud(i, axis));
        }
    }
    for (auto& [key, i] : keys) {
        for (int axis = 0; axis < 3; ++axis) {
            const double extent = static_cast<double>(high[axis]) - low[axis];
            const double place = extent > 0 ? (static_cast<double>(cloud(i, axis)) - low[axis]) / extent : 0.0;
            key |= static_cast<uint32_t>(spread_bits(static_cast<uint32_t>(place * 1023.0))) << axis;
        }
    }
    std::sort(keys.begin(), keys.end());
    std::vector<int32_t> order(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) order[i] = keys[i].second;
    return order;
}

/// origin: a point near both clouds, so that distances keep their digits far from zero.
Side make_side(View<const float, 2> cloud, const float* weights, const float* origin) {
    Side side;
    side.order = morton_order(cloud, weights);
    side.count = static_cast<int64_t>(side.order.size());
    const int64_t tiles = (side.count + kTile - 1) / kTile;
    for (auto* axis : {&side.x, &side.y, &side.z}) axis->assign(tiles * kTile, 0.0f);
    side.exponent.assign(tiles * kTile, -1e30f);  // the padding adds nothing
    side.log_mass.resize(side.count);
    side.potential.assign(side.count, 0.0);
    side.highest.resize(tiles);
    side.boxes.resize(tiles);
    double total = 0;
    for (int32_t i : side.order) total += weights ? weights[i] : 1.0;
    for (int64_t k = 0; k < side.count; ++k) {
        const int32_t i = side.order[k];
        side.x[k] = cloud(i, 0) - origin[0];
        side.y[k] = cloud(i, 1) - origin[1];
        side.z[k] = cloud(i, 2) - origin[2];
        side.log_mass[k] = static_cast<float>(std::log2((weights ? weights[i] : 1.0) / total));
    }
    for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t begin = tile * kTile, end = std::min(side.count, begin + kTile);
        Box& box = side.boxes[tile];
        const std::vector<float>* axes[3] = {&side.x, &side.y, &side.z};
        for (int axis = 0; axis < 3; ++axis) {
            const auto [low, high] = std::minmax_element(axes[axis]->begin() + begin, axes[axis]->begin() + end);
            box.low[axis] = *low;
            box.high[axis] = *high;
        }
    }
    return side;
}

/// Sixteen sums side by side: a fixed order in vector registers.
using Lanes = float __attribute__((vector_size(64)));
constexpr int kLanes = 16;

double total_of(const Lanes& lanes) {
    double sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
    return sum;
}

void add_tile(Lanes& lanes, const float* values) {
    for (int i = 0; i < kTile; i += kLanes) {
        Lanes four;
        std::memcpy(&four, values + i, sizeof four);
        lanes += four;
    }
}

/// One row against tiles of columns. The arrays are those of the columns' side.
template <DistanceNorm norm>
struct Row {
    const Side& columns;
    float x, y, z;
    float scale;  // -log2(e) / epsilon

    /// exponent_j + shift - cost_ij / epsilon, in powers of two.
    void arguments(int64_t tile, float shift, float* __restrict out) const {
        const float* __restrict xs = columns.x.data() + tile * kTile;
        const float* __restrict ys = columns.y.data() + tile * kTile;
        const float* __restrict zs = columns.z.data() + tile * kTile;
        const float* __restrict exponents = columns.exponent.data() + tile * kTile;
        for (int j = 0; j < kTile; ++j) {
            const float dx = x - xs[j], dy = y - ys[j], dz = z - zs[j];
            const float sq = multiply_add(dz, dz, multiply_add(dy, dy, dx * dx));
            out[j] = multiply_add(scale, norm == DistanceNorm::squared ? sq : std::sqrt(sq), exponents[j] + shift);
        }
    }

    /// Sum over the listed tiles of 2^argument.
    double sum(const std::vector<int32_t>& tiles, float shift) const {
        double all = 0;
        for (size_t first = 0; first < tiles.size(); first += kFlush) {
            Lanes lanes = {};
            for (size_t t = first; t < std::min(tiles.size(), first + kFlush); ++t) {
                float values[kTile];
                arguments(tiles[t], shift, values);
                for (float& value : values) value = fast_exp2(value);
                add_tile(lanes, values);
            }
            all += total_of(lanes);
        }
        return all;
    }

    float largest_argument() const {
        Lanes top = Lanes{} - std::numeric_limits<float>::max();
        for (int64_t tile = 0; tile < columns.tiles(); ++tile) {
            float values[kTile];
            arguments(tile, 0.0f, values);
            for (int i = 0; i < kTile; i += kLanes) {
                Lanes four;
                std::memcpy(&four, values + i, sizeof four);
                top = four > top ? four : top;
            }
        }
        float largest = top[0];
        for (int lane = 1; lane < kLanes; ++lane) largest = std::max(largest, top[lane]);
        return largest;
    }

    /// What a row of the plan adds up to: mass, cost, and the gradient's vector, each relative to the row's weight.
    struct Plan {
        double mass = 0, spent = 0, gradient[3] = {0, 0, 0};
    };

    template <bool with_gradient>
    Plan plan(const std::vector<int32_t>& tiles, float shift) const {
        Plan all;
        for (size_t first = 0; first < tiles.size(); first += kFlush) {
            Lanes mass = {}, spent = {}, gradient[3] = {};
            for (size_t t = first; t < std::min(tiles.size(), first + kFlush); ++t) {
                const int64_t begin = int64_t{tiles[t]} * kTile;
                const float* __restrict xs = columns.x.data() + begin;
                const float* __restrict ys = columns.y.data() + begin;
                const float* __restrict zs = columns.z.data() + begin;
                const float* __restrict exponents = columns.exponent.data() + begin;
                float share[kTile], product[kTile], gx[kTile], gy[kTile], gz[kTile];
                for (int j = 0; j < kTile; ++j) {
                    const float dx = x - xs[j], dy = y - ys[j], dz = z - zs[j];
                    const float sq = multiply_add(dz, dz, multiply_add(dy, dy, dx * dx));
                    const float c = norm == DistanceNorm::squared ? sq : std::sqrt(sq);
                    const float p = fast_exp2(multiply_add(scale, c, exponents[j] + shift));
                    if constexpr (with_gradient) {
                        // At distance 0 the numerator is 0 and the denominator 1.
                        const float w =
                            norm == DistanceNorm::squared ? 2.0f * p : p / (c + static_cast<float>(c == 0.0f));
                        gx[j] = w * dx;
                        gy[j] = w * dy;
                        gz[j] = w * dz;
                    } else {
                        share[j] = p;
                        product[j] = p * c;
                    }
                }
                if constexpr (with_gradient) {
                    add_tile(gradient[0], gx);
                    add_tile(gradient[1], gy);
                    add_tile(gradient[2], gz);
                } else {
                    add_tile(mass, share);
                    add_tile(spent, product);
                }
            }
            all.mass += total_of(mass);
            all.spent += total_of(spent);
            for (int axis = 0; axis < 3; ++axis) all.gradient[axis] += total_of(gradient[axis]);
        }
        return all;
    }
};

/// Calls body(row number, row, tiles that matter, shift) for all rows, in parallel. With the shift potential / epsilon
/// a row's terms add up to about 1; a tile is left out when all of its terms together cannot reach 2^-30.
template <DistanceNorm norm, class Body>
void for_each_row(const Side& rows, const Side& columns, double inverse_epsilon, const Body& body) {
    const int64_t groups = (rows.count + kGroup - 1) / kGroup;
    const float negligible = -30.0f - static_cast<float>(std::bit_width(static_cast<uint64_t>(columns.count)));
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / (kGroup * std::max<int64_t>(columns.count, 1)));
    parallel_for(groups, grain, [&](int64_t begin_group, int64_t end_group) {
        std::vector<int32_t> tiles;
        tiles.reserve(columns.tiles());
        for (int64_t group = begin_group; group < end_group; ++group) {
            const int64_t begin = group * kGroup, end = std::min(rows.count, begin + kGroup);
            Box box = {{rows.x[begin], rows.y[begin], rows.z[begin]}, {rows.x[begin], rows.y[begin], rows.z[begin]}};
            double shift = rows.potential[begin];
            for (int64_t i = begin + 1; i < end; ++i) {
                const float p[3] = {rows.x[i], rows.y[i], rows.z[i]};
                for (int axis = 0; axis < 3; ++axis) {
                    box.low[axis] = std::min(box.low[axis], p[axis]);
                    box.high[axis] = std::max(box.high[axis], p[axis]);
                }
                shift = std::max(shift, rows.potential[i]);
            }
            tiles.clear();
            for (int64_t tile = 0; tile < columns.tiles(); ++tile) {
                const Box& other = columns.boxes[tile];
                float sq = 0;
                for (int axis = 0; axis < 3; ++axis) {
                    const float gap =
                        std::max({0.0f, other.low[axis] - box.high[axis], box.low[axis] - other.high[axis]});
                    sq += gap * gap;
                }
                const double least = norm == DistanceNorm::squared ? sq : std::sqrt(sq);
                if (columns.highest[tile] + (shift - least * (1 - 1e-5)) * inverse_epsilon > negligible)
                    tiles.push_back(static_cast<int32_t>(tile));
            }
            for (int64_t i = begin; i < end; ++i) {
                const Row<norm> row = {columns, rows.x[i], rows.y[i], rows.z[i], static_cast<float>(-inverse_epsilon)};
                body(i, row, tiles, static_cast<float>(rows.potential[i] * inverse_epsilon));
            }
        }
    });
}

/// The potentials that give every row its weight: -epsilon log sum over j of weight_j exp((g_j - C_ij) / epsilon).
template <DistanceNorm norm>
void update(const Side& rows, const Side& columns, double inverse_epsilon, std::vector<double>& next) {
    std::vector<int32_t> everything(columns.tiles());
    for (int64_t tile = 0; tile < columns.tiles(); ++tile) everything[tile] = static_cast<int32_t>(tile);
    for_each_row<norm>(rows, columns, inverse_epsilon,
                       [&](int64_t i, const Row<norm>& row, const std::vector<int32_t>& tiles, float shift) {
                           double sum = row.sum(tiles, shift);
                           // The last potential was no guide, as in the first iterations: find the largest term first.
                           if (!(sum > 0x1p-8 && sum < 0x1p100)) {
                               shift = -row.largest_argument();
                               sum = row.sum(everything, shift);
                           }
                           next[i] = (static_cast<double>(shift) - std::log2(sum)) / inverse_epsilon;
                       });
}

template <DistanceNorm norm>
void solve(Side& a, Side& b, const SinkhornOptions& options, const SinkhornResult& result, int64_t cloud) {
    std::vector<double> next_a(a.count), next_b(b.count);
    int iteration = 0;
    bool stopped = false;
    double error = 0, inverse_epsilon = 0;
    for (; iteration < options.max_iterations; ++iteration) {
        const double scale = kLog2E / sinkhorn_epsilon(options, iteration);
        if (scale != inverse_epsilon) b.set_exponents(scale);
        inverse_epsilon = scale;
        update<norm>(a, b, inverse_epsilon, next_a);
        if (sinkhorn_looks(options, iteration)) {
            // The row sums of the plan as it stands, from what this update would change.
            error = 0;
            for (int64_t i = 0; i < a.count; ++i)
                error += std::exp2(static_cast<double>(a.log_mass[i])) *
                         std::abs(std::exp2((a.potential[i] - next_a[i]) * inverse_epsilon) - 1.0);
            stopped = error <= options.tolerance;
            if (stopped) break;
        }
        a.potential.swap(next_a);
        a.set_exponents(inverse_epsilon);
        update<norm>(b, a, inverse_epsilon, next_b);
        b.potential.swap(next_b);
        b.set_exponents(inverse_epsilon);
    }
    std::vector<double>& masses = next_a;
    std::vector<double> costs(a.count);
    for_each_row<norm>(a, b, inverse_epsilon,
                       [&](int64_t i, const Row<norm>& row, const std::vector<int32_t>& tiles, float shift) {
                           const auto plan = row.template plan<false>(tiles, shift);
                           masses[i] = plan.mass;
                           costs[i] = plan.spent;
                       });
    double spent = 0, measured = 0, mass = 0, dual = 0;
    for (int64_t i = 0; i < a.count; ++i) {
        const double weight = std::exp2(static_cast<double>(a.log_mass[i]));
        spent += weight * costs[i];
        mass += weight * masses[i];
        measured += weight * std::abs(masses[i] - 1.0);
        dual += weight * a.potential[i];
    }
    for (int64_t j = 0; j < b.count; ++j) dual += std::exp2(static_cast<double>(b.log_mass[j])) * b.potential[j];
    if (!stopped) error = measured;
    result.cost(cloud) = static_cast<float>(spent);
    result.dual(cloud) = static_cast<float>(dual + options.epsilon * (1.0 - mass));
    result.error(cloud) = static_cast<float>(error);
    result.iterations(cloud) = iteration;
    result.converged(cloud) = error <= options.tolerance;
}

template <DistanceNorm norm>
void gradient_of(const Side& rows, const Side& columns, double inverse_epsilon, double dL_ddual, float* out) {
    for_each_row<norm>(rows, columns, inverse_epsilon,
                       [&](int64_t i, const Row<norm>& row, const std::vector<int32_t>& tiles, float shift) {
                           const auto plan = row.template plan<true>(tiles, shift);
                           const double weight = dL_ddual * std::exp2(static_cast<double>(rows.log_mass[i]));
                           for (int axis = 0; axis < 3; ++axis)
                               out[3 * rows.order[i] + axis] = static_cast<float>(weight * plan.gradient[axis]);
                       });
}

/// The clouds side by side when there are enough of them, else the rows of one after another.
template <class Body>
void for_each_cloud(const Batch& batch, const Body& body) {
    if (batch.clouds() >= threads()) {
        parallel_for(batch.clouds(), 1, [&](int64_t begin, int64_t end) {
            for (int64_t cloud = begin; cloud < end; ++cloud) body(cloud);
        });
    } else {
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) body(cloud);
    }
}

struct SidePair {
    Side a, b;
    bool has_mass() const { return a.count > 0 && b.count > 0; }
};

SidePair sides_of(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                  int64_t cloud) {
    const float* of_a = weights_a.size(0) > 0 ? weights_a.data() + a.batch.begin(cloud) : nullptr;
    const float* of_b = weights_b.size(0) > 0 ? weights_b.data() + b.batch.begin(cloud) : nullptr;
    const View<const float, 2> cloud_a = a.cloud(cloud), cloud_b = b.cloud(cloud);
    float origin[3] = {0, 0, 0};
    for (int64_t i = 0; i < cloud_a.size(0); ++i) {
        if (!has_mass(cloud_a, of_a, i)) continue;
        for (int axis = 0; axis < 3; ++axis) origin[axis] = cloud_a(i, axis);
        break;
    }
    return {make_side(cloud_a, of_a, origin), make_side(cloud_b, of_b, origin)};
}

}  // namespace

void sinkhorn(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
              const SinkhornOptions& options, const SinkhornResult& result) {
    for_each_cloud(a.batch, [&](int64_t cloud) {
        float* f = result.f.data() + a.batch.begin(cloud);
        float* g = result.g.data() + b.batch.begin(cloud);
        std::fill_n(f, a.batch.size(cloud), 0.0f);
        std::fill_n(g, b.batch.size(cloud), 0.0f);
        SidePair sides = sides_of(a, b, weights_a, weights_b, cloud);
        if (!sides.has_mass()) {
            constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
            result.cost(cloud) = result.dual(cloud) = result.error(cloud) = kNan;
            result.iterations(cloud) = result.converged(cloud) = 0;
            return;
        }
        if (options.norm == DistanceNorm::squared)
            solve<DistanceNorm::squared>(sides.a, sides.b, options, result, cloud);
        else
            solve<DistanceNorm::euclidean>(sides.a, sides.b, options, result, cloud);
        for (int64_t i = 0; i < sides.a.count; ++i) f[sides.a.order[i]] = static_cast<float>(sides.a.potential[i]);
        for (int64_t j = 0; j < sides.b.count; ++j) g[sides.b.order[j]] = static_cast<float>(sides.b.potential[j]);
    });
}

void sinkhorn_backward(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                       const SinkhornOptions& options, View<const float, 1> f, View<const float, 1> g,
                       View<const float, 1> dL_ddual, View<float, 2> dL_da, View<float, 2> dL_db) {
    std::fill_n(dL_da.data(), dL_da.elements(), 0.0f);
    std::fill_n(dL_db.data(), dL_db.elements(), 0.0f);
    const double inverse_epsilon = kLog2E / options.epsilon;
    for_each_cloud(a.batch, [&](int64_t cloud) {
        const int64_t begin_a = a.batch.begin(cloud), begin_b = b.batch.begin(cloud);
        SidePair sides = sides_of(a, b, weights_a, weights_b, cloud);
        if (!sides.has_mass()) return;
        for (int64_t i = 0; i < sides.a.count; ++i) sides.a.potential[i] = f(begin_a + sides.a.order[i]);
        for (int64_t j = 0; j < sides.b.count; ++j) sides.b.potential[j] = g(begin_b + sides.b.order[j]);
        sides.a.set_exponents(inverse_epsilon);
        sides.b.set_exponents(inverse_epsilon);
        const auto gradient = options.norm == DistanceNorm::squared ? &gradient_of<DistanceNorm::squared>
                                                                    : &gradient_of<DistanceNorm::euclidean>;
        if (dL_da.elements() > 0)
            gradient(sides.a, sides.b, inverse_epsilon, dL_ddual(cloud), dL_da.data() + 3 * begin_a);
        if (dL_db.elements() > 0)
            gradient(sides.b, sides.a, inverse_epsilon, dL_ddual(cloud), dL_db.data() + 3 * begin_b);
    });
}

}  // namespace stipple::ops::cpu
