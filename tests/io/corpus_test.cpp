// Every file of tests/corpus gives the message that expected.tsv names, or is read; both within a second.

#include <gtest/gtest.h>

#include <chrono>

#include "stipple/io/image_file.h"
#include "stipple/io/safetensors.h"
#include "tests/support/clouds.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

/// Reads a file by the parser of its folder in tests/corpus.
void read_as(const std::string& folder, io::ByteReader& reader) {
    io::Warnings warnings;
    if (folder == "safetensors")
        io::parse_safetensors(reader);
    else if (folder == "png")
        io::parse_png(reader);
    else if (folder == "jpeg")
        io::parse_jpeg(reader);
    else
        io::info_of(io::format_by_name(folder)).parse(reader, {}, warnings);
}

std::string message_of(const std::string& folder, std::string_view content) {
    io::MemorySource source({reinterpret_cast<const std::byte*>(content.data()), content.size()});
    io::ByteReader reader(source);
    try {
        read_as(folder, reader);
    } catch (const Error& error) {
        return error.what();
    }
    return "ok";
}

TEST(IoCorpus, EachFileGivesItsMessage) {
    const std::string folder = STIPPLE_SOURCE_DIR "/tests/corpus/";
    const std::string expected = read_file(folder + "expected.tsv");
    int64_t files = 0;
    for (size_t begin = 0; begin < expected.size(); ++files) {
        const size_t tab = expected.find('\t', begin), end = expected.find('\n', begin);
        const std::string name = expected.substr(begin, tab - begin), message = expected.substr(tab + 1, end - tab - 1);
        begin = end + 1;
        const auto start = std::chrono::steady_clock::now();
        const std::string found = message_of(name.substr(0, name.find('/')), read_file(folder + name));
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        EXPECT_NE(found.find(message), std::string::npos)
            << name << "\n  expected: " << message << "\n  found:    " << found;
        EXPECT_EQ(found == "ok", message == "ok") << name << ": " << found;
        EXPECT_EQ(found.find('\n'), std::string::npos) << name;
        EXPECT_LT(seconds.count(), 1.0) << name;
    }
    EXPECT_GT(files, 200);
}

TEST(IoCorpus, LinesWithoutEndAreRefused) {
    const std::string long_line(3 << 20, '1');
    const std::string rows = "0 0 0\n";
    for (const char* folder : {"xyz", "csv", "pts", "obj", "off", "ply", "pcd"}) {
        const std::string found = message_of(folder, std::string(folder) == "ply"   ? "ply\n" + long_line
                                                     : std::string(folder) == "off" ? "OFF\n" + long_line
                                                                                    : long_line);
        EXPECT_NE(found.find("line longer than"), std::string::npos) << folder << ": " << found;
    }
    EXPECT_NE(message_of("xyz", rows + long_line + "\n" + rows).find("line longer than"), std::string::npos);
}

}  // namespace
}  // namespace stipple::test
