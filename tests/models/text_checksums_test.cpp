// The text of every registered model, as a checksum: every compiler builds the same network. A builder whose calls are
// arguments of one call builds another one where arguments are evaluated from the right.

#include <gtest/gtest.h>

#include <cstdint>

#include "stipple/models/registry.h"

namespace stipple::models {
namespace {

/// FNV-1a.
uint64_t fnv(const std::string& text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

struct Case {
    const char* model;
    std::map<std::string, std::string> config;
    uint64_t checksum;
};

const Case kCases[] = {
    {"autoencoder", {}, 0x130bf55cd0b6e52b},
    {"autoencoder", {{"count", "64"}, {"latent", "32"}}, 0xebeb584e2a533cfd},
    {"flow-upsampler", {}, 0x1e921b760f305bee},
    {"flow-upsampler",
     {{"blocks", "0"}, {"steps", "1"}, {"layers", "2"}, {"query_neighbours", "8"}},
     0x4e2d2d7734735a8},
    {"flow-upsampler", {{"refinement", "matching"}, {"steps", "3"}}, 0x2722d97fb3e63cea},
    {"flow-upsampler", {{"refinement", "descent"}}, 0x623b81d901c65ddc},
    {"gumbel-subset", {}, 0xe2d882525b7dfc3f},
    {"gumbel-subset", {{"count", "8"}, {"progressive", "true"}}, 0x76f709c9fd829a62},
    {"pcrnet", {}, 0x7ca614618279f78d},
    {"pcrnet", {{"iterations", "8"}, {"features", "256"}, {"hidden", "128"}}, 0x85845aa9c2255ad5},
    {"pointnet-classifier", {}, 0x14833457ed18ba21},
    {"pointnet-classifier", {{"variant", "tf"}, {"classes", "10"}, {"dropout", "0.5"}}, 0x95175d3c1606a2ae},
    {"pointnet-classifier", {{"input_transform", "false"}, {"feature_transform", "false"}}, 0x69c9e753c0781cac},
    {"pointnet-classifier", {{"feature_transform", "false"}, {"dropout1", "0.4"}}, 0xee9f304c52e4d94e},
    {"pointnet-part-segmenter", {}, 0x166035c44fe8e146},
    {"pointnet-part-segmenter", {{"variant", "tf"}, {"classes", "50"}, {"categories", "3"}}, 0x6b2cae88c63da76f},
    {"pointnet-part-segmenter", {{"feature_transform", "false"}}, 0x601ea7f9aee7ef2e},
    {"pointnet-part-segmenter", {{"width", "1024"}, {"neighbours", "16"}}, 0xc2270a30ca03475a},
    {"pointnet-segmenter", {}, 0x6e1f1209318eece5},
    {"pointnet-segmenter", {{"variant", "tf"}, {"classes", "4"}}, 0x6eb430b15502b61b},
    {"puflow", {}, 0x996e6d2d61532fef},
    {"puflow", {{"ratio", "1"}, {"neighbours", "8"}}, 0x783672137a95cf7d},
    {"puflow", {{"ratio", "16"}, {"interpolation_neighbours", "4"}, {"stages", "true"}}, 0x1c7f707a6d635a},
    {"puflow", {{"family", "residual"}, {"neighbourhood", "latent"}}, 0x31dbba141c5fc9c3},
    {"puflow", {{"family", "continuous"}, {"steps", "4"}}, 0x67e22d2b8996e8ab},
    {"puflow", {{"family", "augmented"}, {"augmented_channels", "5"}, {"noise", "true"}}, 0xc69f299875df3340},
    {"puflow", {{"family", "mlp"}}, 0xad48cd93461ae56e},
    {"samplenet", {}, 0x8b60c31a7f00354f},
    {"samplenet", {{"shape", "registration"}, {"projected", "true"}}, 0x704e4fc92428c75a},
    {"samplenet", {{"shape", "reconstruction"}, {"neighbours", "0"}}, 0x804bbc5f3e11ce07},
};

TEST(ModelTexts, AreThoseOfEveryCompiler) {
    for (const Case& one : kCases) {
        const std::string text = to_text(build_model(one.model, one.config));
        EXPECT_EQ(fnv(text), one.checksum)
            << text << "\nwhere this text is meant, its checksum is 0x" << std::hex << fnv(text);
    }
}

TEST(ModelTexts, AreOfEveryModel) {
    for (const ModelEntry& entry : model_table()) {
        int with_defaults = 0, with_options = 0;
        for (const Case& one : kCases)
            if (one.model == entry.name) ++(one.config.empty() ? with_defaults : with_options);
        EXPECT_EQ(with_defaults, 1) << entry.name;
        EXPECT_GE(with_options, 1) << entry.name;
    }
}

}  // namespace
}  // namespace stipple::models
