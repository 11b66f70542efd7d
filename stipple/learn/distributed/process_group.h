#pragma once
// ProcessGroup: the ranks of a run as they see each other. Every function is called by all ranks, in the same order.
//
// Whatever happens to another rank comes out of these functions as Error{lost_rank} that names it and what it last
// said, or, where it was told to stop, as Error{interrupted} or Error{terminated}; none of them waits for ever.

#include <cstdint>
#include <string>
#include <torch/types.h>
#include <vector>

namespace stipple::learn {

class ProcessGroup {
public:
    virtual ~ProcessGroup() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    /// Every number becomes the sum over the ranks, in place and with the same bits on all of them. Contiguous. On a
    /// GPU it is queued behind what torch queued before, and what comes after it waits.
    virtual void sum(torch::Tensor& tensor) = 0;
    /// The tensor of rank 0, in place. Contiguous.
    virtual void broadcast(torch::Tensor& tensor) = 0;
    /// Waits until all that was asked for is done. Before numbers are read from a GPU: a rank that is lost would make
    /// the read wait for ever.
    virtual void settle() {}

    /// What this rank is about to do, for the others' message if it is never heard of again. Costs nothing.
    virtual void say(const std::string& what) { (void)what; }
};

/// Rank 0's text, and number.
std::string broadcast_text(ProcessGroup& group, const std::string& text);
double broadcast_number(ProcessGroup& group, double number);

/// Everybody's, by rank; of long texts the first 512 bytes.
std::vector<std::string> gather_texts(ProcessGroup& group, const std::string& text);

/// Sums over the ranks, of all parts in one collective and in float64: a mean that is a thousand deviations from 0
/// costs a variance six of its sixteen digits then, and leaves more than float32 has.
std::vector<torch::Tensor> sums_of_ranks(ProcessGroup& group, const std::vector<torch::Tensor>& parts);

/// Throws Error{bad_config} on all ranks unless they have the same number: "rank 1 has 59 items to train on, rank 0 has
/// 60".
void require_equal(ProcessGroup& group, const std::string& what, int64_t number);

}  // namespace stipple::learn
