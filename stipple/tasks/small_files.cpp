#include "stipple/tasks/small_files.h"

#include <fmt/format.h>

#include "stipple/io/byte_source.h"
#include "stipple/io/npy.h"

namespace stipple::tasks {
namespace {

geometry::AffineTransform affine_of_npy(const std::string& bytes) {
    io::MemorySource source(std::as_bytes(std::span(bytes)));
    io::ByteReader reader(source);
    const io::NpyArray array = io::parse_npy_array(reader);
    const bool is_matrix =
        array.shape.size() == 2 && (array.shape[0] == 3 || array.shape[0] == 4) && array.shape[1] == 4;
    if (!is_matrix)
        throw Error(ErrorCode::bad_file,
                    fmt::format("expected an array [4, 4] or [3, 4], found {}",
                                shape_text(array.shape.data(), static_cast<int>(array.shape.size()))));
    std::vector<double> numbers;
    for (int64_t i = 0; i < array.elements(); ++i)
        numbers.push_back(load_as_double(array.dtype, array.data.data() + i * size_of(array.dtype)));
    return geometry::affine_from_numbers(numbers);
}

}  // namespace

std::string load_text(const std::string& path, size_t most, std::string_view what) {
    io::FileSource source(path);
    std::string text;
    char block[4096];
    while (const int64_t count = source.read(reinterpret_cast<std::byte*>(block), sizeof block)) {
        text.append(block, static_cast<size_t>(count));
        if (text.size() > most) throw Error(ErrorCode::bad_file, Place{path}, fmt::format("too long for {}", what));
    }
    return text;
}

geometry::AffineTransform load_affine(const std::string& path) {
    const std::string text = load_text(path, 65536, "a transform of 4 x 4 numbers");
    try {
        return text.rfind("\x93NUMPY", 0) == 0 ? affine_of_npy(text) : geometry::parse_affine(text);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

geometry::Region::Polygon load_polygon(const std::string& path) {
    const std::string text = load_text(path, size_t{64} << 20, "a polygon");
    try {
        return geometry::parse_polygon(text);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace stipple::tasks
