#include "stipple/io/image_file.h"

#include <algorithm>
#include <cstring>

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

Image load_image(const std::string& path, Limits limits) {
    FileSource source(path);
    try {
        ByteReader reader(source, limits);
        const auto head = reader.peek(sizeof kPngSignature);
        if (starts_with(head, kPngSignature)) return parse_png(reader);
        if (starts_with(head, kJpegSignature)) return parse_jpeg(reader);
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
