#include "stipple/engine/engine.h"

#include <algorithm>

#include "stipple/core/checked.h"
#include "stipple/engine/lower/set_precisions.h"
#include "stipple/engine/program.h"
#include "stipple/engine/program/validate_program.h"
#include "stipple/engine/run/backend.h"

namespace stipple::engine {

const Fields& option_fields() {
    static const Fields fields = {
        field<&Options::precision>("precision", "Of products; sums are in fp32").words(kPrecisionWords),
        field<&Options::max_batch>("max_batch", "Clouds at a time").shown("N").from(1),
        field<&Options::max_points>("max_points", "Points of a cloud").shown("N").from(1)};
    return fields;
}

namespace {

constexpr int64_t kMostRows = int64_t{1} << 40;  // more than any memory holds, and products with widths stay small

std::string names_of(const std::vector<Precision>& precisions) {
    std::string text;
    for (const Precision precision : precisions) text += (text.empty() ? "" : ", ") + std::string(name_of(precision));
    return text;
}

void require_precision(const std::vector<Precision>& available, Precision precision, Device device) {
    STIPPLE_REQUIRE(std::find(available.begin(), available.end(), precision) != available.end(),
                    "{} has no products in {}: it has {}", device, name_of(precision), names_of(available));
}

void check_options(const Options& options) {
    check_fields(option_fields(), &options);
    STIPPLE_REQUIRE(checked_mul(options.max_batch, options.max_points) <= kMostRows,
                    "{} clouds of {} points are beyond any memory", options.max_batch, options.max_points);
}

std::string names_of(const std::vector<Binding>& bindings) {
    std::string text;
    for (const Binding& binding : bindings) text += (text.empty() ? "" : ", ") + binding.name;
    return text;
}

/// The view with its rows checked against the binding's type. Indices are a row of neighbours for each point.
template <class T>
void check_rows(const char* what, const Program& program, const Binding& binding, const View<T, 2>& rows,
                const std::vector<const ops::Batch*>& batches, Device device) {
    const TensorType& type = program.values[static_cast<size_t>(binding.value)].type;
    const ops::Batch& batch = *batches[static_cast<size_t>(type.set)];
    const int64_t numbers = type.is_index ? type.width : type.channels;
    const int64_t expected =
        type.level == Level::cloud ? batches[0]->clouds() : batch.rows() * (type.is_index ? 1 : type.width);
    STIPPLE_REQUIRE(rows.size(0) == expected && rows.size(1) == numbers,
                    "{} '{}' of {} is {}, must be [{}, {}] for {} clouds with {} points", what, binding.name,
                    program.name, shape_text(rows.shape().data(), 2), expected, numbers, batch.clouds(), batch.rows());
    STIPPLE_REQUIRE(rows.device() == device, "{} '{}' is on {}, the engine on {}", what, binding.name, rows.device(),
                    device);
    STIPPLE_REQUIRE(numbers == 1 || rows.stride(1) == 1, "{} '{}': the {} numbers of a row must be adjacent", what,
                    binding.name, numbers);
    STIPPLE_REQUIRE(expected <= 1 || rows.stride(0) >= numbers, "{} '{}': rows of {} numbers are {} apart", what,
                    binding.name, numbers, rows.stride(0));
    STIPPLE_REQUIRE(expected == 0 || rows.data() != nullptr, "{} '{}' has no memory", what, binding.name);
}

/// Of what the caller gave: numbers, or indices as such.
View<const float, 2> rows_of(const Program&, const Binding&, const Input& given) {
    return given.rows;
}

View<float, 2> rows_of(const Program& program, const Binding& binding, const Output& given) {
    const bool is_index = program.values[static_cast<size_t>(binding.value)].type.is_index;
    STIPPLE_REQUIRE((is_index ? given.rows.data() : static_cast<const void*>(given.indices.data())) == nullptr,
                    "output '{}' of {} is {}", binding.name, program.name,
                    is_index ? "indices: Output::indices takes them" : "numbers, not indices");
    if (!is_index) return given.rows;
    return {reinterpret_cast<float*>(given.indices.data()),
            given.indices.shape(),
            {given.indices.stride(0), given.indices.stride(1)},
            given.indices.device()};
}

/// Fills `views` in the order of the bindings; those that are not given stay empty.
template <class Given, class T>
void bind_rows(const char* what, const Program& program, const std::vector<Binding>& bindings,
               const std::vector<Given>& given, const std::vector<const ops::Batch*>& batches, Device device,
               std::vector<View<T, 2>>& views) {
    std::fill(views.begin(), views.end(), View<T, 2>());
    for (size_t g = 0; g < given.size(); ++g) {
        const auto binding = std::find_if(bindings.begin(), bindings.end(),
                                          [&](const Binding& candidate) { return candidate.name == given[g].name; });
        STIPPLE_REQUIRE(binding != bindings.end(), "{} has no {} '{}': it has {}", program.name, what, given[g].name,
                        names_of(bindings));
        for (size_t other = 0; other < g; ++other)
            STIPPLE_REQUIRE(given[other].name != given[g].name, "{} '{}' is given twice", what, given[g].name);
        const View<T, 2> rows = rows_of(program, *binding, given[g]);
        check_rows(what, program, *binding, rows, batches, device);
        views[static_cast<size_t>(binding - bindings.begin())] = rows;
    }
}

}  // namespace

const std::string& Engine::name() const {
    return backend_->program().name;
}
const Options& Engine::options() const {
    return backend_->options();
}
const Program& Engine::program() const {
    return backend_->program();
}
int64_t Engine::weight_bytes() const {
    return backend_->weight_bytes();
}
int64_t Engine::context_bytes() const {
    return backend_->context_bytes();
}
std::vector<std::string> Engine::describe() const {
    return backend_->describe();
}

Engine compile(const network::Network& network, const network::Weights& weights, const Options& options) {
    check_options(options);
    require_precision(precisions_of(options.device), options.precision, options.device);
    Program program = lower(network, weights);
    Options complete = options;
    const bool wants_ranges = options.precision == Precision::int8 || options.precision == Precision::fp8;
    if (wants_ranges && !options.calibration && has_calibration(weights))
        complete.calibration = calibration_of(weights);
    set_precisions(program, complete);
    return compile(std::move(program), complete);
}

Engine compile(Program program, const Options& options) {
    check_options(options);
    const std::vector<Precision> available = precisions_of(options.device);
    for (const Step& step : program.steps)
        for (const Dense& dense : step.layers) require_precision(available, dense.precision, options.device);
    validate(program);
    Engine engine;
    switch (options.device.type) {
        case DeviceType::cpu: engine.backend_ = make_cpu_backend(std::move(program), options); break;
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(engine.backend_ = cuda::make_backend, std::move(program), options);
            break;
    }
    return engine;
}

std::vector<Precision> precisions_of(Device device) {
    // By emulation where the CPU has no instructions for them: correct, and no faster than fp32.
    if (device.type == DeviceType::cpu) return {Precision::fp32, Precision::bf16, Precision::int8};
    for (const DeviceInfo& info : list_devices()) {
        if (info.device != device) continue;
        std::vector<Precision> out = {Precision::fp32};
        if (info.compute_capability >= 80) out.push_back(Precision::tf32);
        out.push_back(Precision::fp16);
        if (info.compute_capability >= 80) out.push_back(Precision::bf16);
        out.push_back(Precision::int8);
        if (info.compute_capability >= 89) out.push_back(Precision::fp8);
        return out;
    }
    throw Error(ErrorCode::no_device, fmt::format("there is no device {}", device));
}

Context::Context(const Engine& engine) : backend_(engine.backend_), state_(backend_->new_context()) {
    inputs_.resize(backend_->program().inputs.size());
    outputs_.resize(backend_->program().outputs.size());
    batches_.resize(backend_->sets().size());
    made_.resize(batches_.size());
}

Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

void Context::check(const ops::Batch& batch) const {
    const Options& options = backend_->options();
    const int64_t most = options.max_batch * options.max_points;
    STIPPLE_REQUIRE(batch.clouds() <= options.max_batch, "a batch of {} clouds: the engine was compiled for {}",
                    batch.clouds(), options.max_batch);
    STIPPLE_REQUIRE(batch.rows() <= most, "a batch with {} points: the engine was compiled for {} ({} x {})",
                    batch.rows(), most, options.max_batch, options.max_points);
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
        STIPPLE_REQUIRE(batch.size(cloud) > 0, "cloud {} of the batch has no points", cloud);
}

void Context::bind_batches(std::span<const ops::Batch> batches) {
    const std::string& name = backend_->program().name;
    const std::vector<PointSet>& sets = backend_->sets();
    const auto of_caller = [](const PointSet& set) { return set.is_used && set.points == 0; };
    const auto wanted = static_cast<size_t>(std::count_if(sets.begin(), sets.end(), of_caller));
    STIPPLE_REQUIRE(batches.size() == std::max<size_t>(1, wanted), "{} has {} point sets, the run {} batches", name,
                    std::max<size_t>(1, wanted), batches.size());
    for (const ops::Batch& batch : batches) {
        check(batch);
        STIPPLE_REQUIRE(batch.clouds() == batches[0].clouds(), "batches of {} and {} clouds for the point sets of {}",
                        batches[0].clouds(), batch.clouds(), name);
    }
    size_t next = 0;
    for (size_t set = 0; set < sets.size(); ++set) {
        made_[set] = ops::Batch::dense(batches[0].clouds(), sets[set].points);
        batches_[set] = of_caller(sets[set]) ? &batches[next++] : &made_[set];
    }
    if (wanted == 0 && sets[0].points == 0) batches_[0] = &batches[0];  // no points at all: the clouds count
}

void Context::run(const ops::Batch& batch, const std::vector<Input>& inputs, const std::vector<Output>& outputs,
                  Stream stream) {
    run_batches(std::span(&batch, 1), inputs, outputs, stream);
}

void Context::run(const std::vector<ops::Batch>& batches, const std::vector<Input>& inputs,
                  const std::vector<Output>& outputs, Stream stream) {
    run_batches(batches, inputs, outputs, stream);
}

void Context::run_batches(std::span<const ops::Batch> batches, const std::vector<Input>& inputs,
                          const std::vector<Output>& outputs, Stream stream) {
    STIPPLE_REQUIRE(state_, "a context that was moved from cannot run");
    bind_batches(batches);
    const Program& program = backend_->program();
    const Device device = backend_->options().device;
    bind_rows("input", program, program.inputs, inputs, batches_, device, inputs_);
    bind_rows("output", program, program.outputs, outputs, batches_, device, outputs_);
    for (const Binding& binding : program.inputs)
        STIPPLE_REQUIRE(
            std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) { return input.name == binding.name; }),
            "input '{}' of {} is missing", binding.name, program.name);
    if (batches[0].clouds() == 0) return;
    if (!state_->profile) return state_->run_sets(batches_, inputs_, outputs_, stream);
    Profile& profile = state_->profile->profile;
    const int64_t begin = profile.now();
    state_->run_sets(batches_, inputs_, outputs_, stream);
    profile.add({.row = state_->profile->run,
                 .track = profile.track("thread 1"),
                 .begin = begin,
                 .duration = profile.now() - begin});
}

void Context::profile_into(Profile* profile, std::string_view name) {
    STIPPLE_REQUIRE(state_, "a context that was moved from cannot run");
    state_->profile = profile ? std::make_unique<StepProfile>(*profile, backend_->program(), name) : nullptr;
}

}  // namespace stipple::engine
