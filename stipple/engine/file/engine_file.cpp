#include "stipple/engine/engine_file.h"

#include <algorithm>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/engine/file/plan_json.h"
#include "stipple/engine/file/weight_tensors.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/program/validate_program.h"
#include "stipple/io/safetensors.h"
#include "stipple/io/text.h"

namespace stipple::engine {
namespace {

constexpr const char *kFormat = "stipple.engine.format", *kArchitecture = "stipple.engine.architecture",
                     *kPrecision = "stipple.engine.precision", *kDevice = "stipple.engine.device",
                     *kMaxBatch = "stipple.engine.max_batch", *kMaxPoints = "stipple.engine.max_points",
                     *kSource = "stipple.engine.source", *kPlan = "stipple.engine.plan",
                     *kChecksum = "stipple.engine.checksum", *kModel = "stipple.model",
                     *kCalibration = "stipple.calibration";
constexpr int64_t kMaxOption = int64_t{1} << 31;

[[noreturn]] void fail(std::string message, std::string hint = {}) {
    throw Error(ErrorCode::bad_file, std::move(message), std::move(hint));
}

/// FNV-1a over words of eight bytes in four lanes: as fast as the bytes arrive.
class Checksum {
public:
    void add(const void* data, size_t bytes) {
        const auto* at = static_cast<const unsigned char*>(data);
        mix(0, bytes);
        size_t i = 0;
        for (; i + 32 <= bytes; i += 32)
            for (size_t lane = 0; lane < 4; ++lane) {
                uint64_t word;
                std::memcpy(&word, at + i + 8 * lane, 8);
                mix(lane, word);
            }
        for (; i < bytes; ++i) mix(i % 4, at[i]);
    }
    void add(std::string_view text) { add(text.data(), text.size()); }
    std::string text() const {
        Checksum sum;
        for (const uint64_t lane : lanes_) sum.mix(0, lane);
        return fmt::format("{:016x}", sum.lanes_[0]);
    }

private:
    void mix(size_t lane, uint64_t word) {
        lanes_[lane] = (lanes_[lane] ^ word) * 0x100000001b3u;
        lanes_[lane] ^= lanes_[lane] >> 29;
    }
    uint64_t lanes_[4] = {0xcbf29ce484222325u, 0xcbf29ce484222326u, 0xcbf29ce484222327u, 0xcbf29ce484222328u};
};

/// Of all metadata but itself and `format`, which the container adds, and all tensors in the order of their names.
std::string checksum_of(const io::TensorFile& file) {
    Checksum sum;
    for (const auto& [key, value] : file.metadata) {
        if (key == kChecksum || key == "format") continue;
        sum.add(key);
        sum.add(value);
    }
    std::vector<const io::Tensor*> tensors;
    for (const io::Tensor& tensor : file.tensors) tensors.push_back(&tensor);
    std::sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    for (const io::Tensor* tensor : tensors) {
        sum.add(tensor->name);
        sum.add(tensor->shape.data(), 8 * tensor->shape.size());
        sum.add(tensor->data.data(), static_cast<size_t>(tensor->data.bytes()));
    }
    return sum.text();
}

// === Weights: the same walk names them when they are written and when they are read.

/// What a visit is told besides the name: the shape, of which `in` is 0 for a bias and both are -1 for a step's own
/// weight, which has as many numbers as its output needs; and for a layer's weight, the layer's precision.
struct Wanted {
    int64_t out = -1, in = -1;
    Precision precision = Precision::fp32;
};

/// Calls visit(name, wanted, values) for every weight that the plan asks for.
template <class AnyProgram, class Visit>
void for_each_weight(AnyProgram& program, Visit visit) {
    for (size_t i = 0; i < program.steps.size(); ++i) {
        auto& step = program.steps[i];
        if (step_type(step.kind).has_weight) visit(fmt::format("step.{}.weight", i), Wanted{}, step.weight);
        for (size_t j = 0; j < step.layers.size(); ++j) {
            auto& layer = step.layers[j];
            if (layer.matrix < 0 && layer.in != 0)
                visit(fmt::format("step.{}.layer.{}.weight", i, j), Wanted{layer.out, layer.in, layer.precision},
                      layer.weight);
            visit(fmt::format("step.{}.layer.{}.bias", i, j), Wanted{layer.out, 0, Precision::fp32}, layer.bias);
        }
    }
}

/// The tensor of the largest magnitudes of an int8 weight's rows.
std::string scale_name(const std::string& weight_name) {
    return weight_name.substr(0, weight_name.rfind('.')) + ".scale";
}

std::string type_text(const io::Tensor& tensor) {
    return fmt::format("{} {}", name_of(tensor.dtype),
                       shape_text(tensor.shape.data(), static_cast<int>(tensor.shape.size())));
}

/// Whether a layer of that precision may have its weight in numbers of this type. Format 1 knew float32 alone.
bool can_be_stored(Precision precision, DType dtype, int64_t format) {
    if (dtype == DType::f32) return true;
    return format > 1 && ((precision == Precision::int8 && dtype == DType::i8) ||
                          (precision == Precision::bf16 && dtype == DType::bf16));
}

void take_weights(Program& program, io::TensorFile& file, int64_t format) {
    std::map<std::string, io::Tensor*> tensors;
    for (io::Tensor& tensor : file.tensors) tensors[tensor.name] = &tensor;
    size_t used = 0;
    // The scales of an int8 weight.
    const auto take_scales = [&](const std::string& name, int64_t rows) {
        const auto found = tensors.find(name);
        if (found == tensors.end()) fail(fmt::format("tensor {} is missing", name));
        io::Tensor& tensor = *found->second;
        if (tensor.dtype != DType::f32 || tensor.shape != std::vector<int64_t>{rows})
            fail(fmt::format("tensor {} is {}, the plan needs float32 [{}]", name, type_text(tensor), rows));
        std::vector<float> scales = restore_weight(tensor, {});
        tensor.data = Buffer();
        ++used;
        return scales;
    };
    for_each_weight(program, [&](const std::string& name, const Wanted& wanted, std::vector<float>& values) {
        const auto [out, in, precision] = wanted;
        const auto found = tensors.find(name);
        if (found == tensors.end()) {
            if (out == -1) return;  // a fold that transposes only
            fail(fmt::format("tensor {} is missing", name));
        }
        io::Tensor& tensor = *found->second;
        const std::vector<int64_t> shape = in == 0 ? std::vector<int64_t>{out} : std::vector<int64_t>{out, in};
        const bool fits = out == -1 ? tensor.shape.size() == 1 : tensor.shape == shape;
        if (!can_be_stored(precision, tensor.dtype, format) || !fits)
            fail(
                fmt::format("tensor {} is {}, the plan needs float32 {}", name, type_text(tensor),
                            out == -1 ? "of one dimension" : shape_text(shape.data(), static_cast<int>(shape.size()))));
        const bool is_int8 = tensor.dtype == DType::i8;
        values = restore_weight(tensor, is_int8 ? take_scales(scale_name(name), out) : std::vector<float>());
        tensor.data = Buffer();
        ++used;
    });
    if (used == tensors.size()) return;
    for (const auto& [name, tensor] : tensors)
        if (tensor->data.bytes() > 0 || tensor->shape == std::vector<int64_t>{0})
            fail(fmt::format("tensor {} belongs to no layer of the plan", io::in_quotes(name)));
    fail("a tensor belongs to no layer of the plan");
}

// === Metadata

const std::string& text_of(const io::TensorFile& file, const char* key) {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end()) fail(fmt::format("the metadata lack {}", key));
    return found->second;
}

int64_t count_of(const io::TensorFile& file, const char* key) {
    int64_t value = 0;
    const std::string& text = text_of(file, key);
    if (!io::parse_number(text, value) || value < 1 || value > kMaxOption)
        fail(fmt::format("{} is {}, must be a count from 1", key, io::in_quotes(text)));
    return value;
}

int64_t require_version(const io::TensorFile& file, const char* key, const char* what, int64_t oldest, int64_t ours) {
    const std::string& text = text_of(file, key);
    int64_t version = 0;
    if (!io::parse_number(text, version)) fail(fmt::format("{} is {}, must be a number", key, io::in_quotes(text)));
    if (version < oldest || version > ours)
        fail(fmt::format("{} version {}, this program reads version {}", what, version,
                         oldest < ours ? fmt::format("{} to {}", oldest, ours) : fmt::format("{}", ours)),
             "build it again from its model: stipple engine build");
    return version;
}

Options options_of(const io::TensorFile& file) {
    Options options;
    try {
        options.precision = parse_precision(text_of(file, kPrecision));
    } catch (const Error& error) {
        fail(fmt::format("{}: {}", kPrecision, error.message()));
    }
    const std::string& device = text_of(file, kDevice);
    if (device != "cpu" && device != "cuda")
        fail(fmt::format("{} is {}, must be cpu or cuda", kDevice, io::in_quotes(device)));
    options.device.type = device == "cpu" ? DeviceType::cpu : DeviceType::cuda;
    options.max_batch = count_of(file, kMaxBatch);
    options.max_points = count_of(file, kMaxPoints);
    if (options.max_batch > kMaxOption / options.max_points)
        fail(fmt::format("{} x {} points are too many", options.max_batch, options.max_points));
    if (file.metadata.count(kCalibration)) options.calibration = parse_calibration(text_of(file, kCalibration));
    const bool scaled = options.precision == Precision::int8 || options.precision == Precision::fp8;
    if (scaled && !options.calibration) fail(fmt::format("{} without a calibration", name_of(options.precision)));
    return options;
}

uint64_t source_of(const io::TensorFile& file) {
    const std::string& text = text_of(file, kSource);
    uint64_t value = 0;
    bool valid = text.size() == 16;
    for (const char c : text) {
        const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
        valid = valid && (digit || letter);
        value = value << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10) % 16;
    }
    if (!valid) fail(fmt::format("{} is {}, must be 16 hexadecimal digits", kSource, io::in_quotes(text)));
    return value;
}

bool is_own_key(const std::string& key) {
    return key.rfind("stipple.engine.", 0) == 0 || key == kModel || key == kCalibration || key == "format";
}

EngineFile engine_of(io::TensorFile tensors) {
    if (!tensors.metadata.count(kFormat))
        fail("is no engine file: the metadata lack stipple.engine.format",
             "stipple engine build makes one from a model");
    const int64_t format = require_version(tensors, kFormat, "engine file format", kOldestEngineFormat, kEngineFormat);
    require_version(tensors, kArchitecture, "engine architecture", kEngineArchitecture, kEngineArchitecture);
    EngineFile file;
    file.options = options_of(tensors);
    file.source = source_of(tensors);
    file.program = parse_plan(text_of(tensors, kPlan));
    if (file.program.name != text_of(tensors, kModel))
        fail(fmt::format("the plan is of {}, {} says {}", io::in_quotes(file.program.name), kModel,
                         io::in_quotes(text_of(tensors, kModel))));
    const std::string sum = checksum_of(tensors);
    take_weights(file.program, tensors, format);
    try {
        validate(file.program);
    } catch (const Error& error) {
        fail(error.message());
    }
    if (sum != text_of(tensors, kChecksum)) fail("the checksum does not match: the file was changed or damaged");
    for (auto& [key, value] : tensors.metadata)
        if (!is_own_key(key)) file.metadata[key] = std::move(value);
    return file;
}

}  // namespace

void write_engine(const EngineFile& file, ByteSink& sink) {
    validate(file.program);
    io::TensorFile tensors;
    for (const auto& [key, value] : file.metadata)
        if (!is_own_key(key)) tensors.metadata[key] = value;
    tensors.metadata[kFormat] = fmt::format("{}", kEngineFormat);
    tensors.metadata[kArchitecture] = fmt::format("{}", kEngineArchitecture);
    tensors.metadata[kPrecision] = name_of(file.options.precision);
    tensors.metadata[kDevice] = file.options.device.type == DeviceType::cpu ? "cpu" : "cuda";
    tensors.metadata[kMaxBatch] = fmt::format("{}", file.options.max_batch);
    tensors.metadata[kMaxPoints] = fmt::format("{}", file.options.max_points);
    tensors.metadata[kSource] = fmt::format("{:016x}", file.source);
    tensors.metadata[kModel] = file.program.name;
    tensors.metadata[kPlan] = plan_json(file.program);
    if (file.options.calibration) tensors.metadata[kCalibration] = calibration_json(*file.options.calibration);
    const bool is_cpu = file.options.device.type == DeviceType::cpu;
    for_each_weight(file.program, [&](std::string name, const Wanted& wanted, const std::vector<float>& values) {
        const auto [out, in, precision] = wanted;
        if (out == -1 && values.empty()) return;
        if (in <= 0) {
            tensors.tensors.push_back(tensor_of(std::move(name), {static_cast<int64_t>(values.size())}, values));
            return;
        }
        StoredWeight stored = store_weight(std::move(name), out, in, values, is_cpu ? precision : Precision::fp32);
        if (!stored.largest.empty())
            tensors.tensors.push_back(tensor_of(scale_name(stored.weight.name), {out}, stored.largest));
        tensors.tensors.push_back(std::move(stored.weight));
    });
    tensors.metadata[kChecksum] = checksum_of(tensors);
    io::write_safetensors(tensors, sink);
}

void save_engine(const std::string& path, const EngineFile& file, Overwrite overwrite) {
    AtomicFile out(path, overwrite);
    write_engine(file, out);
    out.commit();
}

EngineFile parse_engine(io::ByteReader& reader) {
    return engine_of(io::parse_safetensors(reader));
}

EngineFile load_engine(const std::string& path) {
    io::TensorFile tensors = io::load_safetensors(path);
    try {
        return engine_of(std::move(tensors));
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

bool is_engine_file(const std::string& path) {
    try {
        io::FileSource source(path);
        io::ByteReader reader(source);
        return io::read_safetensors_header(reader).metadata.count(kFormat) > 0;
    } catch (const Error& error) {
        throw error.place().path.empty() ? error.at_path(path) : error;
    }
}

}  // namespace stipple::engine
