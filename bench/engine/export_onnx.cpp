// Writes PointNet as an ONNX file, for peers that read one: export_onnx OUT.onnx [WEIGHTS.safetensors]
// Without weights: the classifier of 40 classes with both transforms, random weights. Batch norm is folded, and layers
// over points are convolutions: the form in which onnxruntime is fastest.

#include <fmt/format.h>

#include "stipple/core/error.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/registry.h"
#include "stipple/network/onnx.h"

int main(int argc, char** argv) {
    using namespace stipple;
    if (argc < 2 || argc > 3) {
        fmt::print(stderr, "usage: export_onnx OUT.onnx [WEIGHTS.safetensors]\n");
        return 2;
    }
    try {
        models::Model model;
        if (argc == 3) {
            model = models::load_model(argv[2]);
        } else {
            model.network = models::pointnet_classifier({});
            model.weights = network::initial_weights(model.network, 1);
        }
        network::save_onnx(argv[1], model.network, model.weights, {.convolutions = true}, Overwrite::allow);
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return rule_of(error.code()).exit_code;
    }
}
