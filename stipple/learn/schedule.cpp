#include "stipple/learn/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stipple::learn {
const Fields& schedule_fields() {
    using Options = ScheduleOptions;
    static const Fields fields = {
        field<&Options::kind>("kind", "How the learning rate changes over the run").words(kScheduleKindWords),
        field<&Options::rate>("rate", "The learning rate").above(0),
        field<&Options::warmup>("warmup", "Epochs in which the rate rises to its value").unit("epochs").from(0),
        field<&Options::floor>("floor", "The share of the rate that it never falls below").between(0, 1),
        field<&Options::factor>("factor", "Of step and plateau: what the rate is multiplied with").above(0).to(1),
        field<&Options::every>("every", "Of step: epochs between falls; of plateau: evaluations").from(1),
        field<&Options::norm_momentum>("norm_momentum", "Momentum of batch norms; negative: that of the layers").to(1),
        field<&Options::norm_momentum_factor>("norm_momentum_factor", "What it is multiplied with at each fall")
            .above(0)
            .to(1),
        field<&Options::norm_momentum_floor>("norm_momentum_floor", "What it never falls below").between(0, 1)};
    return fields;
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
