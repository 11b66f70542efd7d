#pragma once
// Words for metrics: which are wanted, "cd,hd", and which may not be above or below a limit, "cd=0.0003".

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/metrics/evaluate.h"

namespace stipple::metrics {

/// A word names a score of a protocol (cd), a metric of the registry (chamfer_l1_sum) or a group of them (surface).
struct ScoreChoice {
    std::vector<std::string> words;  // empty: what the protocol gives by itself

    bool has(const Score& score) const;
};

/// "cd,f_score". `option` is the name of the option in messages: "--metrics". Throws Error{bad_argument} for an unknown
/// word, with the nearest one or all of them.
ScoreChoice parse_choice(const std::string& option, const std::string& text, Protocol protocol);

/// "cd=0.0003,hd=0.01": scores that may not be above (or below) a limit. Throws as parse_choice does, for a limit that
/// is no number, for a group of metrics, and for a metric whose better values lie on the forbidden side.
struct ScoreLimit {
    std::string word;
    double limit = 0;
    bool below = false;  // fail when below
};
std::vector<ScoreLimit> parse_limits(const std::string& option, const std::string& text, bool below, Protocol protocol);

/// What must be computed beyond the protocol's own scores.
std::vector<Extra> extras_for(const ScoreChoice& choice, const std::vector<ScoreLimit>& limits, Protocol protocol);

/// The first limit that does not hold, as Error{check_failed}. NaN holds nothing. Throws Error{bad_argument} when a
/// score was not computed.
std::optional<Error> check_limits(const std::vector<ScoreLimit>& limits, const std::vector<Score>& scores);

}  // namespace stipple::metrics
