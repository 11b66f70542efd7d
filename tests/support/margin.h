#pragma once
// Expectations of what training or sampling reaches, and the trials that show how much room they have.
//
// Training amplifies rounding, which differs between machines, so that one run on one machine says little about a
// bound. Such a test adds trial() to its seeds; scripts/margins.py runs it with many trials and prints the least room
// of each expectation (tests/README.md has the tables).

#include <gtest/gtest.h>

#include <cstdint>

namespace stipple::test {

/// STIPPLE_TEST_TRIAL, 0 where it is not set. Tests add it to the seeds of data, weights and draws.
uint64_t trial();

/// Predicate formatters of EXPECT_ABOVE and EXPECT_BELOW, which write a line of JSON to the file that
/// STIPPLE_TEST_MARGINS names.
testing::AssertionResult above(const char* value_text, const char* bound_text, double value, double bound);
testing::AssertionResult below(const char* value_text, const char* bound_text, double value, double bound);

}  // namespace stipple::test

/// value > bound (EXPECT_BELOW: value < bound), and both are recorded. A number that is NaN fails.
#define EXPECT_ABOVE(value, bound) EXPECT_PRED_FORMAT2(::stipple::test::above, value, bound)
#define EXPECT_BELOW(value, bound) EXPECT_PRED_FORMAT2(::stipple::test::below, value, bound)
