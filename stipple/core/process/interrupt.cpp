#include "stipple/core/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "stipple/core/atomic_file.h"
#include "stipple/core/error.h"

namespace stipple {
namespace {

volatile std::sig_atomic_t g_signal = 0;
std::atomic<void (*)()> g_poll{nullptr};

void on_signal(int signal) {
    if (signal == SIGINT && g_signal == SIGINT) {
        remove_temporary_files_now();
        ::_exit(130);
    }
    g_signal = signal;
}

}  // namespace

int caught_signal() {
    return g_signal;
}

void set_interrupt_poll(void (*poll)()) {
    g_poll.store(poll, std::memory_order_relaxed);
}

void check_interrupted() {
    if (void (*poll)() = g_poll.load(std::memory_order_relaxed)) [[unlikely]]
        poll();
    if (g_signal == 0) [[likely]]
        return;
    if (g_signal == SIGINT) throw Error(ErrorCode::interrupted, "interrupted; no unfinished file was left");
    throw Error(ErrorCode::terminated, "terminated; no unfinished file was left");
}

void install_signal_handlers() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace stipple
