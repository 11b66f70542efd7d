// Kinds of layers on every device, each in the places where lowering treats it differently: between products, of rows
// that a cloud or a point shares, at the ends. Against the plain reading of the network.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/network/builder.h"
#include "tests/engine/lowering.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::Builder;
using network::clouds_of;
using network::Network;
using network::points_of;
using network::relu;
using network::rows_of;
using network::Tensor;

class Kinds : public test::OnDevice {
protected:
    /// Differences of every output are at most `tolerance` of its largest number, in dense and in ragged batches.
    void expect_reference(const Network& network, double tolerance = 2e-6) const {
        const network::Weights weights = test::random_weights(network, 3);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 4, .max_points = 300});
        for (const ops::Batch& batch :
             {ops::Batch::dense(3, 40), ops::Batch::ragged({0, 7, 207, 240}), ops::Batch::dense(1, 257)}) {
            const test::RandomInputs inputs(network, batch);
            const test::ReferenceRun expected = test::run_reference(network, weights, batch, inputs.inputs);
            for (const auto& [name, got] : test::run_engine(engine, batch, inputs.inputs)) {
                const test::ReferenceTensor& wanted = expected.output(name);
                ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.values.size())) << name;
                double largest = 1e-3, difference = 0;
                for (const double value : wanted.values) largest = std::max(largest, std::abs(value));
                for (int64_t i = 0; i < got.elements(); ++i) {
                    const double d = std::abs(got.data()[i] - wanted.values[static_cast<size_t>(i)]);
                    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
                }
                EXPECT_LE(difference, tolerance * largest) << network.name << ", output " << name;
            }
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(Kinds);

TEST_P(Kinds, Multiply) {
    Builder build("multiply");
    const Tensor points = build.input("points", points_of(5));
    const Tensor cloud = build.input("cloud", clouds_of(5));
    const Tensor rows = build.input("rows", rows_of(3, 5));
    const Tensor hidden = build.linear("hidden", points, 5, {.activation = relu()});
    build.output("points_out", build.multiply("a", points, hidden));
    build.output("square", build.multiply("b", points, points));
    // What a cloud or a point shares, on either side.
    const Tensor of_cloud = build.repeat("of_cloud", cloud);
    const Tensor of_point = build.repeat("of_point", points, 3);
    build.output("by_cloud", build.multiply("c", points, of_cloud));
    build.output("cloud_by", build.multiply("d", of_cloud, points));
    const Tensor product = build.multiply("e", rows, of_point);
    build.output("by_point", product);
    build.output("both_shared", build.multiply("f", of_point, build.repeat("cloud_rows", of_cloud, 3)));
    build.output("clouds", build.multiply("g", cloud, build.max_points("pool", hidden)));
    const Tensor near = build.knn("near", points, 3);
    build.output("gathered", build.multiply("h", rows, build.gather("neighbours", points, near)));
    build.output("after", build.max_points("most", build.linear("last", product, 9)));
    expect_reference(build.finish());
}

}  // namespace
}  // namespace stipple::engine
