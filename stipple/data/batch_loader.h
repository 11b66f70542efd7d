#pragma once
// BatchLoader: epochs of batches in a fixed order, filled ahead by threads of its own.
//
//   BatchLoader loader(how, [&](int64_t epoch, int64_t item, const LoaderSlot& slot) {
//       float* points = &memory[slot.buffer][slot.place * 1024 * 3];    // the caller's memory, how.depth + 1 buffers
//       load(item, points);
//       augment({points...}, augmentation, seed, epoch, item, scratch[slot.thread]);
//   });
//   while (const LoadedBatch* batch = loader.next()) train(memory[batch->buffer], batch->items);
//
// The items of a batch and the order of batches depend on (items, batch_size, seed, shuffle, drop_last, epoch) alone,
// not on threads or depth. `make` that is a pure function of (epoch, item) makes the data so, too.
//
// Memory belongs to the caller, who has depth + 1 buffers for batch_size items and uses them again and again. The
// loader allocates in its constructor and when something fails, never in between.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace stipple::data {

struct BatchLoaderOptions {
    int64_t items = 0;       // in an epoch, 1 to 2^31 - 1
    int64_t batch_size = 1;  // 1 or more
    uint64_t seed = 0;       // of the order
    bool shuffle = true;     // else items come in their order
    bool drop_last = false;  // leaves a last batch out that is not full
    int64_t epochs = 0;      // after which next() gives nothing; 0: there is no end
    int threads = 1;         // 0 to 256; 0: items are made in next(), on its thread
    int depth = 2;           // batches that are made ahead of the one in use, 1 to 1024
    /// Several processes share every batch: this one makes the items of run `part` of `parts` equal runs of it, at
    /// places from 0 on. Wants drop_last, and batches that can be divided.
    int64_t parts = 1, part = 0;
    bool checks_interrupts = true;  // in next(); else that is the caller's business
};

/// Where an item is to be put.
struct LoaderSlot {
    int buffer = 0;     // 0 to depth
    int64_t place = 0;  // in the batch, 0 to batch_size - 1
    int thread = 0;     // which thread calls, 0 to max(threads, 1) - 1: for memory that threads do not share
};

struct LoadedBatch {
    int64_t epoch = 0, number = 0;   // its place: batch `number` of the epoch
    int buffer = 0;                  // where `make` has put the items
    std::span<const int64_t> items;  // at place 0, 1, ...; batch_size / parts, or fewer in the last batch of an epoch
    bool is_last = false;            // of its epoch
};

/// The batch that comes next: all that a checkpoint needs.
struct LoaderState {
    int64_t epoch = 0, batch = 0;
    bool operator==(const LoaderState&) const = default;
};

/// The order of an epoch, into `order`: item order[i] is the i-th. By Fisher and Yates from 0, 1, ..., n - 1: for
/// i = n - 1 down to 1, order[i] is exchanged with order[j], j = floor(b (i + 1) / 2^64), where b are the words 0
/// (high) and 1 (low) of Rng(seed, 0x4F524452 << 32 | epoch).block(i). Equal on all machines. Throws
/// Error{bad_argument} for 2^31 items or more, an epoch below 0 or above 2^32 - 1. O(n).
void epoch_order(uint64_t seed, int64_t epoch, std::span<int64_t> order);

/// Used by one thread at a time; next() and set_state() end the use of the batch before.
class BatchLoader {
public:
    /// Fills one item. Called on the loader's threads, for several items at a time, each slot by one of them. It should
    /// not use parallel_for, which would open threads for each thread of the loader.
    using Make = std::function<void(int64_t epoch, int64_t item, const LoaderSlot& slot)>;

    /// Starts at epoch 0, batch 0; threads begin with the first call of next(). Throws Error{bad_argument} for options
    /// out of range, for drop_last with fewer items than a batch, and without `make`. Where the system has fewer
    /// threads to give, those do the work, and without any next() does it.
    BatchLoader(const BatchLoaderOptions& options, Make make);

    /// As stop().
    ~BatchLoader();
    BatchLoader(const BatchLoader&) = delete;
    BatchLoader& operator=(const BatchLoader&) = delete;

    int64_t batches() const;  // in an epoch

    /// The next batch, which is valid and whose buffer is left alone until the next call; null after the last epoch.
    /// Waits for its items.
    ///
    /// What `make` throws for an item is thrown here, at the item's batch, not earlier: an Error with the same code,
    /// place and hint and "epoch E, item I: " before its message; std::bad_alloc as Error{out_of_memory}, anything else
    /// as Error{internal}. Of several items that failed, it is the one with the lowest place. The batch counts as
    /// given: the next call goes on behind it, and set_state() with the state from before tries it again. Throws
    /// Error{interrupted} or Error{terminated} within a tenth of a second, and a batch is then not lost: state() is as
    /// before. Throws Error{bad_argument} after stop().
    const LoadedBatch* next();

    /// The batch that next() will give; (epochs, 0) at the end.
    LoaderState state() const;

    /// Continues there, exactly as a loader that came to it. Waits for items that are being made, and forgets what was
    /// made ahead. Throws Error{bad_argument} for a batch that there is not.
    void set_state(const LoaderState& state);

    /// Ends all threads, after the items that they are at; no other item is begun. The state can still be read.
    void stop();

private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace stipple::data
