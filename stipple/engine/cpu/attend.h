#pragma once
// The step attend on the CPU: queries sixteen at a time, a vector lane each, past keys in blocks of a fixed place, so
// that the numbers of a query do not depend on who is beside it. No pair is kept: softmaxes run along.

#include "stipple/engine/cpu/steps.h"

namespace stipple::engine::cpu {

struct AttendCall {
    int64_t keys = 0;                   // rows of keys and values in this cloud
    int64_t channels = 0, outputs = 0;  // of queries and keys; of values. At most network::kMostAttendChannels
    float factor = 1;
    bool is_softmax = true;  // else inner products over the number of keys
    bool unit = false;       // queries and keys have length 1
    bool skips_self = false;
    bool log_sum = false;  // behind the outputs: ln of the sum of exponentials
};

/// Queries [begin, end): [channels] -> [outputs], or [outputs + 1] with log_sum. Keys and values are rows one after the
/// other. A query without keys gets zeros.
void attend(const AttendCall& call, const RowSource& queries, const RowSource& keys, const RowSource& values, Rows out,
            int64_t begin, int64_t end);

/// All rows of a cloud times a softmax over them: x [rows, channels + 1], whose last channel is its logit -> [rows,
/// channels]. The sum is taken in double, in the order of the rows.
void weigh_points(const RowSource& x, int64_t rows, int64_t channels, Rows out);

}  // namespace stipple::engine::cpu
