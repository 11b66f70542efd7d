#include "tests/support/margin.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "stipple/core/json_writer.h"

namespace stipple::test {
namespace {

void record(const char* value_text, const char* relation, const char* bound_text, double value, double bound) {
    const char* path = std::getenv("STIPPLE_TEST_MARGINS");
    if (path == nullptr || !std::isfinite(value) || !std::isfinite(bound)) return;  // those that are not finite fail
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    JsonWriter line;
    line.begin_object()
        .field("test", std::string(test.test_suite_name()) + "." + test.name())
        .field("value_text", value_text)
        .field("relation", relation)
        .field("bound_text", bound_text)
        .field("value", value)
        .field("bound", bound)
        .field("trial", trial())
        .end_object();
    std::FILE* file = std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, "%s\n", line.text().c_str());
    std::fclose(file);
}

testing::AssertionResult compare(bool holds, const char* value_text, const char* relation, const char* bound_text,
                                 double value, double bound) {
    record(value_text, relation, bound_text, value, bound);
    if (holds) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "Expected: (" << value_text << ") " << relation << " (" << bound_text
                                       << "), actual: " << value << " vs " << bound << ", trial " << trial();
}

}  // namespace

uint64_t trial() {
    const char* text = std::getenv("STIPPLE_TEST_TRIAL");
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

testing::AssertionResult above(const char* value_text, const char* bound_text, double value, double bound) {
    return compare(value > bound, value_text, ">", bound_text, value, bound);
}

testing::AssertionResult below(const char* value_text, const char* bound_text, double value, double bound) {
    return compare(value < bound, value_text, "<", bound_text, value, bound);
}

}  // namespace stipple::test
