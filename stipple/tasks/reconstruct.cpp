#include "stipple/tasks/reconstruct.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/number_text.h"
#include "stipple/data/class_names.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/nearest_pairs.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {
namespace {

/// Root of the mean of squared distances, in their order.
double root_mean(const float* squared, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += squared[i];
    return std::sqrt(sum / static_cast<double>(n));
}

/// The pose that a turn came from.
Pose inverse_of(const Pose& pose) {
    Pose back;
    for (int i = 0; i < 3; ++i) {
        back.from[static_cast<size_t>(pose.from[static_cast<size_t>(i)])] = i;
        back.signs[static_cast<size_t>(pose.from[static_cast<size_t>(i)])] = pose.signs[static_cast<size_t>(i)];
    }
    return back;
}

/// In place, by the right-hand rule.
void turn_about(Array<float, 2>& points, const Axis& axis, double degrees) {
    if (degrees == 0) return;
    const double angle = axis.sign * degrees * M_PI / 180, c = std::cos(angle), s = std::sin(angle);
    const int first = (axis.index + 1) % 3, second = (axis.index + 2) % 3;
    for (int64_t i = 0; i < points.size(0); ++i) {
        float* p = points.data() + 3 * i;
        const double x = p[first], y = p[second];
        p[first] = static_cast<float>(c * x - s * y);
        p[second] = static_cast<float>(s * x + c * y);
    }
}

/// The points of one cloud among those that were made, on the CPU, at most `count` of them.
Array<float, 2> made_points(const Array<float, 2>& made, size_t cloud, int64_t each, int64_t count) {
    const Array<float, 2> host = made.to(Device{});
    const float* first = host.data() + 3 * each * static_cast<int64_t>(cloud);
    const View<const float, 2> all(first, {each, 3});
    Array<float, 2> points({count, 3});
    if (count == each) {
        std::copy_n(first, 3 * each, points.data());
        return points;
    }
    Array<int32_t, 1> indices({count});
    ops::farthest_point_sample(all, ops::Batch::single(count), indices.view());
    for (int64_t i = 0; i < count; ++i) std::copy_n(first + 3 * int64_t{indices.data()[i]}, 3, points.data() + 3 * i);
    return points;
}

[[noreturn]] void refuse(const Reconstructor& reconstructor, const Reconstructed& result) {
    const std::string known = reconstructor.classes().empty()
                                  ? "the clouds that these weights were trained on"
                                  : fmt::format("{}", fmt::join(reconstructor.classes(), ", "));
    throw Error(
        ErrorCode::check_failed,
        fmt::format("unlike what can be rebuilt ({}): it is {:.2f} times as far from its rebuilt cloud as any of "
                    "those may be",
                    known, *result.unlikeness),
        "--up, --poses or --turns 24 where it only lies otherwise; --force rebuilds it all the same; any shape: "
        "stipple "
        "mesh surface");
}

}  // namespace

SeenCloud seen_cloud(const PointCloud& cloud) {
    STIPPLE_REQUIRE(cloud.size() > 0, "a cloud is rebuilt from {} distinct points or more, this one has none",
                    kFewestRebuilt);
    const metrics::Points all = metrics::in_frame(cloud, metrics::unit_sphere(cloud));
    const int64_t most = std::min(kMostSeen, cloud.size());
    Array<int32_t, 1> indices({most});
    Array<float, 1> apart_sq({most});
    ops::farthest_point_sample(all.rounded.view(), ops::Batch::single(most), indices.view(), apart_sq.view());
    // Duplicates come last, at distance 0.
    const auto distinct = std::count_if(apart_sq.data(), apart_sq.data() + most, [](float d) { return d > 0; });
    STIPPLE_REQUIRE(distinct >= kFewestRebuilt, "a cloud is rebuilt from {} distinct points or more, this one has {}",
                    kFewestRebuilt, distinct);
    const PointCloud seen = select(cloud, View<const int32_t, 1>(indices.data(), {distinct}));
    const metrics::Frame frame = metrics::unit_sphere(seen);
    return {metrics::in_frame(seen, frame).rounded, frame};
}

Reconstructor::Reconstructor(ModelOrEngine source, const RunnerOptions& options) : runner_(std::move(source), options) {
    const engine::Program& program = runner_.program();
    const network::TensorType* made = find_type(program, program.outputs, "reconstructed");
    const auto& inputs = program.inputs;
    const ModelOrEngine& loaded = runner_.source();
    if (!made || made->channels != 3 || made->points < 1 || inputs.size() != 1 || inputs[0].name != "points" ||
        *find_type(program, inputs, "points") != network::points_of(3))
        throw Error(
            ErrorCode::bad_argument, Place{loaded.path},
            fmt::format("{} rebuilds no clouds: it needs points [B, N, 3] and reconstructed [B, n, 3]", loaded.name()),
            "stipple engine inspect shows what it does");
    count_ = made->points;
    try {
        likeness_ = likeness_of(loaded.metadata());
        classes_ = data::class_names(loaded.metadata());
        up_ = up_of(loaded.metadata());
    } catch (const Error& error) {
        throw error.at_path(loaded.path);
    }
}

Array<float, 2> Reconstructor::run(const CloudBatch& batch) {
    engine::Context& context = runner_.reserve(batch.points());
    const Device device = runner_.device();
    const Array<float, 2> points = batch.points_on(device);
    Array<float, 2> made({batch.clouds() * count_, 3}, device);
    context.run(batch.batch(), {{"points", points.view()}}, {{"reconstructed", made.view()}});
    return made;
}

Reconstructor::Made Reconstructor::run_and_compare(const CloudBatch& batch) {
    const Device device = runner_.device();
    Made result{run(batch), {}};
    const Array<float, 2> points = batch.points_on(device);
    const int64_t n = batch.points(), m = result.points.size(0);
    Array<int32_t, 1> nearest_made({n}, device), nearest_given({m}, device);
    Array<float, 1> to_made({n}, device), from_made({m}, device);
    ops::nearest_pairs(ops::Clouds(points.view(), batch.batch()),
                       ops::Clouds(result.points.view(), ops::Batch::dense(batch.clouds(), count_)),
                       nearest_made.view(), to_made.view(), nearest_given.view(), from_made.view());
    const Array<float, 1> to = to_made.to(Device{}), from = from_made.to(Device{});
    for (int64_t i = 0; i < batch.clouds(); ++i) {
        const int64_t first = batch.offsets[static_cast<size_t>(i)];
        result.gaps.push_back({root_mean(to.data() + first, batch.offsets[static_cast<size_t>(i) + 1] - first),
                               root_mean(from.data() + count_ * i, count_)});
    }
    return result;
}

void require_count(const Reconstructor& reconstructor, int64_t count) {
    if (count >= 0 && count <= reconstructor.count()) return;
    throw Error(ErrorCode::bad_argument,
                fmt::format("{} points: these weights make 1 to {}", grouped(count), grouped(reconstructor.count())),
                "stipple upsample makes more of the result");
}

Reconstructed reconstruct(Reconstructor& reconstructor, const PointCloud& cloud, const ReconstructOptions& options) {
    const int64_t made = reconstructor.count(), count = options.count == 0 ? made : options.count;
    STIPPLE_REQUIRE(!options.poses.empty(), "reconstruct: no poses");
    STIPPLE_REQUIRE(options.turns >= 1 && options.turns <= 360, "{} turns about the up axis: 1 to 360 are possible",
                    options.turns);
    require_count(reconstructor, options.count);
    const SeenCloud seen = seen_cloud(cloud);
    const metrics::Frame& frame = seen.frame;

    Reconstructed result;
    result.points = seen.points.size(0);
    result.radius = frame.scale;
    Array<float, 2> best;
    double least = INFINITY;
    const auto most = static_cast<size_t>(reconstructor.runner().max_batch());
    const auto turns = static_cast<size_t>(options.turns), tries = options.poses.size() * turns;
    const auto degrees_of = [&](size_t one) {
        return 360.0 * static_cast<double>(one % turns) / static_cast<double>(turns);
    };
    for (size_t begin = 0; begin < tries; begin += most) {
        CloudBatch batch;
        for (size_t one = begin; one < std::min(tries, begin + most); ++one) {
            Array<float, 2> turned = seen.points.clone();
            turn_points(turned, options.poses[one / turns]);
            turn_about(turned, reconstructor.up(), degrees_of(one));
            batch.add(turned);
        }
        const Reconstructor::Made answers = reconstructor.run_and_compare(batch);
        for (size_t i = 0; i < answers.gaps.size(); ++i) {
            const Gaps& gaps = answers.gaps[i];
            if (!std::isfinite(gaps.to_made + gaps.from_made))
                throw Error(ErrorCode::not_finite, Place{reconstructor.runner().source().path},
                            "the network made points that are not finite");
            const std::optional<double> unlike =
                reconstructor.likeness() ? std::optional(unlikeness(*reconstructor.likeness(), gaps, result.points))
                                         : std::nullopt;
            const double off = unlike.value_or(gaps.to_made + gaps.from_made);
            if (!(off < least)) continue;
            least = off;
            result.gaps = gaps;
            result.unlikeness = unlike;
            result.pose = (begin + i) / turns;
            result.turned = degrees_of(begin + i);
            best = made_points(answers.points, i, made, count);
        }
    }
    if (result.is_unlike() && !options.force) refuse(reconstructor, result);
    turn_about(best, reconstructor.up(), -result.turned);
    turn_points(best, inverse_of(options.poses[result.pose]));
    result.cloud = PointCloud(count);
    result.cloud.origin = cloud.origin;
    result.cloud.facts = cloud.facts;
    for (int64_t i = 0; i < count; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const auto at = static_cast<size_t>(axis);
            const double offset = frame.origin[at] - cloud.origin[at];
            result.cloud.positions.data()[3 * i + axis] =
                static_cast<float>(offset + frame.scale * best.data()[3 * i + axis]);
        }
    return result;
}

const Fields& rebuild_fields() {
    using Options = RebuildOptions;
    static const std::string model_help =
        fmt::format("Weights by path or name, or an engine; else {}", kAutoencoderWeights);
    static const Fields fields = {
        field<&Options::count>("count", "Points wanted; all that the network makes, mostly 2048, without it")
            .short_name('n')
            .from(0)
            .no_default(),
        field<&Options::model>("model", model_help.c_str()), object_field<&Options::pose>("", pose_fields),
        field<&Options::turns>("turns", "Try so many turns about the up axis too, and take the likeliest")
            .shown("N")
            .between(1, 360),
        field<&Options::force>("force", "Rebuild also what is unlike anything that the network knows")};
    return fields;
}

const Fields& rebuilt_fields() {
    using Result = RebuiltCloud;
    static const Fields fields = {
        field<&Result::seen>("seen", "Points that the network saw"),
        field<&Result::rebuilt>("rebuilt", "Points of the result"),
        field<&Result::rms_to_rebuilt>("rms_to_rebuilt", "Distance of the input to the result")
            .unit("unit of the cloud"),
        field<&Result::rms_from_rebuilt>("rms_from_rebuilt", "Distance of the result to the input")
            .unit("unit of the cloud"),
        field<&Result::unlikeness>("unlikeness", "Above 1: unlike the clouds that the weights were trained on"),
        field<&Result::unlike>("unlike", "Whether it is"),
        field<&Result::pose>("pose", "How the cloud lay best, of the poses that were tried"),
        field<&Result::turned_degrees>("turned_degrees", "And by how much it was turned about the up axis")
            .unit("degrees")};
    return fields;
}

CloudRebuilder::CloudRebuilder(const RebuildOptions& options) : options_(options) {
    check_fields(rebuild_fields(), &options_);
    network_ = std::make_unique<Reconstructor>(
        load_model_or_engine(options.model.empty() ? shipped_weights(kAutoencoderWeights) : options.model),
        RunnerOptions{.device = options.device, .batch = 24, .points = kMostSeen});
    how_ = {.count = options.count,
            .poses = poses_of(options.pose, network_->up()),
            .turns = options.turns,
            .force = options.force};
    require_count(*network_, options.count);
}

RebuiltCloud CloudRebuilder::rebuild(PointCloud& cloud) {
    Reconstructed made = reconstruct(*network_, cloud, how_);
    RebuiltCloud said;
    said.seen = made.points, said.rebuilt = made.cloud.size();
    said.rms_to_rebuilt = made.radius * made.gaps.to_made;
    said.rms_from_rebuilt = made.radius * made.gaps.from_made;
    said.unlikeness = made.unlikeness;
    if (made.unlikeness) said.unlike = made.is_unlike();
    if (how_.poses.size() > 1) said.pose = text_of(how_.poses[made.pose], network_->up());
    if (how_.turns > 1) said.turned_degrees = made.turned;
    cloud = std::move(made.cloud);
    return said;
}

}  // namespace stipple::tasks
