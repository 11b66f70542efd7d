// Every model of the table as a picture and as a table.

#include <gtest/gtest.h>

#include "stipple/models/registry.h"
#include "tests/network/svg.h"

namespace stipple::test {
namespace {

TEST(ModelsPicture, EveryModelIsDrawn) {
    for (const models::ModelEntry& entry : models::model_table()) {
        SCOPED_TRACE(entry.name);
        expect_good_picture(entry.build({}));
    }
}

TEST(ModelsPicture, TheTextHasALineForEachLayer) {
    for (const models::ModelEntry& entry : models::model_table()) {
        const network::Network network = entry.build({});
        const std::string text = "\n" + network::to_text(network);
        for (const network::Layer& layer : network.layers)
            EXPECT_NE(text.find("\n" + layer.name + " "), std::string::npos) << layer.name;
    }
}

}  // namespace
}  // namespace stipple::test
