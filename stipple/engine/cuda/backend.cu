// The CUDA backend: plans every step once, uploads the weights in their final layout, and gives each context one block
// of memory in which its values and scratch lie.

#include <algorithm>
#include <set>

#include "stipple/core/cuda/events.h"
#include "stipple/engine/cuda/chain_plan.h"
#include "stipple/engine/cuda/graphs.cuh"
#include "stipple/engine/run/backend.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

using ops::cuda::CurrentDevice;

bool has_keys(const Step& step) {
    return step.kind == StepKind::max_points ||
           (step.kind == StepKind::chain && DenseLayer::has_keys(step.reduce, step.width));
}

/// All values that a step reads.
std::vector<Value> reads_of(const Step& step) {
    std::vector<Value> values;
    const auto add = [&](const Source& source) {
        values.push_back(source.value);
        if (source.indices >= 0) values.push_back(source.indices);
    };
    for (const Source& source : step.inputs) add(source);
    for (const Dense& layer : step.layers) {
        for (const Source& source : layer.parts) add(source);
        for (const Source& source : layer.addends) add(source);
        if (layer.matrix >= 0) values.push_back(layer.matrix);
    }
    return values;
}

class CudaBackend final : public Backend, public std::enable_shared_from_this<CudaBackend> {
public:
    CudaBackend(Program program, const Options& options);

    std::unique_ptr<ContextState> new_context() const override;
    int64_t weight_bytes() const override;
    int64_t context_bytes() const override {
        int64_t bytes = plan_.bytes + scratch_bytes_;
        for (size_t set = 0; set < sets_.size(); ++set)
            bytes += DeviceBatch::bytes(widths_, options_.max_batch, max_rows(static_cast<int32_t>(set)));
        return bytes;
    }
    std::vector<std::string> describe() const override;

    /// Points of a cloud, and of all clouds, in a point set.
    int64_t max_points(int32_t set) const {
        const int64_t made = sets_[static_cast<size_t>(set)].points;
        return made > 0 ? made : options_.max_points;
    }
    int64_t max_rows(int32_t set) const { return options_.max_batch * max_points(set); }
    const TensorType& type(Value value) const { return program_.values[static_cast<size_t>(value)].type; }
    int64_t most_bytes(Value value) const {
        const TensorType& t = type(value);
        return (t.level == Level::cloud ? options_.max_batch : max_rows(t.set) * t.width) * t.channels * 4;
    }

    int capability_ = 0;
    WeightBlock weights_;
    std::vector<std::unique_ptr<ChainPlan>> chains_;  // by step; null for other kinds
    std::vector<int64_t> step_weights_;               // by step, places; -1 for none
    std::vector<bool> is_planned_;                    // by value: has a place in the context's memory
    std::vector<bool> is_input_;                      // by value
    std::vector<int32_t> widths_;
    MemoryPlan plan_;
    int64_t scratch_bytes_ = 0;
};

CudaBackend::CudaBackend(Program program, const Options& options) : Backend(std::move(program), options) {
    const CurrentDevice current(options_.device);
    for (const DeviceInfo& info : list_devices())
        if (info.device == options_.device) capability_ = info.compute_capability;
    STIPPLE_REQUIRE(options_.max_batch >= 1 && options_.max_points >= 1, "a maximum of {} clouds of {} points",
                    options_.max_batch, options_.max_points);

    const size_t value_count = program_.values.size(), step_count = program_.steps.size();
    std::set<int32_t> widths = {1};
    for (const ValueInfo& value : program_.values)
        if (value.type.level == Level::point) widths.insert(static_cast<int32_t>(value.type.width));
    for (const Step& step : program_.steps) widths.insert(static_cast<int32_t>(step.width));
    widths_.assign(widths.begin(), widths.end());
    for (size_t set = 0; set < sets_.size(); ++set) {
        const int64_t points = max_points(static_cast<int32_t>(set));
        STIPPLE_REQUIRE(checked_mul(checked_mul(options_.max_batch, points), widths_.back()) < INT32_MAX,
                        "{} clouds of {} points, {} rows each: more rows than 2^31", options_.max_batch, points,
                        widths_.back());
    }

    is_input_.assign(value_count, false);
    is_planned_.assign(value_count, true);
    for (const Binding& input : program_.inputs) {
        is_input_[static_cast<size_t>(input.value)] = true;
        is_planned_[static_cast<size_t>(input.value)] = false;
    }
    // An output that nothing else reads is written where the caller wants it, or not made at all. Maxima are found by
    // integer keys in adjacent rows, which a caller's rows may not be.
    for (const Binding& output : program_.outputs) is_planned_[static_cast<size_t>(output.value)] = false;
    for (const Step& step : program_.steps) {
        for (Value value : reads_of(step))
            if (!is_input_[static_cast<size_t>(value)]) is_planned_[static_cast<size_t>(value)] = true;
        if (has_keys(step) || type(step.output).is_index) is_planned_[static_cast<size_t>(step.output)] = true;
    }

    chains_.resize(step_count);
    step_weights_.assign(step_count, -1);
    for (size_t i = 0; i < step_count; ++i) {
        const Step& step = program_.steps[i];
        if (step.kind == StepKind::chain) {
            chains_[i] = std::make_unique<ChainPlan>(program_, step, options_.device, capability_, weights_);
            scratch_bytes_ =
                std::max(scratch_bytes_, chains_[i]->scratch_bytes(options_.max_batch, max_points(step.set)));
        } else if (!step.weight.empty()) {
            std::vector<float> weight = step.weight;
            const int64_t k = step.inputs.empty() ? 0 : type(step.inputs[0].value).channels;
            weight.resize(weight.size() + static_cast<size_t>(k), 0.0f);  // zeros that serve as bias: run_fold_step
            step_weights_[i] = weights_.add(weight.data(), static_cast<int64_t>(weight.size() * sizeof(float)));
        } else if (step.kind == StepKind::knn) {
            const int64_t k = type(step.output).width;
            STIPPLE_REQUIRE(k <= kMaxNeighbours, "{}: {} neighbours, {} at most", step.name, k, kMaxNeighbours);
            const int64_t channels = type(step.inputs[0].value).channels;
            STIPPLE_REQUIRE(channels <= kMaxNeighbourChannels, "{}: neighbours in {} dimensions, {} at most", step.name,
                            channels, kMaxNeighbourChannels);
        }
    }
    weights_.upload(options_.device);

    std::vector<int64_t> bytes(value_count, 0);
    for (size_t i = 0; i < value_count; ++i)
        if (is_planned_[i]) bytes[i] = most_bytes(static_cast<Value>(i));
    plan_ = plan_memory(program_, bytes);
    scratch_bytes_ = (scratch_bytes_ + 255) / 256 * 256;
}

int64_t CudaBackend::weight_bytes() const {
    int64_t bytes = weights_.bytes();
    for (const auto& chain : chains_)
        if (chain) bytes += chain->weight_bytes();
    return bytes;
}

std::vector<std::string> CudaBackend::describe() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
        const Step& step = program_.steps[i];
        const std::string how = chains_[i] ? chains_[i]->describe() : "own kernel, fp32";
        const std::string place = is_planned_[static_cast<size_t>(step.output)]
                                      ? fmt::format("{} bytes", most_bytes(step.output))
                                      : "the caller's memory";
        lines.push_back(fmt::format("{}: {}; {}", step.name, how, place));
    }
    return lines;
}

class CudaContext final : public ContextState {
public:
    explicit CudaContext(std::shared_ptr<const CudaBackend> backend);
    ~CudaContext() override;

    void run_sets(std::span<const ops::Batch* const> batches, const std::vector<View<const float, 2>>& inputs,
                  const std::vector<View<float, 2>>& outputs, Stream stream) override;

private:
    void place_values(const std::vector<View<const float, 2>>& inputs, const std::vector<View<float, 2>>& outputs);
    void queue_steps(cudaStream_t stream) const;
    void time_steps(std::span<const ops::Batch* const> batches, cudaStream_t stream);
    void queue_copies(cudaStream_t stream) const;
    void queue_step(size_t index, cudaStream_t stream) const;
    void check_neighbours(std::span<const ops::Batch* const> batches) const;
    const DeviceBatch& batch(int32_t set) const { return *batches_[static_cast<size_t>(set)]; }

    std::shared_ptr<const CudaBackend> backend_;
    Buffer arena_, scratch_;
    std::vector<std::unique_ptr<DeviceBatch>> batches_;  // by point set
    GraphCache graphs_;
    GraphKey key_;
    std::vector<ValueView> values_;
    std::vector<bool> is_wanted_;                      // by step
    std::vector<std::pair<Value, ValueView>> copies_;  // outputs whose value lies elsewhere
    cudaEvent_t done_ = nullptr;                       // the last run, for a next one on another stream
    cudaStream_t last_ = nullptr;
    bool has_run_ = false;
    std::unique_ptr<stipple::cuda::EventLog> events_;  // of a profile
};

std::unique_ptr<ContextState> CudaBackend::new_context() const {
    const CurrentDevice current(options_.device);
    return std::make_unique<CudaContext>(shared_from_this());
}

CudaContext::CudaContext(std::shared_ptr<const CudaBackend> backend)
    : backend_(std::move(backend)),
      arena_(backend_->plan_.bytes, backend_->options().device),
      scratch_(backend_->scratch_bytes_, backend_->options().device),
      values_(backend_->program().values.size()),
      is_wanted_(backend_->program().steps.size()) {
    const Options& options = backend_->options();
    for (size_t set = 0; set < backend_->sets().size(); ++set)
        batches_.push_back(std::make_unique<DeviceBatch>(
            backend_->widths_, options.max_batch, backend_->max_rows(static_cast<int32_t>(set)), options.device));
    STIPPLE_CHECK_CUDA(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
}

CudaContext::~CudaContext() {
    if (has_run_) cudaEventSynchronize(done_);
    cudaEventDestroy(done_);
}

void CudaContext::check_neighbours(std::span<const ops::Batch* const> batches) const {
    for (const Step& step : backend_->program().steps) {
        if (step.kind != StepKind::knn) continue;
        const TensorType& type = backend_->type(step.output);
        const ops::Batch& points = *batches[static_cast<size_t>(type.of)];
        for (int64_t cloud = 0; cloud < (points.is_dense() ? 1 : points.clouds()); ++cloud)
            STIPPLE_REQUIRE(points.size(cloud) >= type.width, "{}: {} neighbours in a cloud of {} points", step.name,
                            type.width, points.size(cloud));
    }
}

void CudaContext::run_sets(std::span<const ops::Batch* const> batches, const std::vector<View<const float, 2>>& inputs,
                           const std::vector<View<float, 2>>& outputs, Stream stream_handle) {
    if (batches[0]->clouds() == 0) return;
    check_neighbours(batches);
    const CurrentDevice current(backend_->options().device);
    const cudaStream_t stream = ops::cuda::raw(stream_handle);
    if (has_run_ && stream != last_) STIPPLE_CHECK_CUDA(cudaStreamWaitEvent(stream, done_));

    key_.sets.resize(batches.size());
    for (size_t set = 0; set < batches.size(); ++set) {
        const ops::Batch& batch = *batches[set];
        GraphKey::Points& key = key_.sets[set];
        key.is_dense = batch.is_dense();
        key.clouds = batch.clouds();
        key.rows = batch.rows();
        key.offsets = batch.offsets();
    }
    key_.pointers.clear();
    for (const auto& input : inputs) key_.pointers.emplace_back(input.data(), input.stride(0));
    for (const auto& output : outputs) key_.pointers.emplace_back(output.data(), output.stride(0));

    for (size_t set = 0; set < batches.size(); ++set) batches_[set]->set(*batches[set], stream);
    const auto queue = [&](cudaStream_t where) {
        place_values(inputs, outputs);
        queue_steps(where);
    };
    if (profile) {
        place_values(inputs, outputs);
        time_steps(batches, stream);
    } else {
        graphs_.run(key_, std::cref(queue), stream);
    }
    STIPPLE_CHECK_CUDA(cudaEventRecord(done_, stream));
    last_ = stream;
    has_run_ = true;
}

void CudaContext::place_values(const std::vector<View<const float, 2>>& inputs,
                               const std::vector<View<float, 2>>& outputs) {
    const Program& program = backend_->program();
    for (size_t i = 0; i < values_.size(); ++i) {
        const TensorType& type = program.values[i].type;
        ValueView& value = values_[i];
        value = {};
        value.is_cloud = type.level == Level::cloud;
        value.channels = static_cast<int32_t>(type.channels);
        value.width = static_cast<int32_t>(type.width);
        value.set = type.set;
        const ops::Batch& of_set = batch(type.set).host();
        value.rows = value.is_cloud ? of_set.clouds() : of_set.rows() * type.width;
        value.stride = type.channels;
        if (backend_->is_planned_[i]) value.data = reinterpret_cast<float*>(arena_.data() + backend_->plan_.offsets[i]);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        ValueView& value = values_[static_cast<size_t>(program.inputs[i].value)];
        value.data = const_cast<float*>(inputs[i].data());  // never written: no step has an input as its output
        value.stride = inputs[i].stride(0);
    }
    copies_.clear();
    std::vector<bool> is_needed(values_.size(), false);
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].data() == nullptr) continue;
        const Value v = program.outputs[i].value;
        ValueView& value = values_[static_cast<size_t>(v)];
        is_needed[static_cast<size_t>(v)] = true;
        ValueView target = value;
        target.data = outputs[i].data();
        target.stride = outputs[i].stride(0);
        if (backend_->type(v).is_index) {  // the caller has them in rows of points
            target.channels = target.width;
            target.rows /= target.width;
            target.width = 1;
        }
        const bool is_contiguous = (target.stride == target.channels || target.rows == 1) &&
                                   reinterpret_cast<uintptr_t>(target.data) % 16 == 0;
        // Free: written by one step and read by none. Otherwise it has a place already; the caller's serves as well
        // when it is as good, and the first of several names for one value gets it.
        const bool is_free = value.data == nullptr;
        const auto* place = reinterpret_cast<const std::byte*>(value.data);
        const bool is_ours = place >= arena_.data() && place < arena_.data() + arena_.bytes();
        if (is_free || (is_ours && is_contiguous)) {
            value.data = target.data;
            value.stride = is_contiguous ? value.channels : target.stride;
        } else {
            copies_.emplace_back(v, target);
        }
    }
    // What nobody asked for is not computed.
    for (size_t i = program.steps.size(); i-- > 0;) {
        is_wanted_[i] = is_needed[static_cast<size_t>(program.steps[i].output)];
        if (is_wanted_[i])
            for (Value value : reads_of(program.steps[i])) is_needed[static_cast<size_t>(value)] = true;
    }
}

void CudaContext::queue_steps(cudaStream_t stream) const {
    for (size_t i = 0; i < is_wanted_.size(); ++i)
        if (is_wanted_[i]) queue_step(i, stream);
    queue_copies(stream);
}

void CudaContext::time_steps(std::span<const ops::Batch* const> batches, cudaStream_t stream) {
    if (!events_) events_ = std::make_unique<stipple::cuda::EventLog>(backend_->options().device.index);
    Profile& to = profile->profile;
    const int32_t host = to.track("thread 1");
    const int32_t gpu = to.track(to_string(backend_->options().device), ProfileDevice::gpu);
    events_->start({stream});
    const int64_t start = to.now();
    struct Timed {
        size_t step;
        int32_t begin, end;  // marks
    };
    std::vector<Timed> timed;
    const int32_t first = events_->mark({stream});
    int32_t last = first;
    for (size_t i = 0; i < is_wanted_.size(); ++i) {
        if (!is_wanted_[i]) continue;
        const int64_t begin = to.now();
        queue_step(i, stream);
        to.add({.row = profile->steps[i],
                .track = host,
                .begin = begin,
                .duration = to.now() - begin,
                .bytes = profile->bytes(i, batches, 0, batches[0]->clouds())});
        const int32_t end = events_->mark({stream});
        timed.push_back({i, last, end});
        last = end;
    }
    queue_copies(stream);
    const int32_t done = events_->mark({stream});
    events_->wait();
    const auto add = [&](int32_t row, int32_t from, int32_t until) {
        const int64_t begin = events_->nanoseconds(from), end = events_->nanoseconds(until);
        to.add({.row = row, .track = gpu, .begin = start + begin, .duration = std::max<int64_t>(0, end - begin)});
    };
    add(profile->run, first, done);
    for (const Timed& one : timed) add(profile->steps[one.step], one.begin, one.end);
}

void CudaContext::queue_copies(cudaStream_t stream) const {
    for (const auto& [value, target] : copies_) {
        const ValueView& from = values_[static_cast<size_t>(value)];
        const auto row_bytes = static_cast<size_t>(target.channels) * 4;
        const int64_t from_stride = from.stride * (target.channels / from.channels);
        STIPPLE_CHECK_CUDA(cudaMemcpy2DAsync(target.data, static_cast<size_t>(target.stride) * 4, from.data,
                                             static_cast<size_t>(from_stride) * 4, row_bytes,
                                             static_cast<size_t>(target.rows), cudaMemcpyDeviceToDevice, stream));
    }
}

void CudaContext::queue_step(size_t index, cudaStream_t stream) const {
    const Step& step = backend_->program().steps[index];
    if (const ChainPlan* chain = backend_->chains_[index].get()) {
        ChainCall call;
        call.values = values_;
        call.batch = &batch(step.set);
        call.scratch = const_cast<std::byte*>(scratch_.data());
        call.scratch_bytes = scratch_.bytes();
        call.weights = &backend_->weights_;
        call.stream = stream;
        return chain->run(step, call);
    }
    std::vector<RowSource> sources;
    std::vector<ValueView> values;
    for (const Source& input : step.inputs) {
        const ValueView& value = values_[static_cast<size_t>(input.value)];
        RowSource source;
        source.data = value.data;
        source.stride = value.stride;
        source.access = input.access;
        source.channels = value.channels;
        if (input.indices >= 0) source.indices = values_[static_cast<size_t>(input.indices)].indices();
        sources.push_back(source);
        values.push_back(value);
    }
    StepCall call;
    call.step = &step;
    call.inputs = sources;
    call.values = values;
    call.out = values_[static_cast<size_t>(step.output)];
    std::vector<BatchView> batches;
    for (const auto& of_set : batches_) batches.push_back(of_set->view());
    call.batches = batches;
    call.batch = batches[static_cast<size_t>(step.set)];
    if (!values.empty() && !values[0].is_cloud) call.span = batch(values[0].set).span(values[0].width);
    if (backend_->step_weights_[index] >= 0) call.weight = backend_->weights_.at<float>(backend_->step_weights_[index]);
    call.precision = backend_->options().precision;
    call.capability = backend_->capability_;
    call.stream = stream;
    run_step(call);
}

}  // namespace

std::shared_ptr<const Backend> make_backend(Program program, const Options& options) {
    return std::make_shared<CudaBackend>(std::move(program), options);
}

}  // namespace stipple::engine::cuda
