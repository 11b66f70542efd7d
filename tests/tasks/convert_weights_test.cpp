#include "stipple/tasks/convert_weights.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

TEST(TasksConvertWeights, SaysWhatTheStorageChanged) {
    network::Weights weights;
    weights.tensors["bias"] = {{2}, {1.0f, 2049.0f}};  // 2048 in half precision
    weights.tensors["weight"] = {{2, 32}, std::vector<float>(64, 0.25f)};
    weights.tensors["weight"].values[0] = 127;
    weights.tensors["zero"] = {{3}, {0, 0, 0}};
    weights.metadata["stipple.card"] = "{}";
    const tasks::ConvertedWeights rows = tasks::convert_weights(weights, network::WeightStorage::int8_rows);
    ASSERT_EQ(rows.tensors.size(), 3u);
    EXPECT_EQ(rows.tensors[0].name, "bias");
    EXPECT_EQ(rows.tensors[0].dtype, DType::f16);
    EXPECT_EQ(rows.tensors[0].bytes, 4);
    EXPECT_EQ(rows.tensors[0].largest_error, 1);
    EXPECT_EQ(rows.tensors[0].relative_error(), 1 / 2049.0);
    EXPECT_EQ(rows.tensors[1].dtype, DType::i8);
    EXPECT_EQ(rows.tensors[1].bytes, 64 + 8);
    EXPECT_EQ(rows.tensors[1].largest_error, 0.25);  // in steps of 1
    EXPECT_EQ(rows.tensors[1].largest_value, 127);
    EXPECT_EQ(rows.tensors[2].relative_error(), 0);
    io::MemorySource source(rows.file);
    io::ByteReader reader(source);
    EXPECT_EQ(network::parse_weights(reader).metadata.at("stipple.card"), "{}");
    for (const tasks::TensorChange& change : tasks::convert_weights(weights, network::WeightStorage::f32).tensors)
        EXPECT_EQ(change.largest_error, 0) << change.name;
    weights.tensors["bias"].values[0] = 1e6f;
    EXPECT_ERROR(tasks::convert_weights(weights, network::WeightStorage::f16), not_finite, "'bias'");
}

}  // namespace
}  // namespace stipple::test
