#pragma once
// Forms: what a tensor is, as a sum of linear maps of others. lower() keeps tensors in this form as long as it can:
// concat, slice, reverse, repeat, gather, edge features, sums, scales, actnorm and mix are all algebra on forms and
// cost nothing; only what is not linear becomes a node that is computed. In double: rounding comes last.

#include <cstdint>
#include <vector>

#include "stipple/engine/program.h"

namespace stipple::engine::lowering {

/// A linear map, [rows, cols]. Most are selections: each output is one input times a factor, or nothing.
struct Map {
    int64_t rows = 0, cols = 0;
    bool is_selection = true;
    std::vector<int64_t> columns;  // selection: of each row, -1 for a row of zeros
    std::vector<double> values;    // selection: [rows] factors; else [rows, cols]
    bool operator==(const Map&) const = default;
};

Map identity(int64_t n);
Map dense_map(int64_t rows, int64_t cols, std::vector<double> values);
Map selection(int64_t cols, std::vector<int64_t> columns);
bool is_identity(const Map& map);  // factors 1
bool is_zero(const Map& map);      // selections of nothing only: weights that happen to be zero are weights
std::vector<double> dense_values(const Map& map);

Map product(const Map& a, const Map& b);  // x -> a (b x)
Map sum(const Map& a, const Map& b);
Map scaled(Map map, double factor);

/// Position of a node in Graph::nodes (lower/graph.h).
using NodeId = int32_t;

/// A node as a row of another tensor sees it.
struct Link {
    NodeId node = -1;
    Access access = Access::row;
    NodeId indices = -1;  // for Access::neighbour
    bool operator==(const Link&) const = default;
};

struct Term {
    Link link;
    Map map;
    bool operator==(const Term&) const = default;
};

/// Sum of map * node over the terms, plus bias. No two terms have the same link.
struct Form {
    TensorType type;
    std::vector<Term> terms;
    std::vector<double> bias;  // [type.channels]
    bool operator==(const Form&) const = default;
};

bool has_bias(const Form& form);
/// One node as it is.
bool is_pure(const Form& form);

void add_term(Form& form, Term term);
Form apply(const Map& map, const Form& form);
Form sum(Form a, const Form& b);
/// Sum with b's channels moved to begin at `at` of `channels`.
Form placed(const Form& form, int64_t at, int64_t channels);
Form selected(const Form& form, const std::vector<int64_t>& channels);

/// The link from a row to what its `outer` sees through `inner`; false where no access says that.
bool compose(const Link& outer, const Link& inner, Link& out);

}  // namespace stipple::engine::lowering
