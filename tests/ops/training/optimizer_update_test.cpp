#include "stipple/ops/optimizer_update.h"

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/ops/update_rules.h"
#include "tests/ops/guarded.h"
#include "tests/ops/training/typed_numbers.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using ops::ControlSlot, ops::UpdatedTensor, ops::UpdateKind, ops::UpdateOptions;

constexpr UpdateKind kUpdateKinds[] = {UpdateKind::sgd, UpdateKind::adam, UpdateKind::adamw};

/// What update_rules would say of update t.
std::vector<double> control_of(int t, bool is_made = true) {
    if (!is_made) return std::vector<double>(ControlSlot::count);
    return {1, 0.01, 0.37, 1 - std::pow(0.9, t), 1 - std::pow(0.999, t), 0.8};
}

Array<double, 1> control_on(Device device, const std::vector<double>& numbers) {
    return array_of(numbers, device);
}

struct TensorKind {
    DType value, gradient;
    bool has_master;
    int64_t shift;
};

/// A parameter and all that belongs to it.
class Parameter {
public:
    Parameter(const TensorKind& kind, int64_t count, Device device, uint64_t seed)
        : type(kind.has_master ? DType::f32 : kind.value),
          value(numbers(kind, kind.value, count, device, seed, 1)),
          master(numbers(kind, DType::f32, kind.has_master ? count : 0, device, seed, 1)),
          gradient(numbers(kind, kind.gradient, count, device, seed + 1, 1)),
          first(numbers(kind, type, count, device, seed + 2, 0.3f)),
          second(numbers(kind, type, count, device, seed + 3, 0.3f, true)) {}

    UpdatedTensor tensor(UpdateKind kind) {
        return {.value = value.data(),
                .value_type = value.dtype(),
                .gradient = gradient.data(),
                .gradient_type = gradient.dtype(),
                .first = first.data(),
                .second = kind == UpdateKind::sgd ? nullptr : second.data(),
                .master = master.count() > 0 ? static_cast<float*>(master.data()) : nullptr,
                .count = value.count()};
    }
    const TypedNumbers& stepped() const { return master.count() > 0 ? master : value; }

    DType type;  // of what is stepped
    TypedNumbers value, master, gradient, first, second;

private:
    static TypedNumbers numbers(const TensorKind& kind, DType dtype, int64_t count, Device device, uint64_t seed,
                                float scale, bool is_positive = false) {
        const Rng rng(seed, 93);
        const auto number = [&](int64_t i) {
            const float x = scale * rng.normal(i);
            return is_positive ? std::abs(x) : x;
        };
        return {count, dtype, device, number, kind.shift};
    }
};

const TensorKind kTensorKinds[] = {
    {DType::f32, DType::f32, false, 0},   {DType::f32, DType::bf16, false, 0}, {DType::f16, DType::f16, true, 0},
    {DType::f16, DType::f32, true, 0},    {DType::bf16, DType::bf16, true, 0}, {DType::f16, DType::f16, false, 0},
    {DType::bf16, DType::f32, false, 0},  {DType::f32, DType::f32, false, 1},  {DType::f16, DType::f16, true, 3},
    {DType::bf16, DType::bf16, false, 2},
};

std::vector<Parameter> parameters_on(Device device, const std::vector<int64_t>& counts) {
    std::vector<Parameter> parameters;
    for (const TensorKind& kind : kTensorKinds)
        for (const int64_t count : counts) parameters.emplace_back(kind, count, device, 10 * parameters.size());
    return parameters;
}

std::vector<UpdatedTensor> tensors_of(std::vector<Parameter>& parameters, UpdateKind kind) {
    std::vector<UpdatedTensor> tensors;
    for (Parameter& parameter : parameters) tensors.push_back(parameter.tensor(kind));
    return tensors;
}

/// Half of the distance to the next number of a type.
double half_step(double x, DType dtype) {
    const double relative = dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
    return std::abs(x) * relative + (dtype == DType::f16 ? 0x1p-25 : 0x1p-127);
}

class OptimizerUpdate : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(OptimizerUpdate);

/// One step from numbers that are known, by the formulas in double: moments within their rounding, values within that
/// of a step from the moments as they are stored.
void expect_one_step(const UpdateOptions& options, const std::vector<double>& control, Device device, int64_t count,
                     const TensorKind& kind) {
    SCOPED_TRACE(fmt::format("kind {}, {} numbers of {}, gradients of {}, master {}, shift {}",
                             static_cast<int>(options.kind), count, name_of(kind.value), name_of(kind.gradient),
                             kind.has_master, kind.shift));
    Parameter p(kind, count, device, 5);
    const std::vector<double> value = p.stepped().values(), gradient = p.gradient.values(), first = p.first.values(),
                              second = p.second.values();
    const UpdatedTensor tensor = p.tensor(options.kind);
    const Array<double, 1> control_there = control_on(device, control);
    ops::optimizer_update(std::span(&tensor, 1), options, control_there.view());
    const std::vector<double> new_value = p.stepped().values(), new_first = p.first.values(),
                              new_second = p.second.values();
    const double rate = control[1], c1 = control[3], c2 = control[4], decay = options.weight_decay;
    const bool is_sgd = options.kind == UpdateKind::sgd;
    for (size_t i = 0; i < value.size(); ++i) {
        double g = gradient[i] * control[2], v = value[i];
        const double size = std::abs(g) + decay * std::abs(v) + std::abs(first[i]) + 1e-30;
        if (options.kind == UpdateKind::adamw)
            v *= 1 - rate * decay;
        else
            g += decay * v;
        double m = options.momentum * first[i] + g, s = second[i];
        if (!is_sgd) {
            m = options.beta1 * first[i] + (1 - options.beta1) * g;
            s = options.beta2 * second[i] + (1 - options.beta2) * g * g;
        }
        ASSERT_NEAR(new_first[i], m, half_step(m, p.type) + size * 0x1p-21) << i;
        ASSERT_NEAR(new_second[i], s, is_sgd ? 0 : half_step(s, p.type) + (s + size * size * 0.001) * 0x1p-21) << i;
        const double step =
            is_sgd ? rate * new_first[i] : rate / c1 * new_first[i] / (std::sqrt(new_second[i] / c2) + options.eps);
        const double limit = half_step(v - step, p.type) + (std::abs(v) + std::abs(step)) * 0x1p-21;
        ASSERT_NEAR(new_value[i], v - step, limit) << i << ": from " << value[i] << " by " << step;
        if (std::abs(step) > 4 * limit) {
            ASSERT_NE(new_value[i], value[i]);
        }
    }
    if (!kind.has_master) return;
    std::vector<uint32_t> expected;
    for (const double x : new_value) expected.push_back(bits_of(static_cast<float>(x), kind.value));
    expect_same_numbers(p.value.bits(), expected, kind.value);
}

TEST_P(OptimizerUpdate, OneStepIsThatOfTheFormulas) {
    for (const UpdateKind kind : kUpdateKinds)
        for (const double decay : {0.0, 0.05})
            for (const TensorKind& of_tensor : kTensorKinds)
                for (const int64_t count : {1, 7, 8, 9, 300, 2048, 4100}) {
                    UpdateOptions options;
                    options.kind = kind;
                    options.weight_decay = decay;
                    expect_one_step(options, control_of(count == 300 ? 1000 : 3), device(), count, of_tensor);
                }
}

/// From zeros, as a run begins: the mistakes of one step would add up.
TEST_P(OptimizerUpdate, ManyStepsFollowTheFormulas) {
    const int64_t count = 100;
    for (const UpdateKind kind : kUpdateKinds) {
        UpdateOptions options;
        options.kind = kind;
        options.weight_decay = 0.02;
        TypedNumbers value(count, DType::f32, device(), [](int64_t i) { return static_cast<float>(i) / 50 - 1; });
        const auto zero = [](int64_t) { return 0.0f; };
        TypedNumbers first(count, DType::f32, device(), zero), second(count, DType::f32, device(), zero);
        std::vector<double> p = value.values(), m(count), s(count);
        for (int t = 1; t <= 40; ++t) {
            const auto slope = [t](int64_t i) { return std::sin(static_cast<float>(i * t)); };
            TypedNumbers gradient(count, DType::f32, device(), slope);
            const std::vector<double> g = gradient.values(), control = control_of(t);
            const Array<double, 1> control_there = control_on(device(), control);
            const UpdatedTensor tensor = {.value = value.data(),
                                          .gradient = gradient.data(),
                                          .first = first.data(),
                                          .second = second.data(),
                                          .count = count};
            ops::optimizer_update(std::span(&tensor, 1), options, control_there.view());
            for (size_t i = 0; i < p.size(); ++i) {
                const bool is_apart = kind == UpdateKind::adamw;
                const double x = g[i] * control[2] + (is_apart ? 0 : 0.02 * p[i]);
                if (kind == UpdateKind::sgd) {
                    m[i] = 0.9 * m[i] + x;
                    p[i] -= control[1] * m[i];
                    continue;
                }
                if (is_apart) p[i] -= control[1] * 0.02 * p[i];
                m[i] = 0.9 * m[i] + 0.1 * x;
                s[i] = 0.999 * s[i] + 0.001 * x * x;
                p[i] -= control[1] * (m[i] / control[3]) / (std::sqrt(s[i] / control[4]) + 1e-8);
            }
        }
        const std::vector<double> found = value.values();
        for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(found[i], p[i], 1e-5) << static_cast<int>(kind) << ", " << i;
    }
}

/// More tensors than a launch takes, of all kinds together: each as if it were alone.
TEST_P(OptimizerUpdate, ManyTensorsAreEachAsOne) {
    std::vector<int64_t> counts;
    for (int i = 0; i < 31; ++i) counts.push_back(i % 6 == 5 ? 0 : 1 + i * 97 % 509);
    counts.push_back(10'000);
    UpdateOptions options;
    options.weight_decay = 0.01;
    const Array<double, 1> control = control_on(device(), control_of(4));
    std::vector<Parameter> together = parameters_on(device(), counts), alone = parameters_on(device(), counts);
    ASSERT_GT(together.size(), 256u);
    ops::optimizer_update(tensors_of(together, options.kind), options, control.view());
    for (size_t i = 0; i < alone.size(); ++i) {
        const UpdatedTensor tensor = alone[i].tensor(options.kind);
        const std::vector<uint32_t> before = alone[i].stepped().bits();
        ops::optimizer_update(std::span(&tensor, 1), options, control.view());
        for (const auto part : {&Parameter::value, &Parameter::master, &Parameter::first, &Parameter::second})
            expect_same_numbers((together[i].*part).bits(), (alone[i].*part).bits(), (alone[i].*part).dtype());
        if (alone[i].type == DType::f32 && tensor.count > 0) {
            EXPECT_NE(before, alone[i].stepped().bits()) << i;
        }
    }
}

TEST_P(OptimizerUpdate, AStepThatIsNotMadeChangesNothing) {
    const Array<double, 1> control = control_on(device(), control_of(4, false));
    for (const UpdateKind kind : kUpdateKinds) {
        std::vector<Parameter> before = parameters_on(device(), {9, 3000}), after = parameters_on(device(), {9, 3000});
        UpdateOptions options;
        options.kind = kind;
        ops::optimizer_update(tensors_of(after, kind), options, control.view());
        for (size_t i = 0; i < after.size(); ++i)
            for (const auto part : {&Parameter::value, &Parameter::master, &Parameter::first, &Parameter::second})
                EXPECT_EQ((before[i].*part).bits(), (after[i].*part).bits());
    }
}

/// A moment between two numbers of float16.
TEST_P(OptimizerUpdate, TheStepIsMadeWithMomentsAsTheyAreStored) {
    TypedNumbers value(8, DType::f16, device(), [](int64_t) { return 0.0f; });
    TypedNumbers first(8, DType::f16, device(), [](int64_t) { return 0.0f; });
    const TypedNumbers gradient(8, DType::f16, device(), [](int64_t) { return 1.0f; });
    UpdateOptions options;
    options.kind = UpdateKind::sgd;
    const double unscaled = 0x1p-24;
    const Array<double, 1> control = control_on(device(), {1, 0x1p10, 0.75 * unscaled, 1, 1, 0});
    const UpdatedTensor tensor = {.value = value.data(),
                                  .value_type = DType::f16,
                                  .gradient = gradient.data(),
                                  .gradient_type = DType::f16,
                                  .first = first.data(),
                                  .count = 8};
    ops::optimizer_update(std::span(&tensor, 1), options, control.view());
    EXPECT_EQ(first.values()[0], unscaled) << "rounded as it is stored";
    EXPECT_EQ(value.values()[7], -0x1p10 * unscaled) << "by what is stored";
}

TEST_P(OptimizerUpdate, AveragesFollowTheirValues) {
    for (const bool is_made : {true, false})
        for (const DType dtype : kNumberTypes)
            for (const int64_t shift : {0, 1}) {
                std::vector<TypedNumbers> values, averages;
                std::vector<std::vector<double>> before;
                std::vector<ops::AveragedTensor> list;
                for (int i = 0; i < 140; ++i) {
                    const Rng rng(static_cast<uint64_t>(i), 94);
                    const int64_t count = i == 100 ? 5000 : i % 20;
                    values.emplace_back(
                        count, dtype, device(), [&](int64_t j) { return rng.normal(j); }, shift);
                    averages.emplace_back(count, DType::f32, device(), [&](int64_t j) { return rng.normal(j + 9999); });
                    before.push_back(averages.back().values());
                }
                for (size_t i = 0; i < values.size(); ++i)
                    list.push_back(
                        {values[i].data(), dtype, static_cast<float*>(averages[i].data()), values[i].count()});
                const Array<double, 1> control = control_on(device(), control_of(3, is_made));
                ops::average_update(list, control.view());
                for (size_t i = 0; i < values.size(); ++i) {
                    const std::vector<double> value = values[i].values(), after = averages[i].values();
                    for (size_t j = 0; j < value.size(); ++j) {
                        const double expected = is_made ? 0.8 * before[i][j] + 0.2 * value[j] : before[i][j];
                        ASSERT_NEAR(after[j], expected, is_made ? 1e-6 : 0) << i << ", " << j;
                    }
                }
            }
}

TEST_P(OptimizerUpdate, WhatASkippedStepLeftGoesBack) {
    for (const bool is_made : {true, false})
        for (const DType dtype : {DType::f32, DType::f16, DType::u8, DType::i64})
            for (const int64_t shift : {0, 1}) {
                // As bytes: the numbers of this type may be anything.
                std::vector<Array<uint8_t, 1>> values, saved;
                std::vector<ops::RestoredTensor> list;
                const int64_t size = size_of(dtype);
                for (int i = 0; i < 150; ++i) {
                    const int64_t count = i == 140 ? 9001 : i % 30;
                    std::vector<uint8_t> new_bytes(static_cast<size_t>((count + 2 * shift) * size)),
                        old_bytes = new_bytes;
                    for (size_t j = 0; j < new_bytes.size(); ++j) {
                        new_bytes[j] = static_cast<uint8_t>(j * 7 + 1);
                        old_bytes[j] = static_cast<uint8_t>(j * 5 + i);
                    }
                    values.push_back(array_of(new_bytes, device()));
                    saved.push_back(array_of(old_bytes, device()));
                    list.push_back(
                        {values.back().data() + shift * size, saved.back().data() + shift * size, dtype, count});
                }
                const Array<double, 1> control = control_on(device(), control_of(3, is_made));
                ops::restore_skipped(list, control.view());
                for (size_t i = 0; i < list.size(); ++i) {
                    const Array<uint8_t, 1> found = download(values[i]), old = download(saved[i]);
                    for (int64_t j = 0; j < found.elements(); ++j) {
                        const bool is_inside = j >= shift * size && j < (shift + list[i].count) * size;
                        const auto kept = static_cast<uint8_t>(j * 7 + 1);
                        ASSERT_EQ(found.data()[j], is_inside && !is_made ? old.data()[j] : kept) << i << ", " << j;
                    }
                }
            }
}

class OptimizerUpdateOnGpu : public OnDevice {};
STIPPLE_ON_EVERY_GPU(OptimizerUpdateOnGpu);

TEST_P(OptimizerUpdateOnGpu, TheSameBitsAsOnTheCpu) {
    for (const UpdateKind kind : kUpdateKinds)
        for (const double decay : {0.0, 0.05}) {
            UpdateOptions options;
            options.kind = kind;
            options.weight_decay = decay;
            std::vector<Parameter> here = parameters_on({}, {100, 5000}), there = parameters_on(device(), {100, 5000});
            for (int t = 1; t <= 3; ++t) {
                ops::optimizer_update(tensors_of(here, kind), options, control_on({}, control_of(t)).view());
                const Array<double, 1> control = control_on(device(), control_of(t));
                ops::optimizer_update(tensors_of(there, kind), options, control.view());
            }
            for (size_t i = 0; i < here.size(); ++i)
                for (const auto part : {&Parameter::value, &Parameter::master, &Parameter::first, &Parameter::second})
                    expect_same_numbers((here[i].*part).bits(), (there[i].*part).bits(), (here[i].*part).dtype());
        }
}

TEST(OptimizerUpdateCpu, TheSameBitsOnAnyNumberOfThreads) {
    const Array<double, 1> control = control_on({}, control_of(5));
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> all;
        for (int i = 0; i < 5; ++i) all.push_back(make_features(30'000, 1, static_cast<uint64_t>(i)));
        const UpdatedTensor tensor = {.value = all[0].data(),
                                      .gradient = all[1].data(),
                                      .first = all[2].data(),
                                      .second = all[3].data(),
                                      .count = 30'000};
        ops::optimizer_update(std::span(&tensor, 1), {}, control.view());
        const ops::AveragedTensor average = {all[0].data(), DType::f32, all[4].data(), 30'000};
        ops::average_update(std::span(&average, 1), control.view());
        return all;
    });
}

TEST(OptimizerUpdateCpu, SaysWhatIsWrong) {
    float x[4] = {};
    const Array<double, 1> control = control_on({}, control_of(1));
    const UpdatedTensor good = {.value = x, .gradient = x + 1, .first = x + 2, .second = x + 3, .count = 1};
    const auto complaint = [&](const UpdatedTensor& tensor, const UpdateOptions& options = {}) {
        return bad_argument_of([&] { ops::optimizer_update(std::span(&tensor, 1), options, control.view()); });
    };
    UpdatedTensor bad = good;
    bad.value_type = DType::f64;
    EXPECT_EQ(complaint(bad), "optimizer_update: a value must be float32, float16 or bfloat16, got float64");
    bad = good;
    bad.gradient_type = DType::i8;
    EXPECT_EQ(complaint(bad), "optimizer_update: a gradient must be float32, float16 or bfloat16, got int8");
    bad = good;
    bad.second = nullptr;
    EXPECT_EQ(complaint(bad), "optimizer_update: tensor 0 lacks an array");
    bad = good;
    bad.count = -2;
    EXPECT_EQ(complaint(bad), "optimizer_update: tensor 0 has -2 numbers");
    UpdateOptions options;
    options.weight_decay = -1;
    EXPECT_EQ(complaint(good, options), "optimizer_update: weight_decay must be from 0, got -1");
    options = {};
    options.momentum = 1;
    EXPECT_EQ(complaint(good, options), "optimizer_update: momentum must be from 0, below 1, got 1");
    options = {};
    options.eps = 0;
    EXPECT_EQ(complaint(good, options), "optimizer_update: eps must be above 0, got 0");
    const Array<double, 1> short_control({3});
    EXPECT_EQ(bad_argument_of([&] { ops::optimizer_update({}, {}, short_control.view()); }),
              "optimizer_update: control must be [6], got [3]");
    const ops::AveragedTensor average = {x, DType::f32, nullptr, 1};
    EXPECT_EQ(bad_argument_of([&] { ops::average_update(std::span(&average, 1), control.view()); }),
              "average_update: tensor 0 lacks an array");
    const ops::RestoredTensor restored = {nullptr, x, DType::f32, 1};
    EXPECT_EQ(bad_argument_of([&] { ops::restore_skipped(std::span(&restored, 1), control.view()); }),
              "restore_skipped: tensor 0 lacks an array");
}

TEST(OptimizerUpdateCpu, SurvivesFailedAllocations) {
    std::vector<Parameter> parameters = parameters_on({}, {10});
    const std::vector<UpdatedTensor> tensors = tensors_of(parameters, UpdateKind::adamw);
    const Array<double, 1> control = control_on({}, control_of(1));
    for_each_allocation_failure([&] { ops::optimizer_update(tensors, {}, control.view()); });
}

}  // namespace
}  // namespace stipple::test
