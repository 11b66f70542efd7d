#pragma once
// The variants of the method that a table of ablations is to have, by the names of their rows.

#include <span>

#include "stipple/tasks/upsampling_study/scores.h"

namespace stipple::tasks::study {

/// The file of stored rows, in bench/results of a checkout.
inline constexpr const char* kStoredResults = "upsampling_ablation.csv";

struct Ablation {
    const char* name;      // of its row: a method, measured (--model NAME=weights) or stored
    const char* question;  // what it answers
};
std::span<const Ablation> ablations();

/// Names of those without a row that is measured or stored, with commas between them; "" when none is missing.
std::string missing_ablations(const std::vector<Mean>& means);

}  // namespace stipple::tasks::study
