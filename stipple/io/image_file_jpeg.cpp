#include <csetjmp>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>
// After jpeglib.h: the codes of its messages.
#include <jerror.h>

#include "stipple/io/common/exif.h"
#include "stipple/io/image_file.h"

// libjpeg reports errors through callbacks that must not return; they longjmp to functions with trivial locals only.
// What must be destroyed lives in the caller.

namespace stipple::io {
namespace {

constexpr int64_t kChunk = 64 << 10;
constexpr int kMaxScans = 256;  // a progressive file of many empty scans costs time without bound

struct JpegState {
    jpeg_error_mgr errors{};
    jmp_buf jump{};
    char message[JMSG_LENGTH_MAX] = "";
    std::exception_ptr failure;
};

JpegState& state_of(j_common_ptr jpeg) {
    return *static_cast<JpegState*>(jpeg->client_data);
}

void on_error(j_common_ptr jpeg) {
    JpegState& state = state_of(jpeg);
    jpeg->err->format_message(jpeg, state.message);
    longjmp(state.jump, 1);
}

// Warnings of libjpeg: data that ends early or does not decode is an error here; oddities that lose nothing pass.
void on_message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    const int code = jpeg->err->msg_code;
    if (code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE)
        on_error(jpeg);
}

void set_errors(JpegState& state) {
    jpeg_std_error(&state.errors);
    state.errors.error_exit = on_error;
    state.errors.emit_message = on_message;
}

// === Reading
struct ReadState : JpegState {
    jpeg_decompress_struct jpeg{};
    jpeg_source_mgr source{};
    jpeg_progress_mgr progress{};
    ByteReader* reader = nullptr;
    std::vector<JOCTET> chunk;
    bool created = false;

    ~ReadState() {
        if (created) jpeg_destroy_decompress(&jpeg);
    }

    bool refill() noexcept {
        try {
            const auto head = reader->peek(kChunk);
            if (head.empty()) reader->fail("the file ends in the middle of the JPEG data");
            chunk.resize(head.size());
            reader->read_exact(chunk.data(), static_cast<int64_t>(head.size()), "the JPEG data");
            source.next_input_byte = chunk.data();
            source.bytes_in_buffer = chunk.size();
            return true;
        } catch (...) {
            failure = std::current_exception();
            return false;
        }
    }
};

ReadState& read_state_of(j_decompress_ptr jpeg) {
    return static_cast<ReadState&>(state_of(reinterpret_cast<j_common_ptr>(jpeg)));
}

void on_source(j_decompress_ptr) {}

boolean on_refill(j_decompress_ptr jpeg) {
    ReadState& state = read_state_of(jpeg);
    if (!state.refill()) longjmp(state.jump, 1);
    return TRUE;
}

void on_skip(j_decompress_ptr jpeg, long bytes) {
    while (bytes > 0) {
        jpeg_source_mgr& source = *jpeg->src;
        if (source.bytes_in_buffer == 0) on_refill(jpeg);
        const size_t step = std::min(static_cast<size_t>(bytes), source.bytes_in_buffer);
        source.next_input_byte += step;
        source.bytes_in_buffer -= step;
        bytes -= static_cast<long>(step);
    }
}

void on_progress(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMaxScans) {
        std::snprintf(state_of(jpeg).message, JMSG_LENGTH_MAX, "more than %d scans", kMaxScans);
        longjmp(state_of(jpeg).jump, 1);
    }
}

bool read_header(ReadState& state) {
    set_errors(state);
    state.jpeg.err = &state.errors;
    state.jpeg.client_data = static_cast<JpegState*>(&state);
    if (setjmp(state.jump)) return false;
    jpeg_create_decompress(&state.jpeg);
    state.created = true;
    state.source.init_source = on_source;
    state.source.fill_input_buffer = on_refill;
    state.source.skip_input_data = on_skip;
    state.source.resync_to_restart = jpeg_resync_to_restart;
    state.source.term_source = on_source;
    state.jpeg.src = &state.source;
    state.progress.progress_monitor = on_progress;
    state.jpeg.progress = &state.progress;
    jpeg_save_markers(&state.jpeg, JPEG_APP0 + 1, 0xffff);  // EXIF; memory follows the bytes that the file has
    jpeg_read_header(&state.jpeg, TRUE);
    return true;
}

bool read_rows(ReadState& state, uint8_t* pixels, int64_t row_bytes) {
    if (setjmp(state.jump)) return false;
    jpeg_start_decompress(&state.jpeg);
    while (state.jpeg.output_scanline < state.jpeg.output_height) {
        JSAMPROW row = pixels + state.jpeg.output_scanline * row_bytes;
        jpeg_read_scanlines(&state.jpeg, &row, 1);
    }
    jpeg_finish_decompress(&state.jpeg);
    return true;
}

[[noreturn]] void fail(ReadState& state) {
    if (state.failure) std::rethrow_exception(state.failure);
    state.reader->fail(fmt::format("damaged JPEG: {}", state.message));
}

// === Writing
struct WriteState : JpegState {
    jpeg_compress_struct jpeg{};
    jpeg_destination_mgr target{};
    ByteSink* sink = nullptr;
    std::vector<JOCTET> chunk;
    bool created = false;

    ~WriteState() {
        if (created) jpeg_destroy_compress(&jpeg);
    }

    bool flush(size_t bytes) noexcept {
        try {
            sink->write(chunk.data(), static_cast<int64_t>(bytes));
            target.next_output_byte = chunk.data();
            target.free_in_buffer = chunk.size();
            return true;
        } catch (...) {
            failure = std::current_exception();
            return false;
        }
    }
};

WriteState& write_state_of(j_compress_ptr jpeg) {
    return static_cast<WriteState&>(state_of(reinterpret_cast<j_common_ptr>(jpeg)));
}

void on_target(j_compress_ptr jpeg) {
    WriteState& state = write_state_of(jpeg);
    state.target.next_output_byte = state.chunk.data();
    state.target.free_in_buffer = state.chunk.size();
}

boolean on_full(j_compress_ptr jpeg) {
    WriteState& state = write_state_of(jpeg);
    if (!state.flush(state.chunk.size())) longjmp(state.jump, 1);
    return TRUE;
}

void on_finish(j_compress_ptr jpeg) {
    WriteState& state = write_state_of(jpeg);
    if (!state.flush(state.chunk.size() - state.target.free_in_buffer)) longjmp(state.jump, 1);
}

bool write_all(WriteState& state, const Image& image, int quality) {
    set_errors(state);
    state.jpeg.err = &state.errors;
    state.jpeg.client_data = static_cast<JpegState*>(&state);
    if (setjmp(state.jump)) return false;
    jpeg_create_compress(&state.jpeg);
    state.created = true;
    state.target.init_destination = on_target;
    state.target.empty_output_buffer = on_full;
    state.target.term_destination = on_finish;
    state.jpeg.dest = &state.target;
    state.jpeg.image_width = static_cast<JDIMENSION>(image.width());
    state.jpeg.image_height = static_cast<JDIMENSION>(image.height());
    state.jpeg.input_components = static_cast<int>(image.channels());
    state.jpeg.in_color_space = image.channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&state.jpeg);
    jpeg_set_quality(&state.jpeg, quality, TRUE);
    jpeg_start_compress(&state.jpeg, TRUE);
    while (state.jpeg.next_scanline < state.jpeg.image_height) {
        JSAMPROW row = const_cast<uint8_t*>(image.at(0, state.jpeg.next_scanline));
        jpeg_write_scanlines(&state.jpeg, &row, 1);
    }
    jpeg_finish_compress(&state.jpeg);
    return true;
}

}  // namespace

Image parse_jpeg(ByteReader& reader) {
    int orientation = 1;
    Image image = parse_jpeg_as_stored(reader, orientation);
    return orientation == 1 ? std::move(image) : turned_upright(image, orientation);
}

Image parse_jpeg_as_stored(ByteReader& reader, int& orientation) {
    ReadState state;
    state.reader = &reader;
    const auto bytes = reader.remaining();
    if (!read_header(state)) fail(state);
    const int64_t width = state.jpeg.image_width, height = state.jpeg.image_height;
    const Limits& limits = reader.limits();
    if (width == 0 || height == 0) reader.fail("a JPEG without pixels");
    if (width > limits.max_image_side || height > limits.max_image_side || width * height > limits.max_image_pixels)
        reader.fail(fmt::format("a picture of {} x {} pixels, at most {} and {} a side are read", width, height,
                                limits.max_image_pixels, limits.max_image_side));
    // An 8 x 8 block takes a bit at least, so that 512 pixels a byte is what the format can do.
    if (bytes && width * height > checked_mul(*bytes, limits.max_inflation))
        reader.fail(fmt::format("the header asks for {} x {} pixels, the file has {} bytes", width, height, *bytes));
    const J_COLOR_SPACE space = state.jpeg.jpeg_color_space;
    if (space == JCS_CMYK || space == JCS_YCCK)
        reader.fail("a CMYK JPEG, which is not read", "convert it first: magick in.jpg -colorspace sRGB out.jpg");
    const int64_t channels = space == JCS_GRAYSCALE ? 1 : 3;
    state.jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    orientation = 1;
    for (const jpeg_marker_struct* marker = state.jpeg.marker_list; marker && orientation == 1; marker = marker->next)
        orientation = exif_orientation({marker->data, marker->data_length});
    Image image(width, height, channels);
    if (!read_rows(state, image.pixels.data(), width * channels)) fail(state);
    return image;
}

void write_jpeg(const Image& image, ByteSink& sink, int quality) {
    STIPPLE_REQUIRE(image.channels() == 1 || image.channels() == 3, "a JPEG has 1 or 3 channels, not {}",
                    image.channels());
    STIPPLE_REQUIRE(image.width() > 0 && image.height() > 0 && image.width() <= JPEG_MAX_DIMENSION &&
                        image.height() <= JPEG_MAX_DIMENSION,
                    "a JPEG of {} x {} pixels", image.width(), image.height());
    STIPPLE_REQUIRE(quality >= 1 && quality <= 100, "JPEG quality is 1 to 100, not {}", quality);
    WriteState state;
    state.sink = &sink;
    state.chunk.resize(kChunk);
    if (write_all(state, image, quality)) return;
    if (state.failure) std::rethrow_exception(state.failure);
    throw Error(ErrorCode::cannot_write, fmt::format("libjpeg: {}", state.message));
}

}  // namespace stipple::io
