#include "stipple/learn/profiler.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <algorithm>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "stipple/core/cuda/events.h"
#include "stipple/core/log.h"
#include "stipple/learn/stream.h"
#include "stipple/learn/torch_compat.h"

namespace stipple::learn {

/// Torch carries it, as the state of a profiler, from a thread to those of its backward passes; so no global is needed.
struct Profiler::Recorder : c10::MemoryReportingInfoBase {
    using Thread = decltype(std::this_thread::get_id());

    struct Frame {
        int32_t row = 0;
        int64_t begin = 0, bytes = 0, peak = 0;
        std::optional<uint64_t> first_node = {};  // of a forward pass
        int32_t gpu_begin = -1;
    };
    struct Stack {
        int32_t track = 0;
        std::vector<Frame> frames = {};
    };
    /// Autograd's nodes [begin, end), and the name of the mark in which they were made.
    struct Nodes {
        uint64_t begin = 0, end = 0;
        std::string name;
    };
    struct GpuSpan {
        int32_t row = 0, begin = 0, end = 0;
    };

    Recorder(Profile& p, torch::Device d) : profile(p), device(d), main(std::this_thread::get_id()) {
        stacks[main].track = profile.track("thread 1");
    }

    Stack& stack() {
        const auto [found, is_new] = stacks.try_emplace(std::this_thread::get_id());
        if (is_new) found->second.track = profile.track(fmt::format("thread {}", stacks.size()));
        return found->second;
    }

    /// The frame that holds what begins now on this thread; a backward pass runs for the main thread.
    Frame* holder(Stack& own) {
        std::vector<Frame>& frames = own.frames.empty() ? stacks[main].frames : own.frames;
        return frames.empty() ? nullptr : &frames.back();
    }

    void open(std::string_view name, bool is_forward) {
        if (!is_kept) return;
        Stack& own = stack();
        const Frame* above = holder(own);
        if (!above) start();
        Frame frame;
        frame.row = profile.row(above ? above->row : Profile::kRoot, name);
        frame.peak = in_use;
        if (is_forward) frame.first_node = at::sequence_number::peek();
        frame.gpu_begin = gpu_mark();
        frame.begin = profile.now();
        own.frames.push_back(frame);
    }

    void close() {
        const int64_t end = profile.now();
        Stack& own = stack();
        if (own.frames.empty()) return;
        const Frame frame = own.frames.back();
        if (frame.gpu_begin >= 0) gpu_spans.push_back({frame.row, frame.gpu_begin, gpu_mark()});
        own.frames.pop_back();
        profile.add({.row = frame.row,
                     .track = own.track,
                     .begin = frame.begin,
                     .duration = end - frame.begin,
                     .bytes = frame.bytes,
                     .peak_bytes = frame.peak});
        if (frame.first_node && at::sequence_number::peek() > *frame.first_node)
            nodes.push_back({*frame.first_node, at::sequence_number::peek(), profile.name(frame.row)});
        if (Frame* above = holder(own)) {
            above->bytes += frame.bytes;
            above->peak = std::max(above->peak, frame.peak);
        } else {
            finish();
        }
    }

    /// By autograd's number of a node. Marks within others were closed before them, and are found first.
    void open_node(int64_t number) {
        if (number < 0) return open("accumulate", false);
        const auto wanted = static_cast<uint64_t>(number);
        const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Nodes& range) {
            return wanted >= range.begin && wanted < range.end;
        });
        open(found == nodes.end() ? "other" : std::string(found->name), false);
    }

    // The outermost mark begins, and ends.
    void start() {
        nodes.clear();
        gpu_spans.clear();
#ifdef STIPPLE_WITH_CUDA
        if (!device.is_cuda()) return;
        if (!events) events.emplace(static_cast<int>(device.index()));
        events->start(cuda::current_stream(static_cast<int>(device.index())));
        gpu_start = profile.now();
#endif
    }
    void finish() {
#ifdef STIPPLE_WITH_CUDA
        if (gpu_spans.empty()) return;
        events->wait();
        const int32_t track = profile.track(device.str(), ProfileDevice::gpu);
        for (const GpuSpan& span : gpu_spans) {
            const int64_t begin = events->nanoseconds(span.begin), end = events->nanoseconds(span.end);
            profile.add({.row = span.row,
                         .track = track,
                         .begin = gpu_start + begin,
                         .duration = std::max<int64_t>(0, end - begin)});
        }
        gpu_spans.clear();
#endif
    }
    int32_t gpu_mark() {
#ifdef STIPPLE_WITH_CUDA
        if (events) return events->mark(cuda::current_stream(static_cast<int>(device.index())));
#endif
        return -1;
    }

    void reportMemoryUsage(void*, int64_t bytes, ReportedBytes, ReportedBytes, c10::Device where) override {
        if (where.type() != device.type()) return;
        const std::lock_guard lock(mutex);
        in_use += bytes;
        Frame* frame = holder(stack());
        if (!frame) return;
        frame->bytes += std::max<int64_t>(0, bytes);
        frame->peak = std::max(frame->peak, in_use);
    }
    bool memoryProfilingEnabled() const override {
        return true;
    }

    Profile& profile;
    const torch::Device device;
    const Thread main;
    std::mutex mutex;  // of all below
    bool is_kept = false;
    std::map<Thread, Stack> stacks;
    std::vector<Nodes> nodes;  // of the outermost mark
    std::vector<GpuSpan> gpu_spans;
    int64_t in_use = 0;  // bytes, of what was allocated since the profiler was made
#ifdef STIPPLE_WITH_CUDA
    std::optional<stipple::cuda::EventLog> events;
    int64_t gpu_start = 0;
#endif

    /// That of the calling thread; null where none profiles.
    static Recorder* current() {
        return dynamic_cast<Recorder*>(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE));
    }
};

/// What torch knows of the recorder, for as long as this lives.
struct Profiler::Watch {
    static std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction& function) {
        if (Recorder* recorder = Recorder::current()) {
            const std::lock_guard lock(recorder->mutex);
            recorder->open_node(function.seqNr());
        }
        return nullptr;
    }
    static void node_ends(const at::RecordFunction&, at::ObserverContext*) {
        if (Recorder* recorder = Recorder::current()) {
            const std::lock_guard lock(recorder->mutex);
            recorder->close();
        }
    }

    explicit Watch(std::shared_ptr<Recorder> recorder)
        : guard(c10::DebugInfoKind::PROFILER_STATE, std::move(recorder)),
          nodes(at::addThreadLocalCallback(at::RecordFunctionCallback(&Watch::node_begins, &Watch::node_ends)
                                               .scopes({at::RecordScope::BACKWARD_FUNCTION}))) {}
    ~Watch() { at::removeCallback(nodes); }

    c10::DebugInfoGuard guard;
    at::CallbackHandle nodes;
};

Profiler::Profiler(Profile& profile, torch::Device device)
    : recorder_(std::make_shared<Recorder>(profile, device)), watch_(std::make_unique<Watch>(recorder_)) {}

Profiler::~Profiler() = default;

void Profiler::set_kept(bool is_kept) {
    const std::lock_guard lock(recorder_->mutex);
    recorder_->is_kept = is_kept;
}

void ProfileMark::begin(std::string_view name) {
    const std::lock_guard lock(profiler_->recorder_->mutex);
    profiler_->recorder_->open(name, at::GradMode::is_enabled());
}

void ProfileMark::finish() {
    try {
        const std::lock_guard lock(profiler_->recorder_->mutex);
        profiler_->recorder_->close();
    } catch (const std::exception& error) {  // called by destructors
        log_warn("profile: {}", error.what());
    }
}

}  // namespace stipple::learn
