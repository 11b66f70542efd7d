// A LAS file that was written from another has everything that nobody changed.

#include "stipple/io/cloud_stream.h"
#include "stipple/io/las.h"
#include "tests/io/las_samples.h"
#include "tests/support/data_sets.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

struct LasParts {
    Bytes before, records, behind;  // of the points
};

LasParts parts_of(const Bytes& bytes) {
    const size_t at = get_at<uint32_t>(bytes, 96), record = get_at<uint16_t>(bytes, 105);
    size_t n = get_at<uint32_t>(bytes, 107);
    if (get_at<uint8_t>(bytes, 25) == 4 && get_at<uint64_t>(bytes, 247) > 0) n = get_at<uint64_t>(bytes, 247);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(n * record);
    return {{bytes.begin(), begin}, {begin, end}, {end, bytes.end()}};
}

/// Who generated a file, its counts and its bounds are the writer's; foreign() leaves counts of returns and bounds 0.
void forget_counts(Bytes& header) {
    std::fill_n(header.begin() + 58, 32, std::byte{});
    std::fill_n(header.begin() + 107, 24, std::byte{});
    std::fill_n(header.begin() + 179, 48, std::byte{});
    if (get_at<uint8_t>(header, 25) == 4) std::fill_n(header.begin() + 247, 128, std::byte{});
}

void expect_kept(const Bytes& was, const Bytes& is) {
    LasParts before = parts_of(was), after = parts_of(is);
    EXPECT_TRUE(before.records == after.records);
    EXPECT_TRUE(before.behind == after.behind);
    forget_counts(before.before);
    forget_counts(after.before);
    ASSERT_EQ(before.before.size(), after.before.size());
    for (size_t i = 0; i < before.before.size(); ++i) ASSERT_EQ(before.before[i], after.before[i]) << "byte " << i;
    EXPECT_EQ(std::memcmp(is.data() + 58, "stipple\0", 8), 0);
}

Bytes through_stream(const Bytes& bytes, const TemporaryFolder& folder, int64_t chunk, bool attributes = false,
                     io::WriteOptions writing = {}) {
    write_bytes(folder / "in.las", bytes);
    io::Warnings warnings;
    io::StreamOptions options;
    options.chunk_points = chunk;
    options.attributes = attributes;
    options.las_records = true;
    const auto reader = io::CloudReader::open(folder / "in.las", options, warnings);
    const auto writer = io::CloudWriter::open(folder / "out.las", Overwrite::allow, writing, warnings);
    io::copy_cloud(*reader, *writer);
    EXPECT_TRUE(warnings.empty()) << warnings[0];
    return read_bytes(folder / "out.las");
}

TEST(LasKeep, RecordsPassUnchangedInChunks) {
    const TemporaryFolder folder;
    for (const auto& [minor, formats] : std::vector<std::pair<int, std::vector<int>>>{
             {0, {0, 1}}, {1, {0, 1}}, {2, {0, 1, 2, 3}}, {3, {0, 3, 4, 5}}, {4, {0, 3, 4, 6, 7, 8, 9, 10}}})
        for (const int format : formats) {
            const Bytes bytes = talkative(minor, format, 100);
            for (const int64_t chunk : {1, 7, 100, 1000}) {
                SCOPED_TRACE(fmt::format("1.{} format {} by {}", minor, format, chunk));
                expect_kept(bytes, through_stream(bytes, folder, chunk, chunk == 7));
            }
        }
}

TEST(LasKeep, WhatStandsBeforeThePointsWithoutARecordStays) {
    const TemporaryFolder folder;
    Bytes bytes = talkative(2, 1, 4);
    const auto at = get_at<uint32_t>(bytes, 96);
    bytes.insert(bytes.begin() + at, {std::byte{0xdd}, std::byte{0xcc}});
    put_at<uint32_t>(bytes, 96, at + 2);
    // A header that is longer than its version asks for.
    bytes.insert(bytes.begin() + 227, 9, std::byte{0x42});
    put_at<uint16_t>(bytes, 94, 236);
    put_at<uint32_t>(bytes, 96, at + 11);
    expect_kept(bytes, through_stream(bytes, folder, 3));
}

TEST(LasKeep, CountsAndBoundsAreThoseOfThePoints) {
    const TemporaryFolder folder;
    for (const int format : {3, 7}) {
        const Bytes was = talkative(4, format, 1000), is = through_stream(was, folder, 300);
        std::array<uint64_t, 16> returns = {};
        std::array<int32_t, 3> low, high;
        low.fill(std::numeric_limits<int32_t>::max());
        high.fill(std::numeric_limits<int32_t>::min());
        const size_t at = get_at<uint32_t>(was, 96), record = get_at<uint16_t>(was, 105);
        for (size_t i = 0; i < 1000; ++i) {
            ++returns[get_at<uint8_t>(was, at + i * record + 14) & (format >= 6 ? 15u : 7u)];
            for (size_t a = 0; a < 3; ++a) {
                low[a] = std::min(low[a], get_at<int32_t>(was, at + i * record + 4 * a));
                high[a] = std::max(high[a], get_at<int32_t>(was, at + i * record + 4 * a));
            }
        }
        EXPECT_EQ(get_at<uint64_t>(is, 247), 1000u);
        EXPECT_EQ(get_at<uint32_t>(is, 107), format >= 6 ? 0u : 1000u);
        for (size_t r = 1; r <= 15; ++r) EXPECT_EQ(get_at<uint64_t>(is, 255 + 8 * (r - 1)), returns[r]) << r;
        for (size_t a = 0; a < 3; ++a) {
            const double offset = 1000.0 * static_cast<double>(a);
            EXPECT_DOUBLE_EQ(get_at<double>(is, 179 + 16 * a), high[a] * 0.01 + offset);
            EXPECT_DOUBLE_EQ(get_at<double>(is, 187 + 16 * a), low[a] * 0.01 + offset);
        }
    }
}

TEST(LasKeep, RealFiles) {
    STIPPLE_NEEDS_DATA("scans/las");
    const TemporaryFolder folder;
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(*data_file("scans/las"))) {
        if (entry.path().extension() != ".las") continue;
        Bytes was = read_bytes(entry.path().string()), is = through_stream(was, folder, 500);
        std::fill_n(was.begin() + 58, 32, std::byte{});
        std::fill_n(is.begin() + 58, 32, std::byte{});
        EXPECT_TRUE(was == is) << entry.path();  // counts and bounds too
        ++files;
    }
    EXPECT_GT(files, 0);
}

TEST(LasKeep, SelectedPointsKeepTheirRecords) {
    const TemporaryFolder folder;
    const Bytes was = talkative(4, 7, 50);
    write_bytes(folder / "in.las", was);
    io::Warnings warnings;
    io::StreamOptions options;
    options.chunk_points = 20;
    options.las_records = true;
    const auto reader = io::CloudReader::open(folder / "in.las", options, warnings);
    EXPECT_EQ(reader->points(), 50);
    const auto writer = io::CloudWriter::open(folder / "out.las", Overwrite::refuse, {}, warnings);
    for (PointCloud chunk; reader->next(chunk);) {
        EXPECT_TRUE(find(chunk.attributes, "label"));
        const std::vector<int32_t> kept = {1, 4};
        writer->write(select(chunk, View<const int32_t, 1>(kept.data(), {2})));
    }
    EXPECT_EQ(folder.entries().size(), 2u);  // in.las and a hidden file
    EXPECT_EQ(writer->finish(), 6);
    const LasParts before = parts_of(was), after = parts_of(read_bytes(folder / "out.las"));
    const size_t record = get_at<uint16_t>(was, 105);
    size_t at = 0;
    for (const size_t i : {1, 4, 21, 24, 41, 44}) {
        EXPECT_EQ(std::memcmp(after.records.data() + at, before.records.data() + i * record, record), 0) << i;
        at += record;
    }
    EXPECT_EQ(after.records.size(), at);
    EXPECT_TRUE(after.behind == before.behind);
    EXPECT_TRUE(warnings.empty());
}

/// The chunks of a file, put together again.
Mesh joined_chunks(const std::string& path, const io::StreamOptions& options) {
    io::Warnings warnings;
    const auto reader = io::CloudReader::open(path, options, warnings);
    MemorySink sink;
    const auto writer = io::CloudWriter::open(sink, io::Format::npz, {}, warnings);
    EXPECT_EQ(io::copy_cloud(*reader, *writer), reader->points());
    return parse(io::info_of(io::Format::npz).parse, sink.bytes());
}

TEST(LasKeep, ChunksAreTheWhole) {
    const TemporaryFolder folder;
    Mesh own = dyadic_cloud(77);
    auto& a = own.vertices.attributes;
    a.push_back(make_attribute<uint8_t>("color", 77, 3, [](int64_t i) { return static_cast<uint8_t>(i); }));
    a.push_back(make_attribute<float>("intensity", 77, 1, [](int64_t i) { return static_cast<float>(i) / 9; }));
    a.push_back(make_attribute<int64_t>("label", 77, 1, [](int64_t i) { return i % 30; }));
    for (const Bytes& bytes : {foreign(2, 3, 77), foreign(4, 8, 77), write(io::write_las, own)}) {
        write_bytes(folder / "in.las", bytes);
        const Mesh whole = parse(io::parse_las, bytes);
        for (const int64_t chunk : {1, 10, 77}) {
            io::StreamOptions options;
            options.chunk_points = chunk;
            const Mesh found = joined_chunks(folder / "in.las", options);
            ASSERT_EQ(found.vertices.attributes.size(), whole.vertices.attributes.size());
            for (size_t k = 0; k < whole.vertices.attributes.size(); ++k)
                EXPECT_TRUE(found.vertices.attributes[k] == whole.vertices.attributes[k])
                    << whole.vertices.attributes[k].name();
            for (int64_t i = 0; i < 77; ++i)
                for (int axis = 0; axis < 3; ++axis)
                    ASSERT_NEAR(found.vertices.world(i, axis), whole.vertices.world(i, axis), 1e-5);
            options.only = {"label", "nothing"};
            const Mesh labels = joined_chunks(folder / "in.las", options);
            ASSERT_EQ(labels.vertices.attributes.size(), 1u);
            EXPECT_TRUE(labels.vertices.attributes[0] == *find(whole.vertices.attributes, "label"));
        }
    }
}

TEST(LasKeep, OtherFormatsAreHandedOutInChunks) {
    const TemporaryFolder folder;
    io::Warnings warnings;
    Mesh mesh = dyadic_cloud(30);
    mesh.vertices.attributes.push_back(
        make_attribute<float>("f", 30, 2, [](int64_t i) { return static_cast<float>(i); }));
    for (const char* name : {"a.ply", "a.pcd", "a.npz"}) {
        io::save(folder / name, mesh, Overwrite::refuse, {}, warnings);
        io::StreamOptions options;
        options.chunk_points = 7;
        options.las_records = true;  // which is nothing to them
        expect_equal(joined_chunks(folder / name, options), mesh);
    }
    // Into LAS without a grid: gathered, and written as a whole is.
    io::StreamOptions options;
    options.chunk_points = 7;
    const auto reader = io::CloudReader::open(folder / "a.ply", options, warnings);
    const auto writer = io::CloudWriter::open(folder / "a.las", Overwrite::refuse, {}, warnings);
    EXPECT_EQ(io::copy_cloud(*reader, *writer), 30);
    expect_equal(parse(io::parse_las, read_bytes(folder / "a.las")), mesh);
    try {
        io::CloudReader::open(folder / "missing.las", options, warnings);
        ADD_FAILURE();
    } catch (const Error& error) {
        expect_contains(error.what(), "missing.las");
    }
}

TEST(LasKeep, NoPointsAreAFileToo) {
    const TemporaryFolder folder;
    const Bytes bytes = talkative(4, 6, 0);
    expect_kept(bytes, through_stream(bytes, folder, 10));
}

TEST(LasKeep, AnotherGridMovesTheIntegersAlone) {
    const TemporaryFolder folder;
    const Bytes was = talkative(2, 3, 60);
    io::WriteOptions writing;
    writing.scale = {0.001, 0.01, 0.1};
    writing.offset = {-10, 900, 2000};
    const Bytes is = through_stream(was, folder, 25, false, writing);
    const LasParts before = parts_of(was), after = parts_of(is);
    const size_t record = get_at<uint16_t>(was, 105);
    EXPECT_EQ(get_at<double>(is, 131), 0.001);
    EXPECT_EQ(get_at<double>(is, 163), 900);
    for (size_t i = 0; i < 60; ++i) {
        for (size_t a = 0; a < 3; ++a) {
            const double world = get_at<int32_t>(before.records, i * record + 4 * a) * 0.01 + 1000.0 * a;
            const double back =
                get_at<int32_t>(after.records, i * record + 4 * a) * (*writing.scale)[a] + (*writing.offset)[a];
            EXPECT_NEAR(world, back, 0.5 * (*writing.scale)[a] + 1e-9);
        }
        EXPECT_EQ(
            std::memcmp(before.records.data() + i * record + 12, after.records.data() + i * record + 12, record - 12),
            0);
    }
    writing.scale = {1e-12, 1, 1};
    EXPECT_THROW(through_stream(was, folder, 25, false, writing), Error);
}

TEST(LasKeep, ShiftsMoveTheOffset) {
    const TemporaryFolder folder;
    const Bytes was = talkative(4, 7, 20);
    write_bytes(folder / "in.las", was);
    io::Warnings warnings;
    io::StreamOptions options;
    options.las_records = true;
    const auto reader = io::CloudReader::open(folder / "in.las", options, warnings);
    const auto writer = io::CloudWriter::open(folder / "out.las", Overwrite::refuse, {}, warnings);
    for (PointCloud chunk; reader->next(chunk);) {
        shift_origin(chunk, {100, -200, 0.5});
        writer->write(std::move(chunk));
    }
    writer->finish();
    const Bytes is = read_bytes(folder / "out.las");
    EXPECT_TRUE(parts_of(was).records == parts_of(is).records);
    EXPECT_EQ(get_at<double>(is, 155), 100);
    EXPECT_EQ(get_at<double>(is, 163), 800);
    EXPECT_EQ(get_at<double>(is, 171), 2000.5);
    const FileFacts facts = parse(io::parse_las, is).vertices.facts;
    EXPECT_TRUE(facts.coordinate_system.empty());  // it is not true any more
    EXPECT_EQ(facts.las->records.size(), 1u);
    EXPECT_EQ(facts.las->extended.size(), 1u);
}

TEST(LasKeep, RecordsOfMovedPointsAreRefused) {
    const TemporaryFolder folder;
    write_bytes(folder / "in.las", talkative(2, 3, 20));
    io::Warnings warnings;
    io::StreamOptions options;
    options.las_records = true;
    const auto reader = io::CloudReader::open(folder / "in.las", options, warnings);
    PointCloud chunk;
    ASSERT_TRUE(reader->next(chunk));
    chunk.positions.data()[5] += 1;
    const auto writer = io::CloudWriter::open(folder / "out.las", Overwrite::refuse, {}, warnings);
    try {
        writer->write(chunk.clone());
        ADD_FAILURE();
    } catch (const Error& error) {
        expect_contains(error.what(), "point 1 is not where its LAS record says");
    }
    // With their place forgotten they count for nothing, and are in no other format either.
    chunk.facts.forget_place();
    Mesh mesh;
    mesh.vertices = std::move(chunk);
    const Mesh back = parse(io::parse_las, write(io::write_las, mesh));
    EXPECT_EQ(back.vertices.positions.data()[5] + back.vertices.origin[2],
              mesh.vertices.positions.data()[5] + mesh.vertices.origin[2]);
    EXPECT_FALSE(find(back.vertices.attributes, io::kLasRecord));
    MemorySink sink;
    io::write(mesh, sink, io::Format::ply, {}, warnings);
    EXPECT_FALSE(find(parse(io::info_of(io::Format::ply).parse, sink.bytes()).vertices.attributes, io::kLasRecord));
}

/// Columns, not records: what commands do that change an attribute.
TEST(LasKeep, ChangedAttributesInAFileThatStays) {
    const TemporaryFolder folder;
    const Bytes was = talkative(4, 7, 90);
    write_bytes(folder / "in.las", was);
    for (const bool whole : {false, true}) {
        io::Warnings warnings;
        io::StreamOptions options;
        options.chunk_points = whole ? 1000 : 40;
        const auto reader = io::CloudReader::open(folder / "in.las", options, warnings);
        ASSERT_EQ(warnings.size(), 1u);  // the five bytes
        const auto writer = io::CloudWriter::open(folder / "out.las", Overwrite::allow, {}, warnings);
        for (PointCloud chunk; reader->next(chunk);) {
            for (int64_t i = 0; i < chunk.size(); ++i) find(chunk.attributes, "label")->data()[i] = std::byte{6};
            if (!whole) {
                writer->write(std::move(chunk));
                continue;
            }
            Mesh mesh;
            mesh.vertices = std::move(chunk);
            io::save(folder / "out.las", mesh, Overwrite::allow, {}, warnings);
        }
        if (!whole) {
            EXPECT_EQ(writer->finish(), 90);
        }
        EXPECT_EQ(warnings.size(), 1u);
        Bytes is = read_bytes(folder / "out.las");
        LasParts before = parts_of(was), after = parts_of(is);
        for (size_t i = 0; i < 90; ++i) {
            before.records[i * 41 + 16] = std::byte{6};
            EXPECT_EQ(std::memcmp(before.records.data() + i * 41, after.records.data() + i * 36, 36), 0) << i;
        }
        EXPECT_TRUE(before.behind == after.behind);
        put_at<uint16_t>(before.before, 105, 36);
        put_at<uint64_t>(before.before, 235, get_at<uint64_t>(is, 235));
        forget_counts(before.before);
        forget_counts(after.before);
        EXPECT_TRUE(before.before == after.before);
    }
}

TEST(LasKeep, ExtendedRecordsThatLieAreRefused) {
    const Bytes good = talkative(4, 6, 3);
    expect_no_prefix(io::parse_las, with_evlr(foreign(4, 6, 2), "somebody", 1, Bytes(20)));
    Bytes bytes = good;
    const size_t first = get_at<uint64_t>(bytes, 235);
    put_at<uint64_t>(bytes, first + 20, ~uint64_t{0});
    expect_contains(refusal(io::parse_las, bytes), "of 18446744073709551615 bytes reaches past the end");
    bytes = good;
    put_at<uint32_t>(bytes, 243, 3);
    expect_contains(refusal(io::parse_las, bytes), "the file ends in the middle of an extended record");
    bytes = good;
    put_at<uint64_t>(bytes, 235, 380);
    io::Warnings warnings;
    EXPECT_TRUE(parse(io::parse_las, bytes, &warnings).vertices.facts.las->extended.empty());
    expect_contains(warnings.back(), "lie before the end of the points: dropped");
    io::ReadOptions options;
    options.limits.max_las_records = 50'000;
    warnings.clear();
    EXPECT_EQ(parse(io::parse_las, good, &warnings, options).vertices.facts.las->extended.size(), 1u);
    expect_contains(warnings.back(), "\"somebody else\" 5 of 100000 bytes is dropped");
}

TEST(LasKeep, WhatTheHeaderTells) {
    const auto facts = [](int minor, int format, size_t more_bytes = 0) {
        Bytes bytes = foreign(minor, format, 1, more_bytes);
        for (size_t k = 0; k < 6; ++k) put_at<double>(bytes, 179 + 8 * k, static_cast<double>(k));
        LasFacts las;
        las.header.assign(reinterpret_cast<const char*>(bytes.data()), 227);
        return las;
    };
    LasFacts las = facts(2, 1);
    const std::optional<Bounds> box = io::las_box(las);
    ASSERT_TRUE(box);
    EXPECT_EQ(box->max, (std::array<double, 3>{0, 2, 4}));
    EXPECT_EQ(box->min, (std::array<double, 3>{1, 3, 5}));
    EXPECT_TRUE(io::have_same_records(las, facts(3, 1)));
    EXPECT_FALSE(io::have_same_records(las, facts(2, 0)));
    EXPECT_FALSE(io::have_same_records(las, facts(2, 1, 2)));
    las.header.resize(226);
    EXPECT_FALSE(io::las_box(las));
    EXPECT_TRUE(io::have_same_records(las, las));
    las.header.resize(106);
    EXPECT_FALSE(io::have_same_records(las, las));

    const FileFacts::Grid grid{{0.001, 0.01, 1e-9}, {0, 100, 0}};
    const FileFacts::Grid moved = io::grid_for({{0, 1e8, -5}, {1000, 1e8 + 9, 5}, 1}, grid);
    EXPECT_EQ(moved.scale[0], 0.001);  // fits as it is
    EXPECT_EQ(moved.offset[0], 0);
    EXPECT_EQ(moved.scale[1], 0.01);  // fits elsewhere
    EXPECT_EQ(moved.offset[1], 1e8 + 4);
    EXPECT_EQ(moved.offset[2], 0);
    EXPECT_LE(5 / moved.scale[2], io::kMostOfGrid);  // fits no more
    EXPECT_EQ(io::grid_for({}, grid), grid);
}

}  // namespace
}  // namespace stipple::test
