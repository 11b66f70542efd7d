// Reduced precisions beside fp32, which parity_test.cpp ties to the reference.
//
// Measures: `error` is the largest difference of any logit from that of fp32, divided by the largest magnitude of the
// fp32 logits; `agreement` is the fraction of clouds whose largest logit is the same one. The table states what each
// precision must keep.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/io/hdf5.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/registry.h"
#include "tests/engine/run_engine.h"
#include "tests/support/data_sets.h"
#include "tests/support/devices.h"
#include "tests/support/reference_classifier.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::Network;
using network::Weights;

struct Tolerance {
    Precision precision;
    double error;              // of a classifier fitted to random features, which magnifies what they lose
    double agreement;          // of the same; nine of ten shapes are recognised, so some margins are thin
    double trained_agreement;  // of the trained classifier of ModelNet40
};
constexpr Tolerance kPrecisionTolerances[] = {
    {Precision::tf32, 5e-3, 0.99, 0.995},  {Precision::fp16, 1e-2, 0.99, 0.995}, {Precision::bf16, 1e-1, 0.97, 0.995},
    {Precision::int8, 1.5e-1, 0.96, 0.99}, {Precision::fp8, 3e-1, 0.93, 0.99},
};

bool needs_calibration(Precision precision) {
    return precision == Precision::int8 || precision == Precision::fp8;
}

struct Comparison {
    double error = 0, agreement = 0;
};

/// Row by row: the winners, and the numbers.
Comparison compare(const Array<float, 2>& logits, const Array<float, 2>& exact) {
    Comparison result;
    double largest = 0;
    for (const float value : exact.span()) largest = std::max(largest, std::abs(double{value}));
    int64_t agreeing = 0;
    for (int64_t r = 0; r < exact.size(0); ++r) {
        const float *a = &logits.view()(r, 0), *b = &exact.view()(r, 0);
        for (int64_t c = 0; c < exact.size(1); ++c) {
            const double d = std::abs(double{a[c]} - b[c]);
            result.error = std::isnan(d) ? INFINITY : std::max(result.error, d / largest);
        }
        agreeing += std::max_element(a, a + exact.size(1)) - a == std::max_element(b, b + exact.size(1)) - b;
    }
    result.agreement = static_cast<double>(agreeing) / static_cast<double>(exact.size(0));
    return result;
}

class EnginePrecision : public test::OnDevice {
protected:
    /// Reduced precisions of this device, with what they must keep.
    std::vector<Tolerance> tolerances() const {
        std::vector<Tolerance> found;
        const std::vector<Precision> precisions = precisions_of(device());
        for (const Tolerance& tolerance : kPrecisionTolerances)
            if (std::find(precisions.begin(), precisions.end(), tolerance.precision) != precisions.end())
                found.push_back(tolerance);
        return found;
    }

    Array<float, 2> logits(const Network& network, const Weights& weights, const ops::Batch& batch,
                           const std::vector<test::ReferenceInput>& inputs, Precision precision, const ops::Batch& seen,
                           const std::vector<Input>& seen_inputs) const {
        Options options = {
            .device = device(), .precision = precision, .max_batch = batch.clouds(), .max_points = batch.largest()};
        if (needs_calibration(precision))
            options.calibration = calibrate(network, weights, seen, seen_inputs, {.precision = precision});
        test::EngineOutputs outputs = test::run_engine(compile(network, weights, options), batch, inputs);
        return std::move(outputs.at("logits"));
    }
};
STIPPLE_ON_EVERY_DEVICE(EnginePrecision);

TEST_P(EnginePrecision, AClassifierOfShapesKeepsItsLogitsAndWinners) {
    for (const models::PointNetVariant variant : {models::PointNetVariant::torch, models::PointNetVariant::tf}) {
        const Network network = models::pointnet_classifier({.variant = variant, .classes = test::kShapes});
        Weights weights = test::random_weights(network, 1);
        const test::ShapeClouds seen = test::shape_clouds(200, 64, 1), unseen = test::shape_clouds(300, 100, 2);
        test::fit_head(network, weights, seen);
        const auto run = [&](Precision precision) {
            return logits(network, weights, unseen.batch, {{"points", unseen.points.view()}}, precision, seen.batch,
                          {{"points", seen.points.view()}});
        };
        const Array<float, 2> exact = run(Precision::fp32);
        for (const Tolerance& tolerance : tolerances()) {
            const Comparison found = compare(run(tolerance.precision), exact);
            EXPECT_LE(found.error, tolerance.error) << name_of(tolerance.precision);
            EXPECT_GE(found.agreement, tolerance.agreement) << name_of(tolerance.precision);
            RecordProperty(fmt::format("{}_{}", variant == models::PointNetVariant::tf ? "tf" : "torch",
                                       name_of(tolerance.precision)),
                           fmt::format("error {:.2e}, agreement {:.4f}", found.error, found.agreement));
        }
    }
}

TEST_P(EnginePrecision, SegmentersKeepTheirLogits) {
    const test::ShapeClouds clouds = test::shape_clouds(12, 70, 3);
    for (const auto builder : {models::pointnet_segmenter, models::pointnet_part_segmenter}) {
        const Network network = builder({.classes = 13});
        const Weights weights = test::trained_like_weights(network, 4);
        Array<float, 2> category({12, 16});
        std::fill_n(category.data(), category.elements(), 0.f);
        for (int64_t i = 0; i < 12; ++i) category.data()[16 * i + i] = 1;
        std::vector<test::ReferenceInput> inputs = {{"points", clouds.points.view()}};
        const bool has_category = network.name == "pointnet-part-segmenter";
        if (has_category) inputs.push_back({"category", category.view()});
        std::vector<Input> seen;
        for (const test::ReferenceInput& input : inputs) seen.push_back({input.name, input.rows});
        const auto run = [&](Precision precision) {
            return logits(network, weights, clouds.batch, inputs, precision, clouds.batch, seen);
        };
        const Array<float, 2> exact = run(Precision::fp32);
        for (const Tolerance& tolerance : tolerances()) {
            const Comparison found = compare(run(tolerance.precision), exact);
            EXPECT_LE(found.error, tolerance.error) << network.name << " " << name_of(tolerance.precision);
            RecordProperty(fmt::format("{}_{}", has_category ? "parts" : "segmenter", name_of(tolerance.precision)),
                           fmt::format("error {:.2e}, agreement {:.4f}", found.error, found.agreement));
        }
    }
}

TEST_P(EnginePrecision, EveryChoiceOfTransformsCanBeCalibrated) {
    const test::ShapeClouds clouds = test::shape_clouds(10, 45, 5);
    for (const auto builder : {models::pointnet_classifier, models::pointnet_segmenter})
        for (const models::PointNetVariant variant : {models::PointNetVariant::torch, models::PointNetVariant::tf})
            for (const int transforms : {0, 1, 2}) {
                const Network network = builder({.variant = variant,
                                                 .classes = 13,
                                                 .input_transform = (transforms & 1) != 0,
                                                 .feature_transform = (transforms & 2) != 0});
                const Weights weights = test::trained_like_weights(network, 6);
                const auto run = [&](Precision precision) {
                    return logits(network, weights, clouds.batch, {{"points", clouds.points.view()}}, precision,
                                  clouds.batch, {{"points", clouds.points.view()}});
                };
                const Array<float, 2> exact = run(Precision::fp32);
                for (const Tolerance& tolerance : tolerances()) {
                    if (!needs_calibration(tolerance.precision)) continue;
                    const Comparison found = compare(run(tolerance.precision), exact);
                    EXPECT_LE(found.error, tolerance.error) << network.name << " " << static_cast<int>(variant) << " "
                                                            << transforms << " " << name_of(tolerance.precision);
                }
            }
}

TEST_P(EnginePrecision, TheTrainedClassifierAgreesOnRealClouds) {
    STIPPLE_NEEDS_DATA("modelnet40_hdf5_2048");
    const models::Model model = models::load_model(STIPPLE_SOURCE_DIR "/weights/pointnet-cls.safetensors");
    const int64_t clouds = 2048, points = 1024;  // of fewer, a share of 1 % would be a matter of luck
    const auto first_points = [&](const std::string& file) {
        const io::CloudSet set = io::load_hdf5(test::data_file("modelnet40_hdf5_2048").value() + "/" + file);
        Array<float, 2> rows({clouds * points, 3});
        for (int64_t i = 0; i < clouds; ++i)  // all of the file; they come in no order of classes
            std::copy_n(set.points.data() + i * set.points.size(1) * 3, points * 3, rows.data() + i * points * 3);
        return rows;
    };
    const Array<float, 2> seen = first_points("ply_data_train0.h5"), unseen = first_points("ply_data_test0.h5");
    const ops::Batch batch = ops::Batch::dense(clouds, points), few = ops::Batch::dense(128, points);
    const auto run = [&](Precision precision) {
        return logits(model.network, model.weights, batch, {{"points", unseen.view()}}, precision, few,
                      {{"points", seen.view().slice(0, few.rows())}});
    };
    const Array<float, 2> exact = run(Precision::fp32);
    for (const Tolerance& tolerance : tolerances()) {
        const Comparison found = compare(run(tolerance.precision), exact);
        EXPECT_GE(found.agreement, tolerance.trained_agreement) << name_of(tolerance.precision);
        RecordProperty(std::string(name_of(tolerance.precision)),
                       fmt::format("error {:.2e}, agreement {:.4f}", found.error, found.agreement));
    }
}

}  // namespace
}  // namespace stipple::engine
