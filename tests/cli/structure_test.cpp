// The rules of the tree that no compiler checks: which folder may include which, and what no source may call.

#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;

struct Source {
    std::string path;    // "core/error.h"
    std::string folder;  // "core"
    std::string text;    // without comments and the content of strings; #include lines keep theirs
};

/// Comments and strings name what they please. Includes are kept as they are.
std::string code_of(const std::string& text) {
    std::string code;
    enum { plain, line_comment, comment, string, character } state = plain;
    bool is_include = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
        if (c == '\n') is_include = false;
        if (state == plain && c == '#' && text.compare(i, 8, "#include") == 0) is_include = true;
        if (state == plain && c == '/' && next == '/') state = line_comment;
        if (state == plain && c == '/' && next == '*') state = comment;
        if (state == line_comment && c == '\n') state = plain;
        if (state == comment && c == '*' && next == '/') {
            state = plain;
            ++i;
            continue;
        }
        if (state == line_comment || state == comment) continue;
        const bool is_digit_separator = c == '\'' && i > 0 && std::isxdigit(static_cast<unsigned char>(text[i - 1]));
        if ((state == string || state == character) && c == '\\') {
            ++i;
            continue;
        }
        if (!is_include && c == '"' && state != character) {
            state = state == string ? plain : string;
            continue;
        }
        if (c == '\'' && state != string && (state == character || !is_digit_separator)) {
            state = state == character ? plain : character;
            continue;
        }
        if (state == plain) code += c;
    }
    return code;
}

bool begins_with(const std::string& text, const std::string& prefix) {
    return text.rfind(prefix, 0) == 0;
}

const std::vector<Source>& sources() {
    static const std::vector<Source> all = [] {
        std::vector<Source> found;
        const fs::path root = fs::path(STIPPLE_SOURCE_DIR) / "stipple";
        for (const auto& entry : fs::recursive_directory_iterator(root)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
            const fs::path relative = fs::relative(entry.path(), root);
            std::string folder = relative.begin()->string();
            if (begins_with(relative.string(), "cli/learn/")) folder = "cli/learn";  // a program of its own
            found.push_back({relative.string(), folder, code_of(read_file(entry.path().string()))});
        }
        return found;
    }();
    return all;
}

std::vector<std::string> includes_of(const Source& source) {
    static const std::regex pattern(R"(#include\s*[<"]([^>"]+)[>"])");
    std::vector<std::string> names;
    for (std::sregex_iterator at(source.text.begin(), source.text.end(), pattern), end; at != end; ++at)
        names.push_back((*at)[1]);
    return names;
}

bool ends_with(const std::string& text, const std::string& suffix) {
    return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

TEST(CliStructure, ThereAreSources) {
    EXPECT_GT(sources().size(), 50u);  // a test that looks at nothing passes always
    size_t includes = 0;
    for (const Source& source : sources()) includes += includes_of(source).size();
    EXPECT_GT(includes, 200u);
    EXPECT_EQ(code_of("a /* b */ c // d\n\"e\" f 'g' 1'000 \"\\\"h\" #include \"i\"\nj"),
              "a  c \n f  1'000  #include \"i\"\nj");
}

TEST(CliStructure, FoldersIncludeOnlyWhatIsBelowThem) {
    // A new folder gets a line here: itself is always allowed.
    const std::map<std::string, std::vector<std::string>> allowed = {
        {"core", {}},
        {"io", {"core"}},
        {"ops", {"core", "io"}},
        {"geometry", {"core", "io", "ops"}},
        {"metrics", {"core", "geometry", "io", "ops"}},
        {"radiance", {"core", "geometry", "io", "metrics", "ops"}},
        {"picture", {"core", "io"}},
        {"network", {"core", "io"}},
        {"models", {"core", "io", "network"}},
        {"engine", {"core", "io", "models", "network", "ops"}},
        {"data", {"core", "io", "ops"}},
        {"tasks", {"core", "data", "engine", "geometry", "io", "metrics", "models", "network", "ops", "radiance"}},
        {"bench", {"core", "ops"}},
        {"learn",
         {"core", "data", "engine", "geometry", "io", "metrics", "models", "network", "ops", "picture", "tasks"}},
        {"cli",
         {"bench", "core", "data", "engine", "geometry", "io", "metrics", "models", "network", "ops", "picture",
          "radiance", "tasks"}},
        {"cli/learn", {"cli", "core", "io", "learn", "network", "picture", "tasks"}},  // the program that links torch
    };
    for (const Source& source : sources()) {
        const auto rule = allowed.find(source.folder);
        if (rule == allowed.end()) {
            ADD_FAILURE() << "stipple/" << source.folder << " has no line in this table";
            continue;
        }
        for (const std::string& name : includes_of(source)) {
            if (!begins_with(name, "stipple/")) continue;
            const std::string folder = name.substr(8, name.find('/', 8) - 8);
            const std::vector<std::string>& below = rule->second;
            EXPECT_TRUE(folder == source.folder || std::find(below.begin(), below.end(), folder) != below.end())
                << source.path << " includes " << name;
        }
    }
}

TEST(CliStructure, HeadersOfOthersStayWhereTheyBelong) {
    for (const Source& source : sources()) {
        const bool is_cuda =
            ends_with(source.path, ".cu") || ends_with(source.path, ".cuh") || source.path == "core/cuda/check.h";
        const bool is_early = source.folder == "core" || source.folder == "io";
        for (const std::string& name : includes_of(source)) {
            SCOPED_TRACE(source.path + " includes " + name);
            const bool is_torch =
                begins_with(name, "torch/") || begins_with(name, "ATen/") || begins_with(name, "c10/");
            EXPECT_TRUE(!is_torch || source.folder == "learn" || source.folder == "cli/learn");
            EXPECT_TRUE(!(begins_with(name, "cuda") && ends_with(name, ".h")) || is_cuda);
            EXPECT_TRUE(!(begins_with(name, "CLI/")) || source.folder == "cli");
            EXPECT_TRUE(!begins_with(name, "tests/"));
            EXPECT_NE(name, "iostream");  // its static constructors, and its locale
            EXPECT_NE(name, "regex");
            EXPECT_TRUE(!is_early || name != "ranges");  // clang 14, which builds the fuzzers, cannot
        }
    }
}

struct Rule {
    /// One of these is in whatever the pattern finds: a regular expression of the library takes a second for every
    /// megabyte, and looks at their surroundings alone. Before a last '(' or '{' there may be blanks.
    std::vector<std::string> words;
    const char* pattern;
    const char* reason;
    std::vector<std::string> except = {};
};

const std::vector<Rule>& rules() {
    static const std::vector<Rule> all = {
        {{"strtod(", "strtof(", "strtol(", "strtold(", "atof(", "atoi(", "atol(", "stof(", "stod(", "stold(", "sscanf(",
          "fscanf(", "setlocale("},
         R"(\b(strto[dfl]|strtold|atof|atoi|atol|stof|stod|stold|sscanf|fscanf|setlocale)\s*\()",
         "obeys the locale, or does not report errors: io/text.h"},
        {{"std::locale", "imbue"}, R"(\bstd::locale\b|\bimbue\b)", "obeys the locale"},
        {{"::load(", "pickle_load"},
         R"(\b(torch|jit|std)::(jit::)?load\s*\(|\bpickle_load\b)",
         "unpickles: runs what the file says"},
        {{"H5Lregister", "H5Zregister", "H5PLappend"},
         R"(\bH5(Lregister|Zregister|PLappend)\w*)",
         "lets HDF5 load code"},
        {{"system(", "popen(", "execl(", "execlp(", "execv(", "execvp("},
         R"((^|[^\w.>])(system|popen|execl|execlp|execv|execvp)\s*\()",
         "starts other programs",
         {"cli/train_command.cpp"}},
        {{"system_clock", "high_resolution_clock", "CLOCK_REALTIME", "gettimeofday", "time("},
         R"(\b(system_clock|high_resolution_clock)\b|\bCLOCK_REALTIME\b|\bgettimeofday\b|(^|[^\w.>])time\s*\()",
         "a clock that jumps: use steady_clock; events and cards tell the date",
         {"learn/loop/run_log.cpp", "learn/finish.cpp"}},
        {{"sprintf(", "strcpy(", "strcat(", "gets(", "alloca(", "tmpnam(", "mktemp("},
         R"(\b(sprintf|strcpy|strcat|gets|alloca|tmpnam|mktemp)\s*\()",
         "writes past its end, or races"},
        {{"std::views::", "std::ranges::"}, R"(\bstd::(views|ranges)::)", "clang 14 cannot"},
        {{"rand(", "rand{", "srand(", "srand{", "random_device(", "random_device{"},
         R"(\b(rand|srand|random_device)\s*[({])",
         "not reproducible: core/rng.h"},
        {{"std::thread", "std::jthread", "std::async", "pthread_create"},
         R"(\bstd::(j?thread\b(?!::hardware_concurrency)|async\b)|\bpthread_create\b)",
         "threads only through parallel_for; the loader's run while its caller computes",
         {"core/process/parallel.cpp", "data/batch_loader.cpp"}},
    };
    return all;
}

/// What the rule forbids in the text; empty when nothing.
std::string forbidden_in(const std::string& text, const Rule& rule, const std::regex& pattern) {
    for (const std::string& word : rule.words) {
        const bool has_bracket = word.back() == '(' || word.back() == '{';
        const std::string name = word.substr(0, word.size() - has_bracket);
        for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
            size_t end = at + name.size();
            while (has_bracket && end < text.size() && std::isspace(static_cast<unsigned char>(text[end]))) ++end;
            if (has_bracket && (end == text.size() || text[end] != word.back())) continue;
            // From the beginning of its line, for the pattern may look at what stands before.
            const size_t line = text.rfind('\n', at) + 1;
            const std::string part = text.substr(line, end + 40 - line);
            if (std::smatch found; std::regex_search(part, found, pattern)) return found.str();
        }
    }
    return "";
}

TEST(CliStructure, CallsThatNoSourceMayMake) {
    for (const Rule& rule : rules()) {
        const std::regex pattern(rule.pattern, std::regex::multiline);
        for (const Source& source : sources()) {
            if (std::find(rule.except.begin(), rule.except.end(), source.path) != rule.except.end()) continue;
            const std::string found = forbidden_in(source.text, rule, pattern);
            EXPECT_EQ(found, "") << "stipple/" << source.path << " (" << rule.reason << ")";
        }
    }
}

TEST(CliStructure, TheRulesFindWhatTheyForbid) {
    const auto is_found = [](const std::string& text) {
        for (const Rule& rule : rules())
            if (!forbidden_in(text, rule, std::regex(rule.pattern, std::regex::multiline)).empty()) return true;
        return false;
    };
    // Every word that the rules look for is one that they find.
    for (const Rule& rule : rules())
        for (const std::string& word : rule.words) {
            std::string blanks = word;
            if (word.back() == '(' || word.back() == '{') blanks.insert(blanks.size() - 1, " \n    ");
            const std::string before = word[0] == ':' ? "torch" : "";
            for (const std::string& text : {word, blanks}) {
                EXPECT_TRUE(is_found(before + text)) << text;
                EXPECT_TRUE(is_found("int f();\n    x = y + " + before + text + " 1);\n}\n")) << text;
            }
        }
    for (const char* text :
         {"x = time(nullptr)", "std::system(\"ls\")", "std::vector<std::thread> pool", "std::strtod(text, &end)",
          "int lifetime(int x); time(0)", "H5Lregister2", "jit::load (x)"})
        EXPECT_TRUE(is_found(text)) << text;
    for (const char* text : {"lifetime(x)", "row.time(2)", "snprintf(x)", "std::thread::hardware_concurrency()",
                             "random_devices", "operand(x)", "io::load(x)", "filesystem(x)", "custom::imbued"})
        EXPECT_FALSE(is_found(text)) << text;
}

TEST(CliStructure, FilesAreOfASizeThatCanBeRead) {
    for (const Source& source : sources()) {
        const std::string text = read_file(std::string(STIPPLE_SOURCE_DIR) + "/stipple/" + source.path);
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 500) << source.path;
        EXPECT_TRUE(!ends_with(source.path, ".h") || begins_with(text, "#pragma once\n")) << source.path;
    }
}

}  // namespace
}  // namespace stipple::test
