#include "stipple/geometry/registration_verdict.h"

namespace stipple::geometry {
namespace {

/// What the distances of the pairs say against the pose; nothing where they are too few to tell.
std::string against_pairs(const IcpResult& result, const RegistrationLimits& limits) {
    constexpr int64_t kFewest = 20;
    const IcpEvidence& evidence = result.evidence;
    if (evidence.around < kFewest || evidence.near <= 0) return {};
    // The same points twice: what is left of their distances is rounding, and runs anywhere.
    constexpr double kCoincide = 0.01;
    if (result.rmse <= kCoincide * evidence.near) return {};
    constexpr const char* kProbably = "probably not the true pose, start nearer to it";
    if (4 * evidence.near <= evidence.reach) {
        const double closeness = static_cast<double>(evidence.close) / static_cast<double>(evidence.around);
        if (closeness >= limits.min_closeness) return {};
        return fmt::format(
            "only {:.0f} % of the points within {:.3g} of the target are within {:.3g} of it, as where surfaces cross: "
            "{}",
            100 * closeness, 4 * evidence.near, evidence.near, kProbably);
    }
    if (evidence.across <= limits.max_across) return {};
    return fmt::format("{:.0f} % of the pairs' squared distances run across the surface, as where surfaces cross: {}",
                       100 * evidence.across, kProbably);
}

}  // namespace

const char* to_string(RegistrationState state) {
    switch (state) {
        case RegistrationState::good: return "good";
        case RegistrationState::doubtful: return "doubtful";
        case RegistrationState::failed: break;
    }
    return "failed";
}

std::string RegistrationVerdict::text() const {
    std::string line;
    for (const std::string& reason : reasons) line += (line.empty() ? "" : "; ") + reason;
    return line;
}

std::string unconverged_text(const IcpResult& result) {
    return fmt::format("did not converge in {} iterations", result.iterations);
}

std::string undetermined_text(const IcpResult& result) {
    return fmt::format("{} of 6 directions of motion are not determined by the points: not moved along them",
                       result.undetermined);
}

RegistrationVerdict judge(const IcpResult& result, const RegistrationLimits& limits) {
    RegistrationVerdict verdict;
    const auto add = [&](RegistrationState state, std::string reason) {
        verdict.state = std::max(verdict.state, state);
        verdict.reasons.push_back(std::move(reason));
    };
    if (result.stop == IcpStop::too_few)
        add(RegistrationState::failed,
            fmt::format("too little overlap: {} pairs within the greatest distance", result.pairs));
    if (result.fitness < limits.min_fitness)
        add(RegistrationState::failed,
            fmt::format("fitness {:.3f} is below {:.3f}", result.fitness, limits.min_fitness));
    if (verdict.state == RegistrationState::failed) return verdict;

    if (result.stop == IcpStop::iterations) add(RegistrationState::doubtful, unconverged_text(result));
    if (result.fitness < limits.little_fitness)
        add(RegistrationState::doubtful,
            fmt::format("little overlap: {:.0f} % of the source has a neighbour in the target", 100 * result.fitness));
    if (std::string reason = against_pairs(result, limits); !reason.empty())
        add(RegistrationState::doubtful, std::move(reason));
    if (result.undetermined > 0) add(RegistrationState::doubtful, undetermined_text(result));
    return verdict;
}

}  // namespace stipple::geometry
