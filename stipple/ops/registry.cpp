#include "stipple/ops/registry.h"

#include <fmt/format.h>

namespace stipple::ops {
namespace {

// clang-format off
constexpr OpInfo kOps[] = {
    // name, group, summary, cpu, cuda, gradient, cost
    {"knn", "search", "k nearest points, nearest first, k up to 128", true, true, false, "O(n log n) build, O(log n + k) a query"},
    {"radius_search", "search", "all points within a radius, nearest first or by index", true, true, false, "O(n log n) build, O(log n + found) a query"},
    {"ball_query", "search", "a fixed number of points within a radius (PointNet++)", true, true, false, "O(n log n) build, O(log n + found) a query"},
    {"nearest_pairs", "search", "nearest point of the other cloud, both ways", true, true, false, "O((n + m) log(n + m))"},
    {"voxel_grid", "sampling", "points by the cube they lie in: centroids, representatives, means of attributes", true, true, false, "O(n)"},
    {"poisson_disk", "sampling", "sample elimination to exactly m points that keep apart, progressive order", true, true, false, "O(n p), p = points within the radius"},
    {"farthest_point_sample", "sampling", "every sample the point farthest from those before it, exact", true, true, false, "about O(n log n + n log m + m log n) on surfaces"},
    {"random_sample", "sampling", "a uniform random subset, by index or in random order", true, true, false, "O(n)"},
    {"inverse_density", "sampling", "random subset with probability by the inverse of local density", true, true, false, "O(n log n + n k)"},
    {"argmax_points", "sampling", "for every channel the point with the largest score, with Gumbel noise on request (Gumbel subset)", true, true, false, "O(n c)"},
    {"simplification", "sampling", "how far the beginnings of a sample and the cloud are from each other: SampleNet's terms", true, true, true, "O(n m)"},
    {"gather", "grouping", "chosen rows", true, true, true, "O(m c)", "group.cu"},
    {"group", "grouping", "neighbours' rows side by side, optionally relative to a centre", true, true, true, "O(m k c)"},
    {"invert_index", "grouping", "for every row the entries that name it, in order", true, true, false, "O(n + m k)"},
    {"scatter_add", "grouping", "sums into named rows in a fixed order: the gradient of gather and group", true, true, false, "O((n + m k) c)"},
    {"interpolate", "grouping", "weighted sums of neighbours' rows, q for each point", true, true, true, "O(m q k c)"},
    {"three_interpolate", "grouping", "inverse-distance weights", true, true, true, "O(m k)"},
    {"kernel_interpolate", "grouping", "weights of neighbours at kernel points, trilinear or gaussian", true, true, true, "O(m q k)"},
    {"bilateral_weights", "grouping", "similarities, and sums under two factors of weights", true, true, true, "O(m k c)"},
    {"soft_project", "grouping", "queries onto a cloud, by a softmax over neighbours", true, true, true, "O(m k)"},
    {"chamfer", "distance", "mean distance to the nearest point of the other cloud, both ways, squared or not", true, true, true, "as nearest_pairs"},
    {"hausdorff", "distance", "largest distance to the other cloud, and the pair that attains it", true, true, true, "as nearest_pairs"},
    {"sinkhorn", "distance", "entropic optimal transport in the log domain, without the matrix", true, true, true, "O(n m) an iteration, O(n + m) memory"},
    {"emd", "emd", "earth mover's distance by auction with a proven gap, any n", true, true, true, "about 25 n^2 pairs at a gap of 1 %"},
    {"emd_exact", "emd", "least costly matching with its dual proof, n up to 4096", true, false, true, "about O(n^2.3)"},
    {"emd_transport", "emd", "earth mover's distance between clouds of two sizes: exact on the CPU, by auction on both", true, true, true, "about O(n^2.3), auction as emd", "auction.cu"},
    {"linear_max", "products", "largest product of a cloud's rows with each of many vectors, and its row, without the matrix of products", true, true, true, "O(n k c)"},
    {"row_norm", "products", "batch norm of rows: statistics of columns, scale, shift and rectifier, float32 and 16 bits", true, true, true, "O(n c)"},
    {"gram", "products", "sum of rows and of their products with themselves, float32 (CPU) and 16 bits", true, true, false, "O(n k^2)"},
    {"dropout", "training", "numbers kept at random by a mask that is a function of key, step and place", true, true, true, "O(n c)"},
    {"gradient_norm", "training", "Euclidean norm of all gradients together", true, true, false, "O(n)"},
    {"update_rules", "training", "whether a step is made, with which rate, clipping and loss scale, without asking the host", true, true, false, "O(1)"},
    {"optimizer_update", "training", "SGD, Adam and AdamW for all parameters at once; moving averages; statistics of skipped steps", true, true, false, "O(n)"},
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
        "Generated from stipple/ops/registry.cpp: `stipple info --ops --markdown > docs/ops.md`. The contract of an "
        "op, "
        "its shapes,\n"
        "ties, errors and cost, is its header `stipple/ops/NAME.h`; `stipple bench ops` prints its times on your "
        "machine.\n";
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
