#pragma once
// The variants of the method that a table of ablations is to have, by the names of their rows.

#include <span>

#include "stipple/tasks/upsampling_study/scores.h"

namespace stipple::tasks::study {

/// The file of stored rows, in bench/results of a checkout.
inline constexpr const char* kStoredResults = "upsampling_ablation.csv";

struct Ablation {
    const char* name;            // of its row: a method, measured (--model NAME=weights) or stored
    const char* question;        // what it answers
    const char* settings = "";   // of the recipe puflow: KEY=VALUE by blanks
    const char* weights = "";    // the row whose weights it takes instead of training its own
    const char* overrides = "";  // options of the model in use: KEY=VALUE by blanks
    double temperature = 0;      // in use
};
std::span<const Ablation> ablations();

/// Throws Error{bad_argument} where there is none of that name.
const Ablation& find_ablation(std::string_view name);

/// The words of a text, by blanks.
std::vector<std::string> words_of(std::string_view text);

/// Names of those without a row that is measured or stored, with commas between them; "" when none is missing.
std::string missing_ablations(const std::vector<Mean>& means);

}  // namespace stipple::tasks::study
