#include "stipple/tasks/upsample.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/number_text.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/engine/program.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/models/flow_upsampler.h"
#include "stipple/tasks/upsample/attributes.h"
#include "stipple/tasks/upsample/between_rings.h"
#include "stipple/tasks/upsample/run_tiles.h"
#include "stipple/tasks/upsample/support.h"

namespace stipple::tasks {
namespace {

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

/// Whether it takes queries; else it makes children. Throws for a network that does neither.
bool takes_queries(const NetworkRunner& runner, bool has_encoder) {
    const engine::Program& program = runner.program();
    const network::TensorType *points = find_type(program, program.inputs, "points"),
                              *queries = find_type(program, program.inputs, "queries"),
                              *noise = find_type(program, program.inputs, "noise"),
                              *upsampled = find_type(program, program.outputs, "upsampled"),
                              *distance = find_type(program, program.outputs, "distance");
    const bool is_noise =
        !noise || (!queries && upsampled && *noise == rows_of(*upsampled, upsampled->width, noise->channels));
    const size_t expected = 1 + (queries || noise) + has_encoder;
    const bool inputs = points && *points == network::points_of(3) && program.inputs.size() == expected && is_noise &&
                        (!queries || *queries == network::points_of(3, 1));
    const bool tells_distances = queries && !upsampled && distance && *distance == network::points_of(1, 1);
    const bool is_made = upsampled && (queries ? *upsampled == network::points_of(3, 1)
                                               : *upsampled == network::rows_of(upsampled->width, 3));
    if (!inputs || !(is_made || tells_distances))
        throw Error(
            ErrorCode::bad_argument, Place{runner.source().path},
            fmt::format(
                "{} does not upsample clouds: that takes points [B, N, 3], perhaps queries [B, M, 3], and gives "
                "points named upsampled, or of queries their distance",
                runner.source().name()),
            "stipple engine inspect shows what it does");
    return queries != nullptr;
}

std::unique_ptr<CandidateMaker> maker_of(ModelOrEngine source, const RunnerOptions& options) {
    std::optional<NetworkRunner> encoder, first_step;
    if (is_split(source, options)) {
        const models::FlowUpsamplerOptions network = models::flow_upsampler_options(source.model->network.config);
        encoder.emplace(part_of(source, models::flow_upsampler_encoder(network)), options);
        if (network.refinement == models::Refinement::projection && network.steps > 1)
            first_step.emplace(part_of(source, models::flow_upsampler_first_step(network)), options);
        source = part_of(source, models::flow_upsampler_decoder(network));
    }
    NetworkRunner runner(std::move(source), options);
    if (!takes_queries(runner, encoder.has_value())) return child_maker(std::move(runner));
    return query_maker(std::move(runner), std::move(encoder), std::move(first_step));
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

/// Candidates as a cloud, with the attributes of those that they are made of.
PointCloud cloud_of(const Candidates& candidates, const PointCloud& cloud) {
    PointCloud made(candidates.size());
    std::copy(candidates.points.begin(), candidates.points.end(), made.positions.data());
    made.origin = cloud.origin;
    made.facts = cloud.facts;
    if (candidates.width > 0) {
        made.attributes = blend_attributes(cloud.attributes, candidates.size(), candidates.width, candidates.sources,
                                           candidates.weights);
    } else {  // the network does not say what its points are made of: their parents
        const std::vector<float> all(candidates.parents.size(), 1);
        made.attributes = blend_attributes(cloud.attributes, candidates.size(), 1, candidates.parents, all);
    }
    return made;
}

/// The first `measured` points of a cloud are as they were measured; afterwards those of them that are still.
struct Pass {
    PointCloud cloud;
    int64_t measured = 0, dropped = 0;
};

Pass run_pass(Upsampler& upsampler, const Pass& before, int64_t count, const UpsampleOptions& options) {
    const PointCloud& cloud = before.cloud;
    upsampler.maker().forget_cloud();
    const UpsampledTiles tiles =
        run_tiles(upsampler.maker(), cloud.positions.view(), count, !cloud.attributes.empty(), options);
    PointCloud made = cloud_of(tiles.made, cloud);
    Pass after;
    std::vector<int32_t> stay;
    for (int32_t i = 0; i < static_cast<int32_t>(cloud.size()); ++i) {
        if (!tiles.stays[static_cast<size_t>(i)]) continue;
        stay.push_back(i);
        after.measured += i < before.measured;
    }
    after.cloud = stay.empty() ? std::move(made)
                               : joined(select(cloud, {stay.data(), {static_cast<int64_t>(stay.size())}}), made);
    after.dropped = before.dropped + tiles.dropped;
    return after;
}

/// What is made of a sweep; nothing of other clouds.
std::optional<Upsampled> upsample_sweep(Upsampler& upsampler, const PointCloud& cloud, int64_t count,
                                        const UpsampleOptions& options) {
    if (options.rings == Rings::ignore || options.denoises || !upsampler.maker().mover()) return std::nullopt;
    const std::optional<geometry::SweepRings> sweep = geometry::find_sweep_rings(cloud);
    if (!sweep) return std::nullopt;
    const std::vector<float> spacings = local_spacings(CloudSearch(cloud.positions.view()));
    const std::optional<SweepPoints> points = points_of_sweep(cloud, *sweep, spacings, count - cloud.size(), options);
    if (!points) return std::nullopt;
    if (options.advance) options.advance(upsampling_work(upsampler, cloud, count));
    return Upsampled{.cloud = joined(cloud, cloud_of(points->made, cloud)),
                     .measured = cloud.size(),
                     .dropped = points->dropped,
                     .rings = static_cast<int64_t>(sweep->rings.size()),
                     .between = points->between};
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

const Fields& upsample_fields() {
    using Options = UpsampleOptions;
    static const Fields fields = {
        field<&Options::ratio>("ratio", "Points for each point: 4, 3.7, 16").shown("R").no_default(),
        field<&Options::count>("count", "Instead: points in all").shown("N").from(0).no_default(),
        field<&Options::spacing>("spacing", "Instead: a point for each square of this edge")
            .unit("unit of the cloud")
            .shown("D")
            .from(0)
            .no_default(),
        field<&Options::temperature>("temperature", "Noise in the latents: another cloud for each --seed")
            .shown("T")
            .from(0),
        field<&Options::holes>("holes",
                               "Holes of the scan: keep, no points there and beyond rims; fill, as far as known")
            .words(kHolesWords),
        field<&Options::hole_size>("hole_size", "With --holes fill: the widest hole, in the unit of the cloud")
            .unit("unit of the cloud")
            .shown("D")
            .from(0)
            .no_default(),
        field<&Options::rings>(
            "rings", "Of a spinning LiDAR: auto, new points lie between the rings of a sweep; ignore, as in any cloud")
            .words(kRingsWords),
        field<&Options::keeps_input>("keep_input", "Of midpoints and PU-Flow: the points of the input stay too"),
        field<&Options::denoises>("denoise", "Points of the input that lie beside the surface are moved onto it"),
        field<&Options::tile_points>("tile", "Points that are worked on at a time").shown("N").from(kFewestUpsampled)};
    return fields;
}

const Fields& upsampled_fields() {
    static const Fields fields = {
        field<&Upsampled::points>("points", "Points of the input"),
        field<&Upsampled::upsampled>("upsampled", "Points of the output"),
        field<&Upsampled::measured>("measured", "Input points that stayed as they were; they come first"),
        field<&Upsampled::dropped>("dropped", "Places beyond rims and in holes that were left empty"),
        field<&Upsampled::rings>("rings", "Rings of a sweep; 0: of another cloud"),
        field<&Upsampled::between>("between_rings", "New points between the rings of a sweep"),
        field<&Upsampled::duplicates>("duplicates", "Input points at the place of another one, which were left out"),
        field<&Upsampled::nonfinite>("non_finite", "Input points without a place, which were left out"),
        field<&Upsampled::spacing>("spacing", "Mean distance of neighbours in the input").unit("unit of the cloud"),
        field<&Upsampled::spacing_after>("spacing_after", "The same in the output").unit("unit of the cloud")};
    return fields;
}

Upsampler::Upsampler() : maker_(midpoint_maker()) {}
Upsampler::Upsampler(ModelOrEngine source, RunnerOptions options)
    : maker_(maker_of(std::move(source), runner_options(std::move(options)))) {}
Upsampler::Upsampler(Upsampler&&) noexcept = default;
Upsampler& Upsampler::operator=(Upsampler&&) noexcept = default;
Upsampler::~Upsampler() = default;

const NetworkRunner* Upsampler::runner() const {
    return maker_->runner();
}
int64_t Upsampler::noise_channels() const {
    return maker_->noise_channels();
}
double Upsampler::largest_ratio() const {
    return maker_->largest_ratio();
}
int64_t Upsampler::memory_bytes() const {
    return maker_->memory_bytes();
}

int64_t upsampled_count(const PointCloud& cloud, const UpsampleOptions& options) {
    STIPPLE_REQUIRE((options.ratio != 0) + (options.count != 0) + (options.spacing != 0) == 1,
                    "how many points? A ratio, a count or a spacing says it");
    STIPPLE_REQUIRE(options.count >= 0, "the count must be above 0, got {}", options.count);
    const int64_t points = bounds_of(cloud).finite;
    const auto n = static_cast<double>(points);
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
                    grouped(options.count), grouped(points));
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
    check_fields(upsample_fields(), &options);
    STIPPLE_REQUIRE(options.temperature == 0 || upsampler.noise_channels() > 0,
                    "this network takes no noise: it makes one cloud, whatever the temperature");
    STIPPLE_REQUIRE(options.hole_size == 0 || options.holes == Holes::fill,
                    "a size of holes is for those that are filled (--holes fill)");
    STIPPLE_REQUIRE(!(options.keeps_input && options.denoises),
                    "input points cannot stay as they are and be freed of noise (--keep-input, --denoise)");
    STIPPLE_REQUIRE(!options.denoises || upsampler.maker().mover(),
                    "{} does not move points: it cannot free them of noise (--denoise)",
                    upsampler.has_network() ? upsampler.runner()->source().name() : kMidpoints);
    const int64_t count = upsampled_count(cloud, options);
    const int64_t finite = bounds_of(cloud).finite;
    Pass now{finite < cloud.size() ? geometry::dedupe_points(drop_nonfinite(cloud)) : geometry::dedupe_points(cloud)};
    now.measured = now.cloud.size();
    const int64_t nonfinite = cloud.size() - finite, duplicates = finite - now.cloud.size();
    STIPPLE_REQUIRE(now.cloud.size() >= kFewestUpsampled, "{} distinct points: upsampling needs {} or more",
                    now.cloud.size(), kFewestUpsampled);
    const double spacing = data::mean_spacing(now.cloud.positions.view());
    Upsampled result;
    if (std::optional<Upsampled> sweep = upsample_sweep(upsampler, now.cloud, count, options)) {
        result = std::move(*sweep);
    } else {
        for (const int64_t wanted : counts_of_passes(upsampler, now.cloud.size(), count))
            now = run_pass(upsampler, now, wanted, options);
        result = {.cloud = std::move(now.cloud), .measured = now.measured, .dropped = now.dropped};
    }
    result.duplicates = duplicates, result.nonfinite = nonfinite;
    result.points = cloud.size(), result.upsampled = result.cloud.size();
    result.spacing = spacing;
    result.spacing_after = data::mean_spacing(result.cloud.positions.view());
    return result;
}

}  // namespace stipple::tasks
