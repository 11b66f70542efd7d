// Every kernel that this CPU can run, against plain loops. The loops sum in the kernels' order, so fp32 and int8 must
// agree in every bit; bf16, whose instructions round sums in their own way, is held to the spacing of float32.

#include "stipple/engine/cpu/chain/chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "stipple/core/buffer.h"
#include "stipple/core/error.h"
#include "stipple/core/rng.h"
#include "stipple/engine/cpu/chain/kernels.h"

namespace stipple::engine::cpu {
namespace {

using KernelSet = std::vector<const Kernel*>;

/// One kernel for each precision: the fastest together, then the second fastest, down to the portable ones.
std::vector<KernelSet> kernel_sets() {
    const std::vector<const Kernel*> lists[] = {kernels_of(Precision::fp32), kernels_of(Precision::bf16),
                                                kernels_of(Precision::int8)};
    size_t longest = 0;
    for (const auto& list : lists) longest = std::max(longest, list.size());
    std::vector<KernelSet> sets(longest);
    for (size_t i = 0; i < longest; ++i)
        for (const auto& list : lists) sets[i].push_back(list[std::min(i, list.size() - 1)]);
    return sets;
}

bool is_fused(const Kernel& kernel) {
    return std::strncmp(kernel.name, "portable", 8) != 0;
}

float activate(float x, const Activation& activation) {
    if (activation.kind == ActivationKind::relu) return x > 0 ? x : 0;
    if (activation.kind == ActivationKind::leaky_relu) return x > 0 ? x : activation.slope * x;
    return x;
}

class Dice {
public:
    explicit Dice(uint64_t seed) : rng_(seed) {}
    int64_t below(int64_t bound) { return rng_.below(index_++, static_cast<uint32_t>(bound)); }
    int64_t among(std::initializer_list<int64_t> values) {
        return values.begin()[below(static_cast<int64_t>(values.size()))];
    }
    float number() { return 2 * rng_.uniform(index_++) - 1; }
    std::vector<float> numbers(int64_t n, float scale = 1) {
        std::vector<float> all(static_cast<size_t>(n));
        for (float& x : all) x = scale * number();
        return all;
    }

private:
    Rng rng_;
    uint64_t index_ = 0;
};

struct Addend {
    Access access = Access::row;
    int64_t width = 1;
    std::vector<float> data;
    std::vector<int32_t> neighbours;
};

/// A chain with all it reads.
struct Case {
    std::vector<Dense> layers;
    Reduce reduce = Reduce::none;
    int64_t rows = 1, width = 1;
    std::vector<int64_t> part_channels;
    std::vector<std::vector<float>> parts;     // rows are 3 numbers longer than they need be
    std::vector<Addend> addends;               // rows are one number longer
    std::vector<std::vector<float>> matrices;  // of each layer, empty where shared

    int64_t in() const { return layers.front().in; }
    int64_t out() const { return layers.back().out; }
    int64_t out_rows() const { return reduce == Reduce::none ? rows : reduce == Reduce::max_rows ? rows / width : 1; }
};

Dense make_dense(int64_t in, int64_t out, Precision precision, Dice& dice) {
    Dense dense;
    dense.name = "layer";
    dense.in = in;
    dense.out = out;
    dense.weight = dice.numbers(in * out, 2 / std::sqrt(static_cast<float>(std::max<int64_t>(in, 1))));
    dense.bias = dice.numbers(out, 0.5f);
    dense.precision = precision;
    dense.input_range = 0.9f;  // some inputs are beyond it
    const int64_t kind = dice.below(3);
    dense.activation = kind == 0 ? Activation{} : kind == 1 ? network::relu() : network::leaky_relu(0.1f);
    return dense;
}

Case make_case(const std::vector<int64_t>& sizes, const std::vector<Precision>& precisions, Reduce reduce, int64_t rows,
               int64_t width, Dice& dice) {
    Case made;
    made.reduce = reduce;
    made.rows = rows;
    made.width = width;
    for (size_t l = 0; l + 1 < sizes.size(); ++l)
        made.layers.push_back(make_dense(sizes[l], sizes[l + 1], precisions[l % precisions.size()], dice));
    made.matrices.resize(made.layers.size());
    if (sizes[0] > 0) {
        made.part_channels = {sizes[0]};
        made.parts = {dice.numbers(rows * (sizes[0] + 3))};
    }
    return made;
}

void cut_into_parts(Case& made, Dice& dice) {
    const int64_t in = made.in();
    if (in < 3) return;
    const int64_t first = 1 + dice.below(in - 2), second = 1 + dice.below(in - first - 1);
    made.part_channels = {first, second, in - first - second};
    made.parts.clear();
    for (const int64_t channels : made.part_channels) made.parts.push_back(dice.numbers(made.rows * (channels + 3)));
}

void give_addend(Case& made, Access access, Dice& dice) {
    Addend addend;
    addend.access = access;
    addend.width = access == Access::point ? made.width : 1;
    addend.data = dice.numbers((made.rows + 1) * (made.layers.front().out + 1));
    if (access == Access::neighbour)
        for (int64_t r = 0; r < made.rows; ++r)
            addend.neighbours.push_back(static_cast<int32_t>(dice.below(made.rows)));
    made.addends.push_back(std::move(addend));
}

void give_matrix(Case& made, size_t l) {
    made.matrices[l] = std::move(made.layers[l].weight);
    made.layers[l].weight.clear();
    made.layers[l].matrix = 0;
}

// ---- plain loops -----------------------------------------------------------------------------------------------

/// Weights as the layer's precision represents them; for int8 in steps of their scale.
struct Rounded {
    std::vector<float> weight, scale;
};

Rounded rounded(const Dense& dense, const std::vector<float>& weight) {
    Rounded out{weight, std::vector<float>(static_cast<size_t>(dense.out))};
    for (int64_t o = 0; o < dense.out; ++o) {
        float* w = out.weight.data() + o * dense.in;
        float largest = 0;
        for (int64_t i = 0; i < dense.in; ++i) largest = std::max(largest, std::abs(w[i]));
        for (int64_t i = 0; i < dense.in; ++i) {
            if (dense.precision == Precision::bf16) w[i] = round_to_bf16(w[i]);
            if (dense.precision == Precision::int8) w[i] = round_to_int8(w[i], largest > 0 ? 127 / largest : 0);
        }
        out.scale[static_cast<size_t>(o)] = largest / 127 * (dense.input_range / 127);
    }
    return out;
}

/// Sums of one layer for one row.
std::vector<float> product(const Dense& dense, const Rounded& weights, std::vector<float> x, bool fused) {
    for (float& v : x) {
        if (dense.precision == Precision::bf16) v = round_to_bf16(v);
        if (dense.precision == Precision::int8) v = round_to_int8(v, 127 / dense.input_range);
    }
    std::vector<float> y(static_cast<size_t>(dense.out));
    for (int64_t o = 0; o < dense.out; ++o) {
        const float* w = weights.weight.data() + o * dense.in;
        float s = 0;
        int32_t steps = 0;
        for (int64_t i = 0; i < dense.in; ++i) {
            const float v = x[static_cast<size_t>(i)];
            if (dense.precision == Precision::int8)
                steps += static_cast<int32_t>(w[i]) * static_cast<int32_t>(v);
            else
                s = fused ? std::fma(w[i], v, s) : s + w[i] * v;
        }
        const bool is_int8 = dense.precision == Precision::int8;
        y[static_cast<size_t>(o)] = is_int8 ? static_cast<float>(steps) * weights.scale[static_cast<size_t>(o)] : s;
    }
    return y;
}

/// The same for all rows of a point: added after their maximum.
bool is_late(const Case& made, const Addend& addend) {
    return made.reduce == Reduce::max_rows && made.layers.size() == 1 &&
           (addend.access == Access::cloud || addend.access == Access::point);
}

/// [out_rows, out], of Reduce::max_points after its bias and activation.
std::vector<float> reference(const Case& made, const KernelSet& kernels) {
    const auto fused = [&](const Dense& dense) {
        for (const Kernel* kernel : kernels)
            if (kernel->precision == dense.precision) return is_fused(*kernel);
        return true;
    };
    bool is_shared = made.layers.size() > 1 || made.reduce == Reduce::none;  // addends go to the bias
    for (const Addend& addend : made.addends) is_shared &= addend.access == Access::cloud;
    std::vector<Rounded> weights;
    for (size_t l = 0; l < made.layers.size(); ++l)
        weights.push_back(rounded(made.layers[l], made.matrices[l].empty() ? made.layers[l].weight : made.matrices[l]));
    const int64_t out = made.out();
    std::vector<float> result(static_cast<size_t>(made.out_rows() * out), -std::numeric_limits<float>::infinity());
    for (int64_t r = 0; r < made.rows; ++r) {
        std::vector<float> x;
        for (size_t p = 0; p < made.parts.size(); ++p) {
            const float* from = made.parts[p].data() + r * (made.part_channels[p] + 3);
            x.insert(x.end(), from, from + made.part_channels[p]);
        }
        for (size_t l = 0; l < made.layers.size(); ++l) {
            const Dense& dense = made.layers[l];
            x = product(dense, weights[l], std::move(x), fused(dense));
            const bool is_last = l + 1 == made.layers.size();
            for (int64_t o = 0; o < dense.out; ++o) {
                float& y = x[static_cast<size_t>(o)];
                float bias = dense.bias[static_cast<size_t>(o)];
                for (const Addend& addend : made.addends) {
                    if (l > 0) break;
                    if (is_late(made, addend)) continue;
                    const int64_t at = addend.access == Access::row     ? r
                                       : addend.access == Access::cloud ? 0
                                       : addend.access == Access::point ? r / addend.width
                                                                        : addend.neighbours[static_cast<size_t>(r)];
                    (is_shared ? bias : y) += addend.data[static_cast<size_t>(at * (dense.out + 1) + o)];
                }
                if (!is_last || made.reduce == Reduce::none) y = activate(y + bias, dense.activation);
            }
        }
        const int64_t row = made.reduce == Reduce::none ? r : made.reduce == Reduce::max_rows ? r / made.width : 0;
        for (int64_t o = 0; o < out; ++o) {
            float& y = result[static_cast<size_t>(row * out + o)];
            y = std::max(y, x[static_cast<size_t>(o)]);
        }
    }
    for (int64_t i = 0; i < made.out_rows() * out; ++i)
        for (const Addend& addend : made.addends)
            if (is_late(made, addend))
                result[static_cast<size_t>(i)] += addend.data[static_cast<size_t>(
                    (addend.access == Access::cloud ? 0 : i / out) * (out + 1) + i % out)];
    if (made.reduce != Reduce::none)
        for (size_t i = 0; i < result.size(); ++i)
            result[i] = activate(result[i] + made.layers.back().bias[i % static_cast<size_t>(out)],
                                 made.layers.back().activation);
    return result;
}

// ---- the chain -------------------------------------------------------------------------------------------------

constexpr float kCanary = -12345.0f;

/// Rows [begin, end) of the case, into `out` with rows of out() + 1 numbers.
void run_rows(const Case& made, const Chain& chain, int64_t begin, int64_t end, float* out) {
    std::vector<ChainPart> parts;
    for (size_t p = 0; p < made.parts.size(); ++p) {
        const int64_t stride = made.part_channels[p] + 3;
        parts.push_back({made.parts[p].data() + begin * stride, stride, made.part_channels[p]});
    }
    std::vector<ChainAddend> addends;
    for (const Addend& addend : made.addends) {
        ChainAddend task_addend = {addend.data.data(), made.layers.front().out + 1, addend.access, addend.width,
                                   nullptr};
        if (addend.access == Access::row) task_addend.data += begin * task_addend.stride;
        if (addend.access == Access::point) task_addend.data += begin / addend.width * task_addend.stride;
        if (addend.access == Access::neighbour) task_addend.neighbours = addend.neighbours.data() + begin;
        addends.push_back(task_addend);
    }
    std::vector<const float*> matrices;
    for (const auto& matrix : made.matrices) matrices.push_back(matrix.empty() ? nullptr : matrix.data());
    ChainTask task;
    task.rows = end - begin;
    task.parts = parts;
    task.addends = addends;
    task.matrices = matrices;
    task.width = made.width;
    task.out_stride = made.out() + 1;
    const int64_t row = made.reduce == Reduce::none ? begin : made.reduce == Reduce::max_rows ? begin / made.width : 0;
    task.out = out + row * task.out_stride;

    Buffer scratch(chain.scratch_bytes() + 64);
    std::memset(scratch.data(), 0x7f, static_cast<size_t>(scratch.bytes()));
    chain.run(task, scratch.data());
    for (int64_t i = chain.scratch_bytes(); i < scratch.bytes(); ++i)
        ASSERT_EQ(scratch.data()[i], std::byte{0x7f}) << "written beyond its scratch memory";
}

std::vector<float> empty_result(const Case& made) {
    std::vector<float> out(static_cast<size_t>(made.out_rows() * (made.out() + 1) + 16), kCanary);
    if (made.reduce == Reduce::max_points)
        std::fill_n(out.begin(), made.out(), -std::numeric_limits<float>::infinity());
    return out;
}

/// Checks that nothing was written between and after the rows.
std::vector<float> finished(const Case& made, const Chain& chain, std::vector<float> out) {
    if (made.reduce == Reduce::max_points) chain.finish(out.data());
    std::vector<float> result;
    for (int64_t r = 0; r < made.out_rows(); ++r) {
        const auto row = out.begin() + r * (made.out() + 1);
        result.insert(result.end(), row, row + made.out());
        EXPECT_EQ(row[made.out()], kCanary);
    }
    for (size_t i = static_cast<size_t>(made.out_rows() * (made.out() + 1)); i < out.size(); ++i)
        EXPECT_EQ(out[i], kCanary);
    return result;
}

std::vector<float> run_whole(const Case& made, const Chain& chain) {
    std::vector<float> out = empty_result(made);
    run_rows(made, chain, 0, made.rows, out.data());
    return finished(made, chain, std::move(out));
}

bool has_bf16_instructions(const Case& made, const KernelSet& kernels) {
    for (const Dense& dense : made.layers)
        for (const Kernel* kernel : kernels)
            if (dense.precision == Precision::bf16 && kernel->precision == Precision::bf16 &&
                kernel->factor == Factor::bf16)
                return true;
    return false;
}

void expect_equal(const Case& made, const KernelSet& kernels, const std::vector<float>& got,
                  const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    float largest = 0;
    for (const float x : want) largest = std::max(largest, std::abs(x));
    // A sum that is rounded otherwise may round an activation to the next bf16, 2^-8 of it, where layers follow.
    const float tolerance = !has_bf16_instructions(made, kernels) ? 0.0f
                            : made.layers.size() == 1             ? 4e-6f * (1 + largest)
                                                                  : 1e-2f * (1 + largest);
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(std::abs(got[i] - want[i]) <= tolerance) << "number " << i << ": " << got[i] << ", not " << want[i];
}

void check(const Case& made, const KernelSet& kernels) {
    const Chain chain(made.layers, made.reduce, kernels);
    SCOPED_TRACE(chain.describe());
    expect_equal(made, kernels, run_whole(made, chain), reference(made, kernels));
}

constexpr Precision kPrecisions[] = {Precision::fp32, Precision::bf16, Precision::int8};

TEST(EngineCpuChain, KernelsAreListedFastestFirstAndEndPortable) {
    for (const Precision precision : kPrecisions) {
        const auto kernels = kernels_of(precision);
        ASSERT_FALSE(kernels.empty());
        EXPECT_EQ(kernels.back(), portable_kernel(precision));
        for (const Kernel* kernel : kernels) {
            EXPECT_EQ(kernel->precision, precision) << kernel->name;
            EXPECT_EQ(kernel->channels % 8, 0) << kernel->name;
            EXPECT_LE(kernel->channels, kMostChannels) << kernel->name;
        }
    }
#if defined(__aarch64__) || defined(__AVX2__)
    EXPECT_GE(kernels_of(Precision::fp32).size(), 2u);
#endif
}

TEST(EngineCpuChain, OneLayerOfEverySize) {
    Dice dice(1);
    for (const KernelSet& kernels : kernel_sets())
        for (const Precision precision : kPrecisions)
            for (const Reduce reduce : {Reduce::none, Reduce::max_points}) {
                for (int64_t rows = 1; rows <= 130; rows += rows < 27 ? 1 : 17)
                    check(make_case({19, 21}, {precision}, reduce, rows, 1, dice), kernels);
                for (int64_t in = 1; in <= 40; in += in < 20 ? 1 : 5)
                    for (const int64_t out : {1, 7, 8, 9, 31, 33, 64})
                        check(make_case({in, out}, {precision}, reduce, 14, 1, dice), kernels);
                if (HasFatalFailure()) return;
            }
}

TEST(EngineCpuChain, PointNetsChains) {
    Dice dice(2);
    for (const KernelSet& kernels : kernel_sets())
        for (const Precision precision : kPrecisions) {
            Case trunk = make_case({3, 64, 64, 128, 1024}, {precision}, Reduce::max_points, 143, 1, dice);
            trunk.layers[0].precision = Precision::fp32;
            give_matrix(trunk, 0);
            give_matrix(trunk, 2);
            check(trunk, kernels);
            check(make_case({1024, 512, 256, 40}, {precision}, Reduce::none, 3, 1, dice), kernels);
            check(make_case({1024, 512, 256, 40}, {precision}, Reduce::none, 32, 1, dice), kernels);
            if (HasFatalFailure()) return;
        }
}

/// Layers, sizes, precisions, parts, addends, matrices and reductions in all mixtures.
Case random_case(uint64_t seed) {
    Dice dice(1000 + seed);
    const Reduce reduce =
        std::initializer_list<Reduce>{Reduce::none, Reduce::max_points, Reduce::max_rows}.begin()[dice.below(3)];
    const int64_t width = reduce == Reduce::max_rows || dice.below(2) ? dice.among({1, 2, 5, 16, 31}) : 1;
    const int64_t rows = width * (1 + dice.below(1 + 200 / width));
    std::vector<int64_t> sizes = {dice.among({0, 1, 3, 6, 8, 17, 64, 100})};
    std::vector<Precision> precisions;
    for (int64_t layers = 1 + dice.below(4); layers > 0; --layers) {
        sizes.push_back(dice.among({1, 2, 5, 8, 12, 24, 32, 50, 64, 129}));
        precisions.push_back(kPrecisions[dice.below(3)]);
    }
    Case made = make_case(sizes, precisions, reduce, rows, width, dice);
    if (dice.below(2) == 0) cut_into_parts(made, dice);
    for (int64_t addends = sizes[0] == 0 ? 2 : dice.below(3); addends > 0; --addends)
        give_addend(made, static_cast<Access>(dice.below(4)), dice);
    for (size_t l = 0; l < made.layers.size(); ++l)
        if (made.layers[l].in > 0 && dice.below(4) == 0) give_matrix(made, l);
    return made;
}

TEST(EngineCpuChain, MixturesOfEverything) {
    for (const KernelSet& kernels : kernel_sets())
        for (uint64_t seed = 0; seed < 300; ++seed) {
            SCOPED_TRACE(seed);
            check(random_case(seed), kernels);
            if (HasFatalFailure()) return;
        }
}

TEST(EngineCpuChain, WideRowsWithManyAddends) {
    Dice dice(3);
    for (const KernelSet& kernels : kernel_sets())
        for (const Precision precision : kPrecisions)
            for (const Reduce reduce : {Reduce::none, Reduce::max_points, Reduce::max_rows})
                for (const int64_t out : {256, 300, 700}) {
                    Case made = make_case({20, out}, {precision}, reduce, 35, 5, dice);
                    for (const Access access : {Access::neighbour, Access::point, Access::row, Access::cloud})
                        give_addend(made, access, dice);
                    check(made, kernels);
                    if (HasFatalFailure()) return;
                }
}

TEST(EngineCpuChain, RowsDoNotDependOnHowACloudIsCut) {
    for (const KernelSet& kernels : kernel_sets())
        for (uint64_t seed = 0; seed < 100; ++seed) {
            SCOPED_TRACE(seed);
            const Case made = random_case(seed);
            const Chain chain(made.layers, made.reduce, kernels);
            SCOPED_TRACE(chain.describe());
            const std::vector<float> whole = run_whole(made, chain);
            Dice dice(seed);
            std::vector<float> out = empty_result(made);
            for (int64_t begin = 0; begin < made.rows;) {
                const int64_t end = std::min(made.rows, begin + made.width * (1 + dice.below(40)));
                run_rows(made, chain, begin, end, out.data());
                begin = end;
            }
            ASSERT_EQ(finished(made, chain, std::move(out)), whole);
        }
}

TEST(EngineCpuChain, RunsInSeveralThreads) {
    Dice dice(7);
    Case made = make_case({3, 64, 128, 512}, {Precision::fp32, Precision::bf16, Precision::int8}, Reduce::max_points,
                          600, 1, dice);
    give_matrix(made, 1);
    const Chain chain(made.layers, made.reduce);
    const std::vector<float> alone = run_whole(made, chain);
    std::vector<float> together[3];
    std::vector<std::thread> threads;
    for (auto& result : together) threads.emplace_back([&] { result = run_whole(made, chain); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : together) EXPECT_EQ(result, alone);
}

TEST(EngineCpuChain, NoRowsChangeNothing) {
    Dice dice(8);
    const Case made = make_case({3, 8}, {Precision::fp32}, Reduce::max_points, 1, 1, dice);
    const Chain chain(made.layers, made.reduce);
    std::vector<float> out = empty_result(made);
    const std::vector<float> before = out;
    run_rows(made, chain, 0, 0, out.data());
    EXPECT_EQ(out, before);
}

TEST(EngineCpuChain, RefusesWhatItCannotCompute) {
    Dice dice(9);
    const auto message_of = [](const std::vector<Dense>& layers) -> std::string {
        try {
            const Chain chain(layers, Reduce::none);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_argument);
            return error.message();
        }
        return "";
    };
    EXPECT_EQ(message_of({make_dense(3, 8, Precision::tf32, dice)}),
              "layer: the CPU computes in fp32, bf16 and int8, not in tf32");
    std::vector<Dense> layers = {make_dense(3, 8, Precision::int8, dice)};
    layers[0].input_range = 0;
    EXPECT_EQ(message_of(layers), "layer: int8 without calibration");
    layers = {make_dense(3, 8, Precision::fp32, dice)};
    layers[0].weight.pop_back();
    EXPECT_EQ(message_of(layers), "layer: 23 weights for [8, 3]");
    EXPECT_EQ(message_of({}), "a chain without layers");
}

}  // namespace
}  // namespace stipple::engine::cpu
