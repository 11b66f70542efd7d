// A network that nobody has written before: built, printed, given weights, compiled and run. It looks at each point
// with its 8 nearest neighbours, and gives one row of scores for each cloud.

#include <cstdio>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/engine/engine.h"
#include "stipple/network/builder.h"

using namespace stipple;

network::Network edge_classifier(int64_t classes) {
    network::Builder build("edge-classifier");
    network::Tensor x = build.input("points", network::points_of(3));
    const network::Tensor neighbours = build.knn("neighbours", x, 8);
    for (const char* name : {"edge1", "edge2"}) {
        x = build.edge(std::string(name) + ".features", x, neighbours);
        x = build.linear(std::string(name) + ".conv", x, 64, {.norm = true, .activation = network::leaky_relu(0.2f)});
        x = build.max_rows(std::string(name) + ".pool", x);
    }
    x = build.linear("wide", x, 512, {.norm = true, .activation = network::relu()});
    x = build.max_points("pool", x);
    build.output("scores", build.linear("head", x, classes));
    return build.finish({{"classes", std::to_string(classes)}});
}

int main() {
    const network::Network net = edge_classifier(5);
    std::fputs(to_text(net).c_str(), stdout);
    const network::Weights weights = initial_weights(net, 1);  // or network::load_weights("mine.safetensors")

    const engine::Engine engine = engine::compile(net, weights, {.max_batch = 2, .max_points = 200});
    engine::Context context(engine);

    // Two clouds of different sizes.
    const ops::Batch batch = ops::Batch::ragged({0, 100, 300});
    Array<float, 2> points({batch.rows(), 3}), scores({batch.clouds(), 5});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = Rng(2).uniform(static_cast<uint64_t>(i));
    context.run(batch, {{"points", points.view()}}, {{"scores", scores.view()}});
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        std::printf("cloud %d:", static_cast<int>(cloud));
        for (int64_t k = 0; k < 5; ++k) std::printf(" %.4f", static_cast<double>(scores.view()(cloud, k)));
        std::printf("\n");
    }
}
