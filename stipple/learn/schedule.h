#pragma once
// Learning rates over a run, and the momentum of batch norms. Pure functions of the place in the run: nothing to save
// but what plateau has seen.

#include <cstdint>
#include <string>

#include "stipple/core/fields.h"

namespace stipple::learn {

enum class ScheduleKind {
    constant,
    cosine,   // rate * (floor + (1 - floor) (1 + cos(pi t)) / 2), t the share of the run that is done
    step,     // rate * factor ^ (epoch / every), whole epochs
    plateau,  // rate * factor for each `every` evaluations that brought nothing better
};
inline constexpr const char* kScheduleKindWords[] = {"constant", "cosine", "step", "plateau"};

struct ScheduleOptions {
    ScheduleKind kind = ScheduleKind::cosine;
    double rate = 1e-3;
    double warmup = 0;                // epochs in which the rate rises from rate / steps to its value, in equal steps
    double floor = 0;                 // the rate is never below rate * floor after the warm-up
    double factor = 0.5;              // of step and plateau
    double every = 20;                // epochs of step, evaluations of plateau
    double norm_momentum = -1;        // of batch norms; negative: that of the layers
    double norm_momentum_factor = 1;  // it falls with `every` epochs, whatever the kind
    double norm_momentum_floor = 0.01;
};
const Fields& schedule_fields();

/// What plateau has seen; the others do not need it.
struct PlateauState {
    double best = 0;
    int64_t evaluations = 0;  // in all
    int64_t without = 0;      // since the best
    int64_t reductions = 0;
};

/// The rate of a step, counted from 0, of a run of `epochs` epochs of `steps` steps.
double rate_at(const ScheduleOptions& options, int64_t step, int64_t steps, int64_t epochs,
               const PlateauState& plateau = {});

/// For an epoch, counted from 0. Negative: leave it to the layers.
double norm_momentum_at(const ScheduleOptions& options, int64_t epoch);

/// Tells plateau a score, of which larger is better.
void observe(const ScheduleOptions& options, PlateauState& plateau, double score);

}  // namespace stipple::learn
