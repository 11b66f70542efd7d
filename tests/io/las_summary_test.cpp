#include "stipple/io/las_summary.h"

#include "stipple/io/las.h"
#include "tests/io/las_samples.h"

namespace stipple::test {
namespace {

io::LasSummary summary_of(const Bytes& bytes) {
    const auto summary = io::summarise_las(parse(io::parse_las, bytes).vertices);
    EXPECT_TRUE(summary);
    return summary.value_or(io::LasSummary{});
}

Bytes words(std::initializer_list<int> numbers) {
    Bytes bytes;
    for (const int number : numbers) {
        bytes.push_back(static_cast<std::byte>(number & 255));
        bytes.push_back(static_cast<std::byte>(number >> 8));
    }
    return bytes;
}

TEST(LasSummary, WhatTheHeaderSays) {
    const io::LasSummary found = summary_of(talkative(4, 7, 40));
    EXPECT_EQ(found.minor, 4);
    EXPECT_EQ(found.point_format, 7);
    EXPECT_EQ(found.system, "A SCANNER");
    EXPECT_EQ(found.software, "A PROGRAM");
    EXPECT_EQ(found.year, 2019);
    EXPECT_EQ(found.day, 123);
    EXPECT_EQ(found.coordinate_system, "a place");
    EXPECT_FALSE(found.epsg);
    EXPECT_EQ(found.records, 3);
    EXPECT_EQ(found.extended_records, 2);
    EXPECT_EQ(found.time_type, TimeType::gps_adjusted_standard);
    int64_t points = 0;
    for (const auto& [number, count] : found.classes) points += count;
    EXPECT_EQ(points, 40);
    EXPECT_FALSE(io::summarise_las(PointCloud(3)));
}

TEST(LasSummary, CoordinateSystems) {
    const auto of = [](uint16_t id, const Bytes& payload, const Bytes& texts = {}) {
        Bytes bytes = with_vlr(foreign(2, 1, 2), "LASF_Projection", id, payload);
        if (!texts.empty()) bytes = with_vlr(bytes, "LASF_Projection", 34737, texts);
        return summary_of(bytes);
    };
    io::LasSummary found = of(
        2112,
        bytes_of("PROJCS[\"UTM 33N\",GEOGCS[\"WGS 84\",AUTHORITY[\"EPSG\",\"4326\"]],AUTHORITY[\"EPSG\",\"32633\"]]"));
    EXPECT_EQ(found.coordinate_system, "UTM 33N");
    EXPECT_EQ(found.epsg, 32633);
    EXPECT_EQ(of(2112, bytes_of("PROJCRS[\"new\",ID[\"EPSG\",25832]]")).epsg, 25832);
    // The number of a part is not that of the whole.
    EXPECT_FALSE(
        of(2112, bytes_of("PROJCS[\"mine\",GEOGCS[\"WGS 84\",AUTHORITY[\"EPSG\",\"4326\"]],UNIT[\"m\",1]]")).epsg);
    found = of(2112,
               bytes_of("COMPD_CS[\"both\",PROJCS[\"LCC (m)\",GEOGCS[\"NAD83\",AUTHORITY[\"EPSG\",\"4269\"]],AUTHORITY["
                        "\"EPSG\",\"2991\"]],VERT_CS[\"height\",AUTHORITY[\"EPSG\",\"6360\"]]]"));
    EXPECT_EQ(found.epsg, 2991);
    EXPECT_EQ(found.coordinate_system, "both");
    EXPECT_EQ(of(2112, bytes_of("no quotes")).coordinate_system, "");
    EXPECT_FALSE(of(2112, bytes_of("A[\"b\",\"EPSG\"")).epsg);

    found =
        of(34735, words({1, 1, 0, 3, 2048, 0, 1, 4326, 3072, 0, 1, 32633, 3073, 34737, 8, 2}), bytes_of("..UTM 33N|"));
    EXPECT_EQ(found.epsg, 32633);
    EXPECT_EQ(found.coordinate_system, "UTM 33N");
    EXPECT_EQ(of(34735, words({1, 1, 0, 1, 2048, 0, 1, 4326})).epsg, 4326);
    // Lies: more keys than there are, texts that reach past their end.
    EXPECT_FALSE(of(34735, words({1, 1, 0, 60000, 3072})).epsg);
    EXPECT_EQ(of(34735, words({1, 1, 0, 1, 3073, 34737, 60000, 2}), bytes_of("short|")).coordinate_system, "");
}

TEST(LasSummary, ClassNames) {
    EXPECT_EQ(io::las_class_name(2), "ground");
    EXPECT_EQ(io::las_class_name(22), "temporal exclusion");
    EXPECT_EQ(io::las_class_name(23), "reserved");
    EXPECT_EQ(io::las_class_name(64), "user defined");
}

}  // namespace
}  // namespace stipple::test
