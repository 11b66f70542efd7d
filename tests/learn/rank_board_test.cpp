// Who is to blame when ranks lose each other.

#include "stipple/learn/distributed/rank_board.h"

#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/support/expect_error.h"

namespace stipple::learn {
namespace {

using std::chrono::milliseconds;

struct ThreeRanks {
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
    RankBoard boards[3] = {{store, 0, 3, "rank 0 of 3"}, {store, 1, 3, "rank 0 of 3"}, {store, 2, 3, "rank 0 of 3"}};

    void all_run() {
        for (RankBoard& board : boards) board.say(RankState::running, "step 5");
    }
    Error explained() { return boards[0].explain("connection closed\nby peer", milliseconds(30)); }
};

TEST(RankBoard, WordsAreReadAsTheyWereSaid) {
    ThreeRanks ranks;
    EXPECT_EQ(ranks.boards[0].read(1).state, RankState::absent);
    ranks.boards[1].say(RankState::failed, "a.ply:3: two  spaces", ErrorCode::bad_file);
    const RankWord word = ranks.boards[0].read(1);
    EXPECT_EQ(word.state, RankState::failed);
    EXPECT_EQ(word.code, ErrorCode::bad_file);
    EXPECT_EQ(word.words, "a.ply:3: two  spaces");
    ranks.boards[1].say(RankState::left, "");
    EXPECT_EQ(ranks.boards[0].read(1).words, "");
}

TEST(RankBoard, ThoseWhoDoNotComeAreNamed) {
    ThreeRanks ranks;
    ranks.boards[0].say(RankState::running, "joined");
    EXPECT_ERROR(ranks.boards[0].wait_for_all(milliseconds(30)), lost_rank,
                 "2 of 3 did not come within 0 s: rank 1, 2");
    ranks.boards[2].say(RankState::running, "joined");
    EXPECT_ERROR(ranks.boards[0].wait_for_all(milliseconds(30)), lost_rank, "1 of 3 did not come within 0 s: rank 1");
    ranks.boards[1].say(RankState::running, "joined");
    ranks.boards[0].wait_for_all(milliseconds(30));
}

TEST(RankBoard, OneThatIsSilentIsGone) {
    ThreeRanks ranks;
    ranks.all_run();
    EXPECT_FALSE(ranks.boards[0].has_trouble());
    ranks.boards[2].say(RankState::stopped, "");
    EXPECT_TRUE(ranks.boards[0].has_trouble());
    const Error error = ranks.explained();
    EXPECT_EQ(error.code(), ErrorCode::lost_rank);
    EXPECT_EQ(error.message(), "rank 1 of 3 is gone; it last said: step 5");
    ranks.boards[2].say(RankState::left, "");
    ranks.boards[0].linger(milliseconds(10000));  // does not wait for the silent one
}

TEST(RankBoard, OneThatFailedIsToBlameForTheOthers) {
    ThreeRanks ranks;
    ranks.all_run();
    ranks.boards[1].say(RankState::failed, "disk full", ErrorCode::cannot_write);
    EXPECT_EQ(ranks.explained().message(), "rank 1 of 3 failed: disk full");  // and not that 2 is silent
    ranks.boards[2].say(RankState::failed, "stopped after step 5, saved", ErrorCode::terminated);
    EXPECT_EQ(ranks.explained().code(), ErrorCode::terminated);
}

TEST(RankBoard, NobodyIsToBlameForANetwork) {
    ThreeRanks ranks;
    ranks.all_run();
    ranks.boards[1].say(RankState::stopped, "");
    ranks.boards[2].say(RankState::left, "");
    EXPECT_EQ(ranks.explained().message(), "the ranks have lost each other: connection closed");
}

}  // namespace
}  // namespace stipple::learn
