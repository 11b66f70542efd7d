#include "stipple/io/transforms.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/core/json_reader.h"
#include "stipple/core/vec3.h"

namespace stipple::io {
namespace {

enum Number {
    kAngleX,
    kAngleY,
    kFocalX,
    kFocalY,
    kCentreX,
    kCentreY,
    kWidth,
    kHeight,
    kRadial1,
    kRadial2,
    kRadial3,
    kRadial4,
    kTangential1,
    kTangential2,
    kNumbers
};
constexpr std::array<std::string_view, kNumbers> kNumberNames = {
    "camera_angle_x", "camera_angle_y", "fl_x", "fl_y", "cx", "cy", "w", "h", "k1", "k2", "k3", "k4", "p1", "p2"};
constexpr std::array<std::string_view, 7> kModels = {"PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL",
                                                     "OPENCV",  "PERSPECTIVE",    "perspective"};
constexpr uint32_t kModelKey = 1u << kNumbers, kFisheyeKey = 2u << kNumbers;  // beside those of numbers

/// What a frame or the file says of its camera.
struct Numbers {
    std::array<double, kNumbers> value = {};
    uint32_t seen = 0;
};

struct RawFrame {
    Numbers numbers;
    std::string file_path;
    bool has_path = false;
    std::array<double, 16> matrix = {};
    size_t entries = 0;

    bool is_whole() const { return has_path && entries == 16; }
};

void mark(JsonField& field, Numbers& numbers, uint32_t key) {
    if (numbers.seen & key) field.fail("stands twice");
    numbers.seen |= key;
}

void check_number(JsonField& field, size_t number, double value, const Limits& limits) {
    switch (number) {
        case kAngleX:
        case kAngleY:
            if (!(value > 0 && value < std::numbers::pi)) field.fail("must lie between 0 and pi");
            break;
        case kFocalX:
        case kFocalY:
            if (!(value > 0 && value < 1e9)) field.fail("must be above 0");
            break;
        case kWidth:
        case kHeight:
            if (!(value >= 1 && value <= static_cast<double>(limits.max_image_side) && value == std::floor(value)))
                field.fail(fmt::format("must be a whole number from 1 to {}", limits.max_image_side));
            break;
        case kRadial3:
        case kRadial4:
            if (value != 0) field.fail("is not 0, and lenses have k1, k2, p1, p2 only");
            break;
        default:
            if (!(std::abs(value) < 1e9)) field.fail("is too large");
    }
}

/// Keys of cameras; all others are ignored.
void read_numbers(JsonField& field, std::string_view key, Numbers& to, const Limits& limits) {
    for (size_t i = 0; i < kNumbers; ++i) {
        if (key != kNumberNames[i]) continue;
        mark(field, to, 1u << i);
        field.take(to.value[i]);
        check_number(field, i, to.value[i], limits);
        return;
    }
    if (key == "camera_model") {
        mark(field, to, kModelKey);
        std::string model;
        field.take(model);
        if (std::find(kModels.begin(), kModels.end(), model) == kModels.end())
            field.fail(fmt::format("is {}, a model that is not read", in_quotes(model)));
    } else if (key == "is_fisheye") {
        mark(field, to, kFisheyeKey);
        bool is_fisheye = false;
        field.take(is_fisheye);
        if (is_fisheye) field.fail("is true, and fisheye cameras are not read");
    }
}

void read_matrix(JsonField& field, RawFrame& frame) {
    const std::string_view row = field.word(), column = field.word();
    if (frame.entries == 16 && row == "0" && column == "0") field.fail("stands twice");
    if (frame.entries == 16 || row != fmt::format("{}", frame.entries / 4) ||
        column != fmt::format("{}", frame.entries % 4))
        field.fail("is not where it belongs: a matrix has 4 rows of 4 numbers");
    field.take(frame.matrix[frame.entries++]);
}

void read_frame(JsonField& field, RawFrame& frame, const Limits& limits) {
    const std::string_view key = field.word();
    if (key == "file_path") {
        if (frame.has_path) field.fail("stands twice");
        frame.has_path = true;
        field.take(frame.file_path);
        while (frame.file_path.starts_with("./")) frame.file_path.erase(0, 2);
        if (const std::string fault = path_fault(frame.file_path); !fault.empty()) field.fail(fault);
    } else if (key == "transform_matrix") {
        read_matrix(field, frame);
    } else {
        read_numbers(field, key, frame.numbers, limits);
    }
}

[[noreturn]] void fail_frame(size_t index, std::string_view reason) {
    throw Error(ErrorCode::bad_file, fmt::format("\"frames/{}\" {}", index, reason));
}

void require_whole(const RawFrame& frame, size_t index) {
    if (!frame.has_path) fail_frame(index, "has no file_path");
    if (frame.entries != 16)
        fail_frame(index, fmt::format("has a transform_matrix of {} numbers, not of 4 rows of 4", frame.entries));
}

/// See TransformsFrame::to_world.
void make_rotation(std::array<double, 16>& m, size_t index) {
    if (m[12] != 0 || m[13] != 0 || m[14] != 0 || !(std::abs(m[15] - 1) < 1e-6))
        fail_frame(index, "has a transform_matrix whose last row is not 0 0 0 1");
    for (size_t i = 3; i < 12; i += 4)
        if (!(std::abs(m[i]) < 1e15)) fail_frame(index, "has a position that is too far away");
    const Vec3d x = {m[0], m[4], m[8]}, y = {m[1], m[5], m[9]}, z = {m[2], m[6], m[10]};
    const double lengths[3] = {length(x), length(y), length(z)};
    const double volume = lengths[0] * lengths[1] * lengths[2], determinant = dot(cross(x, y), z);
    if (!(std::isfinite(volume) && volume > 1e-30 && std::abs(determinant) > 1e-6 * volume))
        fail_frame(index, "has a singular transform_matrix");
    if (determinant < 0) fail_frame(index, "has a transform_matrix that mirrors");
    const double scale = std::cbrt(volume);
    constexpr double kSkew = 1e-2;
    if (determinant < (1 - kSkew) * volume || std::abs(lengths[0] - scale) > kSkew * scale ||
        std::abs(lengths[1] - scale) > kSkew * scale)
        fail_frame(index, "has a transform_matrix that is no rotation: it shears or stretches");
    constexpr double kRounding = 1e-4;  // of numbers that a program wrote with few digits: left as they are
    if (std::abs(scale - 1) < kRounding) return;
    for (size_t row = 0; row < 3; ++row)
        for (size_t column = 0; column < 3; ++column) m[4 * row + column] /= scale;
}

TransformsFrame finished(const RawFrame& raw, const Numbers& of_file, size_t index) {
    const auto value = [&](Number number) {
        return raw.numbers.seen & 1u << number ? raw.numbers.value[number] : of_file.value[number];
    };
    const auto has = [&](Number number) { return ((raw.numbers.seen | of_file.seen) & 1u << number) != 0; };
    TransformsFrame frame;
    frame.file_path = raw.file_path;
    frame.to_world = raw.matrix;
    make_rotation(frame.to_world, index);
    frame.camera_angle_x = value(kAngleX);
    frame.camera_angle_y = value(kAngleY);
    frame.lens.width = static_cast<int64_t>(value(kWidth));
    frame.lens.height = static_cast<int64_t>(value(kHeight));
    if (has(kWidth) != has(kHeight)) fail_frame(index, "has one of w and h without the other");
    if (has(kCentreX) != has(kCentreY)) fail_frame(index, "has one of cx and cy without the other");
    if (!has(kAngleX) && !has(kAngleY) && !has(kFocalX) && !has(kFocalY))
        fail_frame(index, "has neither camera_angle_x nor fl_x, and nor has the file");
    frame.lens.fx = value(kFocalX), frame.lens.fy = value(kFocalY);
    frame.lens.cx = value(kCentreX), frame.lens.cy = value(kCentreY);
    frame.lens.k1 = value(kRadial1), frame.lens.k2 = value(kRadial2), frame.lens.p1 = value(kTangential1),
    frame.lens.p2 = value(kTangential2);
    return frame;
}

/// Finds where the text is no JSON.
class Syntax : public JsonEvents {
public:
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool negative(int64_t) override { return true; }
    bool whole(uint64_t) override { return true; }
    bool real(double) override { return true; }
    bool string(std::string&) override { return true; }
    bool start_object() override { return true; }
    bool key(std::string&) override { return true; }
    bool end_object() override { return true; }
    bool start_array() override { return true; }
    bool end_array() override { return true; }
    bool error(size_t position) override {
        position_ = position;
        return false;
    }
    size_t position() const { return position_; }

private:
    size_t position_ = 0;
};

std::string read_text(ByteReader& reader) {
    const int64_t most = reader.limits().max_transforms;
    std::string text;
    if (const auto bytes = reader.remaining(); bytes && *bytes <= most) text.reserve(static_cast<size_t>(*bytes));
    while (!reader.at_end()) {
        const auto piece = reader.peek(int64_t{64} << 10);
        if (static_cast<int64_t>(text.size() + piece.size()) > most)
            reader.fail(fmt::format("more than {} bytes of cameras", most));
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        reader.skip(static_cast<int64_t>(piece.size()), "cameras");
    }
    if (text.empty()) throw Error(ErrorCode::bad_file, Place{{}, 1, {}}, "the file is empty");
    return text;
}

void require_json(std::string_view text) {
    const size_t zero = text.find('\0');
    Syntax syntax;
    size_t position = 0;
    if (!parse_json(text.substr(0, zero), syntax))
        position = syntax.position();
    else if (zero != std::string_view::npos)
        position = zero + 1;
    else
        return;
    const std::string_view before = text.substr(0, position == 0 ? 0 : position - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n');  // npos + 1 is 0
    throw Error(ErrorCode::bad_file, Place{{}, line, {}},
                fmt::format("column {}: this is no JSON", before.size() - (line_start + 1) + 1));
}

void require_different_paths(const std::vector<TransformsFrame>& frames) {
    std::vector<size_t> order(frames.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        const int difference = frames[a].file_path.compare(frames[b].file_path);
        return difference != 0 ? difference < 0 : a < b;
    });
    for (size_t i = 1; i < order.size(); ++i)
        if (frames[order[i]].file_path == frames[order[i - 1]].file_path)
            fail_frame(order[i], fmt::format("names {}, as \"frames/{}\" does", in_quotes(frames[order[i]].file_path),
                                             order[i - 1]));
}

}  // namespace

std::string path_fault(std::string_view path) {
    if (path.empty()) return "names no file";
    if (path.front() == '/') return "is an absolute path";
    for (const char c : path)
        if (static_cast<unsigned char>(c) < 32 || c == '\\' || c == 127)
            return "has a character that paths do not have";
    for (size_t begin = 0; begin <= path.size();) {
        const size_t slash = std::min(path.find('/', begin), path.size());
        if (path.substr(begin, slash - begin) == "..") return "leads out of the folder";
        begin = slash + 1;
    }
    if (path.back() == '/') return "names a folder";
    return {};
}

Transforms parse_transforms(ByteReader& reader) {
    const std::string text = read_text(reader);
    require_json(text);
    Numbers of_file;
    std::vector<RawFrame> raw;
    read_json("the list of cameras", text, [&](JsonField& field) {
        const std::string_view key = field.word();
        if (key == "frames") {
            const size_t before = raw.size();
            RawFrame& frame = field.element(raw);
            // A frame begins where the one before it is complete, so that memory follows what was read.
            if (raw.size() > before && before > 0) require_whole(raw[before - 1], before - 1);
            if (static_cast<int64_t>(raw.size()) > reader.limits().max_views)
                field.fail(fmt::format("is one photograph more than the {} that are read", reader.limits().max_views));
            read_frame(field, frame, reader.limits());
        } else {
            read_numbers(field, key, of_file, reader.limits());
        }
    });
    if (raw.empty()) throw Error(ErrorCode::bad_file, "names no photographs: there is no list \"frames\"");
    require_whole(raw.back(), raw.size() - 1);
    Transforms transforms;
    transforms.frames.reserve(raw.size());
    for (size_t i = 0; i < raw.size(); ++i) transforms.frames.push_back(finished(raw[i], of_file, i));
    require_different_paths(transforms.frames);
    return transforms;
}

Transforms load_transforms(const std::string& path, Limits limits) {
    FileSource source(path);
    try {
        ByteReader reader(source, limits);
        return parse_transforms(reader);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

Lens lens_of(const TransformsFrame& frame, int64_t width, int64_t height) {
    Lens lens = frame.lens;
    lens.width = width;
    lens.height = height;
    const auto focal_length = [](double angle, int64_t pixels) {
        return angle > 0 ? 0.5 * static_cast<double>(pixels) / std::tan(0.5 * angle) : 0.0;
    };
    if (lens.fx == 0 && lens.fy == 0) {
        lens.fx = focal_length(frame.camera_angle_x, width);
        lens.fy = focal_length(frame.camera_angle_y, height);
    }
    if (lens.fx == 0) lens.fx = lens.fy;
    if (lens.fy == 0) lens.fy = lens.fx;
    if (!(lens.fx > 0)) throw Error(ErrorCode::bad_file, "a camera without focal length and opening");
    if (lens.cx == 0 && lens.cy == 0) {
        lens.cx = 0.5 * static_cast<double>(width);
        lens.cy = 0.5 * static_cast<double>(height);
    }
    return lens;
}

}  // namespace stipple::io
