#pragma once
// Which of the candidates stay.

#include <vector>

#include "stipple/ops/poisson_disk.h"

namespace stipple::tasks {

/// Candidates of a part of a cloud, and what lies around them.
struct Choice {
    std::vector<float> points;           // [n, 3]
    std::vector<ops::SampleRole> roles;  // [n] candidate, or border: of a neighbouring part
    std::vector<float> uncertainties;    // [n], or empty: not known
    std::vector<float> fixed;            // [m, 3] points that have been chosen before
    int64_t in_all = 1;                  // points that are wanted of all candidates and fixed points together
    int64_t wanted = 0;                  // of those whose role is candidate
};

/// Exactly choice.wanted of the candidates, spread evenly beside each other and the fixed points, by elimination
/// (ops::poisson_disk_of_part); ascending. Throws Error{bad_argument} where there are fewer.
///
/// An uncertain one goes sooner: by the fourth root of its uncertainty over the median one, and a quarter to four times
/// as soon as others (in full, uncertain parts of a surface would be sparse; of the powers 0, 1/4, 1/2 and 1 on
/// held-out meshes).
std::vector<int32_t> choose(const Choice& choice);

}  // namespace stipple::tasks
