#include <filesystem>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/shell_files.h"

namespace stipple::cli {
namespace {

struct CompletionOptions {
    std::string shell, folder;
};

/// Everything that shells and man look for, where they look for it below a share/ folder.
std::vector<std::pair<std::string, std::string>> shared_files(const Arguments& program, const std::string& version) {
    const std::string name = program.name();
    std::vector<std::pair<std::string, std::string>> files = {
        {"bash-completion/completions/" + name, completion_script(program, "bash")},
        {"zsh/site-functions/_" + name, completion_script(program, "zsh")},
        {"fish/vendor_completions.d/" + name + ".fish", completion_script(program, "fish")},
    };
    for (auto& [page, text] : manual_pages(program, version)) files.emplace_back("man/man1/" + page, std::move(text));
    return files;
}

Result run_completion(const CompletionOptions& options, const Arguments& program, const Common& common) {
    namespace fs = std::filesystem;
    Result result;
    STIPPLE_REQUIRE(options.shell.empty() != options.folder.empty(), "a shell, or a folder with -o");
    if (!options.shell.empty()) {
        result.text = completion_script(program, options.shell);
        return result;
    }
    const auto files = shared_files(program, program.version());
    for (const auto& [path, text] : files) {
        const fs::path to = fs::path(options.folder) / path;
        if (common.dry_run) continue;
        std::error_code error;
        fs::create_directories(to.parent_path(), error);
        if (error) throw Error(ErrorCode::cannot_write, Place{to.parent_path().string()}, error.message());
        AtomicFile file(to.string(), common.overwrite_mode());
        file.write(text.data(), static_cast<int64_t>(text.size()));
        file.commit();
    }
    result.fields["files"] = files.size();
    result.text = fmt::format("{} {}: completions for bash, zsh and fish, {} manual pages\n",
                              common.dry_run ? "would write" : "wrote", options.folder, files.size() - 3);
    return result;
}

}  // namespace

Command add_completion(Arguments& root, Common& common) {
    auto options = std::make_shared<CompletionOptions>();
    Arguments& app = root.command("completion", "Completions for shells, and manual pages");
    app.option("SHELL", options->shell, "Print its script").one_of({"bash", "zsh", "fish"});
    app.option("-o,--output", options->folder, "Write all of them, and manual pages, into a share/ folder");
    app.footer("Example:\n  source <(stipple completion bash)\n  stipple completion -o ~/.local/share");
    return {&app, [options, &root, &common] { return run_completion(*options, root, common); }};
}

}  // namespace stipple::cli
