#pragma once
// What went wrong in a step, in words: numbers that are not finite, memory that is not there.

#include <functional>
#include <string>

#include "stipple/learn/objective.h"

namespace stipple::learn {

/// Where a number that is not finite comes from: the first layer whose output has one when the batch is run again, or
/// the first parameter whose gradient has; else kNoTrouble.
inline constexpr const char* kNoTrouble = "the loss itself";
std::string find_trouble(Module& module, Objective& objective, const data::LoadedBatch& batch,
                         const RunOptions& options);

/// Runs `step`; what torch throws for want of memory becomes Error{out_of_memory} with a batch to try, any other error
/// of torch Error{internal} of one line.
void run_or_explain_memory(int64_t batch, const std::function<void()>& step);

}  // namespace stipple::learn
