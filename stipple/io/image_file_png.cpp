#include <png.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "stipple/io/image_file.h"

// libpng reports errors by longjmp. Every function below that calls into it keeps trivial locals only; what must be
// destroyed lives in the caller, and exceptions of readers and sinks wait in the state until libpng has been left.

namespace stipple::io {
namespace {

struct PngState {
    png_structp png = nullptr;
    png_infop info = nullptr;
    ByteReader* reader = nullptr;
    ByteSink* sink = nullptr;
    std::exception_ptr failure;
    char message[160] = "";

    // For libpng's callbacks: false means that an exception waits in `failure`.
    bool read(png_bytep to, size_t bytes) noexcept {
        try {
            reader->read_exact(to, static_cast<int64_t>(bytes), "a PNG chunk");
            return true;
        } catch (...) {
            failure = std::current_exception();
            return false;
        }
    }
    bool write(png_bytep from, size_t bytes) noexcept {
        try {
            sink->write(from, static_cast<int64_t>(bytes));
            return true;
        } catch (...) {
            failure = std::current_exception();
            return false;
        }
    }
};

struct ReadState : PngState {
    ~ReadState() { png_destroy_read_struct(&png, &info, nullptr); }
};
struct WriteState : PngState {
    ~WriteState() { png_destroy_write_struct(&png, &info); }
};

void on_error(png_structp png, png_const_charp text) {
    auto* state = static_cast<PngState*>(png_get_error_ptr(png));
    std::snprintf(state->message, sizeof state->message, "%s", text);
    png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, size_t bytes) {
    if (!static_cast<PngState*>(png_get_io_ptr(png))->read(to, bytes)) png_error(png, "reading stopped");
}

void on_write(png_structp png, png_bytep from, size_t bytes) {
    if (!static_cast<PngState*>(png_get_io_ptr(png))->write(from, bytes)) png_error(png, "writing stopped");
}

void on_flush(png_structp) {}

// Asks for 8 bits and 1, 3 or 4 channels.
bool read_header(ReadState& state) {
    if (setjmp(png_jmpbuf(state.png))) return false;
    png_set_read_fn(state.png, static_cast<PngState*>(&state), on_read);
    // Everything but what pixels need is skipped unread: no profile or text can be a decompression bomb.
    png_set_keep_unknown_chunks(state.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_user_limits(state.png, static_cast<png_uint_32>(state.reader->limits().max_image_side),
                        static_cast<png_uint_32>(state.reader->limits().max_image_side));
    png_set_chunk_malloc_max(state.png, 1 << 20);
    png_read_info(state.png, state.info);
    const int type = png_get_color_type(state.png, state.info);
    png_set_expand(state.png);
    png_set_scale_16(state.png);
    if (type == PNG_COLOR_TYPE_GRAY_ALPHA ||
        (type == PNG_COLOR_TYPE_GRAY && png_get_valid(state.png, state.info, PNG_INFO_tRNS)))
        png_set_gray_to_rgb(state.png);
    png_set_interlace_handling(state.png);
    png_read_update_info(state.png, state.info);
    return true;
}

bool read_rows(ReadState& state, png_bytepp rows) {
    if (setjmp(png_jmpbuf(state.png))) return false;
    png_read_image(state.png, rows);
    png_read_end(state.png, nullptr);
    return true;
}

[[noreturn]] void fail(ReadState& state) {
    if (state.failure) std::rethrow_exception(state.failure);
    state.reader->fail(fmt::format("damaged PNG: {}", state.message));
}

int64_t big_endian(const std::byte* bytes) {
    int64_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<int64_t>(bytes[i]);
    return value;
}

// The size as the header states it, checked before libpng sees it: 8 bytes of signature, length, "IHDR", width, height,
// bits, colour type.
void check_header(ByteReader& reader) {
    const auto head = reader.peek(33);
    if (head.size() < 33 || png_sig_cmp(reinterpret_cast<png_const_bytep>(head.data()), 0, 8) != 0 ||
        std::memcmp(head.data() + 12, "IHDR", 4) != 0)
        reader.fail(head.size() < 33 ? "the file ends in the PNG header" : "not a PNG picture");
    const int64_t width = big_endian(head.data() + 16), height = big_endian(head.data() + 20);
    const Limits& limits = reader.limits();
    if (width == 0 || height == 0) reader.fail("a PNG without pixels");
    if (width > limits.max_image_side || height > limits.max_image_side || width * height > limits.max_image_pixels)
        reader.fail(fmt::format("a picture of {} x {} pixels, at most {} and {} a side are read", width, height,
                                limits.max_image_pixels, limits.max_image_side));
    const int64_t bits = std::to_integer<int64_t>(head[24]);
    const auto left = reader.remaining();
    // One channel at least; deflate cannot make more of the file than this.
    if (left && width * height / 8 * bits > checked_mul(*left, limits.max_inflation))
        reader.fail(fmt::format("the header asks for {} x {} pixels, the file has {} bytes", width, height, *left));
}

bool write_all(WriteState& state, const Image& image, png_bytepp rows) {
    if (setjmp(png_jmpbuf(state.png))) return false;
    png_set_write_fn(state.png, static_cast<PngState*>(&state), on_write, on_flush);
    const int type = image.channels() == 1   ? PNG_COLOR_TYPE_GRAY
                     : image.channels() == 3 ? PNG_COLOR_TYPE_RGB
                                             : PNG_COLOR_TYPE_RGB_ALPHA;
    png_set_IHDR(state.png, state.info, static_cast<png_uint_32>(image.width()),
                 static_cast<png_uint_32>(image.height()), 8, type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    // Level 1 with one fixed filter: writing a figure must not take longer than drawing it.
    png_set_compression_level(state.png, 1);
    png_set_filter(state.png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_set_compression_buffer_size(state.png, 1 << 16);
    png_write_info(state.png, state.info);
    png_write_image(state.png, rows);
    png_write_end(state.png, nullptr);
    return true;
}

std::vector<png_bytep> row_pointers(uint8_t* pixels, int64_t height, int64_t row_bytes) {
    std::vector<png_bytep> rows(static_cast<size_t>(height));
    for (int64_t y = 0; y < height; ++y) rows[static_cast<size_t>(y)] = pixels + y * row_bytes;
    return rows;
}

}  // namespace

Image parse_png(ByteReader& reader) {
    check_header(reader);
    ReadState state;
    state.reader = &reader;
    state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, static_cast<PngState*>(&state), on_error, on_warning);
    if (state.png) state.info = png_create_info_struct(state.png);
    if (!state.info) throw Error(ErrorCode::out_of_memory, "no memory for libpng");
    if (!read_header(state)) fail(state);

    Image image(png_get_image_width(state.png, state.info), png_get_image_height(state.png, state.info),
                png_get_channels(state.png, state.info));
    const int64_t row_bytes = image.width() * image.channels();
    if (static_cast<int64_t>(png_get_rowbytes(state.png, state.info)) != row_bytes)
        reader.fail("a PNG of an unknown pixel layout");
    std::vector<png_bytep> rows = row_pointers(image.pixels.data(), image.height(), row_bytes);
    if (!read_rows(state, rows.data())) fail(state);
    return image;
}

void write_png(const Image& image, ByteSink& sink) {
    const int64_t channels = image.channels();
    STIPPLE_REQUIRE(channels == 1 || channels == 3 || channels == 4, "a PNG has 1, 3 or 4 channels, not {}", channels);
    STIPPLE_REQUIRE(
        image.width() > 0 && image.height() > 0 && image.width() <= 1'000'000 && image.height() <= 1'000'000,
        "a PNG of {} x {} pixels", image.width(), image.height());
    WriteState state;
    state.sink = &sink;
    state.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, static_cast<PngState*>(&state), on_error, on_warning);
    if (state.png) state.info = png_create_info_struct(state.png);
    if (!state.info) throw Error(ErrorCode::out_of_memory, "no memory for libpng");
    // libpng wants mutable rows and does not touch them.
    std::vector<png_bytep> rows =
        row_pointers(const_cast<uint8_t*>(image.pixels.data()), image.height(), image.width() * channels);
    if (write_all(state, image, rows.data())) return;
    if (state.failure) std::rethrow_exception(state.failure);
    throw Error(ErrorCode::cannot_write, fmt::format("libpng: {}", state.message));
}

}  // namespace stipple::io
