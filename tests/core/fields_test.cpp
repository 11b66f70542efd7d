#include "stipple/core/fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/toml.h"

namespace stipple {
namespace {

enum class Kernel { none, huber, cauchy };
enum class Side : uint8_t { inside, outside };
constexpr const char* kKernelWords[] = {"none", "huber", "cauchy"};
constexpr const char* kSideWords[] = {"inside", "outside"};

struct Inner {
    double rate = 0.5;
    int64_t every = 3;
    bool operator==(const Inner&) const = default;
};
struct Options {
    bool flag = false;
    int trials = 7;
    int64_t count = 0;
    uint64_t seed = 1;
    float share = 0.25f;
    double radius = 2, limit = INFINITY;
    std::string name = "a \"b\"\n";
    Kernel kernel = Kernel::cauchy;
    Side side = Side::inside;
    std::array<double, 3> viewpoint = {1, 2, 3};
    std::vector<int64_t> sizes = {4, 5};
    std::vector<std::string> inputs;
    std::vector<bool> bits = {true, false};
    std::optional<double> gap;
    std::optional<float> weight;
    std::optional<std::array<double, 2>> pair;
    std::optional<int> few;
    std::vector<Side> sides;
    Inner inner, flat;
    bool operator==(const Options&) const = default;
};
struct Found {
    std::vector<Inner> list;
    double error = NAN;
    std::optional<Inner> best = {};
    std::array<std::array<double, 3>, 2> rows = {{{1, 2, 3}, {4, 5, 6}}};
};

const Fields& inner_fields() {
    static const Fields fields = {field<&Inner::rate>("rate", "How fast").above(0).to(1),
                                  field<&Inner::every>("every", "How often").from(1)};
    return fields;
}
const Fields& flat_fields() {
    static const Fields fields = {field<&Inner::rate>("flat_rate", "Of the flat one")};
    return fields;
}
const Fields& option_fields() {
    static const Fields fields = {
        field<&Options::flag>("flag", "A flag"),
        field<&Options::trials>("trials", "So many").between(1, 127),
        field<&Options::count>("count", "A whole number"),
        field<&Options::seed>("seed", "A seed"),
        field<&Options::share>("share", "A share").between(0, 1),
        field<&Options::radius>("radius", "A length").unit("m").from(0),
        field<&Options::limit>("limit", "A limit").may_be_infinite(),
        field<&Options::name>("name", "A name"),
        field<&Options::kernel>("kernel", "A word").words(kKernelWords),
        field<&Options::side>("side", "A short word").words(kSideWords),
        field<&Options::viewpoint>("viewpoint", "Three numbers"),
        field<&Options::sizes>("sizes", "Any number of them").from(1),
        field<&Options::inputs>("inputs", "Texts"),
        field<&Options::bits>("bits", "Truth values"),
        field<&Options::gap>("gap", "One or none").from(0).below(5).only_with("kernel", "huber|cauchy"),
        field<&Options::weight>("weight", "Another, of single precision"),
        field<&Options::pair>("pair", "Two or none").from(0),
        field<&Options::few>("few", "One or none").to(9),
        field<&Options::sides>("sides", "Any number of words").words(kSideWords),
        field<&Options::inner, &Inner::every>("inner_every", "A member of a member"),
        object_field<&Options::inner>("inner", inner_fields),
        object_field<&Options::flat>("", flat_fields)};
    return fields;
}
const Fields& found_fields() {
    static const Fields fields = {
        objects_field<&Found::list>("list", inner_fields), field<&Found::error>("error", "An error"),
        object_field<&Found::best>("best", inner_fields), field<&Found::rows>("rows", "A matrix"),
        computed_field<Found>("size", "Of the list", [](const Found& found) { return Json(found.list.size()); })};
    return fields;
}

void set(Options& options, const char* key, std::vector<std::string> values) {
    set_by_key(option_fields(), &options, key, values);
}
std::string refusal(const char* key, std::vector<std::string> values) {
    Options options;
    const Options before = options;
    try {
        set(options, key, std::move(values));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        EXPECT_EQ(options, before) << key;  // what is refused changes nothing
        return error.message();
    }
    return "";
}

TEST(Fields, SetsMembersOfEveryTypeFromTexts) {
    Options options;
    set(options, "flag", {"true"});
    set(options, "trials", {"1e2"});
    set(options, "count", {"-3"});
    set(options, "seed", {"18446744073709551615"});
    set(options, "share", {"+0.75"});
    set(options, "radius", {"2.5e3"});
    set(options, "limit", {"-inf"});
    set(options, "name", {"x y"});
    set(options, "kernel", {"none"});
    set(options, "side", {"outside"});
    set(options, "viewpoint", {"-1", "0.5", "7"});
    set(options, "sizes", {"9", "8", "7"});
    set(options, "inputs", {"a", "b"});
    set(options, "bits", {});
    set(options, "gap", {"0"});
    set(options, "weight", {"0.1"});
    set(options, "pair", {"3", "4"});
    set(options, "few", {"-7"});
    set(options, "sides", {"outside", "inside"});
    set(options, "inner.rate", {"1"});
    set(options, "inner_every", {"11"});
    set(options, "flat_rate", {"4"});
    const Options wanted{.flag = true,
                         .trials = 100,
                         .count = -3,
                         .seed = UINT64_MAX,
                         .share = 0.75f,
                         .radius = 2500,
                         .limit = -INFINITY,
                         .name = "x y",
                         .kernel = Kernel::none,
                         .side = Side::outside,
                         .viewpoint = {-1, 0.5, 7},
                         .sizes = {9, 8, 7},
                         .inputs = {"a", "b"},
                         .bits = {},
                         .gap = 0.0,
                         .weight = 0.1f,
                         .pair = std::array<double, 2>{3, 4},
                         .few = -7,
                         .sides = {Side::outside, Side::inside},
                         .inner = {1, 11},
                         .flat = {4, 3}};
    EXPECT_EQ(options, wanted);
}

TEST(Fields, RefusesWhatIsOutOfRangeAndSaysWhatIsWanted) {
    EXPECT_EQ(refusal("flag", {"yes"}), "flag must be true or false, got \"yes\"");
    EXPECT_EQ(refusal("trials", {"128"}), "trials must be 1 to 127, got 128");
    EXPECT_EQ(refusal("trials", {"2.5"}), "trials must be a whole number, 1 to 127, got \"2.5\"");
    EXPECT_EQ(refusal("count", {"1e300"}), "count must be a whole number, got \"1e300\"");
    EXPECT_EQ(refusal("count", {"9223372036854775808"}), "count must be a whole number, got \"9223372036854775808\"");
    EXPECT_EQ(refusal("seed", {"-1"}), "seed must be a whole number, got \"-1\"");
    EXPECT_EQ(refusal("share", {"nan"}), "share must be 0 to 1, got nan");
    EXPECT_EQ(refusal("radius", {"inf"}), "radius must be from 0, got inf");
    EXPECT_EQ(refusal("trials", {"1e10"}), "trials must be a whole number, 1 to 127, got \"1e10\"");
    EXPECT_EQ(refusal("radius", {"1,5"}), "radius must be a number, from 0, got \"1,5\"");
    EXPECT_EQ(refusal("radius", {""}), "radius must be a number, from 0, got \"\"");
    EXPECT_EQ(refusal("limit", {"nan"}), "limit must be a number, got nan");
    EXPECT_EQ(refusal("kernel", {"tukey"}), "kernel must be one of none, huber, cauchy, got \"tukey\"");
    EXPECT_EQ(refusal("viewpoint", {"1", "2"}), "viewpoint must be 3 values, got 2 values");
    EXPECT_EQ(refusal("radius", {"1", "2"}), "radius must be one value, got 2 values");
    EXPECT_EQ(refusal("gap", {}), "gap must be one value, got 0 values");
    EXPECT_EQ(refusal("gap", {"5"}), "gap must be from 0, below 5, got 5");
    EXPECT_EQ(refusal("pair", {"5"}), "pair must be 2 values, got 1 values");
    EXPECT_EQ(refusal("pair", {"5", "-1"}), "pair must be from 0, got -1");
    EXPECT_EQ(refusal("few", {"10"}), "few must be at most 9, got 10");
    EXPECT_EQ(refusal("sides", {"inside", "above"}), "sides must be one of inside, outside, got \"above\"");
    EXPECT_EQ(refusal("sizes", {"3", "0"}), "sizes must be from 1, got 0");
    EXPECT_EQ(refusal("inner.rate", {"0"}), "inner.rate must be above 0, to 1, got 0");
}

TEST(Fields, NamesTheNearestKey) {
    Options options;
    try {
        set(options, "inner.rat", {"1"});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "there is no key \"inner.rat\"");
        EXPECT_EQ(error.hint(), "did you mean inner.rate?");
    }
    EXPECT_EQ(refusal("inner", {"1"}), "there is no key \"inner\"");
    EXPECT_EQ(refusal("", {"1"}), "there is no key \"\"");
}

TEST(Fields, KeysAreInOrderAndOnesWithoutANameCountAsTheirParents) {
    const std::vector<std::string> keys = keys_of(option_fields());
    ASSERT_EQ(keys.size(), 23u);
    EXPECT_EQ(keys[19], "inner_every");
    EXPECT_EQ(keys[20], "inner.rate");
    EXPECT_EQ(keys[22], "flat_rate");
}

TEST(Fields, ValuesAreAsTomlWritesThem) {
    Options options;
    options.weight = 1e-4f;
    const auto values = values_of(option_fields(), &options);
    const auto value_of = [&](const std::string& key) -> std::string {
        for (const auto& [name, value] : values)
            if (name == key) return value;
        return "none";
    };
    EXPECT_EQ(values.size(), 20u);
    EXPECT_EQ(value_of("gap"), "none");
    EXPECT_EQ(value_of("weight"), "1e-04");  // the shortest text
    EXPECT_EQ(value_of("kernel"), "\"cauchy\"");
    EXPECT_EQ(value_of("viewpoint"), "[1, 2, 3]");
    EXPECT_EQ(value_of("inner.rate"), "0.5");
}

TEST(Fields, TomlIsReadBackToTheSame) {
    Options options;
    options.gap = 0.1;
    options.pair = {0.25, 1e9};
    options.few = -1;
    options.sides = {Side::outside};
    options.inputs = {"a,b", "[c]", "\"d\""};
    options.bits = {true, false, true};
    options.inner = {0.123456789012345, 42};
    options.share = 0.1f;
    options.weight = 1e-4f;
    Options again;
    for (const TomlItem& item : parse_toml(to_toml(option_fields(), &options)))
        if (!item.key.empty())
            set_by_key(option_fields(), &again, item.table.empty() ? item.key : item.table + "." + item.key,
                       item.values);
    EXPECT_EQ(again, options);
}

TEST(Fields, ChecksEveryMemberAndSpellsTheNameAsAsked) {
    Options options;
    EXPECT_NO_THROW(check_fields(option_fields(), &options));
    options.inner.every = 0;
    try {
        check_fields(option_fields(), &options, as_option);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "--every must be from 1, got 0");
    }
    try {
        check_fields(option_fields(), &options);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "inner.every must be from 1, got 0");
    }
    options = {};
    options.pair = {1, -1};
    EXPECT_THROW(check_fields(option_fields(), &options), Error);
    options = {};
    options.viewpoint[2] = NAN;
    try {
        check_fields(option_fields(), &options);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "viewpoint must be a number, got nan");
    }
    options = {};
    options.kernel = Kernel::huber;
    options.gap = 2;
    EXPECT_NO_THROW(check_fields(option_fields(), &options));
    options.kernel = Kernel::none;
    try {
        check_fields(option_fields(), &options, as_option);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "--gap is for --kernel huber, cauchy");
    }
    EXPECT_EQ(as_option(option_fields()[19]), "--inner-every");
}

TEST(Fields, AWordStandsForZero) {
    static const Fields fields = {field<&Inner::rate>("rate", "How fast").above(0.25).zero_word("auto")};
    Inner inner;
    const std::vector<std::string> automatic = {"auto"}, small = {"0.25"};
    set_by_key(fields, &inner, "rate", automatic);
    EXPECT_EQ(inner.rate, 0);
    EXPECT_EQ(texts_of(fields[0], &inner), automatic);
    EXPECT_EQ(to_toml(fields, &inner), "rate = \"auto\"\n");
    EXPECT_NO_THROW(check_fields(fields, &inner));
    try {
        set_by_key(fields, &inner, "rate", small);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "rate must be auto or above 0.25, got 0.25");
    }
}

TEST(Fields, JsonHasEveryMember) {
    Options options;
    options.name = "n";
    EXPECT_EQ(to_json(option_fields(), &options).compact(),
              "{\"flag\":false,\"trials\":7,\"count\":0,\"seed\":1,\"share\":0.25,\"radius\":2.0,\"limit\":null,"
              "\"name\":\"n\",\"kernel\":\"cauchy\",\"side\":\"inside\",\"viewpoint\":[1.0,2.0,3.0],\"sizes\":[4,5],"
              "\"inputs\":[],\"bits\":[true,false],\"gap\":null,\"weight\":null,\"pair\":null,"
              "\"few\":null,\"sides\":[],\"inner_every\":3,"
              "\"inner\":{\"rate\":0.5,\"every\":3},\"flat_rate\":0.5}");
    options.pair = {1, 2};
    options.few = 3;
    EXPECT_EQ(to_json(option_fields(), &options).value("pair").compact(), "[1.0,2.0]");
    EXPECT_EQ(to_json(option_fields(), &options).value("few").compact(), "3");
    Found found{.list = {{0.5, 1}, {0.25, 2}}};
    EXPECT_EQ(to_json(found_fields(), &found).compact(),
              "{\"list\":[{\"rate\":0.5,\"every\":1},{\"rate\":0.25,\"every\":2}],\"error\":null,\"best\":null,"
              "\"rows\":[[1.0,2.0,3.0],[4.0,5.0,6.0]],\"size\":2}");
    found.best = Inner{0.125, 7};
    EXPECT_EQ(to_json(found_fields(), &found).value("best").compact(), "{\"rate\":0.125,\"every\":7}");
    found.error = 0;
    EXPECT_NO_THROW(check_fields(found_fields(), &found));
    found.best.reset();
    EXPECT_NO_THROW(check_fields(found_fields(), &found));
}

}  // namespace
}  // namespace stipple
