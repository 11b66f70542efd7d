#include "stipple/ops/update_rules.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/learn/precision.h"
#include "tests/ops/guarded.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using ops::ControlSlot, ops::LogSlot, ops::StepSlot, ops::UpdateRules;

constexpr Device kNoGpu{DeviceType::cuda, 0};

/// A run's numbers on a device, and the op on them.
class Decisions {
public:
    Decisions(const UpdateRules& rules, const std::vector<double>& rates, int64_t log_rows, Device device,
              double first_scale = 1)
        : rules_(rules),
          device_(device),
          rates_(array_of(rates, device)),
          control_(ControlSlot::count, device),
          log_({log_rows, LogSlot::count}, device) {
        std::vector<double> begin(StepSlot::count);
        begin[StepSlot::loss_scale] = first_scale;
        set_state(begin);
        set_first_step(0);
    }
    void set_first_step(double step) { first_step_ = array_of<double>({step}, device_); }
    void set_state(const std::vector<double>& numbers) { state_ = array_of(numbers, device_); }
    void decide(float gradient_norm, double loss) {
        const Array<float, 1> norm_there = array_of<float>({gradient_norm}, device_);
        const Array<double, 1> loss_there = array_of<double>({loss}, device_);
        ops::update_rules(rules_, std::as_const(rates_).view(), std::as_const(first_step_).view(), norm_there.view(),
                          loss_there.view(), state_.view(), control_.view(), log_.view());
        control = control_.values();
        const Array<double, 1> host = state_.to(Device{});
        state.assign(host.span().begin(), host.span().end());
    }
    std::vector<double> log() const {
        const Array<double, 2> host = log_.get();
        return {host.span().begin(), host.span().end()};
    }
    std::vector<double> control, state;  // after the last decision

private:
    UpdateRules rules_;
    Device device_;
    Array<double, 1> rates_, first_step_, state_;
    Guarded<double, 1> control_;
    Guarded<double, 2> log_;
};

/// The loop of training on the host, number by number.
struct HostRun {
    UpdateRules rules;
    learn::LossScale scale;
    int64_t steps = 0, updates = 0, average_updates = 0, skipped = 0, skipped_in_a_row = 0;
    std::vector<double> control, log_row;

    void decide(double rate, float gradient_norm, double loss) {
        const double s = rules.has_loss_scale ? scale.scale : 1, gradient = gradient_norm / s;
        control.assign(ControlSlot::count, 0);
        log_row = {loss, gradient, 0, s};
        ++steps;
        if (!std::isfinite(gradient) || !std::isfinite(loss)) {
            const bool is_blamed = rules.has_loss_scale && std::isfinite(loss);
            if (!is_blamed || !scale.observe(false)) ++skipped, ++skipped_in_a_row;
            return;
        }
        if (rules.has_loss_scale) scale.observe(true);
        skipped_in_a_row = 0;
        const auto t = static_cast<double>(++updates);
        const bool is_clipped = rules.clip > 0 && gradient > rules.clip;
        control = {1,
                   rate,
                   (is_clipped ? rules.clip / gradient : 1) / s,
                   1 - std::pow(rules.beta1, t),
                   1 - std::pow(rules.beta2, t),
                   0};
        if (rules.average_decay > 0) {
            const auto n = static_cast<double>(average_updates++);
            control[5] = std::min(rules.average_decay, (1 + n) / (10 + n));
        }
        log_row[2] = 1;
    }
    std::vector<double> state() const {
        return {static_cast<double>(steps),
                static_cast<double>(updates),
                static_cast<double>(average_updates),
                scale.scale,
                static_cast<double>(scale.good_steps),
                static_cast<double>(skipped),
                static_cast<double>(skipped_in_a_row)};
    }
};

class UpdateRulesOp : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(UpdateRulesOp);

void expect_control(const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
        const bool is_power = i == ControlSlot::correction1 || i == ControlSlot::correction2;
        if (is_power)
            EXPECT_NEAR(found[i], expected[i], 1e-14) << i;
        else
            EXPECT_EQ(found[i], expected[i]) << i;
    }
}

/// Runs of good and bad steps, long enough for every rule to be met many times.
TEST_P(UpdateRulesOp, DecidesAsTheLoopOnTheHost) {
    const int64_t steps = 1500;
    std::vector<double> rates;
    for (int64_t i = 0; i < steps; ++i) rates.push_back(1e-3 / static_cast<double>(1 + i));
    for (const bool has_loss_scale : {false, true})
        for (const bool has_extras : {false, true}) {
            SCOPED_TRACE(fmt::format("loss scale {}, clip and average {}", has_loss_scale, has_extras));
            UpdateRules rules;
            rules.has_loss_scale = has_loss_scale;
            rules.clip = has_extras ? 0.7 : 0;
            rules.average_decay = has_extras ? 0.9 : 0;
            Decisions decisions(rules, rates, steps, device(), learn::LossScale::kFirst);
            HostRun host{.rules = rules, .scale = {}, .control = {}, .log_row = {}};
            const Rng rng(5, 3);
            std::vector<double> log;
            int made = 0;
            for (int64_t i = 0; i < steps; ++i) {
                const double s = has_loss_scale ? host.scale.scale : 1;
                auto norm = static_cast<float>(1.4 * rng.uniform(2 * i) * s);
                double loss = 3 * rng.uniform(2 * i + 1);
                const bool is_bad_stretch = i % 1300 > 1150;  // the scale sinks to the least
                const uint32_t kind = rng.bits(2 * steps + i) % 1000;
                if (is_bad_stretch && kind < 700) norm = kind % 2 == 0 ? kInfinity : kNan;
                if (is_bad_stretch && kind % 10 == 1) loss = kind % 4 == 1 ? NAN : -INFINITY;
                decisions.decide(norm, loss);
                host.decide(rates[i], norm, loss);
                expect_control(decisions.control, host.control);
                ASSERT_EQ(decisions.state, host.state()) << "step " << i;
                log.insert(log.end(), host.log_row.begin(), host.log_row.end());
                made += host.control[0] != 0;
            }
            EXPECT_GT(host.skipped, 10);
            EXPECT_GT(made, 1000);
            if (has_loss_scale) {
                EXPECT_LT(host.scale.scale, learn::LossScale::kFirst);
            }
            const std::vector<double> found = decisions.log();
            ASSERT_EQ(found.size(), log.size());
            for (size_t i = 0; i < log.size(); ++i)
                ASSERT_TRUE(found[i] == log[i] || (std::isnan(found[i]) && std::isnan(log[i])))
                    << "number " << i % LogSlot::count << " of row " << i / LogSlot::count;
        }
}

TEST_P(UpdateRulesOp, TheScaleRisesToTheMostAndFallsToTheLeast) {
    UpdateRules rules;
    rules.has_loss_scale = true;
    rules.scale_good_steps = 3;
    rules.most_scale = 8;
    Decisions decisions(rules, std::vector<double>(100, 0.1), 0, device(), 2);
    std::vector<double> scales;
    for (int i = 0; i < 9; ++i) {
        decisions.decide(1, 1);
        scales.push_back(decisions.state[StepSlot::loss_scale]);
    }
    EXPECT_EQ(scales, (std::vector<double>{2, 2, 4, 4, 4, 8, 8, 8, 8}));
    scales.clear();
    for (int i = 0; i < 5; ++i) {
        decisions.decide(kInfinity, 1);
        EXPECT_EQ(decisions.control, std::vector<double>(ControlSlot::count));
        scales.push_back(decisions.state[StepSlot::loss_scale]);
    }
    EXPECT_EQ(scales, (std::vector<double>{4, 2, 1, 1, 1}));
    EXPECT_EQ(decisions.state[StepSlot::skipped], 2) << "the first three only lowered the scale";
    EXPECT_EQ(decisions.state[StepSlot::skipped_in_a_row], 2);
    decisions.decide(1, kNan);
    EXPECT_EQ(decisions.state[StepSlot::skipped], 3);
    decisions.decide(1, 1);
    EXPECT_EQ(decisions.state[StepSlot::skipped_in_a_row], 0);
    EXPECT_EQ(decisions.state[StepSlot::steps], 16);
    EXPECT_EQ(decisions.state[StepSlot::updates], 10);
}

TEST_P(UpdateRulesOp, RatesAndLogCountFromTheStretch) {
    Decisions decisions({}, {0.5, 0.25, 0.125}, 2, device());
    std::vector<double> state = {40, 12, 0, 1, 0, 0, 0};
    decisions.set_state(state);
    decisions.set_first_step(40);
    const std::vector<double> untouched = decisions.log();
    for (const double rate : {0.5, 0.25, 0.125}) {
        decisions.decide(2, 7 + rate);
        EXPECT_EQ(decisions.control[ControlSlot::rate], rate);
        EXPECT_EQ(decisions.control[ControlSlot::is_made], 1);
    }
    EXPECT_EQ(decisions.log(), (std::vector<double>{7.5, 2, 1, 1, 7.25, 2, 1, 1}));
    EXPECT_NEAR(decisions.control[ControlSlot::correction1], 1 - std::pow(0.9, 15), 1e-14);
    state = decisions.state;
    EXPECT_EQ(state[StepSlot::steps], 43);
    for (const double first : {40.0, 44.0, -1e300, static_cast<double>(kNan)}) {  // before it, behind it, nowhere
        decisions.set_first_step(first);
        decisions.decide(2, 1);
        EXPECT_EQ(decisions.control, std::vector<double>(ControlSlot::count)) << first;
        EXPECT_EQ(decisions.state, state) << first;
    }
    EXPECT_EQ(decisions.log().size(), untouched.size());
}

TEST(UpdateRulesCpu, SaysWhatIsWrong) {
    Array<double, 1> state({StepSlot::count}), control({ControlSlot::count}), one({1});
    Array<float, 1> norm({1});
    Array<double, 2> log({5, LogSlot::count});
    const auto complaint = [&](const UpdateRules& rules, View<double, 1> of_state, View<const double, 1> loss,
                               View<double, 2> of_log) {
        return bad_argument_of([&] {
            ops::update_rules(rules, std::as_const(one).view(), std::as_const(one).view(), std::as_const(norm).view(),
                              loss, of_state, control.view(), of_log);
        });
    };
    const View<const double, 1> loss = std::as_const(one).view();
    EXPECT_EQ(complaint({}, control.view(), loss, log.view()), "update_rules: state must be [7], got [6]");
    EXPECT_EQ(complaint({}, state.view(), View<const double, 1>(one.data(), {1}, kNoGpu), log.view()),
              "update_rules: points on cpu, loss on cuda:0");
    EXPECT_EQ(complaint({}, state.view(), loss, View<double, 2>(log.data(), {4, 5})),
              "update_rules: log must be [4, 4], got [4, 5]");
    UpdateRules rules;
    rules.clip = -1;
    EXPECT_EQ(complaint(rules, state.view(), loss, log.view()), "update_rules: clip must be at least 0, got -1");
    rules = {};
    rules.beta2 = 1;
    EXPECT_EQ(complaint(rules, state.view(), loss, log.view()),
              "update_rules: decay and betas must be at least 0 and below 1, got 1");
    rules = {};
    rules.has_loss_scale = true;
    rules.least_scale = 0;
    EXPECT_EQ(complaint(rules, state.view(), loss, log.view()), "update_rules: loss scales from 0 to 16777216");
    rules.least_scale = 1;
    rules.scale_good_steps = 0;
    EXPECT_EQ(complaint(rules, state.view(), loss, log.view()),
              "update_rules: scale_good_steps must be above 0, got 0");
}

}  // namespace
}  // namespace stipple::test
