// Threads, devices, fork and interrupts.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <pthread.h>

#include "docstrings.h"
#include "python/bindings/module.h"
#include "stipple/core/device.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::python {
namespace {

std::atomic<bool> g_is_forked{false};

/// In a child of fork() the threads that OpenMP made for the parent are gone, and its pool would wait for them for
/// ever: the child works on the thread it has. Only stores: more is not safe here.
void after_fork_in_child() {
    g_is_forked.store(true, std::memory_order_relaxed);
    set_threads(1);
}

/// Ctrl-C in the middle of work that asks check_interrupted(): the handlers of Python run, on its main thread and
/// twenty times a second at most, and what they raise unwinds the work.
void ask_python() {
    static std::atomic<int64_t> next{0};
    const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (now < next.load(std::memory_order_relaxed)) return;
    next.store(now + 50'000'000, std::memory_order_relaxed);
    // Other threads would wait for the GIL, which a caller that did not release it holds while it waits for them.
    if (::gettid() != ::getpid()) return;
    const py::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

py::list devices() {
    py::list found;
    for (const DeviceInfo& info : without_gil([] { return list_devices(); })) {
        py::dict entry;
        entry["device"] = to_string(info.device);
        entry["name"] = info.name;
        entry["memory_bytes"] = info.memory_bytes;
        entry["units"] = info.units;
        entry["compute_capability"] = info.compute_capability;
        found.append(entry);
    }
    return found;
}

}  // namespace

void bind_process(py::module_& module) {
    ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
    set_interrupt_poll(ask_python);
    module.def("threads", &threads, doc::core::threads);
    module.def(
        "set_threads",
        [](int count) {
            if (g_is_forked.load(std::memory_order_relaxed) && count != 1)
                throw Error(ErrorCode::bad_argument,
                            "a forked process works on one thread: OpenMP's threads did not come along",
                            "start processes by multiprocessing's \"spawn\" or \"forkserver\"");
            set_threads(count);
        },
        py::arg("count"), doc::core::set_threads);
    module.def("list_devices", &devices, doc::core::list_devices);
    module.attr("__version__") = STIPPLE_VERSION;
#ifdef STIPPLE_WITH_CUDA
    module.attr("has_cuda") = true;
#else
    module.attr("has_cuda") = false;
#endif
}

}  // namespace stipple::python
