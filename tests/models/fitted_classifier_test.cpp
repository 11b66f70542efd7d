// The classifier that tests of reduced precisions use can tell shapes apart, so that its margins mean something.

#include <gtest/gtest.h>

#include <algorithm>

#include "stipple/models/pointnet.h"
#include "tests/support/margin.h"
#include "tests/support/reference_classifier.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

TEST(FittedClassifier, RecognisesShapesItHasNotSeen) {
    const network::Network network = pointnet_classifier({.classes = test::kShapes});
    network::Weights weights = test::trained_like_weights(network, 1 + test::trial());
    test::fit_head(network, weights, test::shape_clouds(300, 64, 1 + 2 * test::trial()));
    const test::ShapeClouds unseen = test::shape_clouds(50, 64, 2 + 2 * test::trial());
    const auto run = test::run_reference(network, weights, unseen.batch, {{"points", unseen.points.view()}});
    const test::ReferenceTensor& logits = run.output("logits");
    int right = 0;
    for (int64_t r = 0; r < logits.rows; ++r)
        right += std::max_element(logits.row(r), logits.row(r) + test::kShapes) - logits.row(r) == unseen.labels[r];
    EXPECT_ABOVE(right, 43);
}

}  // namespace
}  // namespace stipple::models
