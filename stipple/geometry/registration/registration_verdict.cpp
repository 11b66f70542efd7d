#include "stipple/geometry/registration_verdict.h"

#include <algorithm>
#include <cmath>

#include "stipple/geometry/registration/small_linear.h"

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

/// A direction, and how much the pairs say of motion along or about it.
struct Freedom {
    Vector3 axis;
    double information = 0;
    bool is_turn = false;
};

/// Shifts and turns along the principal axes of what the pairs say of them, the least determined first; lengths in
/// units in which both weigh alike. Empty where nothing is known.
std::vector<Freedom> freedoms_of(const IcpResult& result) {
    std::vector<Freedom> freedoms;
    for (const int first : {0, 3}) {
        Matrix3 block;
        double trace = 0;
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j) block[i][j] = result.information[first + i][first + j];
            trace += block[i][i];
        }
        if (!(trace > 0) || !std::isfinite(trace)) return {};
        for (Vector3 axis : principal_axes(block)) {
            double information = 0;
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) information += axis[i] * block[i][j] * axis[j] / trace;
            const auto largest = std::max_element(axis.begin(), axis.end(),
                                                  [](double a, double b) { return std::abs(a) < std::abs(b); });
            const double sign = *largest < 0 ? -1 : 1;
            for (double& x : axis) x = x * sign + 0.0;  // no -0
            freedoms.push_back({axis, information, first == 0});
        }
    }
    std::stable_sort(freedoms.begin(), freedoms.end(),
                     [](const Freedom& a, const Freedom& b) { return a.information < b.information; });
    return freedoms;
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
    std::string text =
        fmt::format("{} of 6 directions of motion are not determined by the points", result.undetermined);
    std::vector<Freedom> freedoms = freedoms_of(result);
    if (!freedoms.empty()) {
        freedoms.resize(static_cast<size_t>(std::min(result.undetermined, 6)));
        const char* before = " (";
        for (const Freedom& each : freedoms) {
            text += fmt::format("{}{} ({:.2f}, {:.2f}, {:.2f})", before, each.is_turn ? "turns about" : "shifts along",
                                each.axis[0], each.axis[1], each.axis[2]);
            before = ", ";
        }
        text += ")";
    }
    return text + ": not moved along them";
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
