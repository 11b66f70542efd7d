#include "stipple/geometry/split_cloud.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::CloudSplitter;
using Parts = std::vector<int32_t>;
using Names = std::vector<std::string>;

template <class T>
PointCloud cloud_of_values(const std::vector<T>& values) {
    PointCloud cloud = random_cloud(static_cast<int64_t>(values.size())).vertices.clone();
    Attribute column("v", dtype_of<T>, cloud.size(), 1);
    std::copy(values.begin(), values.end(), column.as<T>().data());
    cloud.attributes.push_back(std::move(column));
    return cloud;
}

TEST(GeometrySplit, ByValueFromPieceToPiece) {
    CloudSplitter splitter = CloudSplitter::by_attribute("v");
    EXPECT_EQ(splitter.assign(cloud_of_values<uint8_t>({2, 2, 5, 2}), 10), (Parts{0, 0, 1, 0}));
    EXPECT_EQ(splitter.assign(cloud_of_values<uint8_t>({7, 5}), 10), (Parts{2, 1}));
    EXPECT_EQ(splitter.names(), (Names{"2", "5", "7"}));
    EXPECT_EQ(geometry::members({1, -1, 0, 1}, 2), (std::vector<Parts>{{2}, {0, 3}}));
    EXPECT_THROW(geometry::members({0, 2}, 2), Error);
}

TEST(GeometrySplit, ValuesOfEveryKindHaveNames) {
    CloudSplitter reals = CloudSplitter::by_attribute("v");
    EXPECT_EQ(reals.assign(cloud_of_values<float>({0.1f, -0.0f, 0, NAN, -NAN, HUGE_VALF}), 10),
              (Parts{0, 1, 1, 2, 2, 3}));
    EXPECT_EQ(reals.names(), (Names{"0.1", "0", "nan", "inf"}));
    CloudSplitter wide = CloudSplitter::by_attribute("v");
    // Apart by one beyond 2^53, where doubles would be the same.
    EXPECT_EQ(wide.assign(cloud_of_values<uint64_t>({18446744073709551615u, 18446744073709551614u}), 10),
              (Parts{0, 1}));
    EXPECT_EQ(wide.names()[0], "18446744073709551615");
    CloudSplitter negative = CloudSplitter::by_attribute("v");
    negative.assign(cloud_of_values<int16_t>({-3}), 10);
    EXPECT_EQ(negative.names(), (Names{"-3"}));
}

TEST(GeometrySplit, TilesBeginAtMultiplesInTheWorld) {
    PointCloud cloud(5);
    cloud.origin = {1000, 2000, 0};
    const float at[15] = {0, 0, 0, 9.9f, 0, 5, 10, 0, 0, -0.1f, -0.1f, 0, NAN, 0, 0};
    std::copy_n(at, 15, cloud.positions.data());
    CloudSplitter splitter = CloudSplitter::by_tile(10);
    EXPECT_EQ(splitter.assign(cloud, 10), (Parts{0, 0, 1, 2, -1}));
    EXPECT_EQ(splitter.names(), (Names{"1000_2000", "1010_2000", "990_1990"}));
    CloudSplitter small = CloudSplitter::by_tile(0.25);
    PointCloud one(1);
    std::fill_n(one.positions.data(), 3, -0.2f);
    EXPECT_EQ(small.assign(one, 10), (Parts{0}));
    EXPECT_EQ(small.names(), (Names{"-0.25_-0.25"}));
}

TEST(GeometrySplit, ByCountGoesOnWhereItWas) {
    CloudSplitter splitter = CloudSplitter::by_count(3);
    EXPECT_EQ(splitter.assign(random_cloud(4).vertices, 10), (Parts{0, 0, 0, 1}));
    EXPECT_EQ(splitter.assign(random_cloud(3).vertices, 10), (Parts{1, 1, 2}));
    EXPECT_EQ(splitter.names(), (Names{"0001", "0002", "0003"}));
    EXPECT_TRUE(splitter.assign(PointCloud(0), 10).empty());
}

TEST(GeometrySplit, Refuses) {
    EXPECT_THROW(CloudSplitter::by_tile(0), Error);
    EXPECT_THROW(CloudSplitter::by_tile(NAN), Error);
    EXPECT_THROW(CloudSplitter::by_count(0), Error);
    CloudSplitter many = CloudSplitter::by_attribute("v");
    EXPECT_THROW(many.assign(cloud_of_values<uint8_t>({1, 2, 3}), 2), Error);
    CloudSplitter none = CloudSplitter::by_attribute("w");
    EXPECT_THROW(none.assign(cloud_of_values<uint8_t>({1}), 9), Error);
    PointCloud colored = random_cloud(2).vertices.clone();
    add_colors(colored);
    CloudSplitter wide = CloudSplitter::by_attribute("color");
    EXPECT_THROW(wide.assign(colored, 9), Error);
    PointCloud far(1);
    std::fill_n(far.positions.data(), 3, 3e38f);
    CloudSplitter tiny = CloudSplitter::by_tile(1e-30);
    EXPECT_THROW(tiny.assign(far, 9), Error);
}

}  // namespace
}  // namespace stipple::test
