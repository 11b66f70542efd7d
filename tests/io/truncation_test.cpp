// A small sample of every format, cut at every byte: an error, or for line and record formats a valid shorter file.
// Also: the same samples with an allocation that fails, and through a source that does not know its size.

#include <gtest/gtest.h>

#include "stipple/io/image_file.h"
#include "stipple/io/safetensors.h"
#include "tests/support/allocation.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using io::Format;

struct Sample {
    std::string name;
    Format format;
    io::WriteOptions options;
    bool faces;        // the sample is a mesh
    bool may_shorten;  // a prefix may be a valid shorter file
};

const Sample kSamples[] = {
    {"ply_binary", Format::ply, {false}, true, false},
    {"ply_ascii", Format::ply, {true}, true, true},
    {"xyz", Format::xyz, {}, false, true},
    {"xyzn", Format::xyzn, {}, false, true},
    {"xyzrgb", Format::xyzrgb, {}, false, true},
    {"pts", Format::pts, {}, false, true},
    {"csv", Format::csv, {}, false, true},
    {"obj", Format::obj, {}, true, true},
    {"off", Format::off, {}, true, true},
    {"stl_binary", Format::stl, {false}, true, false},
    {"stl_ascii", Format::stl, {true}, true, true},
    {"pcd_binary", Format::pcd, {false}, false, false},
    {"pcd_ascii", Format::pcd, {true}, false, true},
    {"pcd_compressed", Format::pcd, {false, true}, false, false},
    {"las", Format::las, {}, false, false},
    {"kitti", Format::kitti, {}, false, true},
    {"npy", Format::npy, {}, false, false},
    {"npz", Format::npz, {}, true, false},
};

Mesh sample_mesh(const Sample& sample) {
    Mesh mesh = sample.faces ? random_mesh(6) : random_cloud(6);
    if (sample.format != Format::stl) add_normals(mesh.vertices);
    if (sample.format != Format::stl) add_colors(mesh.vertices);
    return mesh;
}

/// A source that delivers a few bytes at a time and does not know its size, as a pipe.
class DrippingSource : public io::ByteSource {
public:
    explicit DrippingSource(std::span<const std::byte> bytes) : memory_(bytes) {}
    int64_t read(std::byte* to, int64_t capacity) override { return memory_.read(to, std::min<int64_t>(capacity, 7)); }
    std::optional<int64_t> size() const override { return std::nullopt; }

private:
    io::MemorySource memory_;
};

std::string read_dripping(std::span<const std::byte> bytes, Format format, Mesh& mesh) {
    DrippingSource source(bytes);
    io::ByteReader reader(source);
    io::Warnings warnings;
    try {
        mesh = io::info_of(format).parse(reader, {}, warnings);
        return {};
    } catch (const Error& error) {
        return error.what();
    }
}

class IoEveryFormat : public testing::TestWithParam<Sample> {};

TEST_P(IoEveryFormat, CutAtEveryByte) {
    const Sample& sample = GetParam();
    const Mesh mesh = sample_mesh(sample);
    const std::vector<std::byte> bytes = to_bytes(mesh, sample.format, sample.options);
    ASSERT_EQ(error_of(bytes, sample.format), "");
    for (size_t length = 0; length < bytes.size(); ++length) {
        const std::span<const std::byte> prefix(bytes.data(), length);
        const std::string error = error_of(prefix, sample.format);
        if (!error.empty()) continue;
        // A final newline or trailing digits may be cut off text; a whole record off a record format.
        EXPECT_TRUE(sample.may_shorten) << sample.name << " cut at " << length << " of " << bytes.size();
        const Mesh shorter = from_bytes(prefix, sample.format);
        EXPECT_GE(shorter.vertices.size(), 1);
        EXPECT_LE(shorter.vertices.size(), mesh.vertices.size());
        EXPECT_NO_THROW(validate(shorter));
    }
}

TEST_P(IoEveryFormat, PipesGiveTheSameAnswer) {
    const Sample& sample = GetParam();
    const std::vector<std::byte> bytes = to_bytes(sample_mesh(sample), sample.format, sample.options);
    Mesh dripped;
    ASSERT_EQ(read_dripping(bytes, sample.format, dripped), "");
    EXPECT_EQ(difference(from_bytes(bytes, sample.format), dripped), "");
    for (size_t length = 0; length < bytes.size(); ++length) {
        const std::span<const std::byte> prefix(bytes.data(), length);
        const bool fails = !error_of(prefix, sample.format).empty();
        EXPECT_EQ(!read_dripping(prefix, sample.format, dripped).empty(), fails) << sample.name << " cut at " << length;
    }
}

TEST_P(IoEveryFormat, AllocationFailures) {
    const Sample& sample = GetParam();
    const Mesh mesh = sample_mesh(sample);
    const std::vector<std::byte> bytes = to_bytes(mesh, sample.format, sample.options);
    const int64_t tried = for_each_allocation_failure([&] { from_bytes(bytes, sample.format); });
    if (can_fail_allocations()) {
        EXPECT_GT(tried, 1);
    }
    for_each_allocation_failure([&] { to_bytes(mesh, sample.format, sample.options); });
}

INSTANTIATE_TEST_SUITE_P(Samples, IoEveryFormat, testing::ValuesIn(kSamples),
                         [](const auto& sample) { return sample.param.name; });

}  // namespace
}  // namespace stipple::test
