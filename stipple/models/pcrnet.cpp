#include "stipple/models/pcrnet.h"

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/models/common/encoder.h"

namespace stipple::models {

using network::Builder;
using network::LinearOptions;
using network::Network;
using network::Tensor;

namespace {

/// A rigid motion of every cloud.
struct Motion {
    Tensor rotation = -1;     // [B, 9]
    Tensor translation = -1;  // [B, 3]
};

/// The head of an iteration: features of both clouds -> [B, 7].
Tensor pose_of(Builder& build, const std::string& prefix, Tensor both, const PcrNetOptions& options) {
    const int64_t h = options.hidden;
    const bool is_first = prefix == "1.";
    const auto layer = [&](const std::string& name, Tensor x, int64_t channels, const LinearOptions& how) {
        return is_first ? build.linear(prefix + name, x, channels, how)
                        : build.linear_sharing(prefix + name, x, channels, how, "1." + name);
    };
    Tensor x = both;
    int i = 0;
    for (const int64_t channels : {h, h, h / 2, h / 2, h / 4})
        x = layer(fmt::format("fc{}", ++i), x, channels, encoder_layer(Norms::none));
    return layer("pose", x, 7, {});
}

/// x moved: rows of points times the transposed rotation, plus the translation.
Tensor move_points(Builder& build, const std::string& prefix, Tensor x, Tensor transposed, Tensor translation) {
    const Tensor turned = build.transform(prefix + "turned", x, transposed);
    const Tensor shift = build.repeat_for_set(prefix + "shift", translation, build.type(x).set);
    return build.add(prefix + "moved", turned, shift);
}

/// First `before`, then the motion of this iteration: R R', R t' + t.
Motion compose(Builder& build, const std::string& prefix, const Motion& before, const Motion& now, Tensor transposed) {
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < 3; ++i) {
        const Tensor row = build.slice(fmt::format("{}row{}", prefix, i), now.rotation, 3 * i, 3 * i + 3);
        rows.push_back(build.transform(fmt::format("{}row{}.turned", prefix, i), row, before.rotation));
    }
    const Tensor rotation = build.concat(prefix + "rotation.all", rows);
    const Tensor turned = build.transform(prefix + "translation.turned", before.translation, transposed);
    return {rotation, build.add(prefix + "translation.all", turned, now.translation)};
}

}  // namespace

const Fields& pcrnet_fields() {
    using Options = PcrNetOptions;
    static const Fields fields = {
        field<&Options::iterations>("iterations", "Times that the source is moved and looked at again").between(1, 32),
        field<&Options::features>("features", "Features of a cloud").between(1, 65536),
        field<&Options::hidden>("hidden", "Width of the head, a multiple of 4").between(4, 65536)};
    return fields;
}

PcrNetOptions pcrnet_options(const Config& config) {
    PcrNetOptions options;
    read_config("pcrnet", pcrnet_fields(), &options, config);
    return options;
}

Network pcrnet(const PcrNetOptions& options) {
    check_options("pcrnet", pcrnet_fields(), &options);
    STIPPLE_REQUIRE(options.hidden % 4 == 0, "pcrnet: hidden must be a multiple of 4, got {}", options.hidden);
    const std::string encoder = "template.";
    Builder build("pcrnet");
    Tensor source = build.input("source", network::points_of(3));
    const Tensor target = build.input("template", network::points_of(3, 1));
    const Tensor target_feature =
        point_encoder(build, encoder, target, {64, 64, 64, 128, options.features}, encoder_layer(Norms::none));
    Motion motion;
    Tensor pose = -1;
    for (int64_t i = 1; i <= options.iterations; ++i) {
        const std::string prefix = fmt::format("{}.", i);
        const Tensor feature = point_encoder(build, prefix, source, {64, 64, 64, 128, options.features},
                                             encoder_layer(Norms::none), &encoder);
        const Tensor both = build.concat(prefix + "both", {target_feature, feature});
        pose = pose_of(build, prefix, both, options);
        const Tensor quaternion = build.slice(prefix + "quaternion", pose, 0, 4);
        const Motion now = {build.rotation(prefix + "rotation", quaternion),
                            build.slice(prefix + "translation", pose, 4, 7)};
        const Tensor transposed = build.rotation(prefix + "rotation.transposed", quaternion, true);
        source = move_points(build, prefix, source, transposed, now.translation);
        motion = i == 1 ? now : compose(build, prefix, motion, now, transposed);
    }
    build.output("rotation", motion.rotation);
    build.output("translation", motion.translation);
    build.output("moved", source);
    build.output("pose", pose);
    return build.finish(config_text(pcrnet_fields(), &options));
}

}  // namespace stipple::models
