#include "stipple/learn/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/core/error.h"

namespace stipple::learn {
namespace {

void require(bool holds, const char* name, const char* range, double value) {
    if (!holds) throw Error(ErrorCode::bad_config, fmt::format("schedule: {} must be {}, got {}", name, range, value));
}

}  // namespace

void validate(const ScheduleOptions& options) {
    require(options.rate > 0 && std::isfinite(options.rate), "rate", "above 0", options.rate);
    require(options.warmup >= 0 && std::isfinite(options.warmup), "warmup", "at least 0", options.warmup);
    require(options.floor >= 0 && options.floor <= 1, "floor", "0 to 1", options.floor);
    require(options.factor > 0 && options.factor <= 1, "factor", "above 0 and at most 1", options.factor);
    require(options.every >= 1 && std::isfinite(options.every), "every", "at least 1", options.every);
    require(options.norm_momentum <= 1, "norm_momentum", "at most 1", options.norm_momentum);
    require(options.norm_momentum_factor > 0 && options.norm_momentum_factor <= 1, "norm_momentum_factor",
            "above 0 and at most 1", options.norm_momentum_factor);
    require(options.norm_momentum_floor >= 0 && options.norm_momentum_floor <= 1, "norm_momentum_floor", "0 to 1",
            options.norm_momentum_floor);
}

double rate_at(const ScheduleOptions& options, int64_t step, int64_t steps, int64_t epochs,
               const PlateauState& plateau) {
    const double done = static_cast<double>(step) / static_cast<double>(steps * epochs);
    double factor = 1;
    switch (options.kind) {
        case ScheduleKind::constant: break;
        case ScheduleKind::cosine:
            factor = options.floor + (1 - options.floor) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0)));
            break;
        case ScheduleKind::step:
            factor = std::pow(options.factor, std::floor(static_cast<double>(step / steps) / options.every));
            break;
        case ScheduleKind::plateau: factor = std::pow(options.factor, static_cast<double>(plateau.reductions)); break;
    }
    factor = std::max(factor, options.floor);
    const double warmup_steps = options.warmup * static_cast<double>(steps);
    if (static_cast<double>(step) < warmup_steps) factor *= static_cast<double>(step + 1) / std::ceil(warmup_steps);
    return options.rate * factor;
}

double norm_momentum_at(const ScheduleOptions& options, int64_t epoch) {
    if (options.norm_momentum < 0) return -1;
    const double falls = std::floor(static_cast<double>(epoch) / options.every);
    return std::max(options.norm_momentum * std::pow(options.norm_momentum_factor, falls),
                    std::min(options.norm_momentum, options.norm_momentum_floor));
}

void observe(const ScheduleOptions& options, PlateauState& plateau, double score) {
    if (plateau.evaluations++ == 0 || score > plateau.best) {
        plateau.best = score;
        plateau.without = 0;
        return;
    }
    if (++plateau.without % static_cast<int64_t>(options.every) == 0) ++plateau.reductions;
}

}  // namespace stipple::learn
