#include "stipple/io/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>

#include "stipple/core/error.h"
#include "stipple/io/common/crc32c.h"
#include "stipple/io/common/protobuf_writer.h"
#include "stipple/io/common/record.h"
#include "stipple/io/image_file.h"
#include "tests/support/expect_error.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

using io::Event;
using io::EventFile;
using io::EventWriter;

uint32_t crc_of_text(std::string_view text) {
    return io::crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

EventFile events_of(std::string_view text) {
    io::MemorySource source(std::as_bytes(std::span(text.data(), text.size())));
    io::ByteReader reader(source);
    return io::parse_events(reader);
}

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string bytes_of_hex(std::string_view hex) {
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    return bytes;
}

// A record around any message, with right checksums.
std::string record_of(std::string_view message) {
    const auto masked = [](std::string_view text) {
        const uint32_t crc = io::masked_crc(std::as_bytes(std::span(text.data(), text.size())));
        return std::string(reinterpret_cast<const char*>(&crc), 4);
    };
    const uint64_t length = message.size();
    const std::string head(reinterpret_cast<const char*>(&length), 8);
    return head + masked(head) + std::string(message) + masked(message);
}

// Made by a Python program from the description of the format; every event file of TensorFlow begins with 12 such
// bytes.
const char* const kVersionRecord = "1800000000000000a37f4b2209000020c00b5ad6411a0d627261696e2e4576656e743a320be205f7";
const char* const kScalarRecord =
    "1b000000000000001a0d9e1309000020c00b5ad64110ac022a0d0a0b0a046c6f7373150000803ef0cddee4";

TEST(IoCrc32c, IsThatOfThePublishedVectors) {
    EXPECT_EQ(crc_of_text(""), 0u);
    EXPECT_EQ(crc_of_text("123456789"), 0xe3069283u);
    // RFC 3720, B.4
    EXPECT_EQ(crc_of_text(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc_of_text(std::string(32, '\xff')), 0x62a8ab43u);
    std::string rising, falling;
    for (char i = 0; i < 32; ++i) {
        rising += i;
        falling += static_cast<char>(31 - i);
    }
    EXPECT_EQ(crc_of_text(rising), 0x46dd794eu);
    EXPECT_EQ(crc_of_text(falling), 0x113fdb5cu);
}

TEST(IoEventFile, RecordsAreThoseOfTheFormatToTheByte) {
    const TemporaryFolder folder;
    const std::string path = folder / "events.out.tfevents.1500000000.here";
    {
        EventWriter writer(path, 1500000000.5);
        EXPECT_EQ(read_file(path), bytes_of_hex(kVersionRecord));
        const io::EventScalar scalars[] = {{"loss", 0.25f}};
        writer.add_scalars(300, scalars, 1500000000.5);
    }
    EXPECT_EQ(read_file(path), bytes_of_hex(kVersionRecord) + bytes_of_hex(kScalarRecord));
}

TEST(IoEventFile, WhatWasWrittenIsRead) {
    const TemporaryFolder folder;
    const std::string path = folder / "events";
    Image image(3, 2, 4);
    for (int64_t i = 0; i < image.pixels.elements(); ++i) image.pixels.data()[i] = static_cast<uint8_t>(i * 7);
    const std::vector<io::EventScalar> scalars = {
        {"train/loss", -1.5f}, {"", 0}, {"\u00e9", std::numeric_limits<float>::infinity()}};
    {
        EventWriter writer(path, 1);
        writer.add_scalars(-7, scalars, 2.25);
        writer.sync();
    }
    {
        EventWriter writer(path, 99);  // goes on; no second version
        writer.add_image(std::numeric_limits<int64_t>::max(), "chart", image, 3);
        writer.add_scalars(0, {}, 4);
    }
    const EventFile file = io::load_events(path);
    EXPECT_EQ(file.damage, "");
    EXPECT_EQ(file.whole_bytes, static_cast<int64_t>(read_file(path).size()));
    ASSERT_EQ(file.events.size(), 4u);
    EXPECT_EQ(file.events[0].version, "brain.Event:2");
    EXPECT_EQ(file.events[0].wall_time, 1);
    EXPECT_EQ(file.events[1].step, -7);
    EXPECT_EQ(file.events[1].wall_time, 2.25);
    EXPECT_EQ(file.events[1].scalars, scalars);
    EXPECT_EQ(file.events[2].step, std::numeric_limits<int64_t>::max());
    ASSERT_EQ(file.events[2].images.size(), 1u);
    const io::EventImage& drawn = file.events[2].images[0];
    EXPECT_EQ(drawn.tag, "chart");
    EXPECT_EQ(drawn.width, 3);
    EXPECT_EQ(drawn.height, 2);
    EXPECT_EQ(drawn.colorspace, 4);
    io::MemorySource source(drawn.file);
    io::ByteReader reader(source);
    const Image back = io::parse_png(reader);
    ASSERT_EQ(back.pixels.shape(), image.pixels.shape());
    EXPECT_EQ(std::memcmp(back.pixels.data(), image.pixels.data(), 24), 0);
    EXPECT_TRUE(file.events[3].scalars.empty());
}

TEST(IoEventFile, UnknownFieldsAreSkipped) {
    io::ProtobufWriter value, summary, event;
    value.text(7, "node");
    value.message(9, event);
    value.text(1, "a");
    value.real(2, 1.0f);
    value.integer(2, 5);  // of another type
    summary.message(1, value);
    event.text(8, "graph");
    event.integer(2, 3);
    event.message(5, summary);
    event.real(77, 1.0);
    event.message(5, summary);
    const EventFile file = events_of(bytes_of_hex(kVersionRecord) + record_of(text_of(event.data())));
    ASSERT_EQ(file.events.size(), 2u);
    EXPECT_EQ(file.events[1].step, 3);
    const std::vector<io::EventScalar> expected = {{"a", 1}, {"a", 1}};
    EXPECT_EQ(file.events[1].scalars, expected);
}

// Cut at every byte, and with every byte changed.
TEST(IoEventFile, ADamagedEndIsReportedAndNothingBeforeItIsLost) {
    const std::string first = bytes_of_hex(kVersionRecord), second = bytes_of_hex(kScalarRecord);
    const std::string whole = first + second + second;
    for (size_t length = 0; length <= whole.size(); ++length) {
        const EventFile file = events_of(whole.substr(0, length));
        const size_t records = length < first.size() ? 0 : 1 + (length - first.size()) / second.size();
        EXPECT_EQ(file.events.size(), records) << length;
        const size_t end = records == 0 ? 0 : first.size() + (records - 1) * second.size();
        EXPECT_EQ(file.whole_bytes, static_cast<int64_t>(end)) << length;
        EXPECT_EQ(file.damage, length == end ? "" : fmt::format("the file ends within a record at byte {}", end));
    }
    for (size_t i = first.size(); i < whole.size(); ++i) {
        std::string bad = whole;
        bad[i] ^= 0x10;
        const EventFile file = events_of(bad);
        const bool in_second = i < first.size() + second.size();
        EXPECT_EQ(file.events.size(), in_second ? 1u : 2u) << i;
        EXPECT_NE(file.damage.find("checksum"), std::string::npos) << i;
    }
}

TEST(IoEventFile, WhatIsNoneIsRefused) {
    const TemporaryFolder folder;
    const std::string first = bytes_of_hex(kVersionRecord), second = bytes_of_hex(kScalarRecord);
    EXPECT_ERROR(events_of("step,loss\n1,0.5\n2,0.4\n"), bad_file, "not an event file");
    EXPECT_ERROR(events_of(second), bad_file, "not an event file");
    EXPECT_ERROR(events_of(record_of("\x1a\x05other")), bad_file, "not an event file");
    write_file(folder / "text", "step,loss\n1,0.5\n2,0.4\n");
    EXPECT_ERROR(EventWriter(folder / "text", 1), bad_file, "text: not an event file");
    EXPECT_ERROR(io::rewind_events(folder / "text", 0), bad_file, "text: not an event file");
    EXPECT_EQ(read_file(folder / "text"), "step,loss\n1,0.5\n2,0.4\n");
    EXPECT_ERROR(EventWriter(folder / "no/file", 1), cannot_write, "no/file: cannot open");
    EXPECT_ERROR(io::load_events(folder / "none"), bad_file, "none");
    // Right checksums around what breaks the wire format.
    const auto refused = [&](std::string_view message, const char* words) {
        EXPECT_ERROR(events_of(first + record_of(message)), bad_file, words);
    };
    refused("\x0a\x7f", "byte 54: protocol buffers: a field is longer than its message");
    refused("\x09\x01", "a field is longer than its message");
    refused("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number of more than 64 bits");
    refused("\x13", "a field of an unknown type");
    refused(std::string_view("\0\0", 2), "no field has that number");
    refused(std::string("\x2a\x02\x0a\x05", 4), "a field is longer than its message");
    io::MemorySource source(std::as_bytes(std::span(first.data(), first.size())));
    io::Limits limits;
    limits.max_record = 20;
    io::ByteReader reader(source, limits);
    EXPECT_ERROR(io::parse_events(reader), bad_file, "a record of 24 bytes, more than 20 are not read");
}

TEST(IoEventFile, RewindsToAStep) {
    const TemporaryFolder folder;
    const std::string path = folder / "events";
    const auto steps = [&] {
        std::vector<int64_t> list;
        for (const Event& event : io::load_events(path).events) list.push_back(event.step);
        return list;
    };
    {
        EventWriter writer(path, 1);
        for (int64_t step : {10, 20, 20, 30, 40}) {
            const io::EventScalar scalars[] = {{"loss", static_cast<float>(step)}};
            writer.add_scalars(step, scalars, 2);
        }
    }
    const std::string whole = read_file(path);
    io::rewind_events(path, 40);
    EXPECT_EQ(read_file(path), whole);
    write_file(path, whole + "torn");
    io::rewind_events(path, 40);
    EXPECT_EQ(read_file(path), whole);
    write_file(path, whole.substr(0, whole.size() - 1));
    io::rewind_events(path, 20);
    EXPECT_EQ(steps(), (std::vector<int64_t>{0, 10, 20, 20}));
    {
        EventWriter writer(path, 3);
        writer.add_scalars(30, {}, 3);
    }
    EXPECT_EQ(steps(), (std::vector<int64_t>{0, 10, 20, 20, 30}));
    io::rewind_events(path, -1);
    EXPECT_EQ(steps(), std::vector<int64_t>{0});  // the version
}

TEST(IoEventFile, AWriterCutsWhatAKilledOneLeft) {
    const TemporaryFolder folder;
    const std::string path = folder / "events";
    const ProcessResult killed = run_in_child([&] {
        EventWriter writer(path, 1);
        writer.add_scalars(1, {}, 2);
        writer.add_scalars(2, {}, 2);
        return std::raise(SIGKILL);
    });
    EXPECT_EQ(killed.signal, SIGKILL);
    const std::string whole = read_file(path);
    EXPECT_EQ(events_of(whole).events.size(), 3u);
    for (size_t cut : {size_t{1}, size_t{20}, whole.size() - 3}) {
        write_file(path, whole.substr(0, whole.size() - cut));
        EventWriter writer(path, 3);
        writer.add_scalars(9, {}, 4);
        const EventFile file = io::load_events(path);
        EXPECT_EQ(file.damage, "") << cut;
        EXPECT_EQ(file.events.front().version, "brain.Event:2") << cut;
        EXPECT_EQ(file.events.back().step, 9) << cut;
        EXPECT_EQ(file.events.size(), cut > 50 ? 2u : 3u) << cut;
    }
}

TEST(IoEventFile, AFullDiskLeavesNoPartOfARecord) {
    const TemporaryFolder folder;
    const std::string path = folder / "events";
    const ProcessResult result = run_in_child([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        EventWriter writer(path, 1);
        const auto size = static_cast<int64_t>(read_file(path).size());
        const rlimit limit{static_cast<rlim_t>(size + 10), static_cast<rlim_t>(size + 10)};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        try {
            writer.add_scalars(1, {}, 2);
        } catch (const Error& error) {
            return error.code() == ErrorCode::cannot_write && static_cast<int64_t>(read_file(path).size()) == size ? 0
                                                                                                                   : 1;
        }
        return 2;
    });
    EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(IoEventFile, NamesAreThoseTensorBoardLooksFor) {
    const TemporaryFolder folder;
    const std::string path = io::event_path(folder.path(), 1500000000);
    EXPECT_EQ(path.rfind(folder / "events.out.tfevents.1500000000.", 0), 0u) << path;
    EXPECT_GT(path.size(), (folder / "events.out.tfevents.1500000000.").size());
    EXPECT_FALSE(io::find_event_file(folder.path()).has_value());
    write_file(folder / "events.out.tfevents.1400000000.a", "");
    write_file(folder / "metrics.jsonl", "");
    write_file(path, "");
    EXPECT_EQ(io::find_event_file(folder.path()), path);
}

}  // namespace
}  // namespace stipple::test
