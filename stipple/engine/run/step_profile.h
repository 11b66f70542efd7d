#pragma once
// What a context tells a Profile about its steps.

#include <span>
#include <string>
#include <vector>

#include "stipple/core/profile.h"
#include "stipple/engine/program.h"
#include "stipple/ops/clouds.h"

namespace stipple::engine {

/// A name for each step, all different: the layers that it covers, "conv1 + conv2 + pool". Layers that were folded into
/// a product (norms, dropout) have no name of their own.
std::vector<std::string> step_titles(const Program& program);

struct StepProfile {
    /// A row `name` for whole runs, and one for each step below it.
    StepProfile(Profile& profile, const Program& program, std::string_view name);

    Profile& profile;
    const Program& program;
    int32_t run = 0;             // row
    std::vector<int32_t> steps;  // rows

    /// Of the result of a step for clouds [begin, end). batches: by point set.
    int64_t bytes(size_t step, std::span<const ops::Batch* const> batches, int64_t begin, int64_t end) const;
};

}  // namespace stipple::engine
