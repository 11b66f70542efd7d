#pragma once
// What a run tells while it trains: metrics.jsonl, TensorBoard's event file, the picture of its curves.

#include <memory>
#include <string>

#include "stipple/core/run_folder.h"
#include "stipple/io/event_file.h"
#include "stipple/learn/loop/memory.h"
#include "stipple/learn/objective.h"
#include "stipple/picture/training_chart.h"

namespace stipple::learn {

class RunLog {
public:
    /// A new run, or one that goes on after `step`: what was logged behind it is dropped, since it comes again.
    RunLog(RunFolder& folder, std::string title, int64_t step);

    void add_step(int64_t step, int64_t epoch, double loss, double rate, double gradient_norm);
    void add_skipped(int64_t step, int64_t epoch, const std::string& reason);
    /// epoch: counted from 0; lines count from 1, as people do. Draws the curves.
    void add_epoch(int64_t step, int64_t epoch, const Scores& scores, double rate, double clouds_per_second,
                   const MemoryUse& memory);

    /// Of the last epoch that was logged, by this process or one before; empty where there is none.
    const Scores& last_scores() const { return last_scores_; }

    /// On the disk. Before a checkpoint.
    void sync();

private:
    void read_history();
    void remember(int64_t epoch, const Scores& scores);
    void draw() const;

    RunFolder& folder_;
    std::unique_ptr<io::EventWriter> events_;
    picture::TrainingCurves curves_;
    Scores last_scores_;
};

}  // namespace stipple::learn
