#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/core/half.h"
#include "stipple/io/safetensors.h"
#include "stipple/io/text.h"
#include "stipple/radiance/field.h"

namespace stipple::radiance {
namespace {

constexpr const char* kKind = "stipple.kind";
constexpr const char* kKindField = "radiance field 1";
constexpr std::string_view kNote = "note.";
constexpr int kCameraNumbers = 18;

using Shape = std::vector<int64_t>;

struct NetworkPart {
    const char* name;
    std::vector<float> ColourNetwork::*values;
    Shape shape;
};
std::array<NetworkPart, 6> network_parts() {
    return {{{"network.weight1", &ColourNetwork::weight1, {kHidden, kFeatures + kViewInputs}},
             {"network.bias1", &ColourNetwork::bias1, {kHidden}},
             {"network.weight2", &ColourNetwork::weight2, {kHidden, kHidden}},
             {"network.bias2", &ColourNetwork::bias2, {kHidden}},
             {"network.weight3", &ColourNetwork::weight3, {3, kHidden}},
             {"network.bias3", &ColourNetwork::bias3, {3}}}};
}

struct Scalar {
    const char* name;
    float FieldSettings::*value;
};
constexpr Scalar kScalars[] = {{"density_shift", &FieldSettings::density_shift},
                               {"voxel_ratio", &FieldSettings::voxel_ratio},
                               {"step", &FieldSettings::step},
                               {"least_weight", &FieldSettings::least_weight},
                               {"near", &FieldSettings::near}};

size_t elements(const Shape& shape) {
    int64_t product = 1;
    for (int64_t extent : shape) product *= extent;
    return static_cast<size_t>(product);
}

bool all_finite(const std::vector<float>& values) {
    for (float v : values)
        if (!std::isfinite(v)) return false;
    return true;
}

std::string grid_fault(const GridShape& grid) {
    for (int axis = 0; axis < 3; ++axis) {
        const int32_t size = grid.size[static_cast<size_t>(axis)];
        if (size < 2 || size > kMostNodes)
            return fmt::format("size: {} nodes along an axis; 2 to {} are possible", size, kMostNodes);
        const float low = grid.box.low[axis], high = grid.box.high[axis];
        if (!std::isfinite(low) || !std::isfinite(high) || !(low < high) || !std::isfinite(high - low) ||
            !(grid.spacing(axis) > 0))
            return fmt::format("box: {} to {} along an axis", low, high);
    }
    if (grid.nodes() > kMostGridNodes)
        return fmt::format("size: {} nodes; {} are possible", grid.nodes(), kMostGridNodes);
    if (!std::isfinite(grid.voxel) || !(grid.voxel > 0)) return fmt::format("voxel: {} is no length", grid.voxel);
    return {};
}

std::string brick_fault(const Field& field) {
    const std::array<int32_t, 3> bricks = field.grid.bricks();
    if (field.brick.size() != elements({bricks[0], bricks[1], bricks[2]}))
        return fmt::format("brick: {} numbers for {} x {} x {} bricks", field.brick.size(), bricks[0], bricks[1],
                           bricks[2]);
    const int64_t stored = field.stored_bricks();
    if (field.density.size() % kBrickNodes != 0)
        return fmt::format("density: {} values, not in bricks", field.density.size());
    std::vector<bool> used(static_cast<size_t>(stored));
    for (int32_t number : field.brick) {
        if (number == -1) continue;
        if (number < 0 || number >= stored) return fmt::format("brick: number {} of {} stored ones", number, stored);
        if (used[static_cast<size_t>(number)]) return fmt::format("brick: number {} is used twice", number);
        used[static_cast<size_t>(number)] = true;
    }
    for (size_t i = 0; i < used.size(); ++i)
        if (!used[i]) return fmt::format("brick: number {} is used nowhere", i);
    if (field.occupied.size() != field.density.size() / 64) return "occupied: not a bit for each node";
    if (field.features.size() != field.density.size() * kFeatures) return "features: not those of each node";
    if (!all_finite(field.density)) return "density: a value is not finite";
    for (uint16_t half : field.features)
        if ((half & 0x7c00u) == 0x7c00u) return "features: a value is not finite";
    return {};
}

std::string camera_fault(const Camera& camera) {
    bool finite = true;
    for (float v : camera.to_world) finite = finite && std::isfinite(v);
    for (float v : {camera.fx, camera.fy, camera.cx, camera.cy}) finite = finite && std::isfinite(v);
    if (!finite) return "a number is not finite";
    if (camera.width < 1 || camera.height < 1 || camera.width > 65535 || camera.height > 65535)
        return fmt::format("a picture of {} x {}", camera.width, camera.height);
    if (!(camera.fx > 0) || !(camera.fy > 0)) return fmt::format("focal lengths {} and {}", camera.fx, camera.fy);
    return {};
}

std::string environment_fault(const FieldSettings& field) {
    const Environment& map = field.environment;
    const bool wanted = field.background == Background::learned;
    if (!wanted && map.side == 0 && map.texels.empty()) return {};
    if (wanted != (map.side > 0))
        return wanted ? "environment: none, and the background is learned"
                      : "environment: the background is not learned";
    if (map.side < kLeastEnvironment || map.side > kMostEnvironment)
        return fmt::format("environment: {} texels along an edge; {} to {} are possible", map.side, kLeastEnvironment,
                           kMostEnvironment);
    if (map.texels.size() != elements({map.side, map.side, 3}))
        return fmt::format("environment: {} values for {} x {} texels", map.texels.size(), map.side, map.side);
    if (!all_finite(map.texels)) return "environment: a value is not finite";
    return {};
}

[[noreturn]] void fail(const std::string& message) {
    throw Error(ErrorCode::bad_file, message);
}

// ---- writing

template <class T>
io::Tensor tensor_of(std::string name, DType dtype, Shape shape, const std::vector<T>& values) {
    io::Tensor tensor{std::move(name), dtype, std::move(shape),
                      Buffer(static_cast<int64_t>(values.size() * sizeof(T)))};
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), values.size() * sizeof(T));
    return tensor;
}

template <class Range>
std::string numbers_text(const Range& numbers) {
    std::string text;
    for (auto number : numbers) {
        if (!text.empty()) text += ' ';
        if constexpr (std::is_integral_v<decltype(number)>)
            io::append_number(text, int64_t{number});
        else
            io::append_number(text, number);
    }
    return text;
}

std::vector<float> camera_numbers(const std::vector<Camera>& cameras) {
    std::vector<float> numbers;
    numbers.reserve(cameras.size() * kCameraNumbers);
    for (const Camera& c : cameras) {
        for (float v : {static_cast<float>(c.width), static_cast<float>(c.height), c.fx, c.fy, c.cx, c.cy})
            numbers.push_back(v);
        numbers.insert(numbers.end(), c.to_world.begin(), c.to_world.end());
    }
    return numbers;
}

// ---- reading

/// The numbers of a metadata entry; it must have exactly `count`.
std::vector<double> numbers_of(const io::TensorFile& file, const std::string& key, size_t count) {
    const auto entry = file.metadata.find(key);
    if (entry == file.metadata.end()) fail(fmt::format("no '{}' in the metadata", key));
    std::vector<double> numbers;
    std::string_view text = entry->second;
    for (std::string_view word = io::next_word(text); !word.empty(); word = io::next_word(text)) {
        double number = 0;
        if (numbers.size() == count || !io::parse_number(word, number) || !std::isfinite(number))
            fail(fmt::format("'{}' in the metadata: expected {} finite numbers, found {}", key, count,
                             io::in_quotes(entry->second)));
        numbers.push_back(number);
    }
    if (numbers.size() != count)
        fail(fmt::format("'{}' in the metadata: expected {} finite numbers, found {}", key, count,
                         io::in_quotes(entry->second)));
    return numbers;
}

float number_of(const io::TensorFile& file, const std::string& key) {
    return static_cast<float>(numbers_of(file, key, 1)[0]);
}

/// A tensor of the shape, in which -1 stands for any extent. Null where it is absent and may be.
const io::Tensor* tensor_in(const io::TensorFile& file, const char* name, DType dtype, const Shape& shape,
                            bool optional = false) {
    const io::Tensor* tensor = io::find(file, name);
    if (!tensor && optional) return nullptr;
    if (!tensor) fail(fmt::format("no tensor '{}'", name));
    bool fits = tensor->dtype == dtype && tensor->shape.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == -1 || shape[i] == tensor->shape[i];
    if (!fits) {
        std::string wanted = shape_text(shape.data(), static_cast<int>(shape.size()));
        for (size_t at; (at = wanted.find("-1")) != std::string::npos;) wanted.replace(at, 2, "n");
        fail(fmt::format("tensor '{}': expected {} {}, found {} {}", name, name_of(dtype), wanted,
                         name_of(tensor->dtype),
                         shape_text(tensor->shape.data(), static_cast<int>(tensor->shape.size()))));
    }
    return tensor;
}

template <class T>
std::vector<T> values_of(const io::Tensor* tensor) {
    if (!tensor) return {};
    std::vector<T> values(static_cast<size_t>(tensor->data.bytes()) / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor->data.data(), values.size() * sizeof(T));
    return values;
}

std::vector<Camera> cameras_of(const std::vector<float>& numbers) {
    std::vector<Camera> cameras(numbers.size() / kCameraNumbers);
    for (size_t i = 0; i < cameras.size(); ++i) {
        const float* n = numbers.data() + i * kCameraNumbers;
        // Converting a float that no int32 holds is undefined: 0 is refused later.
        const auto pixels = [](float v) { return v >= 1 && v <= 65535 ? static_cast<int32_t>(v) : 0; };
        cameras[i] = {pixels(n[0]), pixels(n[1]), n[2], n[3], n[4], n[5], {}};
        std::copy(n + 6, n + kCameraNumbers, cameras[i].to_world.begin());
    }
    return cameras;
}

Field field_of(const io::TensorFile& file) {
    const auto kind = file.metadata.find(kKind);
    if (kind == file.metadata.end()) fail("no radiance field: a safetensors file of something else");
    if (kind->second != kKindField)
        fail(fmt::format("expected '{}', found {}", kKindField, io::in_quotes(kind->second)));
    Field field;
    const std::vector<double> size = numbers_of(file, "size", 3), box = numbers_of(file, "box", 6);
    for (int axis = 0; axis < 3; ++axis) {
        const auto a = static_cast<size_t>(axis);
        if (!(size[a] >= 2 && size[a] <= kMostNodes) || size[a] != std::floor(size[a]))
            fail(fmt::format("size: {} nodes along an axis; 2 to {} are possible", size[a], kMostNodes));
        field.grid.size[a] = static_cast<int32_t>(size[a]);
        field.grid.box.low[axis] = static_cast<float>(box[a]);
        field.grid.box.high[axis] = static_cast<float>(box[a + 3]);
    }
    field.grid.voxel = number_of(file, "voxel");
    for (const Scalar& scalar : kScalars) field.*scalar.value = number_of(file, scalar.name);
    const std::vector<double> origin = numbers_of(file, "origin", 3);
    std::copy(origin.begin(), origin.end(), field.origin.begin());
    const auto background = file.metadata.find("background");
    if (background == file.metadata.end()) fail("no 'background' in the metadata");
    bool is_known = false;
    for (int i = 0; i < 4; ++i)
        if (background->second == kBackgroundWords[i]) field.background = static_cast<Background>(i), is_known = true;
    if (!is_known) fail(fmt::format("background: {} is none", io::in_quotes(background->second)));
    for (const auto& [key, value] : file.metadata)
        if (key.starts_with(kNote)) field.notes[key.substr(kNote.size())] = value;

    const std::array<int32_t, 3> b = field.grid.bricks();
    field.brick = values_of<int32_t>(tensor_in(file, "brick", DType::i32, {b[0], b[1], b[2]}));
    const io::Tensor* density = tensor_in(file, "density", DType::f32, {-1, kBrickNodes});
    const int64_t stored = density->shape[0];
    field.density = values_of<float>(density);
    field.occupied = values_of<uint64_t>(tensor_in(file, "occupied", DType::u64, {stored, kBrickNodes / 64}));
    field.features = values_of<uint16_t>(tensor_in(file, "features", DType::f16, {stored, kBrickNodes, kFeatures}));
    const bool has_network = io::find(file, "network.weight1") != nullptr;
    for (const NetworkPart& part : network_parts())
        if (has_network)
            field.network.*part.values = values_of<float>(tensor_in(file, part.name, DType::f32, part.shape));
    if (const io::Tensor* map = tensor_in(file, "environment", DType::f32, {-1, -1, 3}, true)) {
        if (map->shape[0] != map->shape[1] || map->shape[0] < kLeastEnvironment || map->shape[0] > kMostEnvironment)
            fail(fmt::format("environment: {} x {} texels; a square of {} to {} is possible", map->shape[0],
                             map->shape[1], kLeastEnvironment, kMostEnvironment));
        field.environment = {static_cast<int32_t>(map->shape[0]), values_of<float>(map)};
    }
    field.cameras = cameras_of(values_of<float>(tensor_in(file, "cameras", DType::f32, {-1, kCameraNumbers}, true)));
    if (const std::string fault = fault_of(field); !fault.empty()) fail(fault);
    return field;
}

}  // namespace

std::string fault_of(const Field& field) {
    if (std::string fault = grid_fault(field.grid); !fault.empty()) return fault;
    for (const Scalar& scalar : kScalars)
        if (!std::isfinite(field.*scalar.value)) return fmt::format("{}: not finite", scalar.name);
    if (!(field.voxel_ratio > 0)) return fmt::format("voxel_ratio: {} is not above 0", field.voxel_ratio);
    // Rays of a finer step would be cut short (march/ray.h).
    const float diagonal = std::hypot(field.grid.box.extent(0), field.grid.box.extent(1), field.grid.box.extent(2));
    if (!(field.step > 0) || !(field.step * field.grid.voxel * 65535 >= diagonal))
        return fmt::format("step: {} of a voxel of {} in a box with a diagonal of {}", field.step, field.grid.voxel,
                           diagonal);
    if (!(field.least_weight >= 0)) return fmt::format("least_weight: {} is below 0", field.least_weight);
    for (double v : field.origin)
        if (!std::isfinite(v)) return "origin: not finite";
    if (std::string fault = brick_fault(field); !fault.empty()) return fault;
    if (std::string fault = environment_fault(field); !fault.empty()) return fault;
    bool is_empty = true;
    for (const NetworkPart& part : network_parts()) is_empty = is_empty && (field.network.*part.values).empty();
    for (const NetworkPart& part : network_parts()) {
        const std::vector<float>& values = field.network.*part.values;
        if (!is_empty && values.size() != elements(part.shape))
            return fmt::format("{}: {} values, not {}", part.name, values.size(), elements(part.shape));
        if (!all_finite(values)) return fmt::format("{}: a value is not finite", part.name);
    }
    for (size_t i = 0; i < field.cameras.size(); ++i)
        if (std::string fault = camera_fault(field.cameras[i]); !fault.empty())
            return fmt::format("cameras: {} of camera {}", fault, i);
    return {};
}

void save_field(const std::string& path, const Field& field, Overwrite overwrite) {
    const std::string fault = fault_of(field);
    STIPPLE_REQUIRE(fault.empty(), "save_field: {}", fault);
    io::TensorFile file;
    auto& text = file.metadata;
    text[kKind] = kKindField;
    text["size"] = numbers_text(field.grid.size);
    const auto& box = field.grid.box;
    text["box"] = numbers_text(std::array{box.low[0], box.low[1], box.low[2], box.high[0], box.high[1], box.high[2]});
    text["voxel"] = numbers_text(std::array{field.grid.voxel});
    for (const Scalar& scalar : kScalars) text[scalar.name] = numbers_text(std::array{field.*scalar.value});
    text["origin"] = numbers_text(field.origin);
    text["background"] = kBackgroundWords[static_cast<int>(field.background)];
    for (const auto& [key, value] : field.notes) text[std::string(kNote) + key] = value;

    const std::array<int32_t, 3> b = field.grid.bricks();
    const int64_t stored = field.stored_bricks();
    file.tensors.push_back(tensor_of("brick", DType::i32, {b[0], b[1], b[2]}, field.brick));
    file.tensors.push_back(tensor_of("occupied", DType::u64, {stored, kBrickNodes / 64}, field.occupied));
    file.tensors.push_back(tensor_of("density", DType::f32, {stored, kBrickNodes}, field.density));
    file.tensors.push_back(tensor_of("features", DType::f16, {stored, kBrickNodes, kFeatures}, field.features));
    for (const NetworkPart& part : network_parts())
        if (!(field.network.*part.values).empty())
            file.tensors.push_back(tensor_of(part.name, DType::f32, part.shape, field.network.*part.values));
    if (const int64_t side = field.environment.side; side > 0)
        file.tensors.push_back(tensor_of("environment", DType::f32, {side, side, 3}, field.environment.texels));
    const auto cameras = static_cast<int64_t>(field.cameras.size());
    if (cameras > 0)
        file.tensors.push_back(
            tensor_of("cameras", DType::f32, {cameras, kCameraNumbers}, camera_numbers(field.cameras)));
    io::save_safetensors(path, file, overwrite);
}

Field load_field(const std::string& path) {
    io::TensorFile file;
    try {
        file = io::load_safetensors(path);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_file || !error.place().offset) throw;
        throw Error(ErrorCode::bad_file, error.place(), "no radiance field: " + error.message(), error.hint());
    }
    try {
        return field_of(file);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

bool is_field_file(const std::string& path) {
    struct stat facts;  // a pipe would lose what is read here
    if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
    try {
        io::FileSource source(path);
        io::ByteReader reader(source);
        const io::TensorHeader header = io::read_safetensors_header(reader);
        return header.metadata.count(kKind) > 0 && header.metadata.at(kKind) == kKindField;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace stipple::radiance
