#include "stipple/io/las.h"

#include "tests/io/las_samples.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

/// Everything that LAS has a field for, on a grid of millimetres.
Mesh standard_cloud(int64_t n, bool wide) {
    Mesh mesh = dyadic_cloud(n);
    mesh.vertices.origin = {500000, 4649776, -12};
    for (int64_t i = 0; i < 3 * n; ++i) {
        float& p = mesh.vertices.positions.data()[i];
        p = static_cast<float>(std::round(p * 1000) * 0.001) + 0.0f;  // no -0, which no integer is
    }
    auto& a = mesh.vertices.attributes;
    const auto u8 = [&](const char* name, int limit) {
        a.push_back(make_attribute<uint8_t>(name, n, 1, [=](int64_t i) { return static_cast<uint8_t>(i % limit); }));
    };
    a.push_back(make_attribute<double>("time", n, 1, [](int64_t i) { return 3e8 + static_cast<double>(i) / 3; }));
    a.push_back(make_attribute<uint16_t>("color", n, 3, [](int64_t i) { return static_cast<uint16_t>(i * 321); }));
    a.push_back(make_attribute<uint16_t>("intensity", n, 1, [](int64_t i) { return static_cast<uint16_t>(i * 77); }));
    u8("return_number", wide ? 16 : 8);
    u8("number_of_returns", wide ? 15 : 7);
    u8("scan_direction", 2);
    u8("edge_of_flight_line", 2);
    u8("label", wide ? 256 : 32);
    u8("classification_flags", wide ? 16 : 8);
    u8("user_data", 200);
    a.push_back(make_attribute<uint16_t>("point_source_id", n, 1, [](int64_t i) { return static_cast<uint16_t>(i); }));
    if (wide) {
        u8("scanner_channel", 4);
        a.push_back(
            make_attribute<int16_t>("scan_angle", n, 1, [](int64_t i) { return static_cast<int16_t>(-i * 5); }));
        a.push_back(make_attribute<uint16_t>("nir", n, 1, [](int64_t i) { return static_cast<uint16_t>(i * 9); }));
    } else {
        a.push_back(make_attribute<int8_t>("scan_angle", n, 1, [](int64_t i) { return static_cast<int8_t>(i - 90); }));
    }
    return mesh;
}

TEST(Las, ReadsWhatItWrites) {
    for (const bool wide : {false, true}) {
        const Mesh mesh = standard_cloud(10'000, wide);
        io::Warnings warnings;
        const Bytes bytes = write(io::write_las, mesh, &warnings);
        EXPECT_EQ(get_at<uint8_t>(bytes, 25), wide ? 4 : 2);
        EXPECT_EQ(get_at<uint8_t>(bytes, 104), wide ? 8 : 3);
        EXPECT_EQ(get_at<double>(bytes, 131), 0.001);
        EXPECT_EQ(get_at<double>(bytes, 155), 500000);
        expect_equal(parse(io::parse_las, bytes, &warnings), mesh);
        expect_equal(parse_pipe(io::parse_las, bytes), mesh);
        EXPECT_TRUE(warnings.empty()) << warnings[0];
    }
}

TEST(Las, PositionsAlone) {
    for (const int64_t n : {1, 3000}) {
        const Mesh mesh = dyadic_cloud(n);  // multiples of 2^-20: exact in a power of two
        io::Warnings warnings;
        const Bytes bytes = write(io::write_las, mesh, &warnings);
        EXPECT_EQ(get_at<uint8_t>(bytes, 104), 0);
        expect_equal(parse(io::parse_las, bytes, &warnings), mesh);
        EXPECT_TRUE(warnings.empty());
    }
    Mesh zero = dyadic_cloud(2);
    std::fill_n(zero.vertices.positions.data(), 6, 0.0f);
    expect_equal(parse(io::parse_las, write(io::write_las, zero)), zero);
}

TEST(Las, RoundsWhereItMust) {
    Mesh mesh = dyadic_cloud(4);
    mesh.vertices.positions.data()[0] = 1e-12f;
    mesh.vertices.positions.data()[3] = 1234.5678f;
    io::Warnings warnings;
    const Mesh back = parse(io::parse_las, write(io::write_las, mesh, &warnings));
    ASSERT_EQ(warnings.size(), 1u);
    expect_contains(warnings[0], "LAS holds integers: positions are rounded by up to");
    for (int i = 0; i < 12; ++i)
        EXPECT_NEAR(back.vertices.positions.data()[i], mesh.vertices.positions.data()[i], 1e-4 * 0.5);
    EXPECT_EQ(back.vertices.positions.data()[3], 1234.5678f);

    mesh.vertices.positions.data()[7] = 3e38f;
    mesh.vertices.positions.data()[8] = -1e-40f;
    const Mesh wide = parse(io::parse_las, write(io::write_las, mesh));
    EXPECT_EQ(wide.vertices.positions.data()[7], 3e38f);
}

TEST(Las, OtherTypesAndExtraBytesComeBack) {
    const int64_t n = 300;
    Mesh mesh = dyadic_cloud(n);
    auto& a = mesh.vertices.attributes;
    a.push_back(make_attribute<uint8_t>("color", n, 3, [](int64_t i) { return static_cast<uint8_t>(i); }));
    a.push_back(make_attribute<float>("normal", n, 3, [](int64_t i) { return static_cast<float>(i) / 3; }));
    a.push_back(make_attribute<int64_t>("label", n, 1, [](int64_t i) { return i % 30; }));
    a.push_back(make_attribute<float>("time", n, 1, [](int64_t i) { return static_cast<float>(i) / 3; }));
    a.push_back(make_attribute<bool>("user_data", n, 1, [](int64_t i) { return i % 3 == 0; }));
    a.push_back(make_attribute<float>("intensity", n, 1, [](int64_t i) { return static_cast<float>(i) / 255; }));
    a.push_back(make_attribute<uint8_t>("u8", n, 1, [](int64_t i) { return static_cast<uint8_t>(i); }));
    a.push_back(make_attribute<int8_t>("i8", n, 2, [](int64_t i) { return static_cast<int8_t>(i); }));
    a.push_back(make_attribute<uint16_t>("u16", n, 1, [](int64_t i) { return static_cast<uint16_t>(i * 200); }));
    a.push_back(make_attribute<int16_t>("i16", n, 1, [](int64_t i) { return static_cast<int16_t>(-i); }));
    a.push_back(make_attribute<uint32_t>("u32", n, 1, [](int64_t i) { return static_cast<uint32_t>(i) << 22; }));
    a.push_back(make_attribute<int32_t>("i32", n, 1, [](int64_t i) { return static_cast<int32_t>(-i) << 20; }));
    a.push_back(make_attribute<uint64_t>("u64", n, 5, [](int64_t i) { return ~static_cast<uint64_t>(i); }));
    a.push_back(make_attribute<int64_t>("i64", n, 1, [](int64_t i) { return -i << 50; }));
    a.push_back(make_attribute<double>("f64", n, 1, [](int64_t i) { return static_cast<double>(i) / 3; }));
    a.push_back(make_attribute<bool>("flag", n, 1, [](int64_t i) { return i % 2 == 0; }));
    io::Warnings warnings;
    const Bytes bytes = write(io::write_las, mesh, &warnings);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0], "LAS: the values of attribute intensity do not fit its field; they are in extra bytes");
    EXPECT_EQ(get_at<uint8_t>(bytes, 104), 3);
    expect_equal(parse(io::parse_las, bytes, &warnings), mesh);
    EXPECT_EQ(warnings.size(), 1u);

    // Degrees in a file whose format has steps, and values that no field holds.
    Mesh odd = dyadic_cloud(n);
    odd.vertices.attributes.push_back(
        make_attribute<int8_t>("scan_angle", n, 1, [](int64_t i) { return static_cast<int8_t>(i % 181 - 90); }));
    odd.vertices.attributes.push_back(
        make_attribute<uint8_t>("scanner_channel", n, 1, [](int64_t i) { return static_cast<uint8_t>(i % 4); }));
    odd.vertices.attributes.push_back(make_attribute<int32_t>("label", n, 1, [](int64_t i) { return int32_t(i) - 1; }));
    expect_equal(parse(io::parse_las, write(io::write_las, odd)), odd);
}

TEST(Las, AllPointFormats) {
    for (int format = 0; format <= 10; ++format) {
        SCOPED_TRACE(format);
        const bool wide = format >= 6;
        for (const int minor : {0, 1, 2, 3, 4}) {
            if (wide && minor < 4) continue;
            io::Warnings warnings;
            const Bytes bytes = foreign(minor, format, 20);
            const Mesh mesh = parse(io::parse_las, bytes, &warnings);
            const PointCloud& cloud = mesh.vertices;
            ASSERT_EQ(cloud.size(), 20);
            EXPECT_NEAR(cloud.world(3, 1), (3 * 100 + 1 - 50) * 0.01 + 1000, 1e-5);
            const auto value = [&](const char* name, int64_t c = 0) {
                return find(cloud.attributes, name)->value(3, c);
            };
            const size_t header = minor == 4 ? 375 : minor == 3 ? 235 : 227, record = get_at<uint16_t>(bytes, 105);
            const auto byte = [&](size_t b) { return static_cast<int>(bytes[header + 3 * record + b]); };
            EXPECT_EQ(value("intensity"), byte(12) + 256 * byte(13));
            if (wide) {
                EXPECT_EQ(value("return_number"), byte(14) & 15);
                EXPECT_EQ(value("number_of_returns"), byte(14) >> 4);
                EXPECT_EQ(value("classification_flags"), byte(15) & 15);
                EXPECT_EQ(value("scanner_channel"), (byte(15) >> 4) & 3);
                EXPECT_EQ(value("scan_direction"), (byte(15) >> 6) & 1);
                EXPECT_EQ(value("edge_of_flight_line"), byte(15) >> 7);
                EXPECT_EQ(value("label"), byte(16));
                EXPECT_EQ(value("scan_angle"), static_cast<int16_t>(byte(18) + 256 * byte(19)));
                EXPECT_EQ(value("point_source_id"), byte(20) + 256 * byte(21));
            } else {
                EXPECT_EQ(value("return_number"), byte(14) & 7);
                EXPECT_EQ(value("number_of_returns"), (byte(14) >> 3) & 7);
                EXPECT_EQ(value("scan_direction"), (byte(14) >> 6) & 1);
                EXPECT_EQ(value("edge_of_flight_line"), byte(14) >> 7);
                EXPECT_EQ(value("label"), byte(15) & 31);
                EXPECT_EQ(value("classification_flags"), byte(15) >> 5);
                EXPECT_EQ(value("scan_angle"), static_cast<int8_t>(byte(16)));
                EXPECT_EQ(value("point_source_id"), byte(18) + 256 * byte(19));
            }
            EXPECT_EQ(value("user_data"), byte(17));
            const bool timed = format == 1 || format >= 3, waves = format == 4 || format == 5 || format >= 9;
            const bool colored =
                format == 2 || format == 3 || format == 5 || format == 7 || format == 8 || format == 10;
            EXPECT_EQ(find(cloud.attributes, "time") != nullptr, timed);
            EXPECT_EQ(find(cloud.attributes, "color") != nullptr, colored);
            EXPECT_EQ(find(cloud.attributes, "nir") != nullptr, format == 8 || format == 10);
            const size_t color = wide ? 30 : timed ? 28 : 20;
            if (colored) {
                EXPECT_EQ(value("color", 1), byte(color + 2) + 256 * byte(color + 3));
            }
            if (format == 8 || format == 10) {
                EXPECT_EQ(value("nir"), byte(36) + 256 * byte(37));
            }
            EXPECT_EQ(warnings.size(), waves ? 1u : 0u);
            // What was read is written and read again without loss.
            io::Warnings again;
            expect_equal(parse(io::parse_las, write(io::write_las, mesh, &again), &again), mesh);
            EXPECT_TRUE(again.empty()) << again[0];
        }
    }
}

TEST(Las, ExtraBytesOfOthers) {
    Bytes descriptors(3 * 192);
    const auto describe = [&](size_t i, int type, int options, const char* name) {
        put_at<uint8_t>(descriptors, 192 * i + 2, static_cast<uint8_t>(type));
        put_at<uint8_t>(descriptors, 192 * i + 3, static_cast<uint8_t>(options));
        std::memcpy(descriptors.data() + 192 * i + 4, name, std::strlen(name));
    };
    describe(0, 3, 8 | 16, "amplitude");
    put_at<double>(descriptors, 112, 0.5);
    put_at<double>(descriptors, 136, 10.0);
    describe(1, 0, 2, "");
    describe(2, 21, 0, "vector");
    io::Warnings warnings;
    const Bytes bytes = with_vlr(foreign(4, 6, 5, 9), "LASF_Spec", 4, descriptors);
    const Mesh mesh = parse(io::parse_las, bytes, &warnings);
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_EQ(warnings[0], "LAS: extra bytes without a type or a name are dropped");
    EXPECT_EQ(warnings[1], "LAS: 2 bytes of each point are not described: dropped");
    const size_t point = get_at<uint32_t>(bytes, 96);
    EXPECT_EQ(find(mesh.vertices.attributes, "amplitude")->value(0), 10 + 0.5 * get_at<uint16_t>(bytes, point + 30));
    EXPECT_EQ(find(mesh.vertices.attributes, "vector")->value(0, 2), get_at<uint8_t>(bytes, point + 36));
    expect_contains(refusal(io::parse_las, with_vlr(foreign(4, 6, 5, 6), "LASF_Spec", 4, descriptors)),
                    "of point records of 36 bytes");
}

TEST(Las, FactsOfTheFileAreCarriedAndWrittenBack) {
    const std::string keys = "geo keys";
    Bytes bytes = with_vlr(foreign(2, 1, 5), "LASF_Projection", 34735, bytes_of(keys));
    put_at<uint16_t>(bytes, 6, 1 | 8);
    io::Warnings warnings;
    const Mesh mesh = parse(io::parse_las, bytes, &warnings);
    EXPECT_TRUE(warnings.empty());
    const FileFacts& facts = mesh.vertices.facts;
    EXPECT_EQ(facts.time_type, TimeType::gps_adjusted_standard);
    EXPECT_TRUE(facts.synthetic_returns);
    ASSERT_EQ(facts.coordinate_system.size(), 1u);
    EXPECT_EQ(facts.coordinate_system[0], (FileFacts::Record{"LASF_Projection", 34735, "", keys}));
    EXPECT_EQ(facts.grid, (FileFacts::Grid{{0.01, 0.01, 0.01}, {0, 1000, 2000}}));

    const Bytes written = write(io::write_las, mesh, &warnings);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(get_at<uint16_t>(written, 6), 1 | 8);
    const FileFacts again = parse(io::parse_las, written).vertices.facts;
    EXPECT_EQ(again.coordinate_system, facts.coordinate_system);
    EXPECT_EQ(again.grid, facts.grid);
    EXPECT_EQ(again.time_type, facts.time_type);
    EXPECT_TRUE(again.synthetic_returns);

    // Every other format says that it has no place for a coordinate system.
    MemorySink sink;
    io::write(mesh, sink, io::Format::ply, {}, warnings);
    EXPECT_EQ(warnings.back(), "PLY cannot hold the coordinate system: dropped");
}

TEST(Las, TheTimeTypeOfWeekSecondsStays) {
    Bytes bytes = foreign(2, 1, 5);
    const Mesh week = parse(io::parse_las, bytes);
    EXPECT_EQ(week.vertices.facts.time_type, TimeType::gps_week_seconds);
    EXPECT_EQ(get_at<uint16_t>(write(io::write_las, week), 6), 0);
    put_at<uint8_t>(bytes, 25, 1);  // LAS 1.1 has other things in the bytes of the global encoding
    put_at<uint16_t>(bytes, 6, 0xffff);
    const Mesh old = parse(io::parse_las, bytes);
    EXPECT_EQ(old.vertices.facts.time_type, TimeType::unknown);
    EXPECT_EQ(get_at<uint16_t>(write(io::write_las, old), 6), 0xffff);  // and still does
}

TEST(Las, WktNeedsTheWidePointFormats) {
    Bytes bytes = with_vlr(foreign(4, 6, 5), "LASF_Projection", 2112, bytes_of("GEOGCS"));
    put_at<uint16_t>(bytes, 6, 1 | 16);
    const Mesh mesh = parse(io::parse_las, bytes);
    io::Warnings warnings;
    const Bytes written = write(io::write_las, mesh, &warnings);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(get_at<uint16_t>(written, 6), 1 | 16);
    EXPECT_EQ(get_at<uint8_t>(written, 104), 6);
    EXPECT_EQ(parse(io::parse_las, written).vertices.facts.coordinate_system, mesh.vertices.facts.coordinate_system);

    // What a file had stays, as long as the point format does, whatever the standard thinks of it.
    bytes = with_vlr(with_vlr(foreign(2, 3, 5), "LASF_Projection", 2112, bytes_of("GEOGCS")), "LASF_Projection", 34735,
                     bytes_of("keys"));
    const Bytes narrow = write(io::write_las, parse(io::parse_las, bytes), &warnings);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(get_at<uint8_t>(narrow, 104), 3);
    EXPECT_EQ(parse(io::parse_las, narrow).vertices.facts.coordinate_system.size(), 2u);
    // Else what the new one allows, which tells as much.
    Mesh wider = parse(io::parse_las, bytes);
    wider.vertices.attributes.push_back(make_attribute<uint16_t>("nir", 5, 1, [](int64_t) { return uint16_t{7}; }));
    const Bytes wide = write(io::write_las, wider, &warnings);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(get_at<uint8_t>(wide, 104), 8);
    ASSERT_EQ(parse(io::parse_las, wide).vertices.facts.coordinate_system.size(), 1u);
    EXPECT_EQ(parse(io::parse_las, wide).vertices.facts.coordinate_system[0].id, 2112);

    Mesh keys = standard_cloud(3, true);
    keys.vertices.facts.coordinate_system.push_back({"LASF_Projection", 34735, "", "keys"});
    write(io::write_las, keys, &warnings);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0], "LAS cannot hold a coordinate system in GeoTIFF keys with point format 8: dropped");
}

TEST(Las, EveryPrefixIsAnError) {
    expect_no_prefix(io::parse_las, foreign(2, 3, 2));
    Mesh mesh = dyadic_cloud(2);
    mesh.vertices.attributes.push_back(make_attribute<float>("x", 2, 1, [](int64_t) { return 1.0f; }));
    expect_no_prefix(io::parse_las, write(io::write_las, mesh));
}

TEST(Las, RefusesMalformedFiles) {
    const Bytes good = foreign(4, 7, 10);
    const auto with = [&](size_t at, auto value) {
        Bytes bytes = good;
        put_at(bytes, at, value);
        return refusal(io::parse_las, bytes);
    };
    expect_contains(refusal(io::parse_las, {}), "empty file");
    expect_contains(refusal(io::parse_las, bytes_of("LASX")), "not a LAS file");
    expect_contains(with(25, uint8_t{5}), "byte 24: LAS version 1.5");
    expect_contains(with(94, uint16_t{227}), "byte 94: header of 227 bytes; LAS 1.4 needs 375");
    expect_contains(with(96, uint32_t{100}), "byte 96: offset to the points 100 lies inside the header");
    expect_contains(with(96, uint32_t{4000000000u}), "10 points of 36 bytes at byte 4000000000");
    expect_contains(with(100, uint32_t{0xffffffffu}),
                    "byte 100: 4294967295 variable length records, the limit is 65536");
    expect_contains(with(100, uint32_t{3}), "3 variable length records need 162 bytes, there are 0");
    expect_contains(with(104, uint8_t{11}), "byte 104: point format 11");
    expect_contains(with(104, uint8_t{0x87}), "byte 104: the points are compressed (LAZ), and no record tells how");
    expect_contains(with(105, uint16_t{35}), "byte 105: point records of 35 bytes; point format 7 needs 36");
    expect_contains(with(247, uint64_t{11}),
                    "byte 247: 11 points of 36 bytes at byte 375 need 771 bytes, the file has 735");
    expect_contains(with(247, ~uint64_t{0}), "18446744073709551615 points, the limit is");
    expect_contains(with(131, 0.0), "byte 131: scale 0");
    expect_contains(with(139, std::nan("")), "byte 139: scale nan");
    expect_contains(with(155, HUGE_VAL), "byte 155: offset inf");
    expect_contains(with(131, 1e300), "put points beyond float32");
    Bytes evlr = good;
    put_at<uint64_t>(evlr, 235, 700);
    put_at<uint32_t>(evlr, 243, 1);
    expect_contains(refusal(io::parse_las, evlr), "byte 235: 1 extended records at byte 700 lie past the end");
    expect_contains(refusal(io::parse_las, with_vlr(good, "laszip encoded", 22204, Bytes(40))),
                    "byte 375: a record says that the points are compressed, the point format says that they are not");
    Bytes vlr = with_vlr(good, "somebody", 1, Bytes(10));
    put_at<uint16_t>(vlr, 375 + 20, 11);
    expect_contains(refusal(io::parse_las, vlr),
                    "byte 375: variable length record \"somebody\" of 11 bytes reaches into");
    io::ReadOptions options;
    options.limits.max_points = 9;
    expect_contains(refusal(io::parse_las, good, options), "10 points, the limit is 9");
}

TEST(Las, CountsOldAndNew) {
    Bytes bytes = foreign(4, 1, 10);
    put_at<uint64_t>(bytes, 247, 0);
    put_at<uint32_t>(bytes, 107, 10);
    EXPECT_EQ(parse(io::parse_las, bytes).vertices.size(), 10);
    put_at<uint64_t>(bytes, 247, 9);
    io::Warnings warnings;
    EXPECT_EQ(parse(io::parse_las, bytes, &warnings).vertices.size(), 9);
    expect_contains(warnings.at(0), "10 points in its old field and 9 in its new one");
}

TEST(Las, TellsOfPrecisionAndLosses) {
    Bytes coarse = foreign(2, 0, 2);
    put_at<int32_t>(coarse, 227, 2000000000);
    io::Warnings warnings;
    parse(io::parse_las, coarse, &warnings);
    ASSERT_EQ(warnings.size(), 1u);
    expect_contains(warnings[0],
                    "LAS: x reaches 2e+07 about the origin, where float32 has steps of 2; the file's scale 0.01");

    Mesh mesh = dyadic_cloud(3);
    mesh.triangles = Array<int32_t, 2>({1, 3});
    mesh.vertices.attributes.push_back(make_attribute<uint8_t>("color", 3, 4, [](int64_t) { return uint8_t{1}; }));
    mesh.vertices.attributes.push_back(
        make_attribute<uint8_t>("a name that is longer than 32 bytes", 3, 1, [](int64_t) { return uint8_t{1}; }));
    warnings.clear();
    write(io::write_las, mesh, &warnings);
    EXPECT_EQ(warnings.at(0),
              "LAS cannot hold faces, alpha and attribute a name that is longer than 32 bytes: dropped");

    mesh = dyadic_cloud(1);
    mesh.vertices.attributes.emplace_back("half", DType::f16, 1, 1);
    const uint16_t bits = 0x3e00;
    std::memcpy(mesh.vertices.attributes[0].data(), &bits, 2);
    warnings.clear();
    const Mesh wide = parse(io::parse_las, write(io::write_las, mesh, &warnings));
    EXPECT_EQ(warnings.at(0), "LAS has no float16: attribute half is written as float32");
    EXPECT_EQ(find(wide.vertices.attributes, "half")->value(0), 1.5);

    mesh = dyadic_cloud(3);
    mesh.vertices.positions.data()[4] = NAN;
    try {
        write(io::write_las, mesh);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        expect_contains(error.what(), "non-finite coordinates of point 1");
    }
}

TEST(Las, AgreesWithNumpy) {
    const TemporaryFolder folder;
    write_bytes(folder / "ours.las", write(io::write_las, standard_cloud(500, true)));
    run_python(folder, R"(
import numpy as np, struct
b = open('ours.las', 'rb').read()
at, vlrs, form, length = struct.unpack_from('<IIBH', b, 96)
assert (form, length, vlrs) == (8, 38, 1)
assert struct.unpack_from('<I', b, 107)[0] == 0 and struct.unpack_from('<Q', b, 247)[0] == 500
assert sum(struct.unpack_from('<15Q', b, 255)) == 500 - 500 // 16 - 1
t = np.dtype([('xyz', '<i4', 3), ('intensity', '<u2'), ('returns', 'u1'), ('flags', 'u1'), ('class', 'u1'),
              ('user', 'u1'), ('angle', '<i2'), ('source', '<u2'), ('time', '<f8'), ('rgb', '<u2', 3), ('nir', '<u2')])
p = np.frombuffer(b, t, 500, at)
scale, offset = np.frombuffer(b, '<f8', 3, 131), np.frombuffer(b, '<f8', 3, 155)
world = p['xyz'] * scale + offset
hi, lo = np.frombuffer(b, '<f8', 6, 179).reshape(3, 2).T
assert np.array_equal(world.max(0), hi) and np.array_equal(world.min(0), lo)
i = np.arange(500)
assert np.array_equal(p['class'], i % 256) and np.array_equal(p['returns'] & 15, i % 16)
assert np.array_equal(p['angle'], -i * 5) and np.array_equal(p['time'], 3e8 + i / 3)
world.tofile('world.bin')
)");
    const Bytes world = read_bytes(folder / "world.bin");
    const Mesh mesh = standard_cloud(500, true);
    ASSERT_EQ(world.size(), 500u * 24);
    for (int64_t i = 0; i < 500; ++i)
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_NEAR(get_at<double>(world, static_cast<size_t>(24 * i + 8 * axis)), mesh.vertices.world(i, axis),
                        1e-6);
}

}  // namespace
}  // namespace stipple::test
