#include <algorithm>
#include <atomic>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/engine/program.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/descend.h"
#include "stipple/tasks/upsample/frame.h"
#include "stipple/tasks/upsample/queries.h"

namespace stipple::tasks {
namespace {

// Queries may lie anywhere, as dense as one likes; more of them for each point would make tiles small.
constexpr double kLargestQueryRatio = 16;
// Input points that a point is made of where the network does not know.
constexpr int64_t kNearestSources = 3;
// Added to distances, in spacings, before their inverses are weights.
constexpr float kNearestDistance = 1e-3f;
// Queries that a thread moves at a time, at least; what is computed of the input points is so for each part again.
constexpr int64_t kPartQueries = 512;

// What lies between points is moved along the surface by less than this, in spacings.
constexpr float kPulled = 0.5f;

/// Where m places have gone, in the coordinates of the network.
struct MovedPlaces {
    Array<float, 2> points;        // [m, 3]
    Array<float, 2> weights;       // [m * k, 1]
    Array<int32_t, 2> neighbours;  // [m, k] rows of the points
    Array<float, 2> uncertainty;   // [m, 1]; empty: the network does not know
};

/// Makes queries, and moves them by what a network says of them.
class QueryMaker : public CandidateMaker, private PointMover {
public:
    QueryMaker(NetworkRunner runner, std::optional<NetworkRunner> encoder, std::optional<NetworkRunner> first_step)
        : runner_(std::move(runner)), encoder_(std::move(encoder)), first_step_(std::move(first_step)) {
        const engine::Program& program = runner_.program();
        tells_distances_ = !find_type(program, program.outputs, "upsampled");
        const network::TensorType *weights = find_type(program, program.outputs, "weights"),
                                  *neighbours = find_type(program, program.outputs, "neighbours");
        if (tells_distances_) sources_ = kNearestSources;
        if (weights && neighbours && neighbours->is_index) sources_ = neighbours->width;
    }

    Candidates make(const CandidateRequest& request) override {
        Candidates candidates;
        candidates.width = request.has_sources ? sources_ : 0;
        const Queries queries = make_queries(request);
        move(request.region, queries, false, candidates);
        return candidates;
    }
    double largest_ratio() const override { return kLargestQueryRatio; }
    int64_t sources() const override { return sources_; }
    PointMover* mover() override { return this; }
    void forget_cloud() override { encoded_ = {}, features_ = {}; }
    const NetworkRunner* runner() const override { return &runner_; }
    int64_t memory_bytes() const override {
        return runner_.memory_bytes() + (encoder_ ? encoder_->memory_bytes() : 0) +
               (first_step_ ? first_step_->memory_bytes() : 0);
    }

private:
    void move(const Region& region, const Queries& queries, bool is_rough, Candidates& candidates) override {
        const Array<float, 2> rows = rows_of(region.cloud, region.points);
        Frame frame;
        frame.unit = data::mean_spacing(rows.view());
        for (int c = 0; c < 3; ++c) frame.centre[c] = region.cloud(region.points[0], c);
        const int64_t n = rows.size(0), m = queries.size(), k = candidates.width;
        Array<float, 2> points({n, 3}), places({m, 3});
        for (int64_t i = 0; i < n; ++i) frame.into(rows.data() + 3 * i, points.data() + 3 * i);
        for (int64_t i = 0; i < m; ++i) frame.into(queries.points.data() + 3 * i, places.data() + 3 * i);
        NetworkRunner& runner = is_rough && first_step_ ? *first_step_ : runner_;
        MovedPlaces moved = tells_distances_ ? places_by_descent(points, places.clone(), k)
                                             : places_by_network(runner, points, places, k);
        if (region.fills_holes) keep_in_holes(points, places, moved.points.view());
        candidates.inputs = candidates.size();
        const bool knows_uncertainty = moved.uncertainty.elements() > 0;
        for (int64_t q = 0; q < m; ++q) {
            float point[3];
            frame.out_of(moved.points.data() + 3 * q, point);
            if (knows_uncertainty && !std::isfinite(moved.uncertainty.data()[q])) continue;
            const int64_t before = candidates.size();
            add_candidate(candidates, point, queries.parents[static_cast<size_t>(q)]);
            if (candidates.size() == before) continue;
            candidates.inputs += q < queries.inputs;
            for (int64_t j = 0; j < k; ++j) {
                candidates.sources[static_cast<size_t>(before * k + j)] =
                    region.points[static_cast<size_t>(moved.neighbours.data()[q * k + j])];
                candidates.weights[static_cast<size_t>(before * k + j)] = moved.weights.data()[q * k + j];
            }
            if (knows_uncertainty)
                candidates.uncertainties.push_back(static_cast<float>(moved.uncertainty.data()[q] * frame.unit));
        }
    }

    /// A network that has learned from scans pulls places in holes and beyond rims back to where there are points.
    /// Those that it would pull along the surface go along the normal of the nearest point alone.
    static void keep_in_holes(const Array<float, 2>& points, const Array<float, 2>& places, View<float, 2> moved) {
        const int64_t n = points.size(0), m = places.size(0);
        Array<float, 2> normals({n, 3});
        Array<int32_t, 2> nearest({m, 1});
        geometry::estimate_normals(points.view(), normals.view(), {});
        ops::knn(ops::PointIndex(points.view()), places.view(), nearest.view(), {});
        parallel_for(m, kPartQueries, [&](int64_t begin, int64_t end) {
            for (int64_t q = begin; q < end; ++q) {
                if (nearest.data()[q] < 0) continue;
                const Vec3f place = row(places.view(), q), way = row(moved, q) - place,
                            normal = row(normals.view(), nearest.data()[q]), across = dot(way, normal) * normal;
                if (length(way - across) <= kPulled) continue;
                const Vec3f to = place + across;
                for (int c = 0; c < 3; ++c) moved(q, c) = to[c];
            }
        });
    }

    /// Returns what the input "features" takes of points [n, 3] on the CPU, [n, channels] on the device; null where
    /// there is none. Those of the last points are kept until forget_cloud().
    const Array<float, 2>* features_of(const Array<float, 2>& points) {
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

    /// run_part(context, begin, end) for parts of m queries around n points. On the CPU a thread has a part of its own,
    /// which stays in its caches; a GPU has all of them at once.
    template <class RunPart>
    static void run_in_parts(NetworkRunner& runner, int64_t n, int64_t m, const RunPart& run_part) {
        const int64_t workers = runner.device().type == DeviceType::cpu ? threads() : 1;
        const int64_t part =
            workers == 1 && runner.device().type != DeviceType::cpu ? m : std::max(kPartQueries, n / 4);
        const std::span<engine::Context> contexts = runner.reserve(std::max(n, std::min(m, part)), workers);
        std::atomic<int64_t> next{0};
        parallel_for(std::min(workers, static_cast<int64_t>(contexts.size())), 1, [&](int64_t first, int64_t last) {
            for (int64_t worker = first; worker < last; ++worker)
                for (int64_t begin; (begin = next.fetch_add(part)) < m;)
                    run_part(contexts[static_cast<size_t>(worker)], begin, std::min(begin + part, m));
        });
    }

    /// By a network that moves them.
    MovedPlaces places_by_network(NetworkRunner& runner, const Array<float, 2>& points, const Array<float, 2>& places,
                                  int64_t k) {
        const int64_t n = points.size(0), m = places.size(0);
        const Array<float, 2>* features = features_of(points);
        const Device device = runner.device();
        const Array<float, 2> points_there = points.to(device), places_there = places.to(device);
        MovedPlaces moved;
        moved.points = Array<float, 2>({m, 3}, device);
        if (k > 0) {
            moved.weights = Array<float, 2>({m * k, 1}, device);
            moved.neighbours = Array<int32_t, 2>({m, k}, device);
        }
        const bool knows_uncertainty = find_type(runner.program(), runner.program().outputs, "uncertainty") != nullptr;
        if (knows_uncertainty) moved.uncertainty = Array<float, 2>({m, 1}, device);
        const auto run_part = [&](engine::Context& context, int64_t begin, int64_t end) {
            std::vector<engine::Input> inputs = {{"points", points_there.view()},
                                                 {"queries", places_there.view().slice(begin, end)}};
            if (features) inputs.push_back({"features", features->view()});
            std::vector<engine::Output> outputs = {{"upsampled", moved.points.view().slice(begin, end)}};
            if (k > 0) {
                outputs.push_back({"weights", moved.weights.view().slice(begin * k, end * k)});
                outputs.push_back({"neighbours", {}, moved.neighbours.view().slice(begin, end)});
            }
            if (knows_uncertainty) outputs.push_back({"uncertainty", moved.uncertainty.view().slice(begin, end)});
            context.run({ops::Batch::single(n), ops::Batch::single(end - begin)}, inputs, outputs);
        };
        run_in_parts(runner, n, m, run_part);
        moved.points = moved.points.to(Device{});
        if (k > 0) moved.weights = moved.weights.to(Device{}), moved.neighbours = moved.neighbours.to(Device{});
        moved.uncertainty = moved.uncertainty.to(Device{});
        return moved;
    }

    /// Down the distances of a network; what is made of which points goes by how near they are.
    MovedPlaces places_by_descent(const Array<float, 2>& points, Array<float, 2> places, int64_t k) {
        const int64_t n = points.size(0), m = places.size(0);
        const Array<float, 2>* features = features_of(points);
        engine::Context& context = runner_.reserve(std::max(n, m));
        const Device device = runner_.device();
        const Array<float, 2> points_there = points.to(device);
        Array<float, 2> found({m, 1}, device);
        const std::vector<float> distances = descend(places.view(), [&](View<const float, 2> at, View<float, 1> to) {
            check_interrupted();
            Array<float, 2> here({m, 3});
            std::copy_n(at.data(), 3 * m, here.data());
            const Array<float, 2> there = here.to(device);
            std::vector<engine::Input> inputs = {{"points", points_there.view()}, {"queries", there.view()}};
            if (features) inputs.push_back({"features", features->view()});
            context.run({ops::Batch::single(n), ops::Batch::single(m)}, inputs, {{"distance", found.view()}});
            std::copy_n(found.to(Device{}).data(), m, to.data());
        });
        MovedPlaces moved;
        moved.points = std::move(places);
        moved.uncertainty = Array<float, 2>({m, 1});
        std::copy(distances.begin(), distances.end(), moved.uncertainty.data());
        if (k == 0) return moved;
        moved.weights = Array<float, 2>({m * k, 1});
        moved.neighbours = Array<int32_t, 2>({m, k});
        Array<float, 2> distances_sq({m, k});
        ops::knn(ops::PointIndex(points.view()), moved.points.view(), moved.neighbours.view(), distances_sq.view());
        for (int64_t i = 0; i < m * k; ++i)
            moved.weights.data()[i] = 1 / (std::sqrt(distances_sq.data()[i]) + kNearestDistance);
        return moved;
    }

    NetworkRunner runner_;
    std::optional<NetworkRunner> encoder_, first_step_;
    Array<float, 2> encoded_, features_;  // the last points, and what they became
    bool tells_distances_ = false;
    int64_t sources_ = 0;
};

}  // namespace

std::unique_ptr<CandidateMaker> query_maker(NetworkRunner runner, std::optional<NetworkRunner> encoder,
                                            std::optional<NetworkRunner> first_step) {
    return std::make_unique<QueryMaker>(std::move(runner), std::move(encoder), std::move(first_step));
}

}  // namespace stipple::tasks
