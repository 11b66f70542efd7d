#pragma once
// One context of an engine on the CPU: its memory, and the program run on it.

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "stipple/core/buffer.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/cpu/plan.h"
#include "stipple/engine/cpu/steps.h"
#include "stipple/engine/run/backend.h"

namespace stipple::engine::cpu {

/// Bytes of a context for so many threads.
int64_t context_bytes(const Plan& plan, const Options& options, int64_t threads);

class Context : public ContextState {
public:
    /// All three must outlive it. Threads beyond those that there are now are not used later either.
    Context(const Program& program, const Plan& plan, const Options& options);

    void run_sets(std::span<const ops::Batch* const> batches, const std::vector<View<const float, 2>>& inputs,
                  const std::vector<View<float, 2>>& outputs, Stream stream) override;

    // Of the run in progress, for the kinds of steps: values in one cloud, and in the memory of the thread `slot`.

    int64_t channels_of(Value value) const { return plan_.homes[static_cast<size_t>(value)].channels; }
    int64_t width_of(Value value) const { return plan_.homes[static_cast<size_t>(value)].width; }
    /// Rows of a value in one cloud.
    int64_t rows_of(Value value, int64_t cloud) const;
    const ops::Batch& batch(int32_t set) const { return *batches_[static_cast<size_t>(set)]; }
    int64_t stride_of(Value value) const { return places_[static_cast<size_t>(value)].stride; }
    float* at(Value value, int64_t cloud, int64_t slot) const;
    /// For rows of a step that come `width` a point.
    RowSource source(const Source& from, int64_t width, int64_t cloud, int64_t slot) const;

private:
    // Who does a piece of work. One of several threads that each have a cloud of their own does it alone.
    struct Worker {
        int64_t slot = 0;
        bool alone = false;
    };
    // Clouds [begin, end), of which a step is wanted, and by whom.
    struct Task {
        int64_t begin = 0, end = 0;
        Worker worker;
    };
    // Of the points that a knn step searches, for those after it.
    struct Tree {
        Value value = -1;
        int64_t cloud = -1;
        std::optional<ops::PointIndex> index;
    };
    // A value in this run.
    struct Place {
        float* data = nullptr;
        int64_t stride = 0;
    };

    void place_values(const std::vector<View<const float, 2>>& inputs, const std::vector<View<float, 2>>& outputs);
    void mark_needed(const std::vector<View<float, 2>>& outputs);
    void copy_outputs(const std::vector<View<float, 2>>& outputs);

    void run_group(const Group& group);
    void run_or_time_step(size_t s, const Task& task) {
        if (profile) [[unlikely]]
            return time_step(s, task);
        run_step(s, task);
    }
    void run_step(size_t s, const Task& task);
    void time_step(size_t s, const Task& task);
    void run_head(const Step& step, const StepPlan& plan);
    void run_chain(const Step& step, const Chain& chain, const Task& task);
    void run_chain_max(const Step& step, const Chain& chain, const Task& task);
    void run_chain_piece(const Step& step, const Chain& chain, int64_t cloud, int64_t slot, int64_t begin, int64_t end,
                         float* out, int64_t out_stride);
    void run_rows(const Step& step, const StepType& type, const Task& task);
    void run_points(const Step& step, const StepType& type, const Task& task);
    void run_clouds(const Step& step, const StepType& type, const Task& task);
    void run_knn(const Step& step, const Task& task);

    /// body(slot, item) for all items, on as many threads as the worker may use.
    template <class Body>
    void for_items(int64_t items, const Worker& worker, const Body& body) const {
        if (worker.alone || items <= 1 || workers_ <= 1) {
            for (int64_t item = 0; item < items; ++item) body(worker.slot, item);
            return;
        }
        std::atomic<int64_t> next{0};
        const auto work = [&](int64_t begin, int64_t end) {
            for (int64_t slot = begin; slot < end; ++slot)
                for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) body(slot, item);
        };
        parallel_for(std::min(workers_, items), 1, std::cref(work));  // by reference: nothing is allocated
    }

    /// Rows of a piece of work, a multiple of `unit` unless a cloud is one piece. A cloud has scale * points rows.
    int64_t piece_rows(const Step& step, const Task& task, int64_t scale, int64_t unit) const;
    /// body(cloud, slot, begin, end) for all pieces of all clouds of the task, in the step's point set.
    template <class Body>
    void for_pieces(const Step& step, const Task& task, int64_t scale, int64_t piece, const Body& body) const {
        const ops::Batch& points = batch(step.set);
        const int64_t pieces = (points.largest() * scale + piece - 1) / piece;  // of the largest cloud
        for_items((task.end - task.begin) * pieces, task.worker, [&](int64_t slot, int64_t item) {
            const int64_t cloud = task.begin + item / pieces, begin = item % pieces * piece;
            const int64_t end = std::min(begin + piece, points.size(cloud) * scale);
            if (begin < end) body(cloud, slot, begin, end);
        });
    }

    const Program& program_;
    const Plan& plan_;
    int64_t slots_ = 1;
    Buffer shared_, local_, scratch_, partial_, head_;
    std::vector<Place> places_;
    std::vector<char> is_needed_;            // steps
    std::vector<int64_t> partial_of_cloud_;  // row of partial_ of its first piece; -1: it is one piece
    std::vector<Tree> trees_;                // of each slot, the last one in the run in progress

    // Of the run in progress.
    std::span<const ops::Batch* const> batches_;  // by point set
    int64_t clouds_ = 0;
    int64_t most_rows_ = 0;  // points of all clouds in any set
    int64_t workers_ = 1;
    bool by_cloud_ = false;    // each cloud on one thread
    int64_t slot_points_ = 0;  // by_cloud_: points of a thread's part of the local memory
};

}  // namespace stipple::engine::cpu
