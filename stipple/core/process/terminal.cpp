#include "stipple/core/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>

namespace stipple {
namespace {

constexpr std::string_view kClearLine = "\r\033[K";

std::atomic<ColorMode> g_color{ColorMode::automatic};
std::mutex g_stderr_mutex;
std::string g_status;  // what stands on the bottom line now

void put(std::string_view text) {
    while (!text.empty()) {
        const ssize_t done = ::write(STDERR_FILENO, text.data(), text.size());
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return;
        text.remove_prefix(static_cast<size_t>(done));
    }
}

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
}

bool moves_cursor(int stream) {
    const char* term = std::getenv("TERM");
    return ::isatty(stream) && !(term && std::string_view(term) == "dumb");
}

bool use_color_on(int stream) {
    switch (g_color.load(std::memory_order_relaxed)) {
        case ColorMode::always: return true;
        case ColorMode::never: return false;
        case ColorMode::automatic: break;
    }
    return !is_set("NO_COLOR") && moves_cursor(stream);
}

int width_of(int stream) {
    struct winsize size {};
    if (::ioctl(stream, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

}  // namespace

void set_color_mode(ColorMode mode) {
    g_color.store(mode, std::memory_order_relaxed);
}

bool use_color() {
    return use_color_on(STDERR_FILENO);
}

bool use_color_on_stdout() {
    return use_color_on(STDOUT_FILENO);
}

bool stderr_is_terminal() {
    return moves_cursor(STDERR_FILENO);
}

int terminal_width() {
    return width_of(STDERR_FILENO);
}

bool stdout_is_terminal() {
    return ::isatty(STDOUT_FILENO);
}

int stdout_width() {
    return width_of(STDOUT_FILENO);
}

void write_line(std::string_view line) {
    const std::lock_guard lock(g_stderr_mutex);
    // One write, so that lines of other processes on the same terminal or file do not mix with it either.
    std::string text;
    if (!g_status.empty()) text += kClearLine;
    text += line;
    text += '\n';
    text += g_status;
    put(text);
}

void show_status(std::string_view text) {
    const std::lock_guard lock(g_stderr_mutex);
    if (text == g_status || !stderr_is_terminal()) return;
    std::string line(kClearLine);
    line += text;
    put(line);
    g_status = text;
}

std::string printable(std::string_view text) {
    std::string result(text);
    for (size_t i = 0; i < result.size(); ++i) {
        const auto c = static_cast<unsigned char>(result[i]);
        if (c < 0x20 || c == 0x7f) result[i] = '?';
        // U+0080 to U+009F in UTF-8: terminals obey U+009B as they obey ESC [.
        if (c == 0xc2 && i + 1 < result.size() && static_cast<unsigned char>(result[i + 1]) < 0xa0)
            result[i] = result[i + 1] = '?';
    }
    return result;
}

}  // namespace stipple
