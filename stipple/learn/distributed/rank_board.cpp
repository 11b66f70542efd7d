#include "stipple/learn/distributed/rank_board.h"

#include <fmt/ranges.h>

#include <thread>

#include "stipple/core/interrupt.h"
#include "stipple/io/text.h"

namespace stipple::learn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(20);

std::string key_of(int rank) {
    return "rank." + std::to_string(rank);
}

bool is_over(RankState state) {
    return state == RankState::left || state == RankState::failed || state == RankState::finished;
}

}  // namespace

RankBoard::RankBoard(c10::intrusive_ptr<c10d::Store> store, int rank, int world, std::string keeper)
    : store_(std::move(store)),
      rank_(rank),
      world_(world),
      keeper_(std::move(keeper)),
      is_silent_(static_cast<size_t>(world)) {}

void RankBoard::say(RankState state, const std::string& words, ErrorCode code) {
    const std::string text = fmt::format("{} {} {}", static_cast<int>(state), static_cast<int>(code), words);
    store_->set(key_of(rank_), std::vector<uint8_t>(text.begin(), text.end()));
}

RankWord RankBoard::read(int rank) const {
    RankWord word;
    if (!store_->check({key_of(rank)})) return word;
    const std::vector<uint8_t> bytes = store_->get(key_of(rank));
    const std::string text(bytes.begin(), bytes.end());
    std::string_view rest = text;
    int64_t state = 0, code = 0;
    io::parse_number(io::next_word(rest), state);
    io::parse_number(io::next_word(rest), code);
    word.state = static_cast<RankState>(state);
    word.code = static_cast<ErrorCode>(code);
    word.words = rest.empty() ? "" : std::string(rest.substr(rest.front() == ' '));
    return word;
}

bool RankBoard::wait_until(std::chrono::milliseconds timeout, bool is_interruptible,
                           const std::function<bool(int rank, const RankWord& word)>& f) const {
    const Clock::time_point deadline = Clock::now() + timeout;
    for (;;) {
        bool is_so = true;
        for (int rank = 0; rank < world_ && is_so; ++rank) is_so = rank == rank_ || f(rank, read(rank));
        if (is_so || Clock::now() >= deadline) return is_so;
        if (is_interruptible) check_interrupted();
        std::this_thread::sleep_for(kPause);
    }
}

void RankBoard::wait_for_all(std::chrono::milliseconds timeout) const {
    const auto is_here = [](int, const RankWord& word) { return word.state != RankState::absent; };
    if (wait_until(timeout, true, is_here)) return;
    std::vector<int> missing;
    for (int rank = 0; rank < world_; ++rank)
        if (rank != rank_ && read(rank).state == RankState::absent) missing.push_back(rank);
    throw Error(ErrorCode::lost_rank,
                fmt::format("{} of {} did not come within {} s: rank {}", missing.size(), world_,
                            timeout.count() / 1000, fmt::join(missing, ", ")),
                "were as many processes started as the launcher says?");
}

bool RankBoard::has_trouble() const {
    return !wait_until(std::chrono::milliseconds(0), false, [](int, const RankWord& word) {
        return word.state == RankState::running || word.state == RankState::finished;
    });
}

Error RankBoard::explain(const std::string& reason, std::chrono::milliseconds grace) {
    std::vector<RankWord> words(static_cast<size_t>(world_));
    try {
        say(RankState::stopped, "");
        wait_until(grace, false, [&](int rank, const RankWord& word) {
            words[static_cast<size_t>(rank)] = word;
            return word.state != RankState::running && word.state != RankState::absent;
        });
        for (int rank = 0; rank < world_; ++rank)
            if (rank != rank_) words[static_cast<size_t>(rank)] = read(rank);
    } catch (const std::exception&) {
        return Error(ErrorCode::lost_rank, fmt::format("{} is gone: nobody answers in its place", keeper_));
    }
    std::vector<std::string> failed, silent;
    for (int rank = 0; rank < world_; ++rank) {
        const RankWord& word = words[static_cast<size_t>(rank)];
        if (rank == rank_) continue;
        if (word.state == RankState::failed) {
            if (word.code == ErrorCode::interrupted || word.code == ErrorCode::terminated)
                return Error(word.code, fmt::format("{} ended: {}", name_of(rank), word.words));
            failed.push_back(fmt::format("{} failed: {}", name_of(rank), word.words));
        }
        if (word.state == RankState::running || word.state == RankState::absent) {
            is_silent_[static_cast<size_t>(rank)] = 1;
            silent.push_back(fmt::format("{} is gone; it last said: {}", name_of(rank), word.words));
        }
        if (word.state == RankState::finished) silent.push_back(name_of(rank) + " has finished before the others");
    }
    if (failed.empty()) failed = silent;
    if (failed.empty())
        failed = {fmt::format("the ranks have lost each other: {}", reason.substr(0, reason.find('\n')))};
    return Error(ErrorCode::lost_rank, fmt::format("{}", fmt::join(failed, "; ")),
                 "the last checkpoint is sound; go on with --resume when all ranks can run");
}

void RankBoard::linger(std::chrono::milliseconds grace) const {
    wait_until(grace, false, [&](int rank, const RankWord& word) {
        return is_over(word.state) || is_silent_[static_cast<size_t>(rank)] || word.state == RankState::absent;
    });
}

}  // namespace stipple::learn
