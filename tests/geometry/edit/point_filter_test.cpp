#include "stipple/geometry/point_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::PointFilter;

/// Points with a label 0 to 4, an intensity with NaN among it, and normals.
PointCloud filter_cloud(int64_t n) {
    PointCloud cloud = random_cloud(n, 3).vertices.clone();
    cloud.origin = {1000, 0, -5};
    Attribute label("label", DType::u8, n, 1), intensity("intensity", DType::f32, n, 1),
        wide("my id", DType::i64, n, 1);
    for (int64_t i = 0; i < n; ++i) {
        label.as<uint8_t>().data()[i] = static_cast<uint8_t>(i % 5);
        intensity.as<float>().data()[i] = i % 7 == 0 ? NAN : static_cast<float>(i % 11);
        wide.as<int64_t>().data()[i] = -i;
    }
    cloud.attributes.push_back(std::move(label));
    cloud.attributes.push_back(std::move(intensity));
    cloud.attributes.push_back(std::move(wide));
    add_normals(cloud);
    return cloud;
}

void expect_mask(const std::string& expression, const PointCloud& cloud, const std::function<bool(int64_t)>& expected) {
    const std::vector<uint8_t> mask = PointFilter(expression).mask(cloud);
    ASSERT_EQ(mask.size(), static_cast<size_t>(cloud.size()));
    for (int64_t i = 0; i < cloud.size(); ++i) ASSERT_EQ(mask[i] != 0, expected(i)) << expression << ", point " << i;
}

TEST(GeometryPointFilter, MeansWhatItSays) {
    const PointCloud cloud = filter_cloud(5000);
    const auto label = [&](int64_t i) { return static_cast<double>(i % 5); };
    const auto intensity = [&](int64_t i) { return i % 7 == 0 ? double(NAN) : static_cast<double>(i % 11); };
    expect_mask("label == 2", cloud, [&](int64_t i) { return label(i) == 2; });
    expect_mask("label==2&&intensity>3", cloud, [&](int64_t i) { return label(i) == 2 && intensity(i) > 3; });
    expect_mask("label == 2 || intensity > 3 && label != 1", cloud,
                [&](int64_t i) { return label(i) == 2 || (intensity(i) > 3 && label(i) != 1); });
    expect_mask("!(intensity >= 4)", cloud, [&](int64_t i) { return !(intensity(i) >= 4); });
    expect_mask("!!(label < 2) && ! label == 1", cloud, [&](int64_t i) { return label(i) == 0; });
}

TEST(GeometryPointFilter, NumbersCoordinatesAndComponents) {
    const PointCloud cloud = filter_cloud(3000);
    const Attribute& normal = *find(cloud.attributes, "normal");
    expect_mask("x < 1000.1", cloud, [&](int64_t i) { return cloud.world(i, 0) < 1000.1; });
    expect_mask("x - 1e3 < z + 5", cloud, [&](int64_t i) { return cloud.world(i, 0) - 1000 < cloud.world(i, 2) + 5; });
    expect_mask("1 - y * 2 / 4 - .25 > -y*-y", cloud, [&](int64_t i) {
        const double y = cloud.world(i, 1);
        return 1 - y * 2 / 4 - .25 > -y * -y;
    });
    expect_mask("normal.z > normal[0]", cloud, [&](int64_t i) { return normal.value(i, 2) > normal.value(i, 0); });
    expect_mask("\"my id\" <= -1.5E2 ", cloud, [&](int64_t i) { return i >= 150; });
    expect_mask("intensity == intensity", cloud, [&](int64_t i) { return i % 7 != 0; });
    expect_mask("intensity != intensity", cloud, [&](int64_t i) { return i % 7 == 0; });
    expect_mask("1 / (label - label) > 1e300", cloud, [&](int64_t) { return true; });
    expect_mask("(((+label)))<(2)", cloud, [&](int64_t i) { return i % 5 < 2; });
}

/// A random expression as text, and what it is worth at a point.
struct Made {
    std::string text;
    std::function<double(int64_t)> value;
};

class FilterMaker {
public:
    FilterMaker(const PointCloud& cloud, uint64_t seed) : cloud_(cloud), rng_(seed) {}

    Made truth(int depth) {
        const uint32_t kind = pick(depth > 0 ? 5 : 1);
        if (kind == 1 || kind == 2) {
            Made a = truth(depth - 1), b = truth(depth - 1);
            const bool both = kind == 1;
            return {"(" + a.text + ") " + (both ? "&&" : "||") + " (" + b.text + ")",
                    [=](int64_t i) { return both ? a.value(i) != 0 && b.value(i) != 0 : a.value(i) + b.value(i) > 0; }};
        }
        if (kind == 3) {
            Made a = truth(depth - 1);
            return {"!(" + a.text + ")", [=](int64_t i) { return a.value(i) == 0; }};
        }
        Made a = number(depth), b = number(depth);
        const uint32_t comparison = pick(6);
        const char* texts[] = {"==", "!=", "<", "<=", ">", ">="};
        return {a.text + texts[comparison] + b.text, [=](int64_t i) {
                    const double p = a.value(i), q = b.value(i);
                    const bool results[] = {p == q, p != q, p<q, p <= q, p> q, p >= q};
                    return results[comparison];
                }};
    }

private:
    uint32_t pick(uint32_t bound) { return rng_.below(next_++, bound); }

    Made number(int depth) {
        const uint32_t kind = pick(depth > 0 ? 8 : 4);
        if (kind == 0) {
            const auto value = static_cast<double>(pick(7));
            return {std::to_string(static_cast<int>(value)), [=](int64_t) { return value; }};
        }
        if (kind == 1) return {"label", [](int64_t i) { return static_cast<double>(i % 5); }};
        if (kind == 2)
            return {"intensity", [](int64_t i) { return i % 7 == 0 ? double(NAN) : static_cast<double>(i % 11); }};
        if (kind == 3) return {"y", [this](int64_t i) { return cloud_.world(i, 1); }};
        if (kind == 4) {
            Made a = number(depth - 1);
            return {"-(" + a.text + ")", [=](int64_t i) { return -a.value(i); }};
        }
        Made a = number(depth - 1), b = number(depth - 1);
        const char operation = "+-*/"[pick(4)];
        return {"(" + a.text + operation + b.text + ")", [=](int64_t i) {
                    const double p = a.value(i), q = b.value(i);
                    return operation == '+' ? p + q : operation == '-' ? p - q : operation == '*' ? p * q : p / q;
                }};
    }

    const PointCloud& cloud_;
    Rng rng_;
    uint64_t next_ = 0;
};

TEST(GeometryPointFilter, RandomExpressionsAgreeWithPlainEvaluation) {
    const PointCloud cloud = filter_cloud(300);
    for (uint64_t seed = 0; seed < 500; ++seed) {
        FilterMaker maker(cloud, seed);
        const Made made = maker.truth(4);
        const std::vector<uint8_t> mask = PointFilter(made.text).mask(cloud);
        for (int64_t i = 0; i < cloud.size(); ++i)
            ASSERT_EQ(mask[i] != 0, made.value(i) != 0) << made.text << ", point " << i;
    }
}

std::string filter_error(const std::string& expression, const PointCloud* cloud = nullptr) {
    try {
        const PointFilter filter(expression);
        if (cloud) filter.mask(*cloud);
    } catch (const Error& error) {
        return error.code() == ErrorCode::bad_argument ? error.message() + "|" + error.hint() : "?";
    }
    return "";
}

TEST(GeometryPointFilter, MistakesHaveTheirColumnAndACaret) {
    EXPECT_EQ(filter_error("label = 2"), "column 7: write == to compare|label = 2\n              ^");
    EXPECT_EQ(filter_error("  "), "an expression is missing: 'label == 2'|");
    const std::pair<const char*, const char*> cases[] = {
        {"x > ", "column 5: the expression ends too early"},
        {"x > 1 & y > 1", "column 7: write &&"},
        {"x > 1 and y > 1", "column 7: write && for and"},
        {"not x > 1", "column 1: write ! for not"},
        {"x > 1 > 2", "column 7: comparisons do not chain"},
        {"x", "column 1: this is a number"},
        {"x && y > 1", "column 1: && wants a truth value"},
        {"(x > 1) + 2 > 1", "column 1: + wants a number"},
        {"-(x > 1) > 1", "column 2: - wants a number"},
        {"!x > 1 && !3", "column 12: ! wants a truth value"},
        {"(x > 1", "column 7: a ) is missing"},
        {"x > 1)", "column 6: unexpected \")\""},
        {"x > 1e", "column 5: this is neither"},
        {"normal[ > 1", "column 9: expected the number of a component"},
        {"normal[1 > 1", "column 10: a ] is missing"},
        {"normal[1.5] > 1", "column 8: expected the number of a component"},
        {"normal.q > 1", "column 7: expected a component"},
        {"normal.zz > 1", "column 7: expected a component"},
        {"\"a > 1", "column 1: the quotes do not end"},
        {"x > $", "column 5: unexpected \"$\""},
    };
    for (const auto& [text, expected] : cases)
        EXPECT_EQ(filter_error(text).rfind(expected, 0), 0u) << text << "\n" << filter_error(text);
    const PointCloud cloud = filter_cloud(3);
    EXPECT_EQ(
        filter_error("z > 1 && lable == 2", &cloud)
            .rfind(
                "column 10: no attribute \"lable\", did you mean label?; there are x, y, z, label, intensity, my id, "
                "normal",
                0),
        0u)
        << filter_error("z > 1 && lable == 2", &cloud);
    EXPECT_NE(filter_error("normal > 1", &cloud).find("normal has 3 components: normal[0] to normal[2]"),
              std::string::npos);
    EXPECT_NE(filter_error("normal[3] > 1", &cloud), "");
    EXPECT_NE(filter_error("x[0] > 1", &cloud), "");
}

TEST(GeometryPointFilter, HostileTextIsRefusedAndNothingElse) {
    const PointCloud cloud = filter_cloud(2);
    EXPECT_NE(filter_error(std::string(100000, '(')).find("nested too deep"), std::string::npos);
    EXPECT_NE(filter_error(std::string(100000, '!') + "x").find("nested too deep"), std::string::npos);
    EXPECT_NE(filter_error(std::string(100000, '-') + "x > 1").find("nested too deep"), std::string::npos);
    std::string wide = "x > 1";
    for (int i = 0; i < 20000; ++i) wide += " && x > 1";
    EXPECT_EQ(filter_error(wide, &cloud), "");  // long is not deep
    const std::string alphabet = "xyz019.eE+-*/()<>=!&|[] \"labelnormal\xc3\xa4\x01";
    const Rng rng(11);
    uint64_t next = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        for (uint32_t length = rng.below(next++, 24); length > 0; --length)
            text += alphabet[rng.below(next++, static_cast<uint32_t>(alphabet.size()))];
        ASSERT_NE(filter_error(text, &cloud), "?") << text;
    }
}

TEST(GeometryPointFilter, ThreadsDoNotMatterAndEmptyIsFine) {
    const PointCloud cloud = filter_cloud(70001);
    const PointFilter filter("intensity > 3 && y < 0.2");
    set_threads(1);
    const std::vector<uint8_t> one = filter.mask(cloud);
    set_threads(3);
    EXPECT_EQ(filter.mask(cloud), one);
    set_threads(0);
    EXPECT_TRUE(filter.mask(filter_cloud(0)).empty());
}

}  // namespace
}  // namespace stipple::test
