#include "stipple/tasks/upsample.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/number_text.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/engine/program.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/models/flow_upsampler.h"
#include "stipple/tasks/upsample/attributes.h"
#include "stipple/tasks/upsample/run_tiles.h"

namespace stipple::tasks {
namespace {

// Queries may lie anywhere, as dense as one likes; more of them for each point would make tiles small.
constexpr double kLargestQueryRatio = 16;
// Input points that a point is made of where the network does not know.
constexpr int64_t kNearestSources = 3;

RunnerOptions runner_options(RunnerOptions options) {
    options.batch = 16;  // patches; of a network that takes queries there is one
    options.points = 256;
    return options;
}

/// Whether its encoder and its decoder run for themselves. A calibration is of the whole network.
bool is_split(const ModelOrEngine& source, const RunnerOptions& options) {
    const engine::Precision precision = options.precision.value_or(engine::Precision::fp32);
    return source.model && source.model->network.name == "flow-upsampler" && precision != engine::Precision::int8 &&
           precision != engine::Precision::fp8;
}

/// A network whose parameters are among those of a model.
ModelOrEngine part_of(const ModelOrEngine& whole, network::Network part) {
    network::Weights weights;
    weights.metadata = whole.model->weights.metadata;
    for (const network::Parameter& parameter : network::parameters_of(part))
        weights.tensors[parameter.name] = whole.model->weights.tensors.at(parameter.name);
    return {whole.path, models::Model{std::move(part), std::move(weights)}, std::nullopt};
}

/// The points of both, of the same attributes and origin.
PointCloud joined(const PointCloud& first, const PointCloud& second) {
    PointCloud both(first.size() + second.size());
    std::copy_n(first.positions.data(), first.positions.elements(), both.positions.data());
    std::copy_n(second.positions.data(), second.positions.elements(), both.positions.data() + 3 * first.size());
    both.origin = first.origin;
    both.facts = first.facts;
    for (size_t i = 0; i < first.attributes.size(); ++i) {
        const Attribute &a = first.attributes[i], &b = second.attributes[i];
        Attribute& to = both.attributes.emplace_back(a.name(), a.dtype(), both.size(), a.components());
        std::copy_n(a.data(), a.rows() * a.row_bytes(), to.data());
        std::copy_n(b.data(), b.rows() * b.row_bytes(), to.data() + a.rows() * a.row_bytes());
    }
    return both;
}

PointCloud run_pass(Upsampler& upsampler, const PointCloud& cloud, int64_t count, const UpsampleOptions& options) {
    upsampler.forget_features();
    const Candidates kept = run_tiles(upsampler, cloud.positions.view(), count, !cloud.attributes.empty(), options);
    PointCloud made(kept.size());
    std::copy(kept.points.begin(), kept.points.end(), made.positions.data());
    made.origin = cloud.origin;
    made.facts = cloud.facts;
    if (kept.width > 0) {
        made.attributes = blend_attributes(cloud.attributes, kept.size(), kept.width, kept.sources, kept.weights);
    } else {  // the network does not say what its points are made of: their parents
        const std::vector<float> all(kept.parents.size(), 1);
        made.attributes = blend_attributes(cloud.attributes, kept.size(), 1, kept.parents, all);
    }
    return options.keeps_input ? joined(cloud, made) : std::move(made);
}

/// Points after each pass: equal ratios, none larger than the network's.
std::vector<int64_t> counts_of_passes(const Upsampler& upsampler, int64_t points, int64_t count) {
    const double ratio = static_cast<double>(count) / static_cast<double>(points);
    const double passes = std::max(1.0, std::ceil(std::log(ratio) / std::log(upsampler.largest_ratio()) - 1e-9));
    std::vector<int64_t> counts;
    for (double pass = 1; pass < passes; ++pass)
        counts.push_back(std::llround(std::pow(ratio, pass / passes) * static_cast<double>(points)));
    counts.push_back(count);
    return counts;
}

}  // namespace

Upsampler::Upsampler(ModelOrEngine source, RunnerOptions options) {
    compile(std::move(source), runner_options(std::move(options)));
    check_types();
}

void Upsampler::compile(ModelOrEngine source, const RunnerOptions& options) {
    if (!is_split(source, options)) {
        runner_.emplace(std::move(source), options);
        return;
    }
    const models::Model& model = *source.model;
    const models::FlowUpsamplerOptions network = models::flow_upsampler_options(model.network.config);
    encoder_.emplace(part_of(source, models::flow_upsampler_encoder(network)), options);
    if (network.refinement == models::Refinement::projection && network.steps > 1)
        first_step_.emplace(part_of(source, models::flow_upsampler_first_step(network)), options);
    runner_.emplace(part_of(source, models::flow_upsampler_decoder(network)), options);
}

void Upsampler::check_types() {
    const engine::Program& program = runner_->program();
    const auto output = [&](const char* name) { return find_type(program, program.outputs, name); };
    const network::TensorType *points = find_type(program, program.inputs, "points"),
                              *queries = find_type(program, program.inputs, "queries"),
                              *noise = find_type(program, program.inputs, "noise"), *upsampled = output("upsampled"),
                              *distance = output("distance"), *weights = output("weights"),
                              *neighbours = output("neighbours");
    takes_queries_ = queries != nullptr;
    tells_distances_ = queries && !upsampled && distance && *distance == network::points_of(1, 1);
    const bool is_noise =
        !noise || (!queries && upsampled && *noise == rows_of(*upsampled, upsampled->width, noise->channels));
    const size_t expected = 1 + (queries || noise) + encoder_.has_value();
    const bool inputs = points && *points == network::points_of(3) && program.inputs.size() == expected && is_noise &&
                        (!queries || *queries == network::points_of(3, 1));
    const bool is_made = upsampled && (queries ? *upsampled == network::points_of(3, 1)
                                               : *upsampled == network::rows_of(upsampled->width, 3));
    if (!inputs || !(is_made || tells_distances_))
        throw Error(
            ErrorCode::bad_argument, Place{runner_->source().path},
            fmt::format(
                "{} does not upsample clouds: that takes points [B, N, 3], perhaps queries [B, M, 3], and gives "
                "points named upsampled, or of queries their distance",
                runner_->source().name()),
            "stipple engine inspect shows what it does");
    children_ = queries ? 0 : upsampled->width;
    noise_channels_ = noise ? noise->channels : 0;
    knows_uncertainty_ = tells_distances_ || (queries && output("uncertainty"));
    if (tells_distances_) sources_ = kNearestSources;
    if (weights && neighbours && neighbours->is_index) sources_ = neighbours->width;
}

const Array<float, 2>* Upsampler::features_of(const Array<float, 2>& points) {
    if (!encoder_) return nullptr;
    const int64_t n = points.size(0);
    if (encoded_.size(0) == n && n > 0 && std::equal(points.data(), points.data() + 3 * n, encoded_.data()))
        return &features_;
    engine::Context& context = encoder_->reserve(n);
    const network::TensorType& type = *find_type(encoder_->program(), encoder_->program().outputs, "features");
    features_ = Array<float, 2>({n, type.channels}, encoder_->device());
    const Array<float, 2> there = points.to(encoder_->device());
    context.run(ops::Batch::single(n), {{"points", there.view()}}, {{"features", features_.view()}});
    encoded_ = points.to(Device{});
    return &features_;
}

int64_t Upsampler::memory_bytes() const {
    int64_t bytes = 0;
    for (const std::optional<NetworkRunner>* runner : {&runner_, &encoder_, &first_step_})
        if (*runner) bytes += (*runner)->memory_bytes();
    return bytes;
}

double Upsampler::largest_ratio() const {
    if (takes_queries_) return kLargestQueryRatio;
    return children_ > 0 ? static_cast<double>(children_) : 4;  // midpoints of 8 neighbours
}

int64_t upsampled_count(const PointCloud& cloud, const UpsampleOptions& options) {
    STIPPLE_REQUIRE((options.ratio != 0) + (options.count != 0) + (options.spacing != 0) == 1,
                    "how many points? A ratio, a count or a spacing says it");
    STIPPLE_REQUIRE(options.count >= 0, "the count must be above 0, got {}", options.count);
    const auto n = static_cast<double>(cloud.size());
    double wanted = static_cast<double>(options.count);
    if (options.ratio != 0) {
        STIPPLE_REQUIRE(std::isfinite(options.ratio) && options.ratio >= 1, "the ratio must be 1 or more, got {}",
                        options.ratio);
        wanted = std::round(options.ratio * n);
    }
    if (options.spacing != 0) {
        STIPPLE_REQUIRE(std::isfinite(options.spacing) && options.spacing > 0, "the spacing must be above 0, got {}",
                        options.spacing);
        const double now = data::mean_spacing(cloud.positions.view());
        wanted = std::round(n * (now / options.spacing) * (now / options.spacing));
        STIPPLE_REQUIRE(wanted >= 0.99 * n, "a spacing of {} is wider than that of the cloud, {:.4g}", options.spacing,
                        now);
        wanted = std::max(wanted, n);
    }
    STIPPLE_REQUIRE(wanted >= n, "{} points are fewer than the cloud has, {}: stipple sample makes clouds smaller",
                    grouped(options.count), grouped(cloud.size()));
    STIPPLE_REQUIRE(wanted < 2147483648.0, "{:.3g} points are too many: at most 2,147,483,647 in a cloud", wanted);
    return static_cast<int64_t>(wanted);
}

int64_t upsampling_work(const Upsampler& upsampler, const PointCloud& cloud, int64_t count) {
    int64_t work = 0, points = cloud.size();
    for (const int64_t made : counts_of_passes(upsampler, points, count)) {
        work += points;
        points = made;
    }
    return work;
}

Upsampled upsample(Upsampler& upsampler, const PointCloud& cloud, const UpsampleOptions& options) {
    STIPPLE_REQUIRE(options.tile_points >= kFewestUpsampled, "tiles of {} points: {} or more", options.tile_points,
                    kFewestUpsampled);
    STIPPLE_REQUIRE(options.temperature >= 0 && std::isfinite(options.temperature),
                    "the temperature must be 0 or more, got {}", options.temperature);
    STIPPLE_REQUIRE(options.temperature == 0 || upsampler.noise_channels() > 0,
                    "this network takes no noise: it makes one cloud, whatever the temperature");
    const int64_t count = upsampled_count(cloud, options);
    PointCloud now = geometry::dedupe_points(cloud);
    Upsampled result;
    result.duplicates = cloud.size() - now.size();
    STIPPLE_REQUIRE(now.size() >= kFewestUpsampled, "{} distinct points: upsampling needs {} or more", now.size(),
                    kFewestUpsampled);
    for (const int64_t wanted : counts_of_passes(upsampler, now.size(), count))
        now = run_pass(upsampler, now, wanted, options);
    result.cloud = std::move(now);
    return result;
}

}  // namespace stipple::tasks
