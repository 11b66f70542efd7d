#pragma once
// onnxruntime, through Node.js: an independent reader of the ONNX files that we write. Tests that need it are skipped
// where Node.js or the package is missing; scripts/bootstrap.sh test installs the package.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "stipple/io/safetensors.h"

namespace stipple::test {

bool has_onnx_runtime();

/// onnxruntime's int8 products are inexact on x86 processors without VNNI: sums of two products are cut to 16 bits
/// there (its documentation, "Quantize ONNX Models", on VPMADDUBSW).
bool has_exact_int8();

using NamedTensors = std::map<std::string, io::Tensor>;

/// A float32 tensor on the CPU.
io::Tensor tensor_of(std::vector<int64_t> shape, std::span<const float> values);
std::vector<float> floats_of(const io::Tensor& tensor);

struct OnnxRun {
    std::vector<NamedTensors> outputs;  // of each run
    std::string messages;               // what the runtime printed, warnings too; its errors when it failed
    bool ok = false;
};

/// Loads a model once and runs it on each of the inputs.
OnnxRun run_onnx(std::span<const std::byte> model, const std::vector<NamedTensors>& inputs);

}  // namespace stipple::test

#define STIPPLE_NEEDS_ONNX_RUNTIME()          \
    if (!::stipple::test::has_onnx_runtime()) \
    GTEST_SKIP() << "no Node.js, or no onnxruntime-node in tests/network/onnx_runtime (scripts/bootstrap.sh test)"

#define STIPPLE_NEEDS_EXACT_INT8()          \
    if (!::stipple::test::has_exact_int8()) \
    GTEST_SKIP() << "onnxruntime's int8 products saturate on this processor: no VNNI"
