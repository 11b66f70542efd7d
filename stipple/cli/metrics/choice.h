#pragma once
// Words for metrics on the command line: --metrics cd,hd and --fail-above cd=0.0003.

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/metrics/evaluate.h"

namespace stipple::cli {

/// A word names a score of a protocol (cd), a metric of the registry (chamfer_l1_sum) or a group of them (surface).
struct MetricsChoice {
    std::vector<std::string> words;  // empty: what the protocol gives by itself

    bool has(const metrics::Score& score) const;
};

/// "cd,f_score". Throws Error{bad_argument} for an unknown word, with the nearest one or all of them.
MetricsChoice parse_choice(const std::string& option, const std::string& text, metrics::Protocol protocol);

/// "cd=0.0003,hd=0.01": scores that may not be above (or below) a limit. Throws as parse_choice does, for a limit that
/// is no number, for a group of metrics, and for a metric whose better values lie on the forbidden side.
struct MetricsLimit {
    std::string word;
    double limit = 0;
    bool below = false;  // fail when below
};
std::vector<MetricsLimit> parse_limits(const std::string& option, const std::string& text, bool below,
                                       metrics::Protocol protocol);

/// What must be computed beyond the protocol's own scores.
std::vector<metrics::Extra> extras_for(const MetricsChoice& choice, const std::vector<MetricsLimit>& limits,
                                       metrics::Protocol protocol);

/// The first limit that does not hold, as Error{check_failed}. NaN holds nothing. Throws Error{bad_argument} when a
/// score was not computed.
std::optional<Error> check_limits(const std::vector<MetricsLimit>& limits, const std::vector<metrics::Score>& scores);

}  // namespace stipple::cli
