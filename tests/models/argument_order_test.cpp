// Sources that write networks: of the arguments of one call, at most one calls the builder. Compilers evaluate
// arguments in different orders, and would build different networks.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace stipple::models {
namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// Names of variables of type Builder: "Builder build(", "Builder& b,", "Builder build_;".
std::set<std::string> builders_of(const std::string& text) {
    std::set<std::string> names;
    const std::string type = "Builder";
    for (size_t at = text.find(type); at != std::string::npos; at = text.find(type, at + 1)) {
        size_t i = at + type.size();
        if (i < text.size() && text[i] == '&') ++i;
        while (i < text.size() && text[i] == ' ') ++i;
        const size_t begin = i;
        while (i < text.size() && is_word(text[i])) ++i;
        if (i > begin && begin > at + type.size()) names.insert(text.substr(begin, i - begin));
    }
    return names;
}

/// "NAME.linear(..)" or "helper(NAME, ..)", but for NAME.type(), which changes nothing.
bool calls_builder(std::string_view argument, const std::set<std::string>& builders) {
    for (const std::string& name : builders)
        for (size_t at = argument.find(name); at != std::string_view::npos; at = argument.find(name, at + 1)) {
            const std::string_view after = argument.substr(at + name.size());
            if (at > 0 && is_word(argument[at - 1])) continue;
            if (after.rfind(".", 0) == 0 && after.rfind(".type(", 0) != 0) return true;
            if (after.rfind(",", 0) == 0 && at > 0 && argument[at - 1] == '(') return true;
        }
    return false;
}

/// Names of lambdas that call a builder: "const auto NAME = [&](..) { .. };".
std::set<std::string> lambdas_of(const std::string& text, const std::set<std::string>& builders) {
    std::set<std::string> names;
    for (size_t at = text.find(" = [&]"); at != std::string::npos; at = text.find(" = [&]", at + 1)) {
        size_t begin = at;
        while (begin > 0 && is_word(text[begin - 1])) --begin;
        const std::string_view body(&text[at], std::min(text.find("};", at), text.size()) - at);
        if (begin < at && calls_builder(body, builders)) names.insert(text.substr(begin, at - begin));
    }
    return names;
}

/// An argument that calls a builder, or one of the lambdas that do.
bool is_calling(std::string_view argument, const std::set<std::string>& builders,
                const std::set<std::string>& lambdas) {
    if (argument.find(';') != std::string_view::npos) return false;  // the body of a function, which runs later
    if (calls_builder(argument, builders)) return true;
    for (const std::string& name : lambdas)
        for (size_t at = argument.find(name + "("); at != std::string_view::npos;
             at = argument.find(name + "(", at + 1))
            if (at == 0 || !is_word(argument[at - 1])) return true;
    return false;
}

/// Lines of calls with several arguments that call a builder.
std::vector<int64_t> disordered_lines(const std::string& text) {
    const std::set<std::string> builders = builders_of(text), lambdas = lambdas_of(text, builders);
    struct Open {
        char bracket;
        size_t begin;     // of the argument
        int calling = 0;  // arguments before it that call a builder
    };
    std::vector<Open> open;
    std::vector<int64_t> lines;
    const auto end_argument = [&](size_t end) {
        Open& call = open.back();
        if (call.bracket == '(') call.calling += is_calling({&text[call.begin], end - call.begin}, builders, lambdas);
        call.begin = end + 1;
    };
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"' || c == '\'') {
            if (c == '\'' && i > 0 && is_word(text[i - 1])) continue;  // an apostrophe, or between digits
            for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i) i += text[i] == '\\';
        } else if (c == '/' && text.compare(i, 2, "//") == 0) {
            i = std::min(text.find('\n', i), text.size());
        } else if (c == '(' || c == '[' || c == '{') {
            open.push_back({c, i + 1});
        } else if (c == ',' && !open.empty()) {
            end_argument(i);
        } else if ((c == ')' || c == ']' || c == '}') && !open.empty()) {
            end_argument(i);
            if (open.back().calling > 1) lines.push_back(1 + std::count(text.begin(), text.begin() + i, '\n'));
            open.pop_back();
        }
    }
    return lines;
}

TEST(ArgumentOrder, IsLookedForAsItShould) {
    const std::string head = "Builder& build; Builder b(\"n\");\n";
    for (const char* bad : {"build.add(\"y\", build.linear(\"a\", x, 4), build.linear(\"b\", x, 4));",
                            "f(block(build, x), block(build, y));", "b.add(\"(\", b.scale(x, 1),\n b.scale(y, 2))",
                            "const auto f = [&](Tensor x) { return b.scale(x); };\nb.add(f(x), f(y));"})
        EXPECT_EQ(disordered_lines(head + bad).size(), 1u) << bad;
    for (const char* good :
         {"build.concat(\"y\", {build.linear(\"a\", x, 4), build.linear(\"b\", x, 4)});", "f(build, x, build.type(x));",
          "build.linear(\"a\", build.linear(\"b\", x, 4), build.type(x).channels);", "f(b, x); g(b, y);",
          "run([](Builder& b) { b.output(x); }, [](Builder& b) { b.output(y); });",
          "// build.add(build.scale(x), build.scale(y))\n"})
        EXPECT_TRUE(disordered_lines(head + good).empty()) << good;
}

TEST(ArgumentOrder, IsLeftToNoCompiler) {
    namespace fs = std::filesystem;
    int files = 0;
    for (const char* folder : {"stipple", "tests", "examples", "bench", "docs"})
        for (const fs::directory_entry& entry :
             fs::recursive_directory_iterator(fs::path(STIPPLE_SOURCE_DIR) / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".cpp" && extension != ".h" && extension != ".cu" && extension != ".md") continue;
            if (entry.path().filename() == "argument_order_test.cpp" ||
                entry.path().string().find("node_modules") != std::string::npos)
                continue;
            std::ostringstream text;
            text << std::ifstream(entry.path()).rdbuf();
            files += !builders_of(text.str()).empty();
            for (const int64_t line : disordered_lines(text.str()))
                ADD_FAILURE() << entry.path().string() << ":" << line << ": two arguments call the builder";
        }
    EXPECT_GE(files, 15);
}

}  // namespace
}  // namespace stipple::models
