#pragma once
// A network that is ready to run on batches of any size.

#include <optional>

#include "stipple/core/fields.h"
#include "stipple/engine/engine.h"
#include "stipple/tasks/model_file.h"

namespace stipple::tasks {

struct RunnerOptions {
    std::string device = "auto";  // "cpu", "cuda:1"; auto: as the engine file, else a GPU if there is one
    std::optional<engine::Precision> precision = {};  // none: fp32, or the engine file's
    int64_t batch = 32;                               // clouds at a time
    int64_t points = 1024;                            // of a cloud; a guess
    Profile* profile = nullptr;                       // what steps take, in a row "run"; must outlive the runner
};
/// The precision alone: the device is an option of the whole program, the rest follows from the task.
const Fields& precision_fields();

/// A model is compiled again when a batch has more points than it was compiled for; an engine file stays as it was
/// built. Not copied, not shared between threads.
class NetworkRunner {
public:
    /// Throws what engine::compile throws, and Error{bad_argument} for an engine file of another device or precision.
    NetworkRunner(ModelOrEngine source, const RunnerOptions& options);

    const ModelOrEngine& source() const { return source_; }
    const engine::Program& program() const { return engine_->program(); }
    engine::Precision precision() const { return engine_->options().precision; }
    Device device() const { return engine_->options().device; }
    /// Of the weights and of everything that a run keeps, on its device; grows with what was reserved.
    int64_t memory_bytes() const {
        return engine_->weight_bytes() + static_cast<int64_t>(contexts_.size()) * engine_->context_bytes();
    }
    /// Clouds of a batch, at most.
    int64_t max_batch() const { return max_batch_; }
    /// Points that a batch may have in all, as far as that is fixed.
    int64_t max_points() const;

    /// Ready for a batch of so many points. Throws Error{bad_argument} when an engine file was built for fewer. The
    /// references below end with it.
    engine::Context& reserve(int64_t points) { return reserve(points, 1)[0]; }
    /// Likewise, `count` or more contexts of such batches, which may run at the same time: for those who cut their work
    /// over threads. One alone where runs are profiled.
    std::span<engine::Context> reserve(int64_t points, int64_t count);

private:
    void compile();
    void add_context();

    ModelOrEngine source_;
    engine::Options options_;
    bool precision_given_ = false;
    int64_t max_batch_ = 1;
    Profile* profile_ = nullptr;
    std::optional<engine::Engine> engine_;
    std::vector<engine::Context> contexts_;
};

}  // namespace stipple::tasks
