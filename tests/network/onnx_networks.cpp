#include "tests/network/onnx_networks.h"

#include "stipple/network/builder.h"

namespace stipple::test {

using network::Builder;
using network::clouds_of;
using network::leaky_relu;
using network::Network;
using network::points_of;
using network::relu;
using network::rows_of;
using network::Tensor;

Network dense_network() {
    Builder build("dense");
    Tensor x = build.input("points", points_of(3));
    x = build.linear("conv1", x, 16, {.norm = true, .activation = relu()});
    x = build.linear("conv2", x, 24, {.bias = false, .norm = true, .norm_eps = 1e-3f, .activation = leaky_relu(0.2f)});
    const Tensor shared = build.linear("square", x, 24, {.activation = leaky_relu(0.05f)});
    x = build.linear_sharing("square_again", shared, 24, {}, "square");
    build.output("features", build.activation("features_relu", x, relu()));
    const Tensor pool = build.max_points("pool", x);
    Tensor y = build.linear("fc1", build.dropout("drop", pool, 0.3f), 12, {.norm = true, .activation = relu()});
    y = build.linear("fc2", y, 7, {.bias = false});
    build.output("log_probabilities", build.log_softmax("log_softmax", y));
    build.output("sum", build.sum_points("total", shared));
    build.output("channel_sum", build.sum_channels("channel_total", shared));
    const Tensor normal = build.layer_norm("normal", shared, 1e-3f);
    build.output("normal_points", normal);
    build.output("normal_clouds", build.layer_norm("normal2", build.max_points("pool2", normal)));
    build.linear("nobody_reads_this", y, 1000);
    return build.finish({{"classes", "7"}});
}

Network activation_network() {
    Builder build("activations");
    const Tensor points = build.input("points", points_of(4));
    const network::Activation all[] = {
        relu(),          leaky_relu(0.1f), network::tanh(),     network::sigmoid(), network::elu(), network::elu(0.5f),
        network::gelu(), network::swish(), network::softplus(), network::log(0.01f)};
    int i = 0;
    for (const network::Activation& activation : all) {
        const std::string name = "l" + std::to_string(i++);
        const Tensor x = build.linear(name, points, 6, {.norm = true, .activation = activation});
        build.output(name + "_points", x);
        const Tensor y = build.linear(name + ".fc", build.max_points(name + ".pool", x), 5, {.activation = activation});
        build.output(name + "_clouds", y);
        build.output(name + "_alone", build.activation(name + ".alone", points, activation));
    }
    return build.finish();
}

Network transform_network() {
    Builder build("transform");
    const Tensor points = build.input("points", points_of(3));
    const Tensor pool = build.max_points("pool", build.linear("stn.conv", points, 8, {.activation = relu()}));
    const Tensor joined = build.add_identity("stn.identity", build.linear("stn.fc", pool, 9));
    Tensor x = build.transform("moved", points, joined);
    x = build.linear("conv", x, 4, {.norm = true});
    // No bias of its own; an activation after it; a second reader: these keep the identity apart.
    const Tensor no_bias = build.add_identity("no_bias.identity", build.linear("no_bias", pool, 16, {.bias = false}));
    const Tensor active = build.linear("active", pool, 16, {.activation = relu()});
    const Tensor active_identity = build.add_identity("active.identity", active);
    const Tensor read_twice = build.linear("read_twice", pool, 16);
    const Tensor twice_identity = build.add_identity("read_twice.identity", read_twice);
    const Tensor normal = build.add_identity("normal.identity", build.linear("normal", pool, 16, {.norm = true}));
    x = build.transform("second", build.transform("first", x, no_bias), active_identity);
    const Tensor rows = build.repeat("rows", x, 5);
    build.output("rows_out", build.transform("third", rows, twice_identity));
    build.output("matrix", read_twice);
    const Tensor quaternion = build.linear("quaternion", pool, 4);
    build.output("rotated", build.transform("turned", points, build.rotation("turn", quaternion, true)));
    build.output("rotations", build.rotation("turns", build.repeat("quaternions", build.linear("of_points", x, 4), 2)));
    build.output("clouds_out", build.transform("fourth", build.max_points("pool2", x), normal));
    return build.finish();
}

Network rows_network() {
    Builder build("rows");
    const Tensor points = build.input("points", points_of(4));
    const Tensor category = build.input("category", clouds_of(6));
    const Tensor rows = build.input("rows", rows_of(3, 2));
    const Tensor wide = build.repeat("wide", points, 3);
    Tensor x = build.concat("joined", {wide, rows, build.slice("part", wide, 1, 3)});
    x = build.reverse("reversed", x);
    build.output("a", x);
    build.output("b", build.max_rows("most", x));
    build.output("c", build.max_rows("same", points));
    const Tensor spread = build.repeat("spread", category);
    const Tensor both = build.concat("both", {points, spread, build.repeat("as_it_is", points, 1)});
    build.output("d", build.scale("halved", both, 0.5f));
    build.output("e", build.add("sum", points, build.subtract("difference", points, build.reverse("turned", points))));
    build.output("f", build.sum_points("rows_sum", x));
    build.output("g", build.max_points("rows_max", x));
    build.output("h", build.reverse("turned_clouds", build.concat("clouds", {category, category})));
    build.output("i", build.slice("last", category, 5, 6));
    const Tensor learned = build.learned("temperature", 4);
    build.output("learned", learned);
    build.output("k", build.multiply("tempered", points, build.repeat("temperatures", learned)));
    build.output("j", build.multiply("product", points, build.slice("first", both, 6, 10)));
    return build.finish();
}

namespace {

Network neighbours_of(const char* name, int64_t k, int64_t children) {
    Builder build(name);
    const Tensor points = build.input("points", points_of(3));
    const Tensor features = build.input("features", points_of(5));
    const Tensor near = build.knn("near", points, k);
    Tensor edge = build.edge("edge", features, near);
    edge = build.linear("conv", edge, 8, {.norm = true, .activation = leaky_relu(0.05f)});
    build.output("edges", edge);
    build.output("distances", build.edge_distance("distance", points, near));
    const Tensor weights = build.softmax_rows("weights", build.linear("logits", edge, children));
    build.output("weights_out", weights);
    const Tensor values = build.gather("values", points, near);
    build.output("interpolated", build.interpolate("children", weights, values));
    build.output("most", build.max_rows("most_rows", edge));
    build.output("gathered", build.gather("more_values", points, near));
    return build.finish();
}

}  // namespace

Network neighbour_network() {
    return neighbours_of("neighbours", 6, 4);
}

Network one_neighbour_network() {
    return neighbours_of("one-neighbour", 1, 1);
}

Network wide_knn_network() {
    Builder build("wide-knn");
    const Tensor points = build.input("points", points_of(20));
    const Tensor near = build.knn("near", points, 4);
    build.output("nearest", build.gather("values", points, near));
    return build.finish();
}

Network index_network() {
    Builder build("index");
    const Tensor points = build.input("points", points_of(3));
    const Tensor given = build.input("given", {network::Level::point, 2, 1, true});
    build.output("from_given", build.gather("values", points, given));
    build.output("near", build.knn("knn", points, 5));
    return build.finish();
}

Network sets_network() {
    Builder build("sets");
    const Tensor points = build.input("points", points_of(3));
    const Tensor queries = build.input("queries", points_of(3, 1));
    const Tensor shape = build.input("template", points_of(10, 2));
    const Tensor near = build.knn("near", queries, points, 4);
    build.output("indices", near);
    build.output("neighbours", build.gather("values", points, near));
    build.output("one", build.gather("nearest", points, build.knn("one_near", queries, points, 1)));
    // Wide features, and neighbours within the second set.
    const Tensor features = build.linear("features", queries, 10, {.activation = relu()});
    build.output("wide", build.gather("wide_values", shape, build.knn("wide_near", features, shape, 3)));
    build.output("edges", build.edge("edge", features, build.knn("own", queries, 5)));
    const Tensor pool = build.max_points("pool", build.linear("conv", points, 6));
    const Tensor spread = build.repeat_for_set("spread", pool, 1);
    build.output("joined", build.concat("both", {spread, queries}));
    build.output("for_template", build.linear("fc", build.repeat_for_set("to_template", pool, 2), 4));
    build.output("sums", build.sum_points("sum", shape));
    const Tensor made = build.unflatten("made", build.linear("decoder", pool, 8 * 3), 3);
    build.output("made_points", made);
    build.output("to_made", build.gather("of_points", points, build.knn("near_made", made, points, 2)));
    build.output("of_made", build.gather("made_values", made, build.knn("near_points", points, made, 2)));
    build.output("codes", build.concat("made_codes", {made, build.repeat_for_set("for_made", pool, 3)}));
    return build.finish();
}

Network attention_network() {
    Builder build("attention");
    const Tensor points = build.input("points", points_of(5));
    const Tensor others = build.input("others", points_of(5, 1));
    int i = 0;
    for (const network::Normalise normalise :
         {network::Normalise::row, network::Normalise::joint, network::Normalise::none})
        for (const bool unit : {false, true})
            for (const bool skips_self : {false, true}) {
                const std::string name = "a" + std::to_string(i++);
                const Tensor keys = build.linear(name + ".keys", points, 5);
                const network::AttendOptions options{normalise, 0.5f, unit, skips_self};
                build.output(name + "_out", build.attend(name, points, keys, points, options));
                if (!skips_self)
                    build.output(name + "_set", build.attend(name + ".b", points, others, others, options));
            }
    const Tensor constant = build.constant("constant", {1, -2, 3, 0.5f, 2, 7});
    const Tensor made =
        build.unflatten("made", build.concat("more", {constant, constant, constant, constant, constant}), 5);
    build.output("nodes", build.attend("to_nodes", made, points, points));
    const Tensor spread = build.repeat("spread", constant);
    const Tensor cut = build.regroup("cut", spread, 2);
    build.output("rows", cut);
    build.output("flat", build.regroup("whole", build.linear("of_rows", cut, 4), 12));
    build.output("longer", build.regroup("single", cut, 1));
    return build.finish();
}

Network flow_network() {
    Builder build("flow");
    const Tensor points = build.input("points", points_of(3));
    const Tensor s = build.input("s", points_of(3)), b = build.input("b", points_of(3));
    const Tensor t = build.input("t", points_of(2)), whole = build.input("whole", points_of(3));
    Tensor x = build.actnorm("actnorm", points);
    x = build.mix("mix", x);
    x = build.couple("couple", x, t, 1);
    x = build.couple("couple_all", x, whole, 0);
    x = build.inject("inject", x, s, b);
    build.output("z", x);
    Tensor rows = build.repeat("children", x, 4);
    const Tensor s_rows = build.repeat("s_rows", s, 4), b_rows = build.repeat("b_rows", b, 4);
    rows = build.inject("inject_back", rows, s_rows, b_rows, true);
    rows = build.couple("couple_all_back", rows, build.repeat("whole_rows", whole, 4), 0, true);
    rows = build.couple("couple_back", rows, build.repeat("t_rows", t, 4), 1, true);
    rows = build.mix("mix_back", rows, true, "mix");
    build.output("back", build.actnorm("actnorm_back", rows, true, "actnorm"));
    const Tensor actnorm_det = build.flow_log_det("actnorm_det", points, "actnorm");
    const Tensor det = build.add("det", actnorm_det, build.flow_log_det("mix_det", points, "mix"));
    build.output("log_det", det);
    build.output("density", build.gaussian_log_density("gauss", x));
    return build.finish();
}

Network flow_step_network() {
    Builder build("flow-step");
    const Tensor points = build.input("points", points_of(3));
    const Tensor features = build.linear("features", points, 8, {.activation = relu()});
    const auto condition = [&](const std::string& name, int64_t channels, int64_t hidden) {
        return build.linear(name, features, network::flow_condition_channels(channels, hidden));
    };
    const Tensor a = condition("a.condition", 3, 12), b = condition("b.condition", 3, 7);
    const Tensor x = build.flow_step("a", points, a, {.hidden = 12, .log_det = true});
    build.output("residual", x);
    const Tensor moved = build.slice("moved", x, 0, 3);
    const network::FlowStepOptions ode{.hidden = 7, .steps = 3, .activation = network::tanh()};
    network::FlowStepOptions forward = ode, inverse = ode;
    forward.log_det = inverse.inverse = true;
    const Tensor y = build.flow_step("b", moved, b, forward);
    build.output("ode", y);
    const Tensor rows = build.repeat("rows", build.slice("z", y, 0, 3), 4);
    build.output("back", build.flow_step("b_back", rows, build.repeat("b_rows", b, 4), inverse, "b"));
    for (const int64_t channels : {1, 2}) {
        const std::string name = "c" + std::to_string(channels);
        const Tensor part = build.slice(name + ".part", points, 0, channels);
        const Tensor given = condition(name + ".condition", channels, 5);
        build.output(name + "_out",
                     build.flow_step(name, part, given, {.hidden = 5, .activation = network::tanh(), .log_det = true}));
    }
    return build.finish();
}

Network aliases_network() {
    Builder build("aliases");
    const Tensor points = build.input("points", points_of(3));
    const Tensor x = build.linear("twice", points, 4);
    build.output("conv", x);  // the name of a layer that comes later
    build.output("second_name", x);
    build.output("dropped", build.dropout("drop", x, 0.5f));
    build.output("unchanged", build.dropout("drop_input", points, 0.5f));
    build.output("twice", build.linear("conv", x, 2, {.activation = relu()}));
    return build.finish();
}

}  // namespace stipple::test
