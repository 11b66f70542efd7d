#include "tests/support/onnx_runtime.h"

#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

namespace {

const std::string kFolder = std::string(STIPPLE_SOURCE_DIR) + "/tests/network/onnx_runtime";

/// The absolute path of Node.js; empty where the search path has none.
std::string find_node() {
    const char* path = std::getenv("PATH");
    std::string_view rest = path ? path : "";
    while (!rest.empty()) {
        const size_t end = std::min(rest.find(':'), rest.size());
        std::string candidate = std::string(rest.substr(0, end)) + "/node";
        if (candidate[0] == '/' && ::access(candidate.c_str(), X_OK) == 0) return candidate;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return {};
}

}  // namespace

bool has_onnx_runtime() {
    return !find_node().empty() && std::filesystem::exists(kFolder + "/node_modules/onnxruntime-node/package.json");
}

bool has_exact_int8() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;  // Clang 14 does not know the name avxvnni
    const bool has_avx_vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
    return __builtin_cpu_supports("avx512vnni") || has_avx_vnni;
#else
    return true;
#endif
}

io::Tensor tensor_of(std::vector<int64_t> shape, std::span<const float> values) {
    io::Tensor tensor{"", DType::f32, std::move(shape), Buffer(static_cast<int64_t>(values.size_bytes()), Device{})};
    std::memcpy(tensor.data.data(), values.data(), values.size_bytes());
    return tensor;
}

std::vector<float> floats_of(const io::Tensor& tensor) {
    if (tensor.dtype != DType::f32) throw std::runtime_error(tensor.name + " is not float32");
    std::vector<float> values(static_cast<size_t>(tensor.data.bytes()) / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(float));
    return values;
}

OnnxRun run_onnx(std::span<const std::byte> model, const std::vector<NamedTensors>& inputs) {
    const TemporaryFolder folder(Where::memory);
    write_file(folder / "model.onnx", {reinterpret_cast<const char*>(model.data()), model.size()});
    Launch launch{{find_node(), kFolder + "/run.mjs", folder / "model.onnx"}};
    const auto name = [&](const char* what, size_t i) { return folder / (what + std::to_string(i) + ".safetensors"); };
    for (size_t i = 0; i < inputs.size(); ++i) {
        io::TensorFile file;
        for (const auto& [input, tensor] : inputs[i]) {
            file.tensors.push_back({input, tensor.dtype, tensor.shape, Buffer(tensor.data.bytes(), Device{})});
            std::memcpy(file.tensors.back().data.data(), tensor.data.data(), static_cast<size_t>(tensor.data.bytes()));
        }
        io::save_safetensors(name("in", i), file, Overwrite::refuse);
        launch.arguments.push_back(name("in", i));
        launch.arguments.push_back(name("out", i));
    }
    launch.seconds = 200;
    const LaunchResult result = run_launch(std::move(launch));
    OnnxRun run{{}, result.out + result.err, result.exit_code == 0};
    for (size_t i = 0; run.ok && i < inputs.size(); ++i) {
        io::TensorFile file = io::load_safetensors(name("out", i));
        NamedTensors& outputs = run.outputs.emplace_back();
        for (io::Tensor& tensor : file.tensors) {
            const std::string output = tensor.name;
            outputs.emplace(output, std::move(tensor));
        }
    }
    return run;
}

}  // namespace stipple::test
