#include "tests/learn/learn.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/network/builder.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

using network::Builder;
using network::clouds_of;
using network::Network;
using network::points_of;
using network::rows_of;

std::map<std::string, torch::Tensor> random_inputs(const Network& network, const std::vector<ops::Batch>& given,
                                                   uint64_t seed) {
    const std::vector<ops::Batch> batches = batches_of(network, given);
    std::map<std::string, torch::Tensor> inputs;
    for (const network::Layer& layer : network.layers) {
        if (layer.kind != network::Kind::input) continue;
        const int64_t rows = layer.type.level == network::Level::cloud
                                 ? given[0].clouds()
                                 : batches[static_cast<size_t>(layer.type.set)].rows() * layer.type.width;
        torch::Tensor tensor = torch::empty({rows, layer.type.channels}, torch::kFloat64);
        const Rng rng(seed, inputs.size());
        for (int64_t i = 0; i < tensor.numel(); ++i)
            tensor.data_ptr<double>()[i] = rng.normal(static_cast<uint64_t>(i));
        inputs.emplace(layer.name, tensor);
    }
    return inputs;
}

double difference_from_reference(const Network& network, const network::Weights& weights,
                                 const std::vector<ops::Batch>& given, torch::Dtype dtype) {
    const std::map<std::string, torch::Tensor> inputs = random_inputs(network, given);
    std::vector<Array<float, 2>> arrays;
    std::vector<ReferenceInput> of_reference;
    std::map<std::string, torch::Tensor> of_module;
    for (const auto& [name, tensor] : inputs) {
        Array<float, 2> array({tensor.size(0), tensor.size(1)});
        std::copy_n(tensor.data_ptr<double>(), tensor.numel(), array.data());
        of_reference.push_back({name, array.view()});
        arrays.push_back(std::move(array));
        of_module.emplace(name, tensor.to(dtype));
    }
    const ReferenceRun expected = run_reference(network, weights, given, of_reference);
    learn::Module module(network, weights, torch::kCPU, dtype);
    const torch::NoGradGuard no_gradients;
    double worst = 0;
    for (const auto& [name, tensor] : module.run(given, of_module)) {
        const ReferenceTensor& want = expected.output(name);
        const torch::Tensor got = tensor.to(torch::kFloat64).contiguous();
        EXPECT_EQ(got.numel(), static_cast<int64_t>(want.values.size())) << name;
        double largest = 1, error = 0;
        for (size_t i = 0; i < want.values.size() && i < static_cast<size_t>(got.numel()); ++i) {
            largest = std::max(largest, std::abs(want.values[i]));
            const double d = std::abs(want.values[i] - got.data_ptr<double>()[i]);
            error = std::isnan(d) ? INFINITY : std::max(error, d);
        }
        worst = std::max(worst, error / largest);
    }
    return worst;
}

namespace {

Network products_and_pools() {
    Builder build("products");
    network::Tensor x = build.input("points", points_of(3));
    const network::Tensor cloud = build.input("cloud", clouds_of(9));
    const network::Tensor matrix = build.add_identity("identity", cloud);
    x = build.transform("turned", x, matrix);
    x = build.linear("dense", x, 6, {.norm = true, .activation = network::leaky_relu(0.2f)});
    x = build.dropout("dropout", x, 0.3f);
    const network::Tensor widest = build.max_points("max", x);
    const network::Tensor sum = build.sum_points("sum", x);
    const network::Tensor both = build.concat("both", {widest, sum});
    build.output("a", build.linear("head", both, 4));
    build.output("b", build.log_softmax("scores", x));
    return build.finish();
}

Network neighbourhoods() {
    Builder build("neighbourhoods");
    const network::Tensor x = build.input("points", points_of(3));
    const network::Tensor indices = build.knn("knn", x, 3);
    const network::Tensor edge = build.edge("edge", x, indices);
    const network::Tensor distance = build.edge_distance("distance", x, indices);
    const network::Tensor gathered = build.gather("gather", x, indices);
    const network::Tensor weights = build.softmax_rows("weights", gathered);
    build.output("a", build.interpolate("interpolate", weights, edge));
    build.output("b", build.max_rows("widest", build.linear("of_distance", distance, 5)));
    build.output("c", build.repeat("repeat", x, 2));
    return build.finish();
}

Network two_sets() {
    Builder build("two-sets");
    const network::Tensor points = build.input("points", points_of(3));
    const network::Tensor queries = build.input("queries", points_of(3, 1));
    const network::Tensor indices = build.knn("near", queries, points, 2);
    const network::Tensor gathered = build.gather("gather", points, indices);
    const network::Tensor one = build.learned("scalar", 3);
    const network::Tensor for_queries = build.repeat_for_set("of_queries", one, 1);
    const network::Tensor widest = build.max_rows("max", gathered);
    const network::Tensor offsets = build.subtract("offsets", widest, queries);
    build.output("a", build.multiply("times", offsets, for_queries));
    const network::Tensor flat = build.linear("template", build.max_points("pool", points), 8);
    build.output("b", build.unflatten("made", flat, 2));
    return build.finish();
}

Network attention() {
    Builder build("attention");
    const network::Tensor points = build.input("points", points_of(4));
    const network::Tensor others = build.input("others", points_of(4, 1));
    int number = 0;
    for (const network::Normalise normalise :
         {network::Normalise::row, network::Normalise::joint, network::Normalise::none}) {
        const std::string name = "attend" + std::to_string(number++);
        const network::Tensor keys = build.linear(name + ".keys", points, 4);
        build.output(name, build.attend(name, points, keys, points, {.normalise = normalise, .factor = 0.6f}));
        const network::AttendOptions cosine{normalise, 2, true, true};
        build.output(name + ".c", build.attend(name + ".cosine", points, keys, keys, cosine));
        build.output(name + ".s", build.attend(name + ".set", points, others, others, {.normalise = normalise}));
    }
    const network::Tensor constant = build.constant("constant", {1, -2, 0.5f, 3});
    const network::Tensor sum = build.add("sum", points, build.repeat("spread", constant));
    build.output("cut", build.linear("of_halves", build.regroup("halves", sum, 2), 3));
    return build.finish();
}

Network arithmetic() {
    Builder build("arithmetic");
    const network::Tensor x = build.input("points", points_of(4));
    const network::Tensor y = build.input("others", points_of(4));
    network::Tensor z = build.add("add", x, y);
    z = build.subtract("subtract", z, build.scale("scale", y, 0.3f));
    z = build.layer_norm("norm", z);
    int number = 0;
    for (const network::Activation& activation :
         {network::tanh(), network::sigmoid(), network::elu(0.7f), network::gelu(), network::swish(),
          network::softplus(), network::relu(), network::log(0.5f)}) {
        const std::string name = "activation" + std::to_string(number++);
        build.output(name, build.activation(name, z, activation));
    }
    build.output("sums", build.sum_channels("sum", z));
    build.output("reversed", build.reverse("reverse", build.slice("slice", z, 1, 3)));
    build.output("turned", build.rotation("rotation", x));
    build.output("turned_back", build.rotation("back", x, true));
    return build.finish();
}

Network flow() {
    Builder build("flow");
    const network::Tensor x = build.input("points", points_of(3));
    const network::Tensor condition = build.input("condition", points_of(3));
    network::Tensor z = build.actnorm("actnorm", x);
    z = build.mix("mix", z);
    const network::Tensor shift = build.linear("shift", build.slice("first", z, 0, 1), 2);
    z = build.couple("couple", z, shift, 1);
    z = build.inject("inject", z, build.scale("small", condition, 0.1f), condition);
    build.output("density", build.gaussian_log_density("density", z));
    build.output("of_actnorm", build.flow_log_det("of_actnorm", x, "actnorm"));
    build.output("of_mix", build.flow_log_det("of_mix", x, "mix"));
    z = build.inject("inject_back", z, condition, condition, true);
    z = build.couple("couple_back", z, shift, 1, true);
    z = build.mix("mix_back", z, true, "mix");
    build.output("back", build.actnorm("actnorm_back", z, true, "actnorm"));
    return build.finish();
}

/// Steps that hold a small network, there and back, with log-determinants both ways.
Network flow_steps(int64_t steps, const network::Activation& activation) {
    Builder build(fmt::format("flow-steps-{}", steps));
    const network::Tensor x = build.input("points", points_of(3));
    const network::Tensor features = build.input("features", points_of(4));
    const network::Tensor condition = build.linear("condition", features, network::flow_condition_channels(3, 4));
    network::FlowStepOptions options{.hidden = 4, .steps = steps, .activation = activation, .log_det = true};
    const network::Tensor z = build.flow_step("step", x, condition, options);
    build.output("z", z);
    const network::Tensor children = build.repeat("children", build.slice("moved", z, 0, 3), 2);
    options.inverse = true;
    const network::Tensor of_children = build.repeat("of_children", condition, 2);
    build.output("back", build.flow_step("back_step", children, of_children, options, "step"));
    return build.finish();
}

}  // namespace

std::vector<Network> networks_of_every_kind() {
    std::vector<Network> networks;
    networks.push_back(products_and_pools());
    networks.push_back(neighbourhoods());
    networks.push_back(two_sets());
    networks.push_back(attention());
    networks.push_back(arithmetic());
    networks.push_back(flow());
    networks.push_back(flow_steps(0, network::swish()));
    networks.push_back(flow_steps(1, network::tanh()));
    return networks;
}

std::vector<double> logged(const std::string& folder, const std::string& kind, const std::string& field) {
    std::vector<double> values;
    const std::string key = "\"" + field + "\":";
    std::istringstream lines(read_file(folder + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
        const size_t at = line.find(key);
        if (line.find("\"kind\":\"" + kind + "\"") != std::string::npos && at != std::string::npos)
            values.push_back(std::atof(line.c_str() + at + key.size()));
    }
    return values;
}

}  // namespace stipple::test
