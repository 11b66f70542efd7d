// LAZ: what tests/support/laz_writer.h compresses comes back byte for byte. Its files were read by laz-perf alike.

#include <random>

#include "stipple/io/cloud_stream.h"
#include "stipple/io/las.h"
#include "tests/io/las_samples.h"
#include "tests/support/allocation.h"
#include "tests/support/data_sets.h"
#include "tests/support/laz_writer.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

/// Records like those of a scanner: small steps, some returns, four clocks, and now and then anything at all.
Bytes scanned(int minor, int format, size_t n, size_t more_bytes = 0, bool channels = false) {
    Bytes bytes = foreign(minor, format, n, more_bytes);
    const size_t at = get_at<uint32_t>(bytes, 96), record = get_at<uint16_t>(bytes, 105);
    std::mt19937_64 rng(static_cast<uint64_t>(format) + 1);
    const auto below = [&](uint64_t count) { return static_cast<uint32_t>(rng() % count); };
    std::array<double, 5> clocks = {300'000, 310'000, 1e9, -5, 7e-300};
    const double ticks[] = {1e-5, 1e-5, 2e-5, 3.3e-5, -1e-5, 1e-3, 5e-2, 1, 0, 1e-9, -1e-3};
    size_t clock = 0;
    uint32_t x = 0, y = 0;
    uint8_t channel = 2;
    std::array<uint16_t, 4> color = {1000, 2000, 3000, 4000};
    for (size_t i = 0; i < n; ++i) {
        const size_t p = at + i * record;
        for (size_t b = 0; b < record; ++b) bytes[p + b] = static_cast<std::byte>(b < 20 ? 0 : (i / 7 + b) % 256);
        x += below(80) - 30;
        y += below(60) - 30;
        if (below(100) == 0) x = below(uint64_t{1} << 32);
        put_at(bytes, p, x);
        put_at(bytes, p + 4, y);
        put_at(bytes, p + 8, static_cast<int32_t>(below(50)) + (below(500) == 0 ? 1 << 30 : 0));
        put_at(bytes, p + 12, static_cast<uint16_t>(below(3) == 0 ? 0 : below(65536)));
        const uint32_t of = 1 + below(below(20) == 0 ? 7 : 3), number = below(50) == 0 ? below(8) : 1 + below(of);
        if (below(2) == 0) clocks[clock] += ticks[below(std::size(ticks))];
        if (below(40) == 0) clock = below(5);
        if (below(200) == 0) clocks[clock] = std::ldexp(1.0, static_cast<int>(below(1000)));
        if (below(2) == 0) color[below(3)] = static_cast<uint16_t>(below(65536));
        if (below(5) == 0) color[1] = color[2] = color[0];
        size_t rest = p + 20;
        if (format >= 6) {
            if (channels && below(8) == 0) channel = static_cast<uint8_t>(below(4));
            put_at(bytes, p + 14, static_cast<uint8_t>(number | of << 4));
            put_at(bytes, p + 15, static_cast<uint8_t>(below(2) | channel << 4 | below(2) << 6));
            put_at(bytes, p + 16, static_cast<uint8_t>(below(6)));
            put_at(bytes, p + 17, static_cast<uint8_t>(below(4) == 0 ? below(256) : 0));
            put_at(bytes, p + 18, static_cast<int16_t>(below(9) == 0 ? below(30'000) : 0));
            put_at(bytes, p + 20, static_cast<uint16_t>(i / 50));
            put_at(bytes, p + 22, clocks[clock]);
            rest = p + 30;
        } else {
            put_at(bytes, p + 14, static_cast<uint8_t>(number | of << 3 | below(2) << 6));
            put_at(bytes, p + 15, static_cast<uint8_t>(below(6)));
            put_at(bytes, p + 16, static_cast<int8_t>(below(9) == 0 ? below(90) : 0));
            put_at(bytes, p + 17, static_cast<uint8_t>(below(4) == 0 ? below(256) : 0));
            put_at(bytes, p + 18, static_cast<uint16_t>(i / 50));
            if (format % 2 == 1) put_at(bytes, rest, clocks[clock]);
            if (format % 2 == 1) rest += 8;
        }
        if (format == 2 || format == 3 || format >= 7)
            std::memcpy(bytes.data() + rest, color.data(), format == 8 ? 8 : 6);
    }
    return bytes;
}

Bytes records_in(const Bytes& las) {
    const size_t at = get_at<uint32_t>(las, 96), record = get_at<uint16_t>(las, 105);
    size_t n = get_at<uint32_t>(las, 107);
    if (get_at<uint8_t>(las, 25) == 4 && get_at<uint64_t>(las, 247) > 0) n = get_at<uint64_t>(las, 247);
    const auto begin = las.begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + static_cast<std::ptrdiff_t>(n * record)};
}

/// The file as `convert` writes it: in chunks, with its records.
Bytes streamed(const Bytes& bytes, const TemporaryFolder& folder, int64_t chunk, io::Warnings& warnings) {
    const std::string in = folder / "in.laz", out = folder / "out.las";
    write_bytes(in, bytes);
    io::StreamOptions options;
    options.chunk_points = chunk;
    options.las_records = true;
    const auto reader = io::CloudReader::open(in, options, warnings);
    const auto writer = io::CloudWriter::open(out, Overwrite::allow, {}, warnings);
    io::copy_cloud(*reader, *writer);
    return read_bytes(out);
}

void expect_same_cloud(const Mesh& a, const Mesh& b) {
    expect_equal(a, b);
    const FileFacts &p = a.vertices.facts, &q = b.vertices.facts;
    ASSERT_TRUE(p.las && q.las);
    EXPECT_EQ(p.las->records, q.las->records);
    EXPECT_EQ(p.las->extended, q.las->extended);
}

class LazFormat : public testing::TestWithParam<int> {};

TEST_P(LazFormat, RecordsComeBackByteForByte) {
    const int format = GetParam(), minor = format >= 6 ? 4 : 2;
    const TemporaryFolder folder(Where::memory);
    for (const bool channels : {false, true})
        for (const size_t extra : {0, 5}) {
            const Bytes las = scanned(minor, format, 3000, extra, channels);
            LazOptions options;
            options.chunk_points = 700;
            io::Warnings warnings;
            const Bytes laz = to_laz(las, options);
            EXPECT_LT(laz.size(), las.size());
            EXPECT_TRUE(records_in(streamed(laz, folder, 1000, warnings)) == records_in(las)) << extra;
            io::Warnings plain, packed;
            expect_same_cloud(parse(io::parse_las, las, &plain), parse(io::parse_las, laz, &packed));
            EXPECT_EQ(plain, packed);
        }
}

TEST_P(LazFormat, NoiseComesBack) {
    const int format = GetParam();
    Bytes las = foreign(format >= 6 ? 4 : 2, format, 500, 3);
    std::mt19937_64 rng(7);
    for (size_t i = get_at<uint32_t>(las, 96); i < las.size(); ++i) las[i] = static_cast<std::byte>(rng() % 256);
    const TemporaryFolder folder(Where::memory);
    io::Warnings warnings;
    EXPECT_TRUE(records_in(streamed(to_laz(las), folder, 64, warnings)) == records_in(las));
}

TEST_P(LazFormat, ChunksOfAnySizeAndTablesAnywhere) {
    const int format = GetParam(), minor = format >= 6 ? 4 : 2;
    const Bytes las = scanned(minor, format, 100, 2);
    const Mesh expected = parse(io::parse_las, las);
    std::vector<LazOptions> all(6);
    all[0].chunk_points = 1;
    all[1].chunk_points = 100;
    all[2].chunk_points = 33;
    all[2].place_at_end = true;
    all[3].chunks = {1, 2, 50, 47};
    all[4].chunks = {100};
    all[4].place_at_end = true;
    all[5].chunk_points = 40;
    all[5].table = false;
    for (const LazOptions& options : all) {
        const Bytes laz = to_laz(las, options);
        io::Warnings warnings;
        expect_same_cloud(expected, parse(io::parse_las, laz, &warnings));
        const bool warned = std::any_of(warnings.begin(), warnings.end(), [](const std::string& w) {
            return w.find("the table of chunks is missing") != w.npos;
        });
        EXPECT_EQ(warned, !options.table);
        if (options.place_at_end && !options.chunks.empty() && format < 6) continue;  // cannot be told from a pipe
        PipeSource pipe(laz);
        io::ByteReader reader(pipe);
        expect_same_cloud(expected, io::parse_las(reader, {}, warnings));
    }
}

TEST_P(LazFormat, EveryPrefixIsAnError) {
    const int format = GetParam();
    LazOptions options;
    options.chunk_points = 3;
    expect_no_prefix(io::parse_las, to_laz(scanned(format >= 6 ? 4 : 2, format, 5, 1), options));
    options.chunks = {2, 3};
    expect_no_prefix(io::parse_las, to_laz(scanned(format >= 6 ? 4 : 2, format, 5, 1), options));
}

TEST_P(LazFormat, DamageIsAnErrorOrOtherPoints) {
    const int format = GetParam();
    const Bytes laz = to_laz(scanned(format >= 6 ? 4 : 2, format, 60, 1));
    std::mt19937_64 rng(3);
    for (int i = 0; i < 400; ++i) {
        Bytes bytes = laz;
        bytes[get_at<uint32_t>(laz, 96) + rng() % (laz.size() - get_at<uint32_t>(laz, 96))] ^=
            static_cast<std::byte>(1 + rng() % 255);
        try {
            EXPECT_EQ(parse(io::parse_las, bytes).vertices.size(), 60);
        } catch (const Error& error) {
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Points, LazFormat, testing::Values(0, 1, 2, 3, 6, 7, 8),
                         [](const auto& format) { return "format" + std::to_string(format.param); });

TEST(Laz, KeepsAllRecordsOfTheFile) {
    for (const auto& [minor, format] : {std::pair{2, 1}, {3, 3}, {4, 7}}) {
        const Bytes las = talkative(minor, format, 50), laz = to_laz(las);
        io::Warnings one, two;
        expect_same_cloud(parse(io::parse_las, las, &one), parse(io::parse_las, laz, &two));
        EXPECT_EQ(one, two);
        const TemporaryFolder folder(Where::memory);
        const Bytes kept = streamed(laz, folder, 20, one), plain = streamed(las, folder, 20, one);
        EXPECT_TRUE(kept == plain);
    }
}

TEST(Laz, TheIndexOfCloudOptimisedFilesIsLeftOut) {
    const Bytes las = scanned(4, 7, 20);
    Bytes copc = with_vlr(with_evlr(las, "somebody", 3, Bytes(10)), "copc", 1, Bytes(160));
    put_at<uint64_t>(copc, 235, get_at<uint64_t>(copc, 235) + 54 + 160);
    copc = with_evlr(copc, "copc", 1000, Bytes(320));
    const Mesh mesh = parse(io::parse_las, to_laz(copc));
    expect_equal(parse(io::parse_las, las), mesh);
    EXPECT_EQ(mesh.vertices.facts.las->records.size(), 0u);
    EXPECT_EQ(mesh.vertices.facts.las->extended.size(), 1u);
}

TEST(Laz, AllocationFailures) {
    LazOptions options;
    options.chunks = {3};
    for (const int format : {3, 8}) {
        const Bytes laz = to_laz(scanned(format >= 6 ? 4 : 2, format, 3, 1), options);
        for_each_allocation_failure([&] { parse(io::parse_las, laz); });
    }
}

TEST(Laz, EmptyFilesAndBadNames) {
    EXPECT_EQ(parse(io::parse_las, to_laz(foreign(2, 3, 0))).vertices.size(), 0);
    const TemporaryFolder folder;
    io::Warnings warnings;
    const Mesh mesh = parse(io::parse_las, foreign(2, 1, 4));
    try {
        io::save(folder / "out.laz", mesh, Overwrite::refuse, {}, warnings);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.message().find("LAZ is read, not written"), std::string::npos);
        EXPECT_NE(error.hint().find("laszip -i out.las -o out.laz"), std::string::npos);
    }
    // Told by its content, whatever its name.
    write_bytes(folder / "a.ply", to_laz(foreign(2, 1, 4)));
    expect_same_cloud(mesh, io::load(folder / "a.ply", {}, warnings));
}

TEST(Laz, RefusesMalformedFiles) {
    const Bytes good = to_laz(scanned(2, 1, 50));
    const size_t record = 227 + 54, points = get_at<uint32_t>(good, 96);
    const auto with = [&](size_t at, auto value) {
        Bytes bytes = good;
        put_at(bytes, at, value);
        return refusal(io::parse_las, bytes);
    };
    expect_contains(with(record, uint16_t{1}), "byte 281: points of format 1 compressed by method 1.0 are not read");
    expect_contains(with(record + 12, uint32_t{0}), "byte 293: chunks of 0 points");
    expect_contains(with(record + 32, uint16_t{9}), "ends after 46 bytes");
    expect_contains(with(record + 32, uint16_t{1}), "1 parts of compressed records; point format 1 with records of 28");
    expect_contains(with(record + 34, uint16_t{8}), "part 0 of the compressed records is of type 8 and 20 bytes");
    expect_contains(with(record + 38, uint16_t{1}), "version 1 of the compression of part 0 is not read; 2 is");
    expect_contains(with(points, int64_t{1} << 40), "the table of chunks is said to be at byte 1099511627776");
    expect_contains(with(points, int64_t{5}), "the table of chunks is said to be at byte 5");
    expect_contains(with(96, uint32_t{1} << 30), "offset to the points 1073741824 lies past the end");
    expect_contains(with(107, uint32_t{49}), "their table of chunks is at byte");
    expect_contains(with(107, uint32_t{2'000'000'000}), "ends too early");
    expect_contains(with(get_at<uint64_t>(good, points), uint32_t{1}), "version 1 of the table of chunks");
    expect_contains(with(get_at<uint64_t>(good, points) + 4, uint32_t{1000}), "a table of 1000 chunks, more than");
    expect_contains(refusal(io::parse_las,
                            [&] {
                                Bytes bytes = to_laz(foreign(2, 1, 5));
                                put_at<uint8_t>(bytes, 104, 0x84);
                                put_at<uint16_t>(bytes, 105, 57);
                                return bytes;
                            }()),
                    "compressed points of format 4 are not read; 0 to 3 and 6 to 8 are");
}

TEST(Laz, SmallFilesOfManyPointsNeedLittleMemory) {
    // The points of this file are all the same: they take no space, however many they are.
    Bytes las = foreign(2, 0, 200'000);
    std::fill(las.begin() + 227, las.end(), std::byte{});
    const Bytes laz = to_laz(las);
    EXPECT_LT(laz.size() * 1100, las.size());
    EXPECT_EQ(parse(io::parse_las, laz).vertices.size(), 200'000);
    io::ReadOptions options;
    options.limits.max_inflated = 1 << 20;
    expect_contains(refusal(io::parse_las, laz, options), "more than 1100 times as many as are stored");
}

TEST(Laz, ScansOfTheWorld) {
    STIPPLE_NEEDS_DATA("scans/las");
    for (const char* name : {"autzen-bmx-2010.las", "warsaw_small.las"}) {
        const Bytes las = read_bytes(*data_file("scans/las") + "/" + name);
        LazOptions options;
        options.chunk_points = 500;
        io::Warnings one, two;
        expect_same_cloud(parse(io::parse_las, las, &one), parse(io::parse_las, to_laz(las, options), &two));
        EXPECT_EQ(one, two);
    }
}

}  // namespace
}  // namespace stipple::test
