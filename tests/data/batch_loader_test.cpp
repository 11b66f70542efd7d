#include "stipple/data/batch_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <new>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "tests/support/allocation.h"

namespace stipple::data {
namespace {

/// What a caller sees of a batch: its place, its items, and what `make` wrote for them.
struct SeenBatch {
    int64_t epoch, number;
    std::vector<int64_t> items, made;
    bool is_last;
    bool operator==(const SeenBatch&) const = default;
};

int64_t made_of(int64_t epoch, int64_t item) {
    return 1000 * epoch + item;
}

/// A loader with its memory.
class LoaderWithMemory {
public:
    explicit LoaderWithMemory(const BatchLoaderOptions& options, BatchLoader::Make before = {})
        : memory_(options.depth + 1, std::vector<int64_t>(options.batch_size, -1)),
          loader(options, [this, before, options](int64_t epoch, int64_t item, const LoaderSlot& slot) {
              EXPECT_LT(slot.thread, std::max(options.threads, 1));
              if (before) before(epoch, item, slot);
              memory_.at(slot.buffer).at(slot.place) = made_of(epoch, item);
          }) {}

    SeenBatch see(const LoadedBatch& batch) const {
        const std::vector<int64_t>& memory = memory_.at(batch.buffer);
        return {batch.epoch,
                batch.number,
                {batch.items.begin(), batch.items.end()},
                {memory.begin(), memory.begin() + static_cast<int64_t>(batch.items.size())},
                batch.is_last};
    }
    std::vector<SeenBatch> rest(int64_t most = 1 << 20) {
        std::vector<SeenBatch> seen;
        while (static_cast<int64_t>(seen.size()) < most) {
            const LoadedBatch* batch = loader.next();
            if (!batch) break;
            seen.push_back(see(*batch));
        }
        return seen;
    }

private:
    std::vector<std::vector<int64_t>> memory_;

public:
    BatchLoader loader;
};

BatchLoaderOptions three_epochs(int threads, int depth = 2) {
    BatchLoaderOptions options;
    options.items = 23, options.batch_size = 5, options.seed = 11, options.epochs = 3;
    options.threads = threads, options.depth = depth;
    return options;
}

void wait_a_little(int64_t item) {
    std::this_thread::sleep_for(std::chrono::microseconds(200 * (item % 5)));
}

TEST(BatchLoader, OrderDependsOnSeedAndEpochAlone) {
    const std::vector<SeenBatch> one = LoaderWithMemory(three_epochs(1)).rest();
    ASSERT_EQ(one.size(), 15u);
    std::vector<int64_t> order(23);
    for (size_t k = 0; k < 15; ++k) {
        const int64_t epoch = static_cast<int64_t>(k) / 5, number = static_cast<int64_t>(k) % 5;
        epoch_order(11, epoch, order);
        const int64_t begin = 5 * number, end = std::min<int64_t>(begin + 5, 23);
        SeenBatch expected = {epoch, number, {order.begin() + begin, order.begin() + end}, {}, number == 4};
        for (int64_t item : expected.items) expected.made.push_back(made_of(epoch, item));
        EXPECT_EQ(one[k], expected) << k;
    }
    for (int threads : {0, 1, 2, 7})
        for (int depth : {1, 2, 9}) {
            LoaderWithMemory other(three_epochs(threads, depth),
                                   [](int64_t, int64_t item, const LoaderSlot&) { wait_a_little(item); });
            EXPECT_EQ(other.rest(), one) << threads << " threads, depth " << depth;
            EXPECT_EQ(other.loader.next(), nullptr);
            EXPECT_EQ(other.loader.state(), (LoaderState{3, 0}));
        }
}

TEST(BatchLoader, EveryItemComesOnceInAnEpoch) {
    for (bool shuffle : {false, true}) {
        BatchLoaderOptions options = three_epochs(2);
        options.shuffle = shuffle;
        std::vector<std::vector<int64_t>> epochs(3);
        for (const SeenBatch& batch : LoaderWithMemory(options).rest())
            epochs[batch.epoch].insert(epochs[batch.epoch].end(), batch.items.begin(), batch.items.end());
        std::vector<int64_t> all(23);
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(epochs[0] == all, !shuffle);
        EXPECT_EQ(epochs[0] == epochs[1], !shuffle);
        for (std::vector<int64_t>& items : epochs) {
            std::sort(items.begin(), items.end());
            EXPECT_EQ(items, all);
        }
    }
}

TEST(BatchLoader, EveryOrderIsEquallyLikely) {
    std::vector<int64_t> order(4);
    std::vector<int64_t> times(256);
    for (int64_t epoch = 0; epoch < 24000; ++epoch) {
        epoch_order(3, epoch, order);
        ++times[order[0] + 4 * order[1] + 16 * order[2] + 64 * order[3]];
    }
    int64_t orders = 0;
    for (int64_t count : times) {
        if (count == 0) continue;
        ++orders;
        EXPECT_NEAR(static_cast<double>(count), 1000, 160);  // five deviations
    }
    EXPECT_EQ(orders, 24);
}

TEST(BatchLoader, LastBatchIsDroppedWhenAskedFor) {
    BatchLoaderOptions options = three_epochs(2);
    options.drop_last = true;
    LoaderWithMemory dropping(options);
    EXPECT_EQ(dropping.loader.batches(), 4);
    const std::vector<SeenBatch> seen = dropping.rest(), whole = LoaderWithMemory(three_epochs(1)).rest();
    ASSERT_EQ(seen.size(), 12u);
    for (size_t k = 0; k < 12; ++k) {
        EXPECT_EQ(seen[k].items, whole[5 * (k / 4) + k % 4].items);
        EXPECT_EQ(seen[k].is_last, k % 4 == 3);
    }
    options.items = 20;  // nothing to drop
    EXPECT_EQ(LoaderWithMemory(options).rest().size(), 12u);
    options.drop_last = false, options.batch_size = 100;
    EXPECT_EQ(LoaderWithMemory(options).rest().size(), 3u);
}

TEST(BatchLoader, ContinuesFromAnyState) {
    const std::vector<SeenBatch> whole = LoaderWithMemory(three_epochs(1)).rest();
    LoaderWithMemory jumping(three_epochs(3));
    for (size_t k = 0; k <= whole.size(); ++k) {
        LoaderWithMemory first(three_epochs(2));
        EXPECT_EQ(first.rest(static_cast<int64_t>(k)).size(), k);
        const LoaderState state = first.loader.state();
        EXPECT_EQ(state, (LoaderState{static_cast<int64_t>(k) / 5, static_cast<int64_t>(k) % 5}));
        const std::vector<SeenBatch> expected(whole.begin() + static_cast<int64_t>(k), whole.end());
        LoaderWithMemory second(three_epochs(2));
        second.loader.set_state(state);
        EXPECT_EQ(second.loader.state(), state);
        EXPECT_EQ(second.rest(), expected) << k;
        jumping.loader.set_state(state);  // one loader, forwards and back, with batches made ahead
        const size_t some = std::min<size_t>(expected.size(), 2);
        EXPECT_EQ(jumping.rest(2), std::vector<SeenBatch>(expected.begin(), expected.begin() + some)) << k;
    }
}

TEST(BatchLoader, ErrorsComeWithTheirBatchAndItem) {
    const std::vector<SeenBatch> whole = LoaderWithMemory(three_epochs(1)).rest();
    // Two items of the third batch fail: the lower place is reported, though it fails later.
    const int64_t low = whole[2].items[1], high = whole[2].items[3];
    for (int threads : {0, 1, 2, 7}) {
        std::atomic<bool> fails = true;
        LoaderWithMemory failing(three_epochs(threads), [&](int64_t epoch, int64_t item, const LoaderSlot&) {
            if (epoch != 0 || !fails) return;
            if (item == high) throw Error(ErrorCode::bad_argument, "the other one");
            if (item != low) return;
            wait_a_little(4);
            throw Error(ErrorCode::bad_file, {"chair.off", 7}, "expected three numbers", "convert it");
        });
        EXPECT_EQ(failing.rest(2), std::vector<SeenBatch>(whole.begin(), whole.begin() + 2));
        const LoaderState before = failing.loader.state();
        try {
            failing.loader.next();
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file);
            EXPECT_EQ(error.message(), fmt::format("epoch 0, item {}: expected three numbers", low));
            EXPECT_EQ(error.place().line, 7);
            EXPECT_EQ(error.hint(), "convert it");
        }
        EXPECT_EQ(failing.loader.state(), (LoaderState{0, 3}));
        EXPECT_EQ(failing.rest(1)[0], whole[3]);
        fails = false;
        failing.loader.set_state(before);
        EXPECT_EQ(failing.rest(), std::vector<SeenBatch>(whole.begin() + 2, whole.end()));
    }
}

TEST(BatchLoader, OtherExceptionsBecomeErrors) {
    const auto thrown_by = [](const BatchLoader::Make& make) -> std::pair<ErrorCode, std::string> {
        BatchLoaderOptions options = three_epochs(2);
        options.shuffle = false;
        BatchLoader loader(options, make);
        try {
            loader.next();
        } catch (const Error& error) {
            return {error.code(), error.message()};
        }
        return {ErrorCode::check_failed, "no error"};
    };
    using Thrown = std::pair<ErrorCode, std::string>;
    EXPECT_EQ(thrown_by([](int64_t, int64_t, const LoaderSlot&) { throw std::bad_alloc(); }),
              (Thrown{ErrorCode::out_of_memory, "epoch 0, item 0: out of memory"}));
    EXPECT_EQ(thrown_by([](int64_t, int64_t, const LoaderSlot&) { throw std::runtime_error("odd"); }),
              (Thrown{ErrorCode::internal, "epoch 0, item 0: odd"}));
    EXPECT_EQ(thrown_by([](int64_t, int64_t, const LoaderSlot&) { throw 7; }),
              (Thrown{ErrorCode::internal, "epoch 0, item 0: an exception that has no text"}));
}

TEST(BatchLoader, EndsInTheMiddle) {
    for (int threads : {0, 1, 2, 7})
        for (int64_t seen : {0, 1, 4}) {
            std::atomic<int64_t> running = 0, begun = 0;
            {
                LoaderWithMemory loader(three_epochs(threads, 1), [&](int64_t, int64_t item, const LoaderSlot&) {
                    ++running, ++begun;
                    wait_a_little(item);
                    --running;
                });
                EXPECT_EQ(loader.rest(seen).size(), static_cast<size_t>(seen));
            }
            EXPECT_EQ(running, 0);
            EXPECT_LE(begun, 5 * (seen + 2));  // depth 1: never more than two batches beyond those before
        }
    LoaderWithMemory stopped(three_epochs(2));
    EXPECT_EQ(stopped.rest(3).size(), 3u);
    stopped.loader.stop();
    stopped.loader.stop();
    EXPECT_EQ(stopped.loader.state(), (LoaderState{0, 3}));
    EXPECT_THROW(stopped.loader.next(), Error);
}

TEST(BatchLoader, ABatchInUseIsLeftAlone) {
    // Threads that have all the time there is fill what is ahead, and wait there.
    BatchLoaderOptions options = three_epochs(3, 2);
    std::atomic<int64_t> made = 0;
    LoaderWithMemory loader(options, [&](int64_t, int64_t, const LoaderSlot&) { ++made; });
    const LoadedBatch* batch = loader.loader.next();
    const SeenBatch before = loader.see(*batch);
    while (made < 15) std::this_thread::yield();  // this one and two ahead
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(made, 15);
    EXPECT_EQ(loader.see(*batch), before);
}

TEST(BatchLoader, AllocatesNothingAfterTheFirstEpoch) {
    if (!test::can_fail_allocations()) GTEST_SKIP() << "operator new is the sanitizer's";
    for (int threads : {0, 2}) {
        BatchLoaderOptions options = three_epochs(threads);
        options.epochs = 0;
        std::vector<int64_t> memory(15);
        BatchLoader loader(options, [&](int64_t epoch, int64_t item, const LoaderSlot& slot) {
            memory[5 * slot.buffer + slot.place] = made_of(epoch, item);
        });
        for (int64_t k = 0; k < loader.batches(); ++k) loader.next();
        const int64_t calls = test::allocation_calls();
        for (int64_t k = 0; k < 20 * loader.batches(); ++k) {
            const LoadedBatch* batch = loader.next();
            if (memory[5 * batch->buffer] != made_of(batch->epoch, batch->items[0])) std::abort();
        }
        loader.set_state({7, 3});
        loader.next();
        EXPECT_EQ(test::allocation_calls(), calls);
    }
}

TEST(BatchLoader, ASignalEndsTheWait) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";  // a process of its own, not a fork of one with threads
    const auto interrupted = [](int threads) {
        install_signal_handlers();
        std::atomic<bool> goes_on = false;
        BatchLoader loader(three_epochs(threads), [&](int64_t, int64_t, const LoaderSlot&) {
            ::raise(SIGTERM);
            while (threads > 0 && !goes_on) std::this_thread::yield();  // an item that takes for ever
        });
        bool is_right = false;
        try {
            loader.next();
        } catch (const Error& error) {
            is_right = error.code() == ErrorCode::terminated && loader.state() == LoaderState{};
        }
        goes_on = true;
        loader.stop();
        std::_Exit(is_right ? 0 : 1);
    };
    for (int threads : {0, 2}) EXPECT_EXIT(interrupted(threads), testing::ExitedWithCode(0), "") << threads;
}

TEST(BatchLoader, RefusesWhatIsOutOfRange) {
    const auto nothing = [](int64_t, int64_t, const LoaderSlot&) {};
    const auto message_with = [&](const std::function<void(BatchLoaderOptions&)>& change) -> std::string {
        BatchLoaderOptions options = three_epochs(1);
        change(options);
        try {
            BatchLoader loader(options, nothing);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_argument);
            return error.what();
        }
        return "no error";
    };
    const std::pair<const char*, std::function<void(BatchLoaderOptions&)>> wrong[] = {
        {"items must be 1", [](BatchLoaderOptions& o) { o.items = 0; }},
        {"items must be 1", [](BatchLoaderOptions& o) { o.items = int64_t{1} << 31; }},
        {"batch_size", [](BatchLoaderOptions& o) { o.batch_size = 0; }},
        {"drop_last leaves nothing", [](BatchLoaderOptions& o) { o.drop_last = true, o.batch_size = 24; }},
        {"epochs", [](BatchLoaderOptions& o) { o.epochs = -1; }},
        {"threads", [](BatchLoaderOptions& o) { o.threads = -1; }},
        {"threads", [](BatchLoaderOptions& o) { o.threads = 257; }},
        {"depth", [](BatchLoaderOptions& o) { o.depth = 0; }},
    };
    for (const auto& [part, change] : wrong)
        EXPECT_NE(message_with(change).find(part), std::string::npos) << message_with(change);
    EXPECT_THROW(BatchLoader(three_epochs(1), {}), Error);
    BatchLoader loader(three_epochs(1), nothing);
    const LoaderState bad_states[] = {{0, 5}, {0, -1}, {-1, 0}, {3, 1}, {4, 0}};
    for (const LoaderState& state : bad_states) EXPECT_THROW(loader.set_state(state), Error);
    loader.set_state({3, 0});
    EXPECT_EQ(loader.next(), nullptr);
    std::vector<int64_t> order(3);
    EXPECT_THROW(epoch_order(1, -1, order), Error);
    EXPECT_THROW(epoch_order(1, int64_t{1} << 32, order), Error);
}

TEST(BatchLoader, OrderIsTheSameOnEveryMachine) {
    std::vector<int64_t> order(10);
    epoch_order(1, 0, order);
    // From a program in Python that was written from the header.
    EXPECT_EQ(order, (std::vector<int64_t>{4, 5, 3, 6, 0, 9, 7, 1, 8, 2}));
    epoch_order(1, 249, order);
    EXPECT_EQ(order, (std::vector<int64_t>{2, 5, 8, 9, 4, 3, 6, 0, 1, 7}));
}

TEST(BatchLoader, PartsAreTheBatchTogether) {
    BatchLoaderOptions options = three_epochs(2);
    options.batch_size = 6;
    options.drop_last = true;
    const std::vector<SeenBatch> whole = LoaderWithMemory(options).rest();
    options.parts = 3;
    std::vector<std::vector<SeenBatch>> parts;
    for (options.part = 0; options.part < 3; ++options.part) parts.push_back(LoaderWithMemory(options).rest());
    for (size_t i = 0; i < whole.size(); ++i) {
        SeenBatch together = {whole[i].epoch, whole[i].number, {}, {}, whole[i].is_last};
        for (const std::vector<SeenBatch>& part : parts) {
            ASSERT_EQ(part.size(), whole.size());
            ASSERT_EQ(part[i].items.size(), 2u);
            together.items.insert(together.items.end(), part[i].items.begin(), part[i].items.end());
            together.made.insert(together.made.end(), part[i].made.begin(), part[i].made.end());
        }
        EXPECT_TRUE(together == whole[i]) << i;
    }
    options.part = 0, options.batch_size = 5;
    EXPECT_THROW(LoaderWithMemory{options}, Error);  // five items are not three equal parts
    options.batch_size = 6, options.drop_last = false;
    EXPECT_THROW(LoaderWithMemory{options}, Error);  // nor are the five that are left at the end
    options.parts = 1, options.part = 1;
    EXPECT_THROW(LoaderWithMemory{options}, Error);
}

}  // namespace
}  // namespace stipple::data
