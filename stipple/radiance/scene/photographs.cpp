#include "stipple/radiance/scene/photographs.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <spawn.h>
#include <thread>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/program_files.h"
#include "stipple/core/quoted.h"
#include "stipple/io/text.h"

extern char** environ;

namespace stipple::radiance {
namespace {

constexpr int kMostDepth = 8;  // folders below folders

bool is_picture_name(const std::string& name) {
    const std::string lower = io::lower_case(name);
    return lower.ends_with(".png") || lower.ends_with(".jpg") || lower.ends_with(".jpeg");
}

bool is_plain_folder(const std::string& path) {
    struct stat status = {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

void add_pictures(const std::string& root, const std::string& below, int depth, std::vector<std::string>& names) {
    for (const std::string& name : list_folder(root + "/" + below)) {
        if (name.starts_with('.')) continue;
        const std::string relative = below.empty() ? name : below + "/" + name;
        if (is_plain_folder(root + "/" + relative)) {
            if (depth < kMostDepth) add_pictures(root, relative, depth + 1, names);
        } else if (is_picture_name(name)) {
            names.push_back(relative);
        }
    }
}

/// In PATH; empty where it is not.
std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    const std::string list = path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t begin = 0; begin <= list.size();) {
        const size_t end = std::min(list.find(':', begin), list.size());
        const std::string candidate = (end > begin ? list.substr(begin, end - begin) : ".") + "/" + name;
        if (is_file(candidate) && ::access(candidate.c_str(), X_OK) == 0) return candidate;
        begin = end + 1;
    }
    return {};
}

/// Runs a program to its end, its output appended to a file. An interrupt ends it first.
int run_logged(const std::string& program, const std::vector<std::string>& arguments, const std::string& log) {
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        throw Error(ErrorCode::bad_file, Place{program, {}, {}},
                    fmt::format("cannot start it: {}", std::strerror(error)));
    int status = 0;
    // Asked again and again: a signal that is handled elsewhere would not end a wait.
    for (auto pause = std::chrono::milliseconds(1); ::waitpid(child, &status, WNOHANG) != child;) {
        if (caught_signal() != 0) ::kill(child, SIGTERM);
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, std::chrono::milliseconds(100));
    }
    check_interrupted();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string text_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string last_line(const std::string& text) {
    const size_t end = text.find_last_not_of("\n\r\t ");
    if (end == std::string::npos) return "nothing";
    const size_t begin = text.find_last_of('\n', end);
    return in_quotes(std::string_view(text).substr(begin + 1, end - begin));  // npos + 1 is 0
}

/// "--SiftExtraction.use_gpu 0" by the name that this version of colmap knows; nothing where it was built with CUDA,
/// and uses it by itself.
void add_gpu_option(const std::string& program, const std::string& step, bool has_cuda, const std::string& log,
                    std::vector<std::string>& arguments) {
    if (has_cuda) return;
    const std::string help_file = log + ".help";
    run_logged(program, {step, "--help"}, help_file);
    const std::string help = text_of_file(help_file);
    ::unlink(help_file.c_str());
    for (const char* option :
         {"FeatureExtraction.use_gpu", "SiftExtraction.use_gpu", "FeatureMatching.use_gpu", "SiftMatching.use_gpu"})
        if (help.find(option) != std::string::npos) {
            arguments.insert(arguments.end(), {fmt::format("--{}", option), "0"});
            return;
        }
}

bool is_built_with_cuda(const std::string& program, const std::string& log) {
    const std::string help_file = log + ".help";
    run_logged(program, {"help"}, help_file);
    const std::string help = text_of_file(help_file);
    ::unlink(help_file.c_str());
    return help.find("with CUDA") != std::string::npos;
}

}  // namespace

std::string picture_folder(const std::string& folder) {
    const std::string images = folder + "/images";
    return is_folder(images) ? images : folder;
}

std::vector<std::string> list_pictures(const std::string& folder) {
    std::vector<std::string> names;
    add_pictures(folder, "", 0, names);
    std::sort(names.begin(), names.end());
    return names;
}

void run_colmap(const std::string& folder, const std::function<void(const std::string&)>& report) {
    const std::string pictures = picture_folder(folder), database = folder + "/colmap.db", sparse = folder + "/sparse";
    const std::string log = folder + "/colmap.log";
    const size_t n = list_pictures(pictures).size();
    const std::string program = find_program("colmap");
    if (program.empty())
        throw Error(
            ErrorCode::bad_file, Place{folder, {}, {}},
            fmt::format("{} photographs without cameras, and the program colmap, which finds them, is not in PATH", n),
            fmt::format(
                "apt-get install colmap, or where it is: mkdir -p {2} && colmap feature_extractor --database_path {1} "
                "--image_path {0} && colmap exhaustive_matcher --database_path {1} && colmap mapper "
                "--database_path {1} --image_path {0} --output_path {2}",
                pictures, database, sparse));
    make_folder(sparse);
    const bool has_cuda = is_built_with_cuda(program, log);
    struct Step {
        const char* name;
        const char* says;
        std::vector<std::string> arguments;
    };
    const Step steps[] = {
        {"feature_extractor", "finding features", {"--database_path", database, "--image_path", pictures}},
        {"exhaustive_matcher", "matching features", {"--database_path", database}},
        {"mapper", "finding cameras", {"--database_path", database, "--image_path", pictures, "--output_path", sparse}},
    };
    for (size_t i = 0; i < 3; ++i) {
        const Step& step = steps[i];
        if (report) report(fmt::format("colmap: {} of {} photographs (step {} of 3)", step.says, n, i + 1));
        std::vector<std::string> arguments = {step.name};
        arguments.insert(arguments.end(), step.arguments.begin(), step.arguments.end());
        if (i < 2) add_gpu_option(program, step.name, has_cuda, log, arguments);
        if (const int status = run_logged(program, arguments, log); status != 0)
            throw Error(
                ErrorCode::bad_file, Place{folder, {}, {}},
                fmt::format("colmap {} ended with status {}: {}", step.name, status, last_line(text_of_file(log))),
                fmt::format("all that it printed is in {}", log));
    }
    if (list_folder(sparse).empty())
        throw Error(ErrorCode::bad_file, Place{folder, {}, {}},
                    fmt::format("colmap found no cameras for these {} photographs", n),
                    fmt::format("they must overlap and show texture; what it printed is in {}", log));
}

}  // namespace stipple::radiance
