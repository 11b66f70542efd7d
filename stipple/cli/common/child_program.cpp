#include "stipple/cli/common/child_program.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <spawn.h>

#include "stipple/core/interrupt.h"
#include "stipple/core/program_files.h"

extern char** environ;

namespace stipple::cli {

int run_child(const std::vector<std::string>& arguments) {
    const std::string program = program_path();
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, 2, 1);  // its report is not ours
    pid_t child = 0;
    const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw Error(ErrorCode::internal, fmt::format("cannot start {}: {}", program, std::strerror(error)));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    check_interrupted();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int train_in(const std::string& folder, const std::vector<std::string>& arguments, const Common& common) {
    if (is_file(folder + "/weights.safetensors")) return 0;
    std::vector<std::string> call = {"train"};
    if (is_file(folder + "/config.toml")) {
        call.insert(call.end(), {"--resume", folder});
    } else {
        call.insert(call.end(), arguments.begin(), arguments.end());
        call.insert(call.end(), {"-o", folder});
    }
    call.insert(call.end(), {"--device", common.device});
    if (common.threads > 0) call.insert(call.end(), {"--threads", std::to_string(common.threads)});
    return run_child(call);
}

}  // namespace stipple::cli
