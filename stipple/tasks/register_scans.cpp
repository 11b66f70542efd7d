#include "stipple/tasks/register_scans.h"

#include <algorithm>
#include <numeric>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/tasks/scans/pair_chooser.h"
#include "stipple/tasks/scans/part_merger.h"

namespace stipple::tasks {
namespace {

using geometry::SearchScan;
using Scans = std::span<const PointCloud* const>;

/// The largest of what suits each scan and the next, so that edges are measured alike.
template <class Measure>
double largest(Scans scans, const Measure& measure) {
    double most = 0;
    for (size_t i = 0; i < scans.size(); ++i) most = std::max(most, measure(*scans[i], *scans[(i + 1) % scans.size()]));
    return most;
}

/// Registrations of pairs, and the graph that they make.
class ScanGraph {
public:
    ScanGraph(Scans scans, const ScansOptions& options, const std::function<void()>& done)
        : scans_(scans),
          options_(options),
          pairwise_(options.pairs),
          done_(done),
          is_chosen_(static_cast<int64_t>(scans.size()) > options.most_scans) {
        pairwise_.initial = {};
        double& voxel = pairwise_.global.voxel;
        if (voxel == 0)
            voxel = largest(scans, [&](const PointCloud& a, const PointCloud& b) {
                return geometry::common_voxel(a, b, pairwise_.global.most_points);
            });
        for (const PointCloud* scan : scans) radii_.push_back(geometry::rms_radius(*scan));
        if (voxel > 0) prepare(voxel);
        merger_.emplace(prepared_);
    }

    std::span<const SearchScan> prepared() const { return prepared_; }
    /// Whether pairs are chosen: of many scans that have surfaces.
    bool chooses() const { return is_chosen_ && !prepared_.empty(); }

    /// Registers the pairs, several at once: each on one thread.
    void add(const std::vector<ChosenPair>& chosen) {
        constexpr size_t kAtOnce = 16;  // between two calls of `done`
        for (size_t first = 0; first < chosen.size(); first += kAtOnce) {
            const size_t count = std::min(kAtOnce, chosen.size() - first);
            std::vector<ScanPair> made(count);
            // A network answers one question at a time.
            if (pairwise_.learned)
                for (size_t i = 0; i < count; ++i) made[i] = registered(chosen[first + i]);
            else
                parallel_for(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) made[i] = registered(chosen[first + static_cast<size_t>(i)]);
                });
            for (ScanPair& pair : made) {
                if (pair.is_edge) {
                    const PoseTrust& trust = pair.registration.trust;
                    tolerance_ = std::max(tolerance_, trust.voxel);
                    const double strength = trust.confidence * static_cast<double>(trust.evidence.forth.support),
                                 radius = radii_[pair.source];
                    edges_.push_back(
                        {geometry::edge_of(pair.source, pair.target, pair.registration.found, radius, strength),
                         trust.confidence, radius});
                }
                pairs_.push_back(std::move(pair));
                if (done_) done_();
            }
            check_interrupted();
        }
    }

    /// Parts of scans that hold together, as far as edges tell by now.
    ScanParts parts() { return merger_->merge(edges_, tolerance()); }

    /// All that was registered, and poses by those edges that `counts`.
    RegisteredScans result(const std::vector<uint8_t>& counts) {
        std::vector<geometry::PoseEdge> counted;
        for (size_t e = 0; e < edges_.size(); ++e)
            if (counts[e]) counted.push_back(edges_[e].edge);
        const geometry::PoseGraphResult graph =
            geometry::optimise_poses(static_cast<int32_t>(scans_.size()), counted, {.tolerance = tolerance()});
        RegisteredScans found;
        found.tolerance = tolerance();
        found.poses = graph.poses;
        found.is_placed = graph.is_placed;
        found.iterations = graph.iterations;
        found.rms = graph.rms;
        found.all_pairs = static_cast<int64_t>(scans_.size() * (scans_.size() - 1) / 2);
        size_t edge = 0, at = 0;
        for (ScanPair& pair : pairs_) {
            if (pair.is_edge && counts[edge]) {
                pair.is_dropped = graph.edges[at].is_dropped;
                pair.residual = graph.edges[at].residual;
                ++at;
            } else if (pair.is_edge) {
                pair.is_dropped = true;
                if (graph.is_placed[pair.source] && graph.is_placed[pair.target])
                    pair.residual = off_by(edges_[edge], graph.poses[pair.source], graph.poses[pair.target]);
            }
            edge += pair.is_edge;
        }
        found.pairs = std::move(pairs_);
        return found;
    }
    size_t edges() const { return edges_.size(); }

private:
    void prepare(double voxel) {
        const double edge = largest(
            scans_, [&](const PointCloud& a, const PointCloud& b) { return geometry::judged_edge(a, b, voxel); });
        const bool own_normals = std::all_of(scans_.begin(), scans_.end(),
                                             [](const PointCloud* scan) { return geometry::has_normals(*scan); });
        std::vector<std::optional<SearchScan>> made(scans_.size());
        parallel_for(static_cast<int64_t>(scans_.size()), 1, [&](int64_t begin, int64_t end) {
            check_interrupted();
            for (int64_t i = begin; i < end; ++i)
                made[i] = geometry::search_scan(*scans_[i], voxel, edge, own_normals, pairwise_.global.feature_radii);
        });
        for (std::optional<SearchScan>& scan : made) prepared_.push_back(std::move(*scan));
    }

    ScanPair registered(const ChosenPair& chosen) const {
        ScanPair pair;
        pair.source = chosen.source;
        pair.target = chosen.target;
        pair.is_predicted = chosen.start.has_value();
        RegisterOptions options = pairwise_;
        if (chosen.start) {
            options.method = RegisterMethod::icp;
            options.initial = chosen.start;
        }
        const PointCloud &source = *scans_[pair.source], &target = *scans_[pair.target];
        pair.registration = prepared_.empty() ? register_clouds(source, target, options)
                                              : register_clouds(source, target, options,
                                                                {prepared_[pair.source], prepared_[pair.target]});
        const PoseTrust& trust = pair.registration.trust;
        pair.is_edge = pair.registration.verdict.state != geometry::RegistrationState::failed &&
                       trust.evidence.forth.support > 0 && trust.confidence >= options_.min_confidence;
        return pair;
    }

    double tolerance() const {
        if (options_.tolerance > 0) return options_.tolerance;
        if (tolerance_ == 0) return 1;  // no edges: nothing is measured
        // Long loops bend scans that are not quite rigid; what is wrong was told by whole parts before.
        constexpr double kBent = 2;
        return (is_chosen_ ? kBent : 1) * tolerance_;
    }

    Scans scans_;
    const ScansOptions& options_;
    RegisterOptions pairwise_;
    const std::function<void()>& done_;
    std::vector<double> radii_;
    std::vector<SearchScan> prepared_;  // empty where scans have no surface
    std::vector<ScanPair> pairs_;
    std::vector<SureEdge> edges_;
    std::optional<PartMerger> merger_;
    double tolerance_ = 0;
    bool is_chosen_;  // pairs are, of many scans
};

/// The scans of the part with most of them, the first where there are several.
std::vector<uint8_t> largest_part(const ScanParts& parts) {
    int32_t best = 0;
    int64_t most = 0;
    for (const int32_t part : parts.part) {
        const int64_t count = std::count(parts.part.begin(), parts.part.end(), part);
        if (count > most) most = count, best = part;
    }
    std::vector<uint8_t> is_in;
    for (const int32_t part : parts.part) is_in.push_back(part == best);
    return is_in;
}

/// The most promising pairs, and the next ones of what is not in the largest part until everything is; then those that
/// the poses predict. The edges that count.
std::vector<uint8_t> grow(ScanGraph& graph, RegisterMethod method) {
    constexpr int kFirst = 6, kNext = 4;  // pairs of each scan
    constexpr int kMost = 8;              // rounds of the latter
    constexpr int kClosing = 12;          // that close loops, of each scan
    constexpr double kOverlap = 0.3;      // of pairs that close loops
    constexpr int kClosings = 3;          // rounds of them
    const size_t n = graph.prepared().size();
    PairChooser chooser(graph.prepared(), method);
    graph.add(chooser.best_of(std::vector<uint8_t>(n, 1), {}, kFirst));
    ScanParts parts = graph.parts();
    for (int joining = 0, closing = 0; joining < kMost || closing < kClosings;) {
        std::vector<uint8_t> is_left = largest_part(parts);
        for (uint8_t& each : is_left) each = !each;
        std::vector<ChosenPair> next;
        if (joining < kMost) next = chooser.best_of(is_left, parts.part, kNext), ++joining;
        if (next.empty()) {
            joining = kMost;
            if (closing++ == kClosings) break;
            const std::vector<uint8_t> is_placed = largest_part(parts);
            next = chooser.predicted(parts.poses, is_placed, kOverlap, kClosing);
            if (next.empty()) break;
        }
        graph.add(next);
        parts = graph.parts();
    }
    std::vector<uint8_t> counts = std::move(parts.agrees);
    counts.resize(graph.edges(), 0);
    return counts;
}

void judge_scans(RegisteredScans& found) {
    const auto placed = std::count(found.is_placed.begin(), found.is_placed.end(), 1);
    const auto all = static_cast<int64_t>(found.is_placed.size());
    if (placed == all) return;
    found.verdict.state = placed < 2 ? geometry::RegistrationState::failed : geometry::RegistrationState::doubtful;
    found.verdict.reasons = {
        placed < 2 ? std::string("no two scans could be registered with confidence")
                   : fmt::format("{} of {} scans are placed: the others share too little with them", placed, all)};
}

}  // namespace

RegisteredScans register_scans(std::span<const PointCloud* const> scans, const ScansOptions& options,
                               const std::function<void()>& done) {
    STIPPLE_REQUIRE(scans.size() >= 2 && scans.size() <= 500, "{} scans: 2 to 500 can be registered", scans.size());
    STIPPLE_REQUIRE(options.min_confidence >= 0 && options.min_confidence <= 1, "a confidence is 0 to 1, not {}",
                    options.min_confidence);
    ScanGraph graph(scans, options, done);
    RegisteredScans found;
    if (!graph.chooses()) {
        std::vector<ChosenPair> all;
        for (size_t i = 1; i < scans.size(); ++i)
            for (size_t j = 0; j < i; ++j) all.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j), {}, 0});
        graph.add(all);
        found = graph.result(std::vector<uint8_t>(graph.edges(), 1));
    } else {
        found = graph.result(grow(graph, options.pairs.method));
    }
    judge_scans(found);
    return found;
}

}  // namespace stipple::tasks
