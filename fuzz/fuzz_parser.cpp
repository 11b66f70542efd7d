// Fuzzes the parser that the program's name tells: fuzz_ply fuzzes PLY. All names are links to one program. Beyond not
// crashing, every input must keep to:
//   memory      at most 64 times the input and 1 MiB, counted over all allocations that live at one time; compressed
//               formats (laz, npz, png, jpeg, packed, binary_compressed pcd) are bounded by limits.h instead
//   errors      Error{bad_file} or Error{out_of_memory} only; of a model also Error{bad_config}
//   round trip  what was read, written and read again is the same
// Time (one second) is libFuzzer's -timeout.

#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/live_memory.h"
#include "stipple/core/parallel.h"
#include "stipple/data/packed.h"
#include "stipple/data/packed/block.h"
#include "stipple/io/colmap.h"
#include "stipple/io/common/exif.h"
#include "stipple/io/event_file.h"
#include "stipple/io/format.h"
#include "stipple/io/image_file.h"
#include "stipple/io/safetensors.h"
#include "stipple/io/tfrecord.h"
#include "stipple/io/transforms.h"
#include "stipple/models/registry.h"

namespace {

using namespace stipple;

std::string g_parser;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "fuzz_%s: %s\n", g_parser.c_str(), what);
    std::abort();
}

/// Small enough that a compressed input cannot slow the fuzzer down.
io::Limits limits() {
    io::Limits limits;
    limits.max_image_pixels = int64_t{1} << 20;
    limits.max_inflated = int64_t{16} << 20;
    if (g_parser == "laz" || g_parser == "las") {
        limits.max_inflated = int64_t{1} << 20;
        limits.max_inflation = 16;
    }
    return limits;
}

bool same_numbers(const float* a, const float* b, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (std::memcmp(a + i, b + i, 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
    return true;
}

/// Equality of meshes as a format can promise it: positions to a last bit of float64 where an origin is involved.
void require_same(const Mesh& a, const Mesh& b) {
    if (a.vertices.size() != b.vertices.size()) fail("round trip: number of points");
    if (a.faces() != b.faces()) fail("round trip: number of faces");
    if (a.vertices.origin == std::array<double, 3>{} && b.vertices.origin == std::array<double, 3>{} &&
        !same_numbers(a.vertices.positions.data(), b.vertices.positions.data(), 3 * a.vertices.size()))
        fail("round trip: positions");
    if (a.faces() && std::memcmp(a.triangles.data(), b.triangles.data(), static_cast<size_t>(12 * a.faces())) != 0)
        fail("round trip: faces");
    if (a.vertices.attributes.size() != b.vertices.attributes.size()) fail("round trip: number of attributes");
}

template <class Parse>
auto parse_bytes(const uint8_t* data, size_t size, Parse parse) {
    io::MemorySource source({reinterpret_cast<const std::byte*>(data), size});
    io::ByteReader reader(source, limits());
    return parse(reader);
}

void run_geometry(const uint8_t* data, size_t size) {
    const io::Format format = io::format_by_name(g_parser == "laz" ? "las" : g_parser);
    const auto parse = [&](io::ByteReader& reader) {
        io::Warnings warnings;
        return io::info_of(format).parse(reader, {}, warnings);
    };
    const Mesh mesh = parse_bytes(data, size, parse);
    validate(mesh);
    fuzz::stop_counting();
    // .npz holds everything: what any parser returns must come back from it bit for bit.
    MemorySink sink;
    io::Warnings warnings;
    io::info_of(io::Format::npz).write(mesh, sink, {}, warnings);
    const Mesh again =
        parse_bytes(reinterpret_cast<const uint8_t*>(sink.bytes().data()), sink.bytes().size(),
                    [&](io::ByteReader& reader) { return io::info_of(io::Format::npz).parse(reader, {}, warnings); });
    require_same(mesh, again);
    // And its own format, when that holds all of it.
    MemorySink own;
    warnings.clear();
    try {
        io::info_of(format).write(mesh, own, {}, warnings);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_argument) throw;
        return;  // refused: the format cannot hold it
    }
    if (!warnings.empty()) return;
    require_same(mesh, parse_bytes(reinterpret_cast<const uint8_t*>(own.bytes().data()), own.bytes().size(), parse));
}

void run_tensors(const uint8_t* data, size_t size) {
    const io::TensorFile file =
        parse_bytes(data, size, [](io::ByteReader& reader) { return io::parse_safetensors(reader); });
    fuzz::stop_counting();
    MemorySink sink;
    io::write_safetensors(file, sink);
    const io::TensorFile again = parse_bytes(reinterpret_cast<const uint8_t*>(sink.bytes().data()), sink.bytes().size(),
                                             [](io::ByteReader& reader) { return io::parse_safetensors(reader); });
    if (file.tensors.size() != again.tensors.size()) fail("round trip: number of tensors");
    for (size_t i = 0; i < file.tensors.size(); ++i) {
        const io::Tensor &a = file.tensors[i], &b = again.tensors[i];
        if (a.name != b.name || a.dtype != b.dtype || a.shape != b.shape) fail("round trip: a tensor's description");
        if (a.data.bytes() && std::memcmp(a.data.data(), b.data.data(), static_cast<size_t>(a.data.bytes())) != 0)
            fail("round trip: a tensor's data");
    }
}

/// Events that were read, written and read again are the same; what is damaged stays out.
void run_events(const uint8_t* data, size_t size) {
    const io::EventFile file = parse_bytes(data, size, io::parse_events);
    if (file.whole_bytes > static_cast<int64_t>(size)) fail("more bytes than there are");
    if (file.damage.empty() && file.whole_bytes != static_cast<int64_t>(size)) fail("bytes that nobody reports");
    fuzz::stop_counting();
    std::vector<std::byte> written;
    for (const io::Event& event : file.events) {
        const std::vector<std::byte> record = io::event_record(event);
        written.insert(written.end(), record.begin(), record.end());
    }
    const io::EventFile again =
        parse_bytes(reinterpret_cast<const uint8_t*>(written.data()), written.size(), io::parse_events);
    if (!again.damage.empty() || again.events.size() != file.events.size()) fail("round trip: number of events");
    for (size_t i = 0; i < file.events.size(); ++i) {
        const io::Event &a = file.events[i], &b = again.events[i];
        if (std::memcmp(&a.wall_time, &b.wall_time, 8) != 0 || a.step != b.step || a.version != b.version ||
            a.images != b.images || a.scalars.size() != b.scalars.size())
            fail("round trip: an event");
        for (size_t s = 0; s < a.scalars.size(); ++s)
            if (a.scalars[s].tag != b.scalars[s].tag || !same_numbers(&a.scalars[s].value, &b.scalars[s].value, 1))
                fail("round trip: a scalar");
    }
}

/// Records, and behind their checksums: the message of one alone.
void run_examples(const uint8_t* data, size_t size) {
    const auto check = [&](const std::vector<io::FloatFeature>& features) {
        size_t floats = 0;
        for (const io::FloatFeature& feature : features) floats += feature.values.size();
        if (4 * floats > size) fail("more floats than there are bytes");
    };
    try {
        parse_bytes(data, size, [&](io::ByteReader& reader) {
            for (io::TfExample example; io::read_example(reader, example);) check(example.features);
            return 0;
        });
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_file) throw;
    }
    check(io::parse_example({reinterpret_cast<const std::byte*>(data), size}, 0, limits().max_features));
}

/// Weights as float32 come back, and what int8 rows made of them stays.
void run_weights(const uint8_t* data, size_t size) {
    const network::Weights weights = parse_bytes(data, size, network::parse_weights);
    fuzz::stop_counting();
    const auto written = [](const network::Weights& content, network::WeightStorage storage) {
        MemorySink sink;
        network::write_weights(content, storage, sink);
        return sink.bytes();
    };
    const auto parsed = [](const std::vector<std::byte>& bytes) {
        return parse_bytes(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), network::parse_weights);
    };
    try {
        if (checksum(parsed(written(weights, network::WeightStorage::f32))) != checksum(weights))
            fail("round trip: weights");
        const network::Weights rows = parsed(written(weights, network::WeightStorage::int8_rows));
        if (checksum(parsed(written(rows, network::WeightStorage::int8_rows))) != checksum(rows))
            fail("round trip: int8 rows");
    } catch (const Error& error) {
        if (error.code() != ErrorCode::not_finite) fail(error.what());  // a number that the storage does not hold
    }
}

/// What load_model() does with a file.
void run_model(const uint8_t* data, size_t size) {
    const network::Weights weights = parse_bytes(data, size, network::parse_weights);
    const auto config = network::config_of(weights);
    const auto name = weights.metadata.find("stipple.model");
    if (name == weights.metadata.end()) return;
    const network::Network network = models::build_model(name->second, config);
    fuzz::stop_counting();
    network::validate(network);
    // What was built says in its configuration how to build it again.
    if (network::to_text(models::build_model(network.name, network.config)) != network::to_text(network))
        fail("round trip: a network");
    network::check_weights(network, weights);
}

void run_image(const uint8_t* data, size_t size) {
    const Image image = parse_bytes(data, size, [](io::ByteReader& reader) {
        return g_parser == "png" ? io::parse_png(reader) : io::parse_jpeg(reader);
    });
    if (image.width() < 1 || image.height() < 1) fail("an empty picture was returned");
    fuzz::stop_counting();
    MemorySink sink;
    io::write_png(image, sink);
    const Image again = parse_bytes(reinterpret_cast<const uint8_t*>(sink.bytes().data()), sink.bytes().size(),
                                    [](io::ByteReader& reader) { return io::parse_png(reader); });
    if (image.pixels.shape() != again.pixels.shape() ||
        std::memcmp(image.pixels.data(), again.pixels.data(), static_cast<size_t>(image.pixels.elements())) != 0)
        fail("round trip: pixels");
}

void run_exif(const uint8_t* data, size_t size) {
    const int orientation = io::exif_orientation({data, size});
    if (orientation < 1 || orientation > 8) fail("an orientation that there is not");
}

/// Cameras of transforms.json: what is read can be used.
void run_transforms(const uint8_t* data, size_t size) {
    const io::Transforms transforms = parse_bytes(data, size, io::parse_transforms);
    if (transforms.frames.empty()) fail("no frames were returned");
    for (const io::TransformsFrame& frame : transforms.frames) {
        if (!io::path_fault(frame.file_path).empty()) fail("a path that was to be refused");
        for (const double number : frame.to_world)
            if (!std::isfinite(number)) fail("a pose that is not finite");
        if (!(io::lens_of(frame, 640, 480).fx > 0)) fail("a camera without focal length");
    }
}

/// One file of a COLMAP model, read, written in binary, read and written again.
void run_colmap(const uint8_t* data, size_t size) {
    using Write = void (*)(const io::ColmapModel&, io::ColmapForm, ByteSink&);
    const Write write = g_parser == "colmap_cameras"  ? io::write_colmap_cameras
                        : g_parser == "colmap_images" ? io::write_colmap_images
                                                      : io::write_colmap_points;
    const auto parse = [](io::ByteReader& reader) {
        io::ColmapModel model;
        if (g_parser == "colmap_cameras")
            model.cameras = io::parse_colmap_cameras(reader);
        else if (g_parser == "colmap_images")
            model.images = io::parse_colmap_images(reader);
        else
            io::parse_colmap_points(reader, model);
        return model;
    };
    const io::ColmapModel model = parse_bytes(data, size, parse);
    fuzz::stop_counting();
    for (const io::ColmapImage& image : model.images)
        for (const double number : io::pose_of(image))
            if (!std::isfinite(number)) fail("a pose that is not finite");
    MemorySink first, second;
    write(model, io::ColmapForm::binary, first);
    const auto again = parse_bytes(reinterpret_cast<const uint8_t*>(first.bytes().data()), first.bytes().size(), parse);
    write(again, io::ColmapForm::binary, second);
    if (first.bytes() != second.bytes()) fail("round trip: a COLMAP model");
}

/// A file, and behind its checksums: a block of these bytes, whose first say how they are cut.
void run_packed(const uint8_t* data, size_t size) {
    try {
        const data::DataSet set =
            parse_bytes(data, size, [](io::ByteReader& reader) { return data::parse_packed(reader, "train"); });
        MemorySink sink;
        data::write_packed({&set, 1}, {}, sink);
        const data::DataSet again =
            parse_bytes(reinterpret_cast<const uint8_t*>(sink.bytes().data()), sink.bytes().size(),
                        [](io::ByteReader& reader) { return data::parse_packed(reader, "train"); });
        if (set.clouds.offsets != again.clouds.offsets || set.labels != again.labels || set.parts != again.parts ||
            set.names != again.names || set.classes != again.classes)
            fail("round trip: a packed data set");
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_file && error.code() != ErrorCode::bad_argument) throw;
    }
    if (size < 5) return;
    data::PackedHeader header;
    header.bits = 8 + data[0] % 9;
    header.has_labels = data[1] & 1;
    header.has_names = data[1] & 2;
    header.has_parts = header.has_labels && data[1] & 4;
    header.classes = {"a", "b"};
    header.categories = {{"a", 0, 2}, {"b", 2, 5}};
    const size_t first = std::min<size_t>(size - 5, 256 * data[2] + data[3]);
    uLongf length = compressBound(first);
    std::vector<uint8_t> deflated(length);
    compress2(deflated.data(), &length, data + 5, first, 1);
    const std::span<const uint8_t> coded(data + 5 + first, size - 5 - first);
    const data::PackedBlock block{1 + data[4] % 4, 1 + data[4] / 4, static_cast<int64_t>(first), 0, 0, 0};
    data::decode_block(header, block, {deflated.data(), length}, coded);
}

bool is_compressed(const uint8_t* data, size_t size) {
    if (g_parser == "laz" || g_parser == "npz" || g_parser == "packed" || g_parser == "png" || g_parser == "jpeg")
        return true;
    if (g_parser == "las") return size > 104 && (data[104] & 0xc0);
    return g_parser == "pcd" &&
           std::string_view(reinterpret_cast<const char*>(data), size).find("compressed") != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
    const std::string program = (*arguments)[0];
    const size_t name = program.rfind("fuzz_");
    if (name == std::string::npos || program.find('/', name) != std::string::npos)
        fail("the program's name tells no parser");
    g_parser = program.substr(name + 5);
    set_threads(1);
    fuzz::install_counters();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::start_counting();
    try {
        if (g_parser == "safetensors")
            run_tensors(data, size);
        else if (g_parser == "events")
            run_events(data, size);
        else if (g_parser == "tfrecord")
            run_examples(data, size);
        else if (g_parser == "weights")
            run_weights(data, size);
        else if (g_parser == "model")
            run_model(data, size);
        else if (g_parser == "png" || g_parser == "jpeg")
            run_image(data, size);
        else if (g_parser == "transforms")
            run_transforms(data, size);
        else if (g_parser.starts_with("colmap_"))
            run_colmap(data, size);
        else if (g_parser == "exif")
            run_exif(data, size);
        else if (g_parser == "packed")
            run_packed(data, size);
        else
            run_geometry(data, size);
    } catch (const Error& error) {
        const bool is_config = g_parser == "model" && error.code() == ErrorCode::bad_config;
        if (!is_config && error.code() != ErrorCode::bad_file && error.code() != ErrorCode::out_of_memory) {
            // Sizes that overflow are refused by checked arithmetic; load() turns them into bad_file.
            if (error.code() != ErrorCode::bad_argument) fail(error.what());
        }
        if (std::strchr(error.what(), '\n')) fail("an error of several lines");
    }
    fuzz::stop_counting();
    if (!is_compressed(data, size) && fuzz::took_too_much(size)) {
        std::fprintf(stderr, "peak %lld bytes for %zu\n", static_cast<long long>(fuzz::g_peak), size);
        fail("too much memory");
    }
    return 0;
}
