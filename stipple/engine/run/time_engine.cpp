#include "stipple/engine/time_engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/profile.h"
#include "stipple/engine/cuda/gemm_peak.h"
#include "stipple/engine/cuda/timer.h"
#include "stipple/engine/program.h"

namespace stipple::engine {
namespace {

constexpr int64_t kWarmUpRuns = 3;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Runs until the budget is spent; each call of `run` is one run.
template <class Run>
int64_t repeat(const TimeBudget& budget, Run run) {
    const double begin = now();
    int64_t runs = 0;
    while (runs < budget.repeat || now() - begin < budget.seconds) {
        check_interrupted();
        run();
        ++runs;
    }
    return runs;
}

template <class Run>
void warm_up(const TimeBudget& budget, Run run) {
    repeat({0, kWarmUpRuns, budget.warm_up_seconds}, run);
}

struct Buffers {
    std::vector<Array<float, 2>> inputs, outputs;  // on the engine's device
    std::vector<Input> input_views;
    std::vector<Output> output_views;
};

Buffers make_buffers(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs) {
    Buffers buffers;
    const Device device = engine.options().device;
    for (const HostInput& input : inputs) {
        Array<float, 2> host({input.rows.size(0), input.rows.size(1)});
        std::copy_n(input.rows.data(), input.rows.elements(), host.data());
        buffers.inputs.push_back(device.type == DeviceType::cpu ? std::move(host) : host.to(device));
    }
    const Program& program = engine.program();
    for (const Binding& output : program.outputs) {
        const TensorType& type = program.values[static_cast<size_t>(output.value)].type;
        const int64_t points = type.points > 0 ? batch.clouds() * type.points : batch.rows();
        const int64_t rows = type.level == Level::cloud ? batch.clouds() : points * type.width;
        buffers.outputs.emplace_back(std::array<int64_t, 2>{rows, type.channels}, device);
        Array<float, 2>& made = buffers.outputs.back();
        if (type.is_index)  // of the same size, a row a point
            buffers.output_views.push_back(
                {output.name, {}, {reinterpret_cast<int32_t*>(made.data()), {points, type.width}, device}});
        else
            buffers.output_views.push_back({output.name, made.view(), {}});
    }
    for (size_t i = 0; i < inputs.size(); ++i)
        buffers.input_views.push_back({inputs[i].name, buffers.inputs[i].view()});
    return buffers;
}

EngineTimes time_cpu(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs,
                     const TimeBudget& budget) {
    Buffers buffers = make_buffers(engine, batch, inputs);
    Context context(engine);
    std::vector<double> times;
    const auto run = [&] {
        const double begin = now();
        context.run(batch, buffers.input_views, buffers.output_views);
        times.push_back(now() - begin);
    };
    warm_up(budget, run);
    times.clear();
    const double begin = now();
    EngineTimes result;
    result.runs = repeat(budget, run);
    result.wall_seconds = now() - begin;
    result.clouds_per_second = static_cast<double>(batch.clouds() * result.runs) / result.wall_seconds;
    result.latency = result.compute = statistics_of(std::move(times));
    return result;
}

#ifdef STIPPLE_WITH_CUDA
EngineTimes time_cuda(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs,
                      const TimeBudget& budget) {
    const Device device = engine.options().device;
    const int64_t before = cuda::used_bytes(device);
    Buffers buffers = make_buffers(engine, batch, inputs);
    Context context(engine);
    enum { start, copied_in, computed, copied_out, marks };
    cuda::Timer timer(device, marks);
    std::vector<cuda::PinnedMemory> host_inputs, host_outputs;
    for (const HostInput& input : inputs) {
        host_inputs.emplace_back(4 * input.rows.elements());
        std::copy_n(input.rows.data(), input.rows.elements(), static_cast<float*>(host_inputs.back().data()));
    }
    for (const Array<float, 2>& output : buffers.outputs) host_outputs.emplace_back(4 * output.elements());
    std::vector<double> latency, enqueue, in, compute, out;
    const auto run = [&] {
        const double begin = now();
        timer.mark(start);
        for (size_t i = 0; i < inputs.size(); ++i)
            timer.copy(buffers.inputs[i].data(), host_inputs[i].data(), 4 * buffers.inputs[i].elements());
        timer.mark(copied_in);
        const double queue = now();
        context.run(batch, buffers.input_views, buffers.output_views, timer.stream());
        enqueue.push_back(now() - queue);
        timer.mark(computed);
        for (size_t i = 0; i < buffers.outputs.size(); ++i)
            timer.copy(host_outputs[i].data(), buffers.outputs[i].data(), 4 * buffers.outputs[i].elements());
        timer.mark(copied_out);
        timer.wait();
        latency.push_back(now() - begin);
        in.push_back(timer.seconds(start, copied_in));
        compute.push_back(timer.seconds(copied_in, computed));
        out.push_back(timer.seconds(computed, copied_out));
    };
    warm_up(budget, run);
    for (std::vector<double>* times : {&latency, &enqueue, &in, &compute, &out}) times->clear();
    const double begin = now();
    EngineTimes result;
    result.runs = repeat(budget, run);
    result.wall_seconds = now() - begin;
    for (const double seconds : compute) result.device_seconds += seconds;
    result.device_bytes = cuda::used_bytes(device) - before;
    // Throughput: batches queued one after the other, in groups that keep the queue short.
    const int64_t group = std::clamp<int64_t>(
        static_cast<int64_t>(5e-3 / result.device_seconds * static_cast<double>(result.runs)), 1, 200);
    double best = HUGE_VAL;
    repeat({0, 5, 0.5 * budget.seconds}, [&] {
        timer.mark(start);
        for (int64_t i = 0; i < group; ++i)
            context.run(batch, buffers.input_views, buffers.output_views, timer.stream());
        timer.mark(computed);
        timer.wait();
        best = std::min(best, timer.seconds(start, computed) / static_cast<double>(group));
    });
    result.clouds_per_second = static_cast<double>(batch.clouds()) / best;
    result.latency = statistics_of(std::move(latency));
    result.enqueue = statistics_of(std::move(enqueue));
    result.host_to_device = statistics_of(std::move(in));
    result.compute = statistics_of(std::move(compute));
    result.device_to_host = statistics_of(std::move(out));
    return result;
}
#endif

}  // namespace

TimeStatistics statistics_of(std::vector<double> times) {
    STIPPLE_REQUIRE(!times.empty(), "no times were measured");
    std::sort(times.begin(), times.end());
    const size_t n = times.size();
    TimeStatistics result;
    result.min = times.front();
    result.max = times.back();
    for (const double time : times) result.mean += time / static_cast<double>(n);
    result.median = n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
    result.p99 = times[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(n))) - 1];
    double squares = 0;
    for (const double time : times) squares += (time - result.mean) * (time - result.mean);
    if (result.mean > 0) result.variation = std::sqrt(squares / static_cast<double>(n)) / result.mean;
    return result;
}

EngineTimes time_engine(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs,
                        const TimeBudget& budget) {
    STIPPLE_REQUIRE(budget.repeat >= 1, "a time needs at least one run");
    if (engine.options().device.type == DeviceType::cpu) return time_cpu(engine, batch, inputs, budget);
#ifdef STIPPLE_WITH_CUDA
    return time_cuda(engine, batch, inputs, budget);
#else
    throw Error(ErrorCode::no_device, "built without CUDA");
#endif
}

void profile_engine(const Engine& engine, const ops::Batch& batch, const std::vector<HostInput>& inputs, int64_t runs,
                    Profile& profile, std::string_view name) {
    Buffers buffers = make_buffers(engine, batch, inputs);
    Context context(engine);
    context.run(batch, buffers.input_views, buffers.output_views);
    context.profile_into(&profile, name);
    for (int64_t i = 0; i < runs; ++i) {
        check_interrupted();
        context.run(batch, buffers.input_views, buffers.output_views);
    }
}

double gemm_peak(Device device, [[maybe_unused]] Precision precision) {
    if (device.type != DeviceType::cuda)
        throw Error(ErrorCode::no_device, fmt::format("{} is no GPU, and gemm_peak measures GPUs", device));
#ifdef STIPPLE_WITH_CUDA
    return cuda::gemm_peak(device, precision);
#else
    throw Error(ErrorCode::no_device, "built without CUDA");
#endif
}

}  // namespace stipple::engine
