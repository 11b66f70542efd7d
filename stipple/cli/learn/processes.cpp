#include "stipple/cli/learn/processes.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <spawn.h>
#include <thread>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/core/program_files.h"

extern char** environ;

namespace stipple::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kParent = "STIPPLE_PARENT";  // process id, for those that were started
constexpr auto kUntilAsked = std::chrono::seconds(30), kUntilKilled = std::chrono::seconds(300);

/// Of this machine; somebody else may take it before rank 0 does, who then says so.
int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool is_bound = socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                          ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (socket >= 0) ::close(socket);
    if (!is_bound) throw Error(ErrorCode::internal, fmt::format("no free port: {}", std::strerror(errno)));
    return ntohs(address.sin_port);
}

std::vector<std::string> own_arguments() {
    std::string text;
    if (std::FILE* file = std::fopen("/proc/self/cmdline", "re")) {
        char block[4096];
        while (const size_t count = std::fread(block, 1, sizeof block, file)) text.append(block, count);
        std::fclose(file);
    }
    std::vector<std::string> arguments;
    for (size_t begin = 0, end = 0; (end = text.find('\0', begin)) != std::string::npos; begin = end + 1)
        arguments.push_back(text.substr(begin, end - begin));
    return arguments;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
}

/// Ours, without what would contradict.
std::vector<std::string> environment_for(int64_t rank, int64_t count, int port) {
    const std::vector<std::pair<std::string, std::string>> own = {
        {"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(count)}, {"LOCAL_RANK", std::to_string(rank)},
        {"MASTER_ADDR", "127.0.0.1"},   {"MASTER_PORT", std::to_string(port)}, {kParent, std::to_string(::getpid())}};
    std::vector<std::string> environment;
    for (char** at = environ; *at; ++at) {
        const std::string variable = *at, name = variable.substr(0, variable.find('='));
        const auto is_it = [&](const auto& entry) { return entry.first == name; };
        if (std::none_of(own.begin(), own.end(), is_it) && name.rfind("TORCHELASTIC_", 0) != 0)
            environment.push_back(variable);
    }
    for (const auto& [name, value] : own) environment.push_back(name + "=" + value);
    return environment;
}

/// A group of its own, so that a terminal's SIGINT reaches it through us alone, once.
pid_t start_rank(const std::vector<std::string>& arguments, int64_t rank, int64_t count, int port) {
    const std::string program = program_path();
    const std::vector<std::string> environment = environment_for(rank, count, port);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    if (rank > 0) ::posix_spawn_file_actions_adddup2(&actions, 2, 1);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t child = 0;
    const int error = ::posix_spawn(&child, program.c_str(), &actions, &attributes, pointers(arguments).data(),
                                    pointers(environment).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw Error(ErrorCode::internal, fmt::format("cannot start {}: {}", program, std::strerror(error)));
    return child;
}

Error failure_of(int64_t rank, int64_t count, int status) {
    if (WIFSIGNALED(status))
        return Error(ErrorCode::lost_rank,
                     fmt::format("rank {} of {} was ended by signal {}", rank, count, WTERMSIG(status)));
    ErrorCode code = ErrorCode::internal;
    for (const ErrorRule& rule : error_table())
        if (rule.exit_code == WEXITSTATUS(status)) code = rule.code;
    return Error(code, fmt::format("rank {} of {} ended with status {}", rank, count, WEXITSTATUS(status)));
}

}  // namespace

bool is_started_rank() {
    const char* parent = std::getenv(kParent);
    if (!parent || !*parent) return false;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (std::to_string(::getppid()) != parent)
        throw Error(ErrorCode::terminated, "the process that started this is gone");
    return true;
}

Result run_processes(int64_t count, const Common& common) {
    std::vector<std::string> arguments = own_arguments();
    if (common.threads == 0)
        arguments.insert(arguments.end(), {"--threads", std::to_string(std::max<int64_t>(1, threads() / count))});
    const int port = free_port();
    struct Rank {
        pid_t process = 0;
        bool is_running = true;
    };
    std::vector<Rank> ranks;
    const auto send_all = [&](int signal) {
        for (const Rank& rank : ranks)
            if (rank.is_running) ::kill(rank.process, signal);
    };
    std::optional<Error> failure;
    Clock::time_point failed;
    int sent = 0;
    bool is_asked = false, is_killed = false;
    try {
        for (int64_t rank = 0; rank < count; ++rank) ranks.push_back({start_rank(arguments, rank, count, port)});
    } catch (const Error& error) {
        failure = error;
        send_all(SIGTERM);
    }
    for (size_t running = ranks.size(); running > 0;) {
        for (size_t i = 0; i < ranks.size(); ++i) {
            int status = 0;
            if (!ranks[i].is_running || ::waitpid(ranks[i].process, &status, WNOHANG) != ranks[i].process) continue;
            ranks[i].is_running = false;
            --running;
            if (status == 0 || failure) continue;
            failure = failure_of(static_cast<int64_t>(i), count, status);
            failed = Clock::now();
        }
        if (const int signal = caught_signal(); signal != sent) send_all(sent = signal);
        if (failure && !is_asked && Clock::now() - failed > kUntilAsked) is_asked = true, send_all(SIGTERM);
        if (failure && !is_killed && Clock::now() - failed > kUntilKilled) is_killed = true, send_all(SIGKILL);
        if (running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    Result result;
    result.stdout_taken = true;
    result.failure = failure;
    return result;
}

}  // namespace stipple::cli
