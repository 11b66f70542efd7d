#include "stipple/data/batch_loader.h"

#include <system_error>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/ops/random_sample.h"

namespace stipple::data {
namespace {

constexpr int64_t kMaxItems = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxEpoch = std::numeric_limits<uint32_t>::max();

void require_loader_options(const BatchLoaderOptions& options, const BatchLoader::Make& make) {
    STIPPLE_REQUIRE(options.items >= 1 && options.items <= kMaxItems, "batch loader: items must be 1 to {}, got {}",
                    kMaxItems, options.items);
    STIPPLE_REQUIRE(options.batch_size >= 1, "batch loader: batch_size must be 1 or more, got {}", options.batch_size);
    STIPPLE_REQUIRE(!options.drop_last || options.batch_size <= options.items,
                    "batch loader: drop_last leaves nothing of {} items in batches of {}", options.items,
                    options.batch_size);
    STIPPLE_REQUIRE(options.epochs >= 0 && options.epochs <= kMaxEpoch, "batch loader: epochs must be 0 to {}, got {}",
                    kMaxEpoch, options.epochs);
    STIPPLE_REQUIRE(options.threads >= 0 && options.threads <= 256, "batch loader: threads must be 0 to 256, got {}",
                    options.threads);
    STIPPLE_REQUIRE(options.depth >= 1 && options.depth <= 1024, "batch loader: depth must be 1 to 1024, got {}",
                    options.depth);
    STIPPLE_REQUIRE(options.parts >= 1 && options.part >= 0 && options.part < options.parts,
                    "batch loader: part {} of {}", options.part, options.parts);
    STIPPLE_REQUIRE(options.parts == 1 || (options.drop_last && options.batch_size % options.parts == 0),
                    "batch loader: batches of {}, or what is left at the end, are not {} equal parts",
                    options.batch_size, options.parts);
    STIPPLE_REQUIRE(make != nullptr, "batch loader: there is no function that makes items");
}

[[noreturn]] void throw_for_item(const std::exception_ptr& failure, int64_t epoch, int64_t item) {
    const std::string where = fmt::format("epoch {}, item {}: ", epoch, item);
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        throw Error(error.code(), error.place(), where + error.message(), error.hint());
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::out_of_memory, where + "out of memory");
    } catch (const std::exception& error) {
        throw Error(ErrorCode::internal, where + error.what());
    } catch (...) {
        throw Error(ErrorCode::internal, where + "an exception that has no text");
    }
}

}  // namespace

void epoch_order(uint64_t seed, int64_t epoch, std::span<int64_t> order) {
    STIPPLE_REQUIRE(static_cast<int64_t>(order.size()) <= kMaxItems, "an order of {} items", order.size());
    STIPPLE_REQUIRE(epoch >= 0 && epoch <= kMaxEpoch, "the order of epoch {}", epoch);
    const Rng rng(seed, uint64_t{0x4F524452} << 32 | static_cast<uint64_t>(epoch));
    std::iota(order.begin(), order.end(), int64_t{0});
    for (size_t i = order.size(); i-- > 1;) {
        const RandomBlock block = rng.block(i);
        std::swap(order[i], order[ops::random_sample_below(uint64_t{block.word[0]} << 32 | block.word[1], i + 1)]);
    }
}

/// Batches have numbers from the last set_state on: batch k is in buffer k % buffers. Items are given to threads one
/// by one, in the order of batches and places; a batch is opened when the caller has done with the one that was in its
/// buffer. Everything but `make` happens under one lock.
class BatchLoader::Work {
public:
    Work(const BatchLoaderOptions& options, Make make)
        : options_(options), make_(std::move(make)), buffers_(static_cast<size_t>(options.depth) + 1) {
        const int64_t n = options_.items, size = options_.batch_size;
        batches_ = options_.drop_last ? n / size : n / size + (n % size != 0);
        for (Buffer& buffer : buffers_) buffer.items.resize(static_cast<size_t>(std::min(n, size)));
        if (options_.shuffle) order_.resize(static_cast<size_t>(n));
        threads_.reserve(static_cast<size_t>(options_.threads));
    }

    ~Work() { stop(); }

    int64_t batches() const { return batches_; }
    const LoaderState& state() const { return state_; }

    const LoadedBatch* next() {
        STIPPLE_REQUIRE(!stopped_, "batch loader: next() after stop()");
        if (options_.checks_interrupts) check_interrupted();
        if (is_end(state_)) return nullptr;
        start_threads();
        std::unique_lock lock(mutex_);
        oldest_ = next_;  // the caller has done with the batch before
        wake_threads_.notify_all();
        Buffer& buffer = buffer_of(next_);
        while (next_ >= opened_ || buffer.unfinished > 0) {
            if (threads_.empty()) {
                make_one(lock, take(), 0);
            } else {
                wake_caller_.wait_for(lock, std::chrono::milliseconds(50));  // a signal does not wake
            }
            if (options_.checks_interrupts) check_interrupted();
        }
        ++next_;
        state_ = after(state_);
        if (buffer.failure) {
            const std::exception_ptr failure = std::exchange(buffer.failure, nullptr);
            throw_for_item(failure, buffer.batch.epoch, buffer.items[static_cast<size_t>(buffer.failed_place)]);
        }
        return &buffer.batch;
    }

    void set_state(const LoaderState& state) {
        const bool is_batch = state.epoch >= 0 && state.epoch <= kMaxEpoch && state.batch >= 0 &&
                              state.batch < batches_ && (options_.epochs == 0 || state.epoch < options_.epochs);
        STIPPLE_REQUIRE(is_batch || (is_end(state) && state.epoch == options_.epochs && state.batch == 0),
                        "batch loader: there is no batch {} of epoch {}: {} batches, {} epochs", state.batch,
                        state.epoch, batches_, options_.epochs);
        std::unique_lock lock(mutex_);
        paused_ = true;
        wake_caller_.wait(lock, [&] { return in_work_ == 0; });
        paused_ = false;
        next_ = oldest_ = opened_ = place_ = places_ = 0;
        for (Buffer& buffer : buffers_) buffer.failure = nullptr, buffer.unfinished = 0;
        state_ = to_open_ = state;
        wake_threads_.notify_all();
    }

    void stop() {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        wake_threads_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

private:
    struct Buffer {
        LoadedBatch batch;
        std::vector<int64_t> items;
        int64_t unfinished = 0;  // items
        std::exception_ptr failure;
        int64_t failed_place = 0;
    };
    struct Job {
        Buffer* buffer;
        int64_t place;
    };

    Buffer& buffer_of(int64_t batch) { return buffers_[static_cast<size_t>(batch) % buffers_.size()]; }
    bool is_end(const LoaderState& state) const {
        return state.epoch > kMaxEpoch || (options_.epochs > 0 && state.epoch >= options_.epochs);
    }
    LoaderState after(const LoaderState& state) const {
        return state.batch + 1 < batches_ ? LoaderState{state.epoch, state.batch + 1} : LoaderState{state.epoch + 1, 0};
    }

    void start_threads() {
        if (started_) return;
        started_ = true;
        try {
            for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this, i] { run(i); });
        } catch (const std::system_error&) {  // those that started do the work
        } catch (const std::bad_alloc&) {
        }
    }

    void run(int thread) {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_threads_.wait(lock, [&] { return stopped_ || can_take(); });
            if (stopped_) return;
            make_one(lock, take(), thread);
        }
    }

    bool can_take() const {
        if (paused_) return false;
        if (place_ < places_) return true;
        return !is_end(to_open_) && opened_ < oldest_ + static_cast<int64_t>(buffers_.size());
    }

    Job take() {
        if (place_ == places_) open_batch();
        return {&buffer_of(opened_ - 1), place_++};
    }

    void open_batch() {
        if (options_.shuffle && order_epoch_ != to_open_.epoch) {
            epoch_order(options_.seed, to_open_.epoch, order_);
            order_epoch_ = to_open_.epoch;
        }
        const int64_t share = options_.batch_size / options_.parts;
        const int64_t begin = to_open_.batch * options_.batch_size + options_.part * share;
        Buffer& buffer = buffer_of(opened_);
        places_ = std::min(share, options_.items - begin);
        place_ = 0;
        for (int64_t i = 0; i < places_; ++i)
            buffer.items[static_cast<size_t>(i)] =
                options_.shuffle ? order_[static_cast<size_t>(begin + i)] : begin + i;
        buffer.unfinished = places_;
        buffer.failure = nullptr;
        buffer.batch = {to_open_.epoch, to_open_.batch, static_cast<int>(&buffer - buffers_.data()),
                        std::span<const int64_t>(buffer.items).first(static_cast<size_t>(places_)),
                        to_open_.batch + 1 == batches_};
        ++opened_;
        to_open_ = after(to_open_);
    }

    /// Unlocks while the item is made.
    void make_one(std::unique_lock<std::mutex>& lock, const Job& job, int thread) {
        Buffer& buffer = *job.buffer;
        const int64_t epoch = buffer.batch.epoch, item = buffer.items[static_cast<size_t>(job.place)];
        const LoaderSlot slot = {buffer.batch.buffer, job.place, thread};
        std::exception_ptr failure;
        ++in_work_;
        lock.unlock();
        try {
            make_(epoch, item, slot);
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        --in_work_;
        if (failure && (!buffer.failure || job.place < buffer.failed_place)) {
            buffer.failure = std::move(failure);
            buffer.failed_place = job.place;
        }
        if (--buffer.unfinished == 0 || paused_) wake_caller_.notify_one();
    }

    const BatchLoaderOptions options_;
    const Make make_;
    int64_t batches_ = 0;
    std::vector<std::thread> threads_;
    bool started_ = false;
    LoaderState state_;  // the caller's: batch next_

    std::mutex mutex_;  // of all that follows
    std::condition_variable wake_threads_, wake_caller_;
    std::vector<Buffer> buffers_;
    std::vector<int64_t> order_;  // of order_epoch_
    int64_t order_epoch_ = -1;
    int64_t oldest_ = 0;              // batch whose buffer may not be used for another
    int64_t next_ = 0;                // batch that the caller gets next
    int64_t opened_ = 0;              // batches that threads have begun
    int64_t place_ = 0, places_ = 0;  // of the last opened one: next item, number of items
    LoaderState to_open_;             // batch opened_
    int64_t in_work_ = 0;             // items
    bool paused_ = false, stopped_ = false;
};

BatchLoader::BatchLoader(const BatchLoaderOptions& options, Make make) {
    require_loader_options(options, make);
    work_ = std::make_unique<Work>(options, std::move(make));
}

BatchLoader::~BatchLoader() = default;

int64_t BatchLoader::batches() const {
    return work_->batches();
}

const LoadedBatch* BatchLoader::next() {
    return work_->next();
}

LoaderState BatchLoader::state() const {
    return work_->state();
}

void BatchLoader::set_state(const LoaderState& state) {
    work_->set_state(state);
}

void BatchLoader::stop() {
    work_->stop();
}

}  // namespace stipple::data
