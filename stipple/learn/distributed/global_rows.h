#pragma once
// Where the rows of a rank's share of a batch are among those of the whole batch.

#include <vector>

#include "stipple/learn/evaluate/layer.h"

namespace stipple::learn {

/// Rows begin, begin + 1, ... of a rank are rows global, global + 1, ... of all ranks.
struct RowRun {
    int64_t begin, rows, global;
};

/// Of the output of a layer, `rows` rows of this type. A batch of several views is as many runs, whose clouds must have
/// one size on all ranks; without a group it is one run that begins at 0.
std::vector<RowRun> global_rows(const LayerContext& context, const network::TensorType& type, int64_t rows);

}  // namespace stipple::learn
