#pragma once
// --shard I/N: one part of many inputs, for one job of an array of jobs.

#include "stipple/cli/command.h"

namespace stipple::cli {

/// The inputs whose place, counted from 0 in the order in which they are listed, is `index` modulo `count`. The parts
/// of all indices together are all inputs, no two share one, and their sizes differ by one at most.
struct Shard {
    int64_t index = 0, count = 1;
};

/// "2/8". Throws Error{bad_argument} unless it is two whole numbers, the first from 0 and below the second. Empty: all.
Shard parse_shard(const std::string& text);

/// --shard.
void add_shard(Arguments& app, std::string& text);

/// Leaves the items of the part; the same for lists that go with them. What is common to all (names that clash, whether
/// the output must be a folder) is to be checked before, so that every part of a command is right or none is.
template <class... T>
void keep_shard(const Shard& shard, std::vector<T>&... items) {
    const auto keep = [&](auto& list) {
        size_t kept = 0;
        for (size_t i = static_cast<size_t>(shard.index); i < list.size(); i += static_cast<size_t>(shard.count))
            if (kept++ != i) list[kept - 1] = std::move(list[i]);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(kept), list.end());
    };
    if (shard.count > 1) (keep(items), ...);
}

/// What a command says that has none of its `inputs` to do: more jobs than inputs are no mistake.
Result nothing_of_shard(const std::string& shard, size_t inputs);

}  // namespace stipple::cli
