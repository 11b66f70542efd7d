#include "tests/support/clouds.h"

#include <cstring>

#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string difference(const Attributes& a, const Attributes& b) {
    if (a.size() != b.size()) return fmt::format("{} and {} attributes", a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i]))
            return fmt::format("attribute {} ({} x {}) and {} ({} x {})", a[i].name(), name_of(a[i].dtype()),
                               a[i].components(), b[i].name(), name_of(b[i].dtype()), b[i].components());
    return {};
}

}  // namespace

Mesh random_cloud(int64_t n, uint64_t seed) {
    const Rng rng(seed);
    Mesh mesh;
    mesh.vertices = PointCloud(n);
    for (int64_t i = 0; i < 3 * n; ++i)
        mesh.vertices.positions.data()[i] = rng.uniform(static_cast<uint64_t>(i)) / 3.0f;
    mesh.triangles = Array<int32_t, 2>({0, 3});
    return mesh;
}

Mesh random_mesh(int64_t n, uint64_t seed) {
    Mesh mesh = random_cloud(n, seed);
    const int64_t faces = n / 3 * 2;
    mesh.triangles = Array<int32_t, 2>({faces, 3});
    for (int64_t i = 0; i < 3 * faces; ++i)
        mesh.triangles.data()[i] =
            static_cast<int32_t>(Rng(seed, 7).below(static_cast<uint64_t>(i), static_cast<uint32_t>(n)));
    return mesh;
}

void add_normals(PointCloud& cloud) {
    Attribute normal("normal", DType::f32, cloud.size(), 3);
    for (int64_t i = 0; i < cloud.size(); ++i) {
        float v[3], length = 0;
        for (int c = 0; c < 3; ++c) {
            v[c] = Rng(11).normal(static_cast<uint64_t>(3 * i + c));
            length += v[c] * v[c];
        }
        for (int c = 0; c < 3; ++c) normal.as<float>()(i, c) = v[c] / std::sqrt(length);
    }
    cloud.attributes.push_back(std::move(normal));
}

void add_colors(PointCloud& cloud, int64_t components) {
    Attribute color("color", DType::u8, cloud.size(), components);
    for (int64_t i = 0; i < cloud.size() * components; ++i)
        color.as<uint8_t>().data()[i] = static_cast<uint8_t>(Rng(12).bits(static_cast<uint64_t>(i)));
    cloud.attributes.push_back(std::move(color));
}

void add_attribute(PointCloud& cloud, const std::string& name, DType dtype, int64_t components) {
    Attribute attribute(name, dtype, cloud.size(), components);
    const int64_t width = size_of(dtype);
    for (int64_t i = 0; i < cloud.size() * components; ++i) {
        const uint32_t bits = Rng(13).bits(static_cast<uint64_t>(i));
        std::byte* to = attribute.data() + i * width;
        if (dtype == DType::f32) {
            const float value = static_cast<float>(bits) / 7;
            std::memcpy(to, &value, sizeof value);
        } else if (dtype == DType::f64) {
            const double value = static_cast<double>(bits) / 7;
            std::memcpy(to, &value, sizeof value);
        } else {
            std::memset(to, 0, static_cast<size_t>(width));
            const auto used = static_cast<size_t>(dtype == DType::boolean ? 0 : std::min<int64_t>(width, 4));
            std::memcpy(to, &bits, used);
        }
    }
    cloud.attributes.push_back(std::move(attribute));
}

std::string difference(const Mesh& a, const Mesh& b) {
    if (a.vertices.size() != b.vertices.size())
        return fmt::format("{} and {} points", a.vertices.size(), b.vertices.size());
    if (a.vertices.origin != b.vertices.origin)
        return fmt::format("origin {} {} {} and {} {} {}", a.vertices.origin[0], a.vertices.origin[1],
                           a.vertices.origin[2], b.vertices.origin[0], b.vertices.origin[1], b.vertices.origin[2]);
    for (int64_t i = 0; i < 3 * a.vertices.size(); ++i)
        if (std::memcmp(a.vertices.positions.data() + i, b.vertices.positions.data() + i, 4) != 0 &&
            !(std::isnan(a.vertices.positions.data()[i]) && std::isnan(b.vertices.positions.data()[i])))
            return fmt::format("point {}: {} and {}", i / 3, a.vertices.positions.data()[i],
                               b.vertices.positions.data()[i]);
    if (a.faces() != b.faces()) return fmt::format("{} and {} faces", a.faces(), b.faces());
    for (int64_t i = 0; i < 3 * a.faces(); ++i)
        if (a.triangles.data()[i] != b.triangles.data()[i]) return fmt::format("face {}", i / 3);
    std::string text = difference(a.vertices.attributes, b.vertices.attributes);
    return text.empty() ? difference(a.face_attributes, b.face_attributes) : text;
}

std::vector<std::byte> to_bytes(const Mesh& mesh, io::Format format, const io::WriteOptions& options,
                                io::Warnings* warnings) {
    MemorySink sink;
    io::Warnings ignored;
    io::write(mesh, sink, format, options, warnings ? *warnings : ignored);
    return std::move(sink.bytes());
}

Mesh from_bytes(std::span<const std::byte> bytes, io::Format format, io::Warnings* warnings) {
    io::MemorySource source(bytes);
    io::ByteReader reader(source);
    io::Warnings ignored;
    return io::info_of(format).parse(reader, {}, warnings ? *warnings : ignored);
}

Mesh from_text(std::string_view text, io::Format format, io::Warnings* warnings) {
    return from_bytes(bytes_of(text), format, warnings);
}

std::string error_of(std::span<const std::byte> bytes, io::Format format) {
    try {
        from_bytes(bytes, format);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string error_of(std::string_view text, io::Format format) {
    return error_of(bytes_of(text), format);
}

}  // namespace stipple::test
