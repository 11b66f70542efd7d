#pragma once
// RankBoard: what each rank last said, in a store that all ranks see. When ranks lose each other it tells who is to
// blame.

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "stipple/core/error.h"

namespace stipple::learn {

enum class RankState {
    absent,    // has not said anything
    running,   // at what its words say
    stopped,   // has lost another one, and looks for it
    left,      // has looked, and ends
    failed,    // ended by an error, its words
    finished,  // its run is complete
};

struct RankWord {
    RankState state = RankState::absent;
    ErrorCode code = ErrorCode::internal;  // of one that failed
    std::string words;
};

class RankBoard {
public:
    /// keeper: whose store it is, for messages: "rank 0 of 2".
    RankBoard(c10::intrusive_ptr<c10d::Store> store, int rank, int world, std::string keeper);

    void say(RankState state, const std::string& words, ErrorCode code = ErrorCode::internal);
    RankWord read(int rank) const;

    /// Waits until every other rank has said something. Throws Error{lost_rank} that names those that did not come, and
    /// Error{interrupted} or Error{terminated}.
    void wait_for_all(std::chrono::milliseconds timeout) const;

    /// After a collective has failed, with its reason: says `stopped`, gives the others some time to say something too,
    /// and then knows: Error{lost_rank} with the ranks that failed and why, or those that are silent and what they last
    /// said. Where a rank was told to stop it is Error{interrupted} or Error{terminated}.
    Error explain(const std::string& reason, std::chrono::milliseconds grace);

    /// Whether a rank has failed or lost another one.
    bool has_trouble() const;

    /// For the keeper of the store, before it ends: waits until no rank will read it again, but for those that are
    /// silent.
    void linger(std::chrono::milliseconds grace) const;

private:
    /// Whether f(rank, its word) comes true for all other ranks in time.
    bool wait_until(std::chrono::milliseconds timeout, bool is_interruptible,
                    const std::function<bool(int rank, const RankWord& word)>& f) const;
    std::string name_of(int rank) const { return fmt::format("rank {} of {}", rank, world_); }

    c10::intrusive_ptr<c10d::Store> store_;
    int rank_, world_;
    std::string keeper_;
    std::vector<char> is_silent_;  // by rank: found so by explain()
};

}  // namespace stipple::learn
