#include "stipple/core/nearest_name.h"

#include <algorithm>
#include <cstdint>

namespace stipple {
namespace {

int64_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<int64_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
    for (size_t i = 1; i <= a.size(); ++i) {
        int64_t diagonal = row[0];
        row[0] = static_cast<int64_t>(i);
        for (size_t j = 1; j <= b.size(); ++j) {
            const int64_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
    std::string best;
    int64_t best_distance = 1 + static_cast<int64_t>(word.size()) / 2;
    for (const std::string& name : names) {
        const int64_t distance = edit_distance(word, name);
        if (distance < best_distance) {
            best = name;
            best_distance = distance;
        }
    }
    return best;
}

}  // namespace stipple
