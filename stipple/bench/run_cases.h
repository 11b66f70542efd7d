#pragma once
// The timed cases of some ops, one after the other, with what each costs.

#include "stipple/bench/cases.h"
#include "stipple/core/fields.h"

namespace stipple::bench {

struct BenchOptions {
    std::vector<std::string> ops;  // only these; none: all
    int repeat = 5;                // timed runs of each case, at least
    bool quick = false;            // a tenth of the time for each case
};
const Fields& bench_fields();

/// The cases of the ops asked for, as far as the device runs them. Throws Error{bad_argument} for an unknown op.
std::vector<const Case*> choose_cases(const BenchOptions& options, Device device);

/// Describes a case.
struct CaseFacts {
    std::string op, shape;
    int64_t points = 0;
};
const Fields& case_fields();
CaseFacts facts_of(const Case& one);

/// Holds what a case costs.
struct CaseCost {
    CaseFacts facts = {};
    int64_t bytes = 0;  // inputs read once, outputs written once
    double best_ms = 0, median_ms = 0;
    int runs = 0;
    double points_per_s = 0, gb_per_s = 0;
    double of_copy = 0;  // the bytes' rate over that of a copy
};

struct BenchReport {
    std::vector<CaseCost> cases = {};
    int threads = 0;
    std::string device_name = {};
    double copy_gb_per_s = 0;
    std::vector<std::string> left_out = {};  // cases that do not fit the machine, with the reason
};
const Fields& bench_report_fields();

/// `advance` is called after each case. One case that does not fit into memory does not hide the others. Can be
/// interrupted between cases.
BenchReport run_cases(const std::vector<const Case*>& cases, const BenchOptions& options, Device device,
                      const std::function<void()>& advance = {});

}  // namespace stipple::bench
