#include "stipple/radiance/train/checkpoint.h"

#include <fmt/format.h>

#include <cstring>

#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"
#include "stipple/core/number_text.h"
#include "stipple/core/parallel.h"
#include "stipple/radiance/train_keys.h"

namespace stipple::radiance {
namespace {

constexpr const char* kArrays = "state.safetensors";
constexpr const char* kOptions = "options.toml";

/// Words of 8 bytes one after the other; finds changes, not attacks.
class Fingerprint {
public:
    void add(const void* data, size_t bytes) {
        const auto* at = static_cast<const unsigned char*>(data);
        for (; bytes > 0; at += std::min<size_t>(bytes, 8), bytes -= std::min<size_t>(bytes, 8)) {
            uint64_t word = bytes;
            std::memcpy(&word, at, std::min<size_t>(bytes, 8));
            value_ = (value_ ^ word) * 0x9E3779B97F4A7C15u;
            value_ ^= value_ >> 32;
        }
    }
    template <class T>
    void add(const T& number) {
        add(&number, sizeof number);
    }
    uint64_t value() const { return value_; }

private:
    uint64_t value_ = 0x243F6A8885A308D3u;
};

uint64_t fingerprint_of(const Photograph& photo) {
    Fingerprint print;
    const Camera& c = photo.camera;
    print.add(c.width), print.add(c.height);
    for (const float number : {c.fx, c.fy, c.cx, c.cy}) print.add(number);
    print.add(c.to_world);
    print.add(photo.pixels.pixels.data(), static_cast<size_t>(photo.pixels.width() * photo.pixels.height() * 4));
    return print.value();
}

/// Doubles as text that reads back as the same bits.
template <class Visit, class Training>
void visit_numbers(Visit&& visit, Training& t) {
    auto& s = t.state;
    visit("is_fine", s.is_fine);
    visit("size_x", s.grid.size[0]), visit("size_y", s.grid.size[1]), visit("size_z", s.grid.size[2]);
    visit("low_x", s.grid.box.low[0]), visit("low_y", s.grid.box.low[1]), visit("low_z", s.grid.box.low[2]);
    visit("high_x", s.grid.box.high[0]), visit("high_y", s.grid.box.high[1]), visit("high_z", s.grid.box.high[2]);
    visit("voxel", s.grid.voxel);
    visit("shift", s.shift);
    visit("step", s.step.step);
    visit("since", s.step.since);
    visit("rate", s.step.rate);
    visit("correction", s.step.correction);
    visit("squared_error", s.step.squared_error);
    visit("rays", s.step.rays);
    visit("in_box", s.counts.in_box);
    visit("in_mask", s.counts.in_mask);
    visit("opaque", s.counts.opaque);
    visit("kept", s.counts.kept);
    visit("dropped_rays", s.counts.dropped_rays);
    visit("psnr", t.psnr);
    visit("device", t.origin.device);
    visit("model", t.origin.model);
    visit("photographs", t.origin.photographs);
    visit("pixels", t.origin.pixels);
    visit("fingerprint", t.origin.fingerprint);
}

std::string numbers_text(const SavedTraining& training) {
    JsonWriter json;
    json.begin_object();
    visit_numbers([&](const char* name, const auto& value) { json.field(name, value); }, training);
    if (training.test_psnr) json.field("test_psnr", *training.test_psnr);
    return json.end_object().text();
}

void read_numbers(std::string_view text, SavedTraining& training) {
    read_json("the checkpoint's numbers", text, [&](JsonField& field) {
        const std::string key(field.word());
        bool is_known = key == "test_psnr";
        if (is_known) field.take(training.test_psnr.emplace());
        visit_numbers(
            [&](const char* name, auto& value) {
                if (key != name) return;
                field.take(value);
                is_known = true;
            },
            training);
        if (!is_known) field.fail("is not known");
    });
}

/// visit(name, type, numbers of a row, array), in the order of the file.
template <class Visit, class State>
void visit_arrays(Visit&& visit, State& s) {
    const int64_t channels = s.is_fine ? kFeatures : 3;
    visit("place", DType::i32, 1, s.place);
    visit("occupied", DType::u64, 1, s.occupied);
    visit("built", DType::u64, 1, s.built);
    visit("density", DType::f32, kBrickNodes, s.density.value);
    visit("density.mean", DType::f32, kBrickNodes, s.density.mean);
    visit("density.square", DType::f32, kBrickNodes, s.density.square);
    visit("features", DType::f32, kBrickNodes * channels, s.features.value);
    visit("features.mean", DType::f32, kBrickNodes * channels, s.features.mean);
    visit("features.square", DType::f32, kBrickNodes * channels, s.features.square);
    visit("network", DType::f32, 1, s.network.value);
    visit("network.mean", DType::f32, 1, s.network.mean);
    visit("network.square", DType::f32, 1, s.network.square);
    visit("environment", DType::f32, 3, s.environment.value);
    visit("environment.mean", DType::f32, 3, s.environment.mean);
    visit("environment.square", DType::f32, 3, s.environment.square);
    visit("density_rate", DType::f32, kBrickNodes, s.density_rate);
    visit("pixels", DType::u8, 1, s.pixels);
}

io::TensorFile take_arrays(TrainState& state) {
    io::TensorFile file;
    visit_arrays(
        [&](const char* name, DType type, int64_t row, auto& array) {
            io::Tensor& tensor = file.tensors.emplace_back();
            const auto bytes = static_cast<int64_t>(array.size() * sizeof array[0]);
            tensor.name = name;
            tensor.dtype = type;
            tensor.shape = {static_cast<int64_t>(array.size()) / row, row};
            tensor.data = Buffer(bytes);
            if (bytes > 0) std::memcpy(tensor.data.data(), array.data(), static_cast<size_t>(bytes));
            array = {};
        },
        state);
    return file;
}

void read_arrays(io::TensorFile& file, TrainState& state) {
    visit_arrays(
        [&](const char* name, DType type, int64_t, auto& array) {
            for (io::Tensor& tensor : file.tensors) {
                if (tensor.name != name) continue;
                if (tensor.dtype != type) throw Error(ErrorCode::bad_file, fmt::format("{}: of another type", name));
                array.resize(static_cast<size_t>(tensor.data.bytes()) / sizeof array[0]);
                if (!array.empty()) std::memcpy(array.data(), tensor.data.data(), array.size() * sizeof array[0]);
                tensor.data = {};
                return;
            }
            throw Error(ErrorCode::bad_file, fmt::format("no tensor '{}'", name));
        },
        state);
}

std::string read_text(const std::string& path) {
    io::FileSource source(path);
    io::ByteReader reader(source);
    std::string text;
    while (const auto line = reader.line()) text += std::string(*line) + "\n";
    return text;
}

/// "fine.N_iters: 2000, 3000": the first option that differs, and how many more. Values are compared, not their texts.
std::string differing_options(const std::string& stored, const std::string& now) {
    const TrainOptions before = train_options_from_toml(stored), after = train_options_from_toml(now);
    const auto a = values_of(train_fields(), &before), b = values_of(train_fields(), &after);
    std::string first;
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i].second == b[i].second) continue;
        if (count++ == 0) first = fmt::format("{}: {}, {}", a[i].first, a[i].second, b[i].second);
    }
    return count > 1 ? fmt::format("{} and {} more", first, count - 1) : first;
}

}  // namespace

TrainOrigin origin_of(const Scene& scene, const TrainOptions& options, Device device) {
    TrainOrigin origin;
    origin.options = to_toml(options);
    origin.device = device.type == DeviceType::cuda ? "cuda" : "cpu";
    if (device.type == DeviceType::cuda)
        for (const DeviceInfo& info : list_devices())
            if (info.device == device) origin.model = info.name;
    std::vector<uint64_t> prints(scene.train.size());
    parallel_for(static_cast<int64_t>(prints.size()), 1, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
            prints[i] = fingerprint_of(scene.train[i]);
    });
    Fingerprint all;
    for (const uint64_t print : prints) all.add(print);
    all.add(scene.near), all.add(scene.far), all.add(scene.alpha_is_unknown), all.add(scene.box.has_value());
    for (int axis = 0; scene.box && axis < 3; ++axis) all.add(scene.box->low[axis]), all.add(scene.box->high[axis]);
    all.add(scene.origin);
    origin.fingerprint = fmt::format("{:016x}", all.value());
    origin.photographs = static_cast<int64_t>(scene.train.size());
    for (const Photograph& photo : scene.train) origin.pixels += photo.pixels.width() * photo.pixels.height();
    return origin;
}

void require_same(const TrainOrigin& stored, const TrainOrigin& now, const std::string& checkpoint) {
    const auto refuse = [&](const std::string& message, const std::string& hint = "") {
        throw Error(ErrorCode::bad_config, Place{checkpoint}, message, hint);
    };
    std::string differing;
    try {
        differing = differing_options(stored.options, now.options);
    } catch (const Error& error) {
        throw error.at_path(checkpoint + "/" + kOptions);
    }
    if (!differing.empty()) refuse("the checkpoint is of other options: " + differing);
    if (stored.device != now.device)
        refuse(fmt::format("the run was on {}, not on {}", stored.device, now.device), "add --device " + stored.device);
    if (stored.photographs != now.photographs || stored.pixels != now.pixels)
        refuse(fmt::format("the checkpoint is of another scene: {} photographs with {} pixels, not {} with {}",
                           stored.photographs, stored.pixels, now.photographs, now.pixels));
    if (stored.fingerprint != now.fingerprint)
        refuse("the checkpoint is of another scene: the photographs or their cameras have changed");
}

void save_training(const std::string& run, int64_t step, SavedTraining training,
                   const std::function<void(const Error&)>& retry) {
    if (const std::string name = not_finite_in(training.state); !name.empty())
        throw Error(
            ErrorCode::not_finite, fmt::format("step {}: {} is not finite, and not saved", step, name),
            "the last checkpoint is sound; train anew with smaller lrate_density, lrate_features, lrate_network");
    CheckpointInfo info;
    info.step = step;
    info.threads = threads();
    info.extra = numbers_text(training);
    const io::TensorFile arrays = take_arrays(training.state);
    const CheckpointFile files[] = {{kArrays, [&](ByteSink& sink) { io::write_safetensors(arrays, sink); }},
                                    {kOptions, [&](ByteSink& sink) { sink.write(training.origin.options); }}};
    const KeepRule keep = {.last = kKeptCheckpoints, .best = false};
    try {
        save_checkpoint(run, info, files, keep);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::cannot_write) throw;
        if (retry) retry(error);
        save_checkpoint(run, info, files, keep);
    }
}

SavedTraining load_training(const Checkpoint& checkpoint, const TrainOrigin& now) {
    SavedTraining training;
    training.origin.options = read_text(checkpoint.file(kOptions));
    try {
        read_numbers(checkpoint.info.extra, training);
    } catch (const Error& error) {
        throw error.at_path(checkpoint.path + "/manifest.json");
    }
    require_same(training.origin, now, checkpoint.path);
    const std::string path = checkpoint.file(kArrays);
    io::TensorFile file = io::load_safetensors(path);
    try {
        read_arrays(file, training.state);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
    if (const std::string fault = fault_of(training.state, now.pixels); !fault.empty())
        throw Error(ErrorCode::bad_file, Place{path}, fault);
    return training;
}

}  // namespace stipple::radiance
