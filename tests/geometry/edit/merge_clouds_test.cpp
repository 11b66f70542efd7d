#include "stipple/geometry/merge_clouds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::MergePlan;
using geometry::MissingAttributes;

template <class T>
PointCloud with_column(const std::string& name, const std::vector<T>& values, int64_t components = 1) {
    const auto n = static_cast<int64_t>(values.size()) / components;
    PointCloud cloud = random_cloud(n).vertices.clone();
    Attribute column(name, dtype_of<T>, n, components);
    std::copy(values.begin(), values.end(), column.as<T>().data());
    cloud.attributes.push_back(std::move(column));
    return cloud;
}

MergePlan plan_of(const PointCloud& a, const PointCloud& b, MissingAttributes missing = MissingAttributes::refuse) {
    geometry::CloudSchema schemas[2] = {{"a.ply", 0, {}}, {"b.ply", 0, {}}};
    schemas[0].add(a);
    schemas[1].add(b);
    return geometry::plan_merge(schemas, missing);
}

template <class A, class B>
DType type_of(A a, B b) {
    return plan_of(with_column<A>("v", {a}), with_column<B>("v", {b})).columns.at(0).dtype;
}

TEST(GeometryMergeClouds, TypesBecomeTheSmallestThatHoldsBoth) {
    EXPECT_EQ(type_of(uint8_t{1}, uint8_t{2}), DType::u8);
    EXPECT_EQ(type_of(uint8_t{1}, uint16_t{2}), DType::u16);
    EXPECT_EQ(type_of(uint8_t{1}, int8_t{2}), DType::i16);
    EXPECT_EQ(type_of(int32_t{1}, uint16_t{2}), DType::i32);
    EXPECT_EQ(type_of(int16_t{1}, uint32_t{2}), DType::i64);
    EXPECT_EQ(type_of(int64_t{1}, uint64_t{2}), DType::f64);
    EXPECT_EQ(type_of(1.0f, uint16_t{2}), DType::f32);
    EXPECT_EQ(type_of(1.0f, int32_t{2}), DType::f64);
    EXPECT_EQ(type_of(1.0, 2.0f), DType::f64);
}

TEST(GeometryMergeClouds, ValuesAreConvertedExactly) {
    const PointCloud a = with_column<uint32_t>("v", {0, 4294967295u, 7}), b = with_column<int8_t>("v", {-128, 127, 0});
    const MergePlan plan = plan_of(a, b);
    const PointCloud fit_a = geometry::fitted(a, plan, 1), fit_b = geometry::fitted(b, plan, 1);
    ASSERT_EQ(plan.columns[0].dtype, DType::i64);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(fit_a.attributes[0].value(i), a.attributes[0].value(i));
        EXPECT_EQ(fit_b.attributes[0].value(i), b.attributes[0].value(i));
    }
}

TEST(GeometryMergeClouds, ColoursOfDifferentRangesMeet) {
    const PointCloud bytes = with_column<uint8_t>("color", {0, 51, 255}, 3),
                     words = with_column<uint16_t>("color", {0, 13107, 65535}, 3),
                     floats = with_column<float>("color", {0, 0.2f, 1}, 3),
                     dim = with_column<uint16_t>("color", {0, 51, 255}, 3);  // 8 bits in fields of 16
    const MergePlan wide = plan_of(bytes, words);
    EXPECT_EQ(wide.columns[0].dtype, DType::u16);
    const PointCloud fit = geometry::fitted(bytes, wide, 255);
    for (int c = 0; c < 3; ++c) EXPECT_EQ(fit.attributes[0].value(0, c), words.attributes[0].value(0, c));
    EXPECT_EQ(geometry::fitted(words, wide, 65535).attributes[0], words.attributes[0]);
    const MergePlan real = plan_of(bytes, floats);
    EXPECT_EQ(real.columns[0].dtype, DType::f32);
    EXPECT_FLOAT_EQ(static_cast<float>(geometry::fitted(bytes, real, 255).attributes[0].value(0, 1)), 0.2f);
    EXPECT_EQ(geometry::fitted(dim, plan_of(dim, words), 255).attributes[0].value(0, 2), 65535);
    EXPECT_FALSE(plan_of(dim, bytes).columns[0].full_range);  // both to 255: values stay
}

TEST(GeometryMergeClouds, PiecesTellTheirCloud) {
    const PointCloud dark = with_column<uint16_t>("color", {0, 51, 255}, 3),
                     bright = with_column<uint16_t>("color", {0, 0, 300}, 3);
    geometry::CloudSchema schema{"a.las", 0, {}};
    schema.add(dark);
    EXPECT_EQ(schema.color_maximum(), 255);
    schema.add(bright);
    EXPECT_EQ(schema.color_maximum(), 65535);
    EXPECT_EQ(schema.points, 2);
    EXPECT_EQ(schema.columns.size(), 1u);
}

TEST(GeometryMergeClouds, WhatIsMissing) {
    const PointCloud a = with_column<float>("v", {1, 2}), b = with_column<int32_t>("w", {3});
    try {
        plan_of(a, b);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "a.ply has the attribute v, b.ply has not");
    }
    EXPECT_TRUE(plan_of(a, b, MissingAttributes::drop).columns.empty());
    const MergePlan plan = plan_of(a, b, MissingAttributes::fill);
    ASSERT_EQ(plan.columns.size(), 2u);
    const PointCloud fit_a = geometry::fitted(a, plan, 1), fit_b = geometry::fitted(b, plan, 1);
    EXPECT_EQ(find(fit_a.attributes, "w")->value(1), 0);
    EXPECT_EQ(find(fit_a.attributes, "v")->value(1), 2);
    EXPECT_TRUE(std::isnan(find(fit_b.attributes, "v")->value(0)));
    EXPECT_EQ(plan_of(a, PointCloud(0)).columns.size(), 1u);  // nobody has no say
    EXPECT_THROW(plan_of(a, with_column<float>("v", {1, 2}, 2)), Error);
}

TEST(GeometryMergeClouds, FactsThatAllShare) {
    FileFacts a, b;
    a.coordinate_system = b.coordinate_system = {{"LASF_Projection", 2112, "", "WKT"}};
    a.time_type = TimeType::gps_week_seconds;
    EXPECT_TRUE(geometry::merge_facts(a, b));
    EXPECT_EQ(a.coordinate_system.size(), 1u);
    EXPECT_EQ(a.time_type, TimeType::unknown);
    b.coordinate_system.clear();
    EXPECT_FALSE(geometry::merge_facts(a, b));
    EXPECT_TRUE(a.coordinate_system.empty());
}

}  // namespace
}  // namespace stipple::test
