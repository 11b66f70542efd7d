#include "stipple/io/image_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stipple::io {
namespace {

constexpr unsigned char kPngSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr unsigned char kJpegSignature[3] = {0xff, 0xd8, 0xff};

template <size_t N>
bool starts_with(std::span<const std::byte> head, const unsigned char (&signature)[N]) {
    return head.size() >= N && std::memcmp(head.data(), signature, N) == 0;
}

template <class Write>
void save(const std::string& path, Overwrite overwrite, const Write& write) {
    AtomicFile file(path, overwrite);
    write(file);
    file.commit();
}

}  // namespace

Image turned_upright(const Image& stored, int orientation) {
    STIPPLE_REQUIRE(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8, not {}", orientation);
    const int64_t width = stored.width(), height = stored.height(), channels = stored.channels();
    const bool swaps = orientation >= 5;
    Image upright(swaps ? height : width, swaps ? width : height, channels);
    for (int64_t y = 0; y < upright.height(); ++y) {
        for (int64_t x = 0; x < upright.width(); ++x) {
            int64_t from_x = swaps ? y : x, from_y = swaps ? x : y;
            if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
                from_x = width - 1 - from_x;
            if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
                from_y = height - 1 - from_y;
            std::memcpy(upright.at(x, y), stored.at(from_x, from_y), static_cast<size_t>(channels));
        }
    }
    return upright;
}

Image load_image(const std::string& path, Limits limits) {
    int orientation = 1;
    Image image = load_image_as_stored(path, orientation, limits);
    return orientation == 1 ? std::move(image) : turned_upright(image, orientation);
}

Image load_image_as_stored(const std::string& path, int& orientation, Limits limits) {
    orientation = 1;
    FileSource source(path);
    try {
        ByteReader reader(source, limits);
        const auto head = reader.peek(sizeof kPngSignature);
        if (starts_with(head, kPngSignature)) return parse_png(reader);
        if (starts_with(head, kJpegSignature)) return parse_jpeg_as_stored(reader, orientation);
        if (head.empty()) reader.fail("the file is empty");
        reader.fail("neither a PNG nor a JPEG picture");
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

void save_png(const std::string& path, const Image& image, Overwrite overwrite) {
    save(path, overwrite, [&](ByteSink& sink) { write_png(image, sink); });
}

void save_jpeg(const std::string& path, const Image& image, Overwrite overwrite, int quality) {
    save(path, overwrite, [&](ByteSink& sink) { write_jpeg(image, sink, quality); });
}

}  // namespace stipple::io
