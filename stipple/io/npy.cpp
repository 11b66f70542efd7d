#include "stipple/io/npy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/common/world.h"

namespace stipple::io {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;

template <class T>
void swap_bytes(std::byte* data, int64_t count) {
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            T value;
            std::memcpy(&value, data + i * sizeof(T), sizeof(T));
            if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
            if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
            if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
            std::memcpy(data + i * sizeof(T), &value, sizeof(T));
        }
    });
}

/// Fortran order to C order: out[i0][i1]... = in[i0 + s0 * (i1 + s1 * ...)].
template <class T>
void transpose(const std::byte* in, std::byte* out, const std::vector<int64_t>& shape, int64_t count) {
    const size_t rank = shape.size();
    std::vector<int64_t> strides(rank);
    int64_t step = 1;
    for (size_t d = 0; d < rank; ++d) {
        strides[d] = step;
        step *= shape[d];
    }
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        std::vector<int64_t> index(rank);
        int64_t rest = begin, from = 0;
        for (size_t d = rank; d-- > 0;) {
            index[d] = rest % shape[d];
            rest /= shape[d];
            from += index[d] * strides[d];
        }
        for (int64_t i = begin; i < end; ++i) {
            std::memcpy(out + i * sizeof(T), in + from * sizeof(T), sizeof(T));
            for (size_t d = rank; d-- > 0;) {  // the next index, last dimension fastest
                from += strides[d];
                if (++index[d] < shape[d]) break;
                from -= shape[d] * strides[d];
                index[d] = 0;
            }
        }
    });
}

/// Columns [first, first + components) of every row as an attribute of the same type.
Attribute columns(const std::byte* rows, DType dtype, int64_t n, int64_t width, int64_t first, int64_t components,
                  std::string name) {
    Attribute result(std::move(name), dtype, n, components);
    const int64_t size = size_of(dtype), row = width * size, bytes = components * size;
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            std::memcpy(result.data() + i * bytes, rows + i * row + first * size, static_cast<size_t>(bytes));
    });
    return result;
}

/// Whether every row of a three-component attribute satisfies `test`.
template <class Test>
bool all_rows(const Attribute& attribute, const Test& test) {
    std::atomic<bool> all{true};
    parallel_for(attribute.rows(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && all.load(std::memory_order_relaxed); ++i)
            if (!test(attribute.value(i, 0), attribute.value(i, 1), attribute.value(i, 2)))
                all.store(false, std::memory_order_relaxed);
    });
    return all;
}

template <class T>
Attribute converted(const Attribute& from) {
    Attribute result(from.name(), dtype_of<T>, from.rows(), from.components());
    T* to = reinterpret_cast<T*>(result.data());
    parallel_for(from.rows(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int64_t c = 0; c < from.components(); ++c)
                to[i * from.components() + c] = static_cast<T>(from.value(i, c));
    });
    return result;
}

void add_columns(PointCloud& cloud, const std::byte* rows, DType dtype, int64_t width) {
    const int64_t n = cloud.size();
    if (width == 4) {
        cloud.attributes.push_back(columns(rows, dtype, n, width, 3, 1, "intensity"));
        return;
    }
    if (width == 6) {
        Attribute triple = columns(rows, dtype, n, width, 3, 3, "normal");
        if (is_float(dtype) && all_rows(triple, [](double x, double y, double z) {
                return std::abs(std::sqrt(x * x + y * y + z * z) - 1) <= 1e-3;
            })) {
            cloud.attributes.push_back(dtype == DType::f32 ? std::move(triple) : converted<float>(triple));
            return;
        }
        const auto is_byte = [](double v) { return v >= 0 && v <= 255 && v == std::floor(v); };
        if (all_rows(triple, [&](double r, double g, double b) { return is_byte(r) && is_byte(g) && is_byte(b); })) {
            triple.rename("color");
            cloud.attributes.push_back(dtype == DType::u8 ? std::move(triple) : converted<uint8_t>(triple));
            return;
        }
    }
    for (int64_t c = 3; c < width; ++c)
        cloud.attributes.push_back(columns(rows, dtype, n, width, c, 1, fmt::format("column_{}", c)));
}

}  // namespace

int64_t NpyArray::elements() const {
    // A zero first: the other extents of an empty array may be anything.
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
}

NpyArray decode_npy(const NpyHeader& header, Buffer data) {
    NpyArray array;
    array.shape = header.shape;
    array.dtype = header.dtype;
    array.data = std::move(data);
    const int64_t size = size_of(header.dtype), count = header.bytes / size;
    if (header.big_endian) {
        if (size == 2) swap_bytes<uint16_t>(array.data.data(), count);
        if (size == 4) swap_bytes<uint32_t>(array.data.data(), count);
        if (size == 8) swap_bytes<uint64_t>(array.data.data(), count);
    }
    if (header.fortran_order && header.shape.size() > 1 && count > 0) {
        Buffer ordered(header.bytes);
        const std::byte* from = array.data.data();
        if (size == 1) transpose<uint8_t>(from, ordered.data(), header.shape, count);
        if (size == 2) transpose<uint16_t>(from, ordered.data(), header.shape, count);
        if (size == 4) transpose<uint32_t>(from, ordered.data(), header.shape, count);
        if (size == 8) transpose<uint64_t>(from, ordered.data(), header.shape, count);
        array.data = std::move(ordered);
    }
    return array;
}

NpyArray parse_npy_array(ByteReader& reader) {
    const NpyHeader header = read_npy_header(reader);
    if (const auto left = reader.remaining(); left && *left != header.bytes)
        reader.fail(fmt::format("an array of shape {} needs {} bytes, the file has {}",
                                shape_text(header.shape.data(), static_cast<int>(header.shape.size())), header.bytes,
                                *left));
    Buffer data = reader.read_buffer(header.bytes, "the array");
    if (!reader.at_end()) reader.fail("bytes after the array");
    return decode_npy(header, std::move(data));
}

void write_npy_array(const NpyArray& array, ByteSink& sink) {
    STIPPLE_REQUIRE(array.data.bytes() >= array.bytes(), "npy: {} bytes for shape {}", array.data.bytes(),
                    shape_text(array.shape.data(), static_cast<int>(array.shape.size())));
    sink.write(npy_header(array.dtype, array.shape));
    sink.write(array.data.data(), array.bytes());
}

PointCloud cloud_from_npy(NpyArray array, const ByteReader& reader, const ReadOptions& options) {
    const std::string shape = shape_text(array.shape.data(), static_cast<int>(array.shape.size()));
    const size_t rank = array.shape.size();
    if (rank < 2 || rank > 3 || array.shape[rank - 1] < 3)
        reader.fail(fmt::format("an array of shape {} is no cloud; [n, 3] or [n, 3 + columns] is", shape));
    if (array.dtype == DType::boolean) reader.fail("an array of bool is no cloud");
    const int64_t clouds = rank == 3 ? array.shape[0] : 1;
    const int64_t n = array.shape[rank - 2], width = array.shape[rank - 1];
    if (clouds == 0) reader.fail("holds no clouds");
    if (n > reader.limits().max_points)
        reader.fail(fmt::format("{} points, the limit is {}", n, reader.limits().max_points));
    if (width > reader.limits().max_properties)
        reader.fail(fmt::format("{} columns, the limit is {}", width, reader.limits().max_properties));
    if (options.item < 0 && clouds > 1)
        reader.fail(fmt::format("holds {} clouds; choose one with --item 0..{}", clouds, clouds - 1));
    STIPPLE_REQUIRE(options.item < clouds, "item {} of a file that holds {} cloud{}", options.item, clouds,
                    clouds == 1 ? "" : "s");

    const int64_t item = std::max<int64_t>(0, options.item);
    const std::byte* rows = array.data.data() + item * n * width * size_of(array.dtype);
    if (array.dtype == DType::f32 && width == 3 && clouds == 1) {
        PointCloud cloud;
        cloud.positions = Array<float, 2>(std::move(array.data), {n, 3});
        return cloud;
    }
    PointCloud cloud;
    if (array.dtype == DType::f32) {
        cloud = PointCloud(n);
        float* to = cloud.positions.data();
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) std::memcpy(to + 3 * i, rows + i * width * 4, 12);
        });
    } else if (array.dtype == DType::f64) {
        cloud = cloud_from_world(reinterpret_cast<const double*>(rows), n, width);
    } else {
        Array<double, 2> xyz({n, 3});
        const int64_t size = size_of(array.dtype);
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                for (int axis = 0; axis < 3; ++axis)
                    xyz.data()[3 * i + axis] = load_as_double(array.dtype, rows + (i * width + axis) * size);
        });
        cloud = cloud_from_world(xyz.data(), n);
    }
    if (width > 3) add_columns(cloud, rows, array.dtype, width);
    return cloud;
}

Mesh parse_npy(ByteReader& reader, const ReadOptions& options, Warnings&) {
    Mesh mesh;
    mesh.vertices = cloud_from_npy(parse_npy_array(reader), reader, options);
    return mesh;
}

void write_npy(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    std::vector<std::string> dropped = names_except(cloud.attributes, {});
    if (mesh.faces() > 0) dropped.insert(dropped.begin(), "faces");
    warn_dropped(dropped, "NPY", ".npz holds all", warnings);

    const int64_t n = cloud.size();
    if (cloud.origin == std::array<double, 3>{}) {
        sink.write(npy_header(DType::f32, {n, 3}));
        sink.write(cloud.positions.data(), 12 * n);
        return;
    }
    sink.write(npy_header(DType::f64, {n, 3}));
    const int64_t rows = std::min<int64_t>(n, int64_t{1} << 16);
    std::vector<double> chunk(static_cast<size_t>(3 * rows));
    for (int64_t done = 0; done < n; done += rows) {
        const int64_t count = std::min(rows, n - done);
        for (int64_t i = 0; i < count; ++i)
            for (int axis = 0; axis < 3; ++axis) chunk[static_cast<size_t>(3 * i + axis)] = cloud.world(done + i, axis);
        sink.write(chunk.data(), 24 * count);
    }
}

}  // namespace stipple::io
