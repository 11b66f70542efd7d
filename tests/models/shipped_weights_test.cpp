// The weights in weights/ are those of the models that their metadata name.

#include <gtest/gtest.h>

#include <filesystem>

#include "stipple/models/registry.h"

namespace stipple::models {
namespace {

TEST(ShippedWeights, AreThoseOfTheirModels) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(STIPPLE_SOURCE_DIR "/weights")) {
        if (entry.path().extension() != ".safetensors") continue;
        const Model model = load_model(entry.path().string());  // checks names, shapes, finite values
        EXPECT_FALSE(model.weights.tensors.empty());
        ++files;
    }
    EXPECT_GE(files, 1);
}

}  // namespace
}  // namespace stipple::models
