#include "stipple/ops/registry.h"

#include <fmt/format.h>

namespace stipple::ops {
namespace {

// clang-format off
constexpr OpInfo kOps[] = {
    // name, group, summary, cpu, cuda, gradient, cost
    {"knn", "neighbours", "k nearest points, nearest first, k up to 128", true, true, false, "O(n log n) build, O(log n + k) a query"},
    {"nearest_pairs", "neighbours", "nearest point of the other cloud, both ways", true, true, false, "O((n + m) log(n + m))"},
    {"emd", "distances", "earth mover's distance by auction with a proven gap, any n", true, true, true, "about 30 n^2 pairs at a gap of 1 %"},
    {"emd_exact", "distances", "least costly matching with its dual proof, n up to 4096", true, false, true, "about O(n^2.3)"},
    {"emd_transport", "distances", "exact earth mover's distance between clouds of two sizes", true, false, true, "about O(n^2.3)"},
};
// clang-format on

const char* mark(bool has) {
    return has ? "yes" : "-";
}

}  // namespace

std::span<const OpInfo> registry() {
    return kOps;
}

std::string registry_markdown() {
    std::string text =
        "# Point operations\n\n"
        "Generated from stipple/ops/registry.cpp (`stipple info --ops-markdown > docs/ops.md`). The contract of an op, "
        "its shapes, ties, errors\n"
        "and cost, is its header `stipple/ops/NAME.h`; `stipple bench ops` prints its times on your machine.\n";
    const char* group = "";
    for (const OpInfo& op : kOps) {
        if (std::string_view(group) != op.group) {
            group = op.group;
            text += fmt::format("\n## {}\n\n| op | what | CPU | CUDA | gradient | time |\n|---|---|---|---|---|---|\n",
                                group);
        }
        text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", op.name, op.summary, mark(op.cpu), mark(op.cuda),
                            mark(op.gradient), op.cost);
    }
    return text;
}

}  // namespace stipple::ops
