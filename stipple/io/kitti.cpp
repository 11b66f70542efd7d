#include "stipple/io/kitti.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/common/world.h"

namespace stipple::io {
namespace {

constexpr int64_t kRow = 16;
constexpr int64_t kGrain = int64_t{1} << 14;
constexpr int64_t kChunkRows = int64_t{1} << 17;  // 2 MiB: the file never lies in memory beside its points

void unpack(const std::byte* rows, int64_t n, float* positions, float* intensity) {
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::memcpy(positions + 3 * i, rows + kRow * i, 12);
            std::memcpy(intensity + i, rows + kRow * i + 12, 4);
        }
    });
}

Mesh with_rows(int64_t n, const ByteReader& reader) {
    if (n == 0) reader.fail("holds no points");
    if (n > reader.limits().max_points)
        reader.fail(fmt::format("{} points, the limit is {}", n, reader.limits().max_points));
    Mesh mesh;
    mesh.vertices = PointCloud(n);
    mesh.vertices.facts.viewpoint = {{0, 0, 0, 1, 0, 0, 0}};  // sweeps are about their sensor
    mesh.vertices.attributes.emplace_back("intensity", DType::f32, n, 1);
    return mesh;
}

[[noreturn]] void fail_size(const ByteReader& reader, int64_t bytes) {
    reader.fail(
        fmt::format("{} bytes are no whole number of points of {} bytes (x y z intensity in float32)", bytes, kRow),
        bytes % 20 == 0 ? "nuScenes has five numbers a point, which is not read" : "");
}

/// Float32 bits that are a coordinate of a scanner in metres; pictures, weights and text are not.
bool is_usual(float value) {
    const float size = std::abs(value);
    return size <= 1e7f && (size >= 1e-30f || size == 0);
}

/// See the header.
void doubt(const PointCloud& cloud, Warnings& warnings) {
    const float* p = cloud.positions.data();
    const float* intensity = cloud.attributes[0].as<float>().data();
    int64_t odd = 0, misplaced = 0, first = -1;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const bool placed = is_usual(p[3 * i]) && is_usual(p[3 * i + 1]) && is_usual(p[3 * i + 2]);
        if (placed && is_usual(intensity[i]) && intensity[i] >= 0 && intensity[i] <= 65535) continue;
        if (first < 0) first = i;
        ++odd;
        misplaced += !placed;
    }
    if (odd == 0) return;
    const std::string found = fmt::format("point {} is {:g} {:g} {:g} with intensity {:g}", first, p[3 * first],
                                          p[3 * first + 1], p[3 * first + 2], intensity[first]);
    if (misplaced > cloud.size() / 2)
        throw Error(ErrorCode::bad_file, Place{{}, {}, kRow * first},
                    fmt::format("does not look like KITTI (x y z intensity in float32): {}, as odd as {} of {} points",
                                found, odd, cloud.size()),
                    "--from kitti reads it nevertheless");
    warnings.push_back(
        fmt::format("KITTI: {} of {} points have odd numbers: {}; is it KITTI?", odd, cloud.size(), found));
}

}  // namespace

Mesh parse_kitti(ByteReader& reader, const ReadOptions& options, Warnings& warnings) {
    if (const auto bytes = reader.remaining()) {
        if (*bytes % kRow != 0) fail_size(reader, *bytes);
        const int64_t n = *bytes / kRow;
        Mesh mesh = with_rows(n, reader);
        float* intensity = mesh.vertices.attributes[0].as<float>().data();
        Buffer chunk(kRow * std::min(n, kChunkRows));
        for (int64_t done = 0; done < n;) {
            const int64_t rows = std::min(kChunkRows, n - done);
            reader.read_exact(chunk.data(), kRow * rows, "points");
            unpack(chunk.data(), rows, mesh.vertices.positions.data() + 3 * done, intensity + done);
            done += rows;
        }
        if (!reader.at_end()) reader.fail("the file has grown while it was read");
        if (!options.named) doubt(mesh.vertices, warnings);
        return mesh;
    }
    // A pipe: the number of points is known at its end.
    std::vector<std::byte> bytes;
    while (!reader.at_end()) {
        const auto piece = reader.peek(int64_t{64} << 10);
        if (static_cast<int64_t>(bytes.size()) / kRow > reader.limits().max_points)
            reader.fail(fmt::format("more points than the limit of {}", reader.limits().max_points));
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        reader.skip(static_cast<int64_t>(piece.size()), "points");
    }
    const auto size = static_cast<int64_t>(bytes.size());
    if (size % kRow != 0) fail_size(reader, size);
    Mesh mesh = with_rows(size / kRow, reader);
    unpack(bytes.data(), size / kRow, mesh.vertices.positions.data(), mesh.vertices.attributes[0].as<float>().data());
    if (!options.named) doubt(mesh.vertices, warnings);
    return mesh;
}

void write_kitti(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    require_points(mesh, "KITTI");
    const PointCloud& cloud = mesh.vertices;
    const Attribute* intensity = find(cloud.attributes, "intensity");
    if (intensity && intensity->components() != 1) intensity = nullptr;

    std::vector<std::string> dropped =
        intensity ? names_except(cloud.attributes, {"intensity"}) : names_except(cloud.attributes, {});
    if (mesh.faces() > 0) dropped.insert(dropped.begin(), "faces");
    warn_dropped(dropped, "KITTI", "", warnings);
    if (!intensity)
        warnings.push_back("KITTI needs an intensity and the cloud has none: written as 0");
    else if (intensity->dtype() != DType::f32)
        warnings.push_back(
            fmt::format("KITTI holds intensity in float32: converted from {}", name_of(intensity->dtype())));

    const FloatWorld world(cloud, "KITTI", warnings);
    const int64_t n = cloud.size();
    Buffer chunk(kRow * std::min(n, kChunkRows));
    for (int64_t done = 0; done < n;) {
        const int64_t rows = std::min(kChunkRows, n - done);
        parallel_for(rows, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                float value = 0;
                if (intensity && intensity->dtype() == DType::f32)
                    std::memcpy(&value, intensity->data() + 4 * (done + i), 4);
                else if (intensity)
                    value = static_cast<float>(intensity->value(done + i));
                std::memcpy(chunk.data() + kRow * i, world.data() + 3 * (done + i), 12);
                std::memcpy(chunk.data() + kRow * i + 12, &value, 4);
            }
        });
        sink.write(chunk.data(), kRow * rows);
        done += rows;
    }
}

}  // namespace stipple::io
