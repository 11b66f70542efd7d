#pragma once
// What the tests of the binary formats share: samples, and how to feed bytes to a parser.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/rng.h"
#include "stipple/io/format.h"

namespace stipple::test {

using Bytes = std::vector<std::byte>;
using Parse = Mesh (*)(io::ByteReader&, const io::ReadOptions&, io::Warnings&);
using Write = void (*)(const Mesh&, ByteSink&, const io::WriteOptions&, io::Warnings&);

inline Bytes bytes_of(std::string_view text) {
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

inline Bytes read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in.good()) << path;
    return bytes_of(std::string{std::istreambuf_iterator<char>(in), {}});
}

inline void write_bytes(const std::string& path, const Bytes& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// Bytes whose number is not known in advance, in small pieces: a pipe.
class PipeSource : public io::ByteSource {
public:
    explicit PipeSource(const Bytes& bytes) : bytes_(bytes) {}
    int64_t read(std::byte* to, int64_t capacity) override {
        const size_t count = std::min({static_cast<size_t>(capacity), size_t{1000}, bytes_.size() - next_});
        if (count) std::memcpy(to, bytes_.data() + next_, count);
        next_ += count;
        return static_cast<int64_t>(count);
    }
    std::optional<int64_t> size() const override { return std::nullopt; }

private:
    const Bytes& bytes_;
    size_t next_ = 0;
};

inline Mesh parse(Parse parser, const Bytes& bytes, io::Warnings* warnings = nullptr, io::ReadOptions options = {}) {
    io::Warnings own;
    io::MemorySource source(bytes);
    io::ByteReader reader(source, options.limits);
    return parser(reader, options, warnings ? *warnings : own);
}

inline Mesh parse_pipe(Parse parser, const Bytes& bytes) {
    io::Warnings warnings;
    PipeSource source(bytes);
    io::ByteReader reader(source);
    return parser(reader, {}, warnings);
}

inline Bytes write(Write writer, const Mesh& mesh, io::Warnings* warnings = nullptr, io::WriteOptions options = {}) {
    io::Warnings own;
    MemorySink sink;
    writer(mesh, sink, options, warnings ? *warnings : own);
    return sink.bytes();
}

/// What the parser says to these bytes; fails the test when it takes them, or throws anything but Error{bad_file}.
inline std::string refusal(Parse parser, const Bytes& bytes, io::ReadOptions options = {}) {
    try {
        parse(parser, bytes, nullptr, options);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
        return std::string(error.what()) + (error.hint().empty() ? "" : " | " + error.hint());
    }
    ADD_FAILURE() << "accepted";
    return "";
}

inline void expect_contains(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

/// Every proper prefix is an error, from memory and from a pipe.
inline void expect_no_prefix(Parse parser, const Bytes& bytes) {
    for (size_t length = 0; length < bytes.size(); ++length) {
        const Bytes prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_THROW(parse(parser, prefix), Error) << length << " of " << bytes.size() << " bytes";
        EXPECT_THROW(parse_pipe(parser, prefix), Error) << length << " of " << bytes.size() << " bytes of a pipe";
    }
}

inline void expect_equal(const Mesh& a, const Mesh& b) {
    ASSERT_EQ(a.vertices.size(), b.vertices.size());
    EXPECT_EQ(a.vertices.origin, b.vertices.origin);
    EXPECT_EQ(std::memcmp(a.vertices.positions.data(), b.vertices.positions.data(),
                          static_cast<size_t>(12 * a.vertices.size())),
              0);
    ASSERT_EQ(a.vertices.attributes.size(), b.vertices.attributes.size());
    for (size_t i = 0; i < a.vertices.attributes.size(); ++i)
        EXPECT_TRUE(a.vertices.attributes[i] == b.vertices.attributes[i])
            << a.vertices.attributes[i].name() << " against " << b.vertices.attributes[i].name();
    ASSERT_EQ(a.faces(), b.faces());
    if (a.faces()) {
        EXPECT_EQ(std::memcmp(a.triangles.data(), b.triangles.data(), static_cast<size_t>(12 * a.faces())), 0);
    }
    ASSERT_EQ(a.face_attributes.size(), b.face_attributes.size());
    for (size_t i = 0; i < a.face_attributes.size(); ++i)
        EXPECT_TRUE(a.face_attributes[i] == b.face_attributes[i]) << a.face_attributes[i].name();
}

/// Random positions: multiples of 2^-20 in [-8, 8).
inline Mesh dyadic_cloud(int64_t n, uint64_t seed = 1) {
    Mesh mesh;
    mesh.vertices = PointCloud(n);
    const Rng rng(seed);
    for (int64_t i = 0; i < 3 * n; ++i)
        mesh.vertices.positions.data()[i] = 16 * rng.uniform(static_cast<uint64_t>(i)) - 8;
    return mesh;
}

/// An attribute whose element i (counted through the components) is value(i).
template <class T>
Attribute make_attribute(std::string name, int64_t rows, int64_t components, const std::function<T(int64_t)>& value) {
    Attribute attribute(std::move(name), dtype_of<T>, rows, components);
    for (int64_t i = 0; i < rows * components; ++i) reinterpret_cast<T*>(attribute.data())[i] = value(i);
    return attribute;
}

}  // namespace stipple::test
