#pragma once
// Engine: a Network compiled for one device and precision. Immutable; contexts run it.
//
//   Engine engine = compile(model.network, model.weights, {.precision = Precision::fp16, .max_batch = 32});
//   Context context(engine);                                     // all memory, once
//   context.run(Batch::dense(32, 1024), {{"points", points}}, {{"logits", logits}});
//
// A context allocates everything it will ever need when it is made. Several contexts of one engine may run at the same
// time, each on one thread at a time. Any batch up to the maximum, ragged batches included; an empty cloud gets the
// network's answer to no points: max gives -infinity, and an Error{bad_argument} is thrown before that.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/view.h"
#include "stipple/engine/calibration.h"
#include "stipple/engine/precision.h"
#include "stipple/network/weights.h"
#include "stipple/ops/clouds.h"

namespace stipple {
class Profile;  // core/profile.h
}

namespace stipple::engine {

struct Options {
    Device device = {};
    Precision precision = Precision::fp32;
    int64_t max_batch = 32;     // clouds
    int64_t max_points = 1024;  // of a cloud; a ragged batch may have max_batch * max_points in all, in any division.
                                // In every point set of the caller
    /// For int8 and fp8: ranges of activations and layers that stay in higher precision. Absent: those in the weights'
    /// metadata. Error{bad_argument} when neither is there.
    std::optional<Calibration> calibration = {};
};
const Fields& option_fields();

struct Program;
class Backend;  // backend.h

/// A name and rows on the engine's device: [clouds, c], [points, c], or [points * width, c]. The numbers of a row are
/// adjacent; rows may be any distance apart that is not shorter than a row.
struct Input {
    std::string_view name;
    View<const float, 2> rows;
};
struct Output {
    std::string_view name;
    View<float, 2> rows;
    View<int32_t, 2> indices = {};  // instead of rows where the output is indices: [points, k]
};

class Engine {
public:
    const std::string& name() const;  // of the network
    const Options& options() const;
    const Program& program() const;
    int64_t weight_bytes() const;   // on the device
    int64_t context_bytes() const;  // of one context
    /// Which kernel runs each chain, and in which precision: lines for people, as inspect prints them.
    std::vector<std::string> describe() const;

    const Backend& backend() const { return *backend_; }

private:
    friend Engine compile(Program, const Options&);
    friend class Context;
    std::shared_ptr<const Backend> backend_;
};

/// Throws what lower() throws, Error{bad_argument} for a precision the device cannot do (naming those it can),
/// Error{no_device}, Error{out_of_memory}.
Engine compile(const network::Network& network, const network::Weights& weights, const Options& options);
/// From a program that was lowered before, its precisions set: what an engine file holds. Error{bad_argument} for a
/// precision of a layer that the device cannot do.
Engine compile(Program program, const Options& options);

/// Precisions that products can have on this device, the cheapest last.
std::vector<Precision> precisions_of(Device device);

class ContextState;  // backend.h

class Context {
public:
    /// Allocates. Throws Error{out_of_memory} that names the bytes.
    explicit Context(const Engine& engine);
    Context(Context&&) noexcept;
    Context& operator=(Context&&) noexcept;
    ~Context();

    /// Every input of the network is named once; outputs that are not wanted may be left out. Outputs do not overlap
    /// each other or an input. Of no clouds nothing is done. On CUDA the call returns
    /// when the work is queued on `stream`; inputs and outputs must stay until it is done. The first call with a
    /// batch's shape and the same pointers records a CUDA graph, later calls replay it. Throws Error{bad_argument} for
    /// unknown or missing names, wrong shapes, another device, a batch beyond the maximum, an empty cloud.
    void run(const ops::Batch& batch, const std::vector<Input>& inputs, const std::vector<Output>& outputs,
             Stream stream = {});
    /// For networks with several point sets: a batch for each set of the caller, in ascending order, all of the same
    /// number of clouds. Sets that the network makes need none.
    void run(const std::vector<ops::Batch>& batches, const std::vector<Input>& inputs,
             const std::vector<Output>& outputs, Stream stream = {});

    /// From now on runs tell the profile what each step takes, in rows below one of this name; a step is named by its
    /// layers, and its bytes are those of its result. On CUDA such runs replay no graph and return when they are done.
    /// Null: no more. The profile must outlive this, or the next call.
    void profile_into(Profile* profile, std::string_view name = "run");

private:
    void run_batches(std::span<const ops::Batch> batches, const std::vector<Input>& inputs,
                     const std::vector<Output>& outputs, Stream stream);
    void check(const ops::Batch& batch) const;
    void bind_batches(std::span<const ops::Batch> batches);

    std::shared_ptr<const Backend> backend_;  // what the state refers to
    std::unique_ptr<ContextState> state_;
    // In the order of the program's bindings; kept, so that a run allocates nothing.
    std::vector<View<const float, 2>> inputs_;
    std::vector<View<float, 2>> outputs_;
    std::vector<const ops::Batch*> batches_;  // by point set
    std::vector<ops::Batch> made_;            // of the sets that the network makes, by set
};

}  // namespace stipple::engine
