// Every file of tests/corpus gives the message that expected.tsv names, or is read.

#include "tests/support/corpus.h"

#include <gtest/gtest.h>

#include "stipple/io/colmap.h"
#include "stipple/io/common/exif.h"
#include "stipple/io/event_file.h"
#include "stipple/io/image_file.h"
#include "stipple/io/safetensors.h"
#include "stipple/io/tfrecord.h"
#include "stipple/io/transforms.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

/// Its bytes are an APP1 segment; the message is the orientation, where it is not upright.
void read_exif(io::ByteReader& reader) {
    std::vector<uint8_t> bytes(static_cast<size_t>(*reader.remaining()));
    reader.read_exact(bytes.data(), static_cast<int64_t>(bytes.size()), "the segment");
    const int orientation = io::exif_orientation(bytes);
    if (orientation != 1) reader.fail(fmt::format("orientation {}", orientation));
}

/// Reads a file by the parser of its folder in tests/corpus.
void read_as(const std::string& folder, io::ByteReader& reader) {
    io::Warnings warnings;
    io::ColmapModel model;
    if (folder == "safetensors")
        io::parse_safetensors(reader);
    else if (folder == "events")
        io::parse_events(reader);
    else if (folder == "tfrecord")
        for (io::TfExample example; io::read_example(reader, example);) continue;
    else if (folder == "png")
        io::parse_png(reader);
    else if (folder == "jpeg")
        io::parse_jpeg(reader);
    else if (folder == "exif")
        read_exif(reader);
    else if (folder == "transforms")
        io::parse_transforms(reader);
    else if (folder == "colmap_cameras")
        io::parse_colmap_cameras(reader);
    else if (folder == "colmap_images")
        io::parse_colmap_images(reader);
    else if (folder == "colmap_points")
        io::parse_colmap_points(reader, model);
    else
        io::info_of(io::format_by_name(folder == "laz" ? "las" : folder)).parse(reader, {}, warnings);
}

TEST(IoCorpus, EachFileGivesItsMessage) {
    // Weights are read by network/: tests/network.
    EXPECT_GT(expect_corpus([](const std::string& folder) { return folder != "weights"; }, read_as), 200);
}

TEST(IoCorpus, LinesWithoutEndAreRefused) {
    const std::string long_line(3 << 20, '1');
    const std::string rows = "0 0 0\n";
    for (const char* folder : {"xyz", "csv", "pts", "obj", "off", "ply", "pcd"}) {
        const std::string found = corpus_message(folder,
                                                 std::string(folder) == "ply"   ? "ply\n" + long_line
                                                 : std::string(folder) == "off" ? "OFF\n" + long_line
                                                                                : long_line,
                                                 read_as);
        EXPECT_NE(found.find("line longer than"), std::string::npos) << folder << ": " << found;
    }
    EXPECT_NE(corpus_message("xyz", rows + long_line + "\n" + rows, read_as).find("line longer than"),
              std::string::npos);
}

}  // namespace
}  // namespace stipple::test
