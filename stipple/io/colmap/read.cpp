#include <algorithm>
#include <cmath>

#include "stipple/io/colmap/camera_models.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

/// A binary file begins with a count of 8 bytes, of which the highest are zero; text has no zero bytes.
bool is_binary_colmap(ByteReader& reader) {
    const auto head = reader.peek(8);
    return std::find(head.begin(), head.end(), std::byte{0}) != head.end();
}

/// The count that a binary file begins with, checked against what the file can hold.
int64_t read_count(ByteReader& reader, int64_t least_bytes, int64_t most, std::string_view what) {
    const auto count = reader.read_number<uint64_t>(what);
    if (count > static_cast<uint64_t>(most)) reader.fail(fmt::format("{} {}, at most {} are read", count, what, most));
    const auto n = static_cast<int64_t>(count);
    reader.require_remaining(n * least_bytes, what);
    return n;
}

void require_end(ByteReader& reader) {
    if (!reader.at_end()) reader.fail("more follows than the count at the beginning tells");
}

// === Text
/// The next line that is no comment; blank ones too, which an image's line of features may be.
std::optional<std::string_view> next_colmap_line(ByteReader& reader) {
    while (const auto line = reader.line()) {
        const std::string_view text = trimmed(*line);
        if (!text.starts_with('#')) return text;
    }
    return {};
}

std::optional<std::string_view> next_filled_line(ByteReader& reader) {
    while (const auto line = next_colmap_line(reader))
        if (!line->empty()) return line;
    return {};
}

double take_real(const ByteReader& reader, std::string_view& rest, std::string_view what) {
    const std::string_view word = next_word(rest);
    double value = 0;
    if (!parse_number(word, value) || !std::isfinite(value))
        reader.fail_line(fmt::format("expected a number for {}, found {}", what, in_quotes(word)));
    return value;
}

int64_t take_whole(const ByteReader& reader, std::string_view& rest, int64_t most, std::string_view what) {
    const std::string_view word = next_word(rest);
    int64_t value = 0;
    if (!parse_number(word, value) || value < 0 || value > most)
        reader.fail_line(fmt::format("expected a whole number for {}, found {}", what, in_quotes(word)));
    return value;
}

constexpr int64_t kMostId = 0xffffffff;

// === Checks
template <class Item>
void require_different_ids(const std::vector<Item>& items, std::string_view what) {
    std::vector<uint64_t> ids;
    ids.reserve(items.size());
    for (const Item& item : items) ids.push_back(item.id);
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice != ids.end()) throw Error(ErrorCode::bad_file, fmt::format("{} {} stands twice", what, *twice));
}

template <class Item>
void require_room(const ByteReader& reader, const std::vector<Item>& items, int64_t most, std::string_view what) {
    if (static_cast<int64_t>(items.size()) >= most)
        reader.fail_line(fmt::format("more than the {} {} that are read", most, what));
}

// === Cameras
std::vector<ColmapCamera> binary_cameras(ByteReader& reader) {
    const int64_t n = read_count(reader, 24 + 8 * 3, reader.limits().max_views, "cameras");
    std::vector<ColmapCamera> cameras;
    for (int64_t i = 0; i < n; ++i) {
        ColmapCamera camera;
        camera.id = reader.read_number<uint32_t>("a camera");
        const colmap::ModelInfo& info = colmap::model_by_id(reader, reader.read_number<int32_t>("a camera"));
        camera.model = info.model;
        // Sizes beyond the limit become negative or stay too large: both are refused.
        camera.lens.width = reader.read_number<int64_t>("a camera");
        camera.lens.height = reader.read_number<int64_t>("a camera");
        double parameters[colmap::kMostParameters] = {};
        const std::span<double> used(parameters, static_cast<size_t>(info.parameters));
        reader.read_exact(parameters, 8 * info.parameters, "a camera's parameters");
        colmap::set_parameters(info.model, used, camera.lens);
        if (const std::string fault = colmap::camera_fault(camera, reader.limits()); !fault.empty()) reader.fail(fault);
        cameras.push_back(camera);
    }
    require_end(reader);
    return cameras;
}

std::vector<ColmapCamera> text_cameras(ByteReader& reader) {
    std::vector<ColmapCamera> cameras;
    while (const auto line = next_filled_line(reader)) {
        require_room(reader, cameras, reader.limits().max_views, "cameras");
        std::string_view rest = *line;
        ColmapCamera camera;
        camera.id = static_cast<uint32_t>(take_whole(reader, rest, kMostId, "the camera's id"));
        const colmap::ModelInfo& info = colmap::model_by_name(reader, next_word(rest));
        camera.model = info.model;
        camera.lens.width = take_whole(reader, rest, reader.limits().max_image_side, "the width");
        camera.lens.height = take_whole(reader, rest, reader.limits().max_image_side, "the height");
        double parameters[colmap::kMostParameters] = {};
        const std::span<double> used(parameters, static_cast<size_t>(info.parameters));
        for (double& number : used) number = take_real(reader, rest, fmt::format("a parameter of {}", info.name));
        if (!trimmed(rest).empty())
            reader.fail_line(fmt::format("{} has {} parameters, found more: {}", info.name, info.parameters,
                                         in_quotes(trimmed(rest))));
        colmap::set_parameters(info.model, used, camera.lens);
        if (const std::string fault = colmap::camera_fault(camera, reader.limits()); !fault.empty())
            reader.fail_line(fault);
        cameras.push_back(camera);
    }
    return cameras;
}

// === Images
std::string read_name(ByteReader& reader) {
    std::string name;
    for (;;) {
        const char c = reader.read_number<char>("an image's name");
        if (c == 0) return name;
        if (name.size() >= 4096) reader.fail("an image's name is longer than 4096 bytes");
        name += c;
    }
}

std::vector<ColmapImage> binary_images(ByteReader& reader) {
    const int64_t n = read_count(reader, 4 + 56 + 4 + 1 + 8, reader.limits().max_views, "images");
    std::vector<ColmapImage> images;
    for (int64_t i = 0; i < n; ++i) {
        ColmapImage image;
        image.id = reader.read_number<uint32_t>("an image");
        reader.read_exact(image.rotation.data(), 32, "an image's rotation");
        reader.read_exact(image.translation.data(), 24, "an image's translation");
        image.camera_id = reader.read_number<uint32_t>("an image's camera");
        image.name = read_name(reader);
        if (const std::string fault = colmap::image_fault(image); !fault.empty()) reader.fail(fault);
        const auto features = reader.read_number<uint64_t>("the number of an image's features");
        if (features > static_cast<uint64_t>(reader.limits().max_points))
            reader.fail(fmt::format("{} features, at most {} are read", features, reader.limits().max_points));
        reader.require_remaining(24 * static_cast<int64_t>(features), "an image's features");
        reader.skip(24 * static_cast<int64_t>(features), "an image's features");
        images.push_back(std::move(image));
    }
    require_end(reader);
    return images;
}

/// The line behind an image's: its features, three numbers each, possibly none; a file may end without the last one. A
/// file without these lines would lose every second image, were it not for the check.
void skip_features(ByteReader& reader, uint32_t image) {
    const auto line = next_colmap_line(reader);
    if (!line) return;
    std::string_view rest = *line, last;
    int64_t words = 0;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest), ++words) last = word;
    double number = 0;
    if (words % 3 != 0 || (words > 0 && !parse_number(last, number)))
        reader.fail_line(fmt::format("expected the features of image {}, three numbers each, or an empty line", image));
}

std::vector<ColmapImage> text_images(ByteReader& reader) {
    std::vector<ColmapImage> images;
    while (const auto line = next_filled_line(reader)) {
        require_room(reader, images, reader.limits().max_views, "images");
        std::string_view rest = *line;
        ColmapImage image;
        image.id = static_cast<uint32_t>(take_whole(reader, rest, kMostId, "the image's id"));
        for (double& number : image.rotation) number = take_real(reader, rest, "the rotation");
        for (double& number : image.translation) number = take_real(reader, rest, "the translation");
        image.camera_id = static_cast<uint32_t>(take_whole(reader, rest, kMostId, "the camera's id"));
        image.name = trimmed(rest);
        if (const std::string fault = colmap::image_fault(image); !fault.empty()) reader.fail_line(fault);
        images.push_back(std::move(image));
        skip_features(reader, images.back().id);
    }
    return images;
}

// === Points
void check_point(ColmapPoint& point, const ByteReader& reader, bool is_text) {
    for (const double number : point.position) {
        if (std::abs(number) < 1e15) continue;
        const std::string message = fmt::format("point {} has the coordinate {:g}", point.id, number);
        is_text ? reader.fail_line(message) : reader.fail(message);
    }
    if (!std::isfinite(point.error)) point.error = -1;
}

void binary_points(ByteReader& reader, ColmapModel& model) {
    const int64_t n = read_count(reader, 8 + 24 + 3 + 8 + 8, reader.limits().max_points, "points");
    for (int64_t i = 0; i < n; ++i) {
        ColmapPoint point;
        point.id = reader.read_number<uint64_t>("a point");
        reader.read_exact(point.position.data(), 24, "a point");
        reader.read_exact(point.color.data(), 3, "a point's colour");
        point.error = reader.read_number<double>("a point's error");
        check_point(point, reader, false);
        point.track_begin = static_cast<int64_t>(model.track.size());
        const auto length = reader.read_number<uint64_t>("the length of a point's track");
        if (length > static_cast<uint64_t>(reader.limits().max_views))
            reader.fail(fmt::format("a track of {} images, at most {} are read", length, reader.limits().max_views));
        reader.require_remaining(8 * static_cast<int64_t>(length), "a point's track");
        for (uint64_t k = 0; k < length; ++k) {
            model.track.push_back(reader.read_number<uint32_t>("a point's track"));
            reader.read_number<uint32_t>("a point's track");
        }
        model.points.push_back(point);
    }
    require_end(reader);
}

void text_points(ByteReader& reader, ColmapModel& model) {
    while (const auto line = next_filled_line(reader)) {
        require_room(reader, model.points, reader.limits().max_points, "points");
        std::string_view rest = *line;
        ColmapPoint point;
        point.id = static_cast<uint64_t>(take_whole(reader, rest, INT64_MAX, "the point's id"));
        for (double& number : point.position) number = take_real(reader, rest, "a coordinate");
        for (uint8_t& number : point.color)
            number = static_cast<uint8_t>(take_whole(reader, rest, 255, "a colour of 8 bits"));
        point.error = take_real(reader, rest, "the error");
        check_point(point, reader, true);
        point.track_begin = static_cast<int64_t>(model.track.size());
        for (rest = trimmed(rest); !rest.empty(); rest = trimmed(rest)) {
            model.track.push_back(static_cast<uint32_t>(take_whole(reader, rest, kMostId, "an image of the track")));
            take_whole(reader, rest, kMostId, "a feature of the track");
        }
        model.points.push_back(point);
    }
}

}  // namespace

std::vector<ColmapCamera> parse_colmap_cameras(ByteReader& reader) {
    auto cameras = is_binary_colmap(reader) ? binary_cameras(reader) : text_cameras(reader);
    require_different_ids(cameras, "camera");
    return cameras;
}

std::vector<ColmapImage> parse_colmap_images(ByteReader& reader) {
    auto images = is_binary_colmap(reader) ? binary_images(reader) : text_images(reader);
    require_different_ids(images, "image");
    return images;
}

void parse_colmap_points(ByteReader& reader, ColmapModel& model) {
    model.points.clear();
    model.track.clear();
    is_binary_colmap(reader) ? binary_points(reader, model) : text_points(reader, model);
    require_different_ids(model.points, "point");
}

}  // namespace stipple::io
