#include "stipple/engine/cpu/context.h"

#include <algorithm>

#include "stipple/core/checked.h"
#include "stipple/core/error.h"

namespace stipple::engine::cpu {
namespace {

constexpr int64_t kPieces = 8;  // of work for each thread: one that is held up gets fewer

int64_t rounded_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

struct Sizes {
    int64_t shared, local, scratch, partial, head;
};

// Threads have a part each of the local memory, of whole kLocalRows: hence the slack. Partial maxima: clouds of more
// than one piece have at most twice as many pieces as pieces fit into the batch. Local memory is that of all points of
// the largest batch, which may be one cloud; where clouds run one by one most of it is never touched.
Sizes sizes_of(const Plan& plan, const Options& options, int64_t slots) {
    const int64_t points = most_points(plan, options);
    const int64_t units = rounded_up(points, kLocalRows) / kLocalRows + slots;
    return {plan.shared_bytes, checked_mul(units, plan.local_bytes), slots * rounded_up(plan.scratch_bytes, 64),
            (2 * kPieces * slots) * plan.widest_max * static_cast<int64_t>(sizeof(float)),
            checked_mul(2 * options.max_batch, plan.head_numbers * static_cast<int64_t>(sizeof(float)))};
}

}  // namespace

int64_t context_bytes(const Plan& plan, const Options& options, int64_t threads) {
    const Sizes sizes = sizes_of(plan, options, threads);
    return sizes.shared + sizes.local + sizes.scratch + sizes.partial + sizes.head;
}

Context::Context(const Program& program, const Plan& plan, const Options& options)
    : program_(program), plan_(plan), slots_(threads()) {
    const Sizes sizes = sizes_of(plan, options, slots_);
    shared_ = Buffer(sizes.shared);
    local_ = Buffer(sizes.local);
    scratch_ = Buffer(sizes.scratch);
    partial_ = Buffer(sizes.partial);
    head_ = Buffer(sizes.head);
    places_.resize(program.values.size());
    is_needed_.resize(program.steps.size());
    partial_of_cloud_.resize(static_cast<size_t>(options.max_batch));
    trees_.resize(static_cast<size_t>(slots_));
}

void Context::run_sets(std::span<const ops::Batch* const> batches, const std::vector<View<const float, 2>>& inputs,
                       const std::vector<View<float, 2>>& outputs, Stream) {
    clouds_ = batches[0]->clouds();
    if (clouds_ == 0) return;
    batches_ = batches;
    workers_ = std::min<int64_t>(threads(), slots_);
    by_cloud_ = true;
    for (Tree& tree : trees_) tree.index.reset();  // of the run before, of other numbers
    slot_points_ = most_rows_ = 0;
    for (size_t set = 0; set < batches.size(); ++set) {
        const ops::Batch& batch = *batches[set];
        const int64_t neighbours = plan_.most_neighbours[set];
        for (int64_t cloud = 0; neighbours > 0 && cloud < clouds_; ++cloud)
            STIPPLE_REQUIRE(batch.size(cloud) >= neighbours, "cloud {} has {} points; {} needs {} neighbours", cloud,
                            batch.size(cloud), program_.name, neighbours);
        // Clouds one after the other leave the caches warm; but a few clouds, or one that is much larger than the
        // others, would leave threads without work.
        by_cloud_ = by_cloud_ && (workers_ == 1 || batch.largest() * 2 * workers_ <= batch.rows());
        slot_points_ = std::max(slot_points_, rounded_up(batch.largest(), kLocalRows));
        most_rows_ = std::max(most_rows_, batch.rows());
    }
    place_values(inputs, outputs);
    mark_needed(outputs);
    for (const Group& group : plan_.groups) run_group(group);
    copy_outputs(outputs);
}

void Context::place_values(const std::vector<View<const float, 2>>& inputs,
                           const std::vector<View<float, 2>>& outputs) {
    const int64_t units = by_cloud_ ? slot_points_ / kLocalRows : rounded_up(most_rows_, kLocalRows) / kLocalRows;
    for (size_t v = 0; v < places_.size(); ++v) {
        const Home& home = plan_.homes[v];
        std::byte* data = nullptr;
        if (home.kind == Home::shared) data = shared_.data() + home.offset;
        if (home.kind == Home::local) data = local_.data() + units * home.offset;
        places_[v] = {reinterpret_cast<float*>(data), home.channels};
    }
    // The first of several outputs of one value is written in place; an input is never written.
    for (size_t i = outputs.size(); i-- > 0;) {
        const auto v = static_cast<size_t>(program_.outputs[i].value);
        const bool is_fit = !plan_.homes[v].is_index || outputs[i].stride(0) == plan_.homes[v].channels;
        if (outputs[i].data() != nullptr && is_fit) places_[v] = {outputs[i].data(), outputs[i].stride(0)};
    }
    for (size_t i = 0; i < inputs.size(); ++i)
        places_[static_cast<size_t>(program_.inputs[i].value)] = {const_cast<float*>(inputs[i].data()),
                                                                  inputs[i].stride(0)};
}

void Context::mark_needed(const std::vector<View<float, 2>>& outputs) {
    // Backwards: a step is needed for an output that is wanted or for a step that is needed.
    for (size_t s = program_.steps.size(); s-- > 0;) {
        const Value value = program_.steps[s].output;
        bool needed = false;
        for (size_t i = 0; i < outputs.size(); ++i)
            needed = needed || (outputs[i].data() != nullptr && program_.outputs[i].value == value);
        for (const size_t reader : plan_.steps[s].readers) needed = needed || is_needed_[reader];
        is_needed_[s] = needed;
    }
}

void Context::copy_outputs(const std::vector<View<float, 2>>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
        const Place& place = places_[static_cast<size_t>(program_.outputs[i].value)];
        if (outputs[i].data() == nullptr || outputs[i].data() == place.data) continue;
        const RowSource from{{place.data, place.stride, Access::row, 1, nullptr}};
        copy_rows(from, outputs[i].size(1), {outputs[i].data(), outputs[i].stride(0)}, 0, outputs[i].size(0));
    }
}

int64_t Context::rows_of(Value value, int64_t cloud) const {
    const Home& home = plan_.homes[static_cast<size_t>(value)];
    return home.per_cloud ? 1 : batch(home.set).size(cloud) * home.width;
}

float* Context::at(Value value, int64_t cloud, int64_t slot) const {
    const Home& home = plan_.homes[static_cast<size_t>(value)];
    const Place& place = places_[static_cast<size_t>(value)];
    if (home.per_cloud) return place.data + cloud * place.stride;
    if (home.kind == Home::local && by_cloud_)
        return place.data +
               slot * (slot_points_ / kLocalRows) * (plan_.local_bytes / static_cast<int64_t>(sizeof(float)));
    return place.data + batch(home.set).begin(cloud) * home.width * place.stride;
}

RowSource Context::source(const Source& from, int64_t width, int64_t cloud, int64_t slot) const {
    RowSource source;
    source.data = at(from.value, cloud, slot);
    source.stride = places_[static_cast<size_t>(from.value)].stride;
    source.access = from.access;
    source.width = width;
    if (from.access == Access::neighbour)
        source.neighbours = reinterpret_cast<const int32_t*>(at(from.indices, cloud, slot));
    return source;
}

int64_t Context::piece_rows(const Step& step, const Task& task, int64_t scale, int64_t unit) const {
    const ops::Batch& points = batch(step.set);
    if (task.worker.alone || workers_ <= 1) return std::max<int64_t>(1, points.largest() * scale);
    const int64_t pieces = kPieces * workers_;
    return rounded_up(std::max<int64_t>(1, (points.rows() * scale + pieces - 1) / pieces), unit);
}

void Context::run_group(const Group& group) {
    const int64_t clouds = clouds_;
    if (!by_cloud_ || group.is_head) {
        for (size_t s = group.begin; s < group.end; ++s)
            if (is_needed_[s]) run_or_time_step(s, {0, clouds, {}});
        return;
    }
    for_items(clouds, {}, [&](int64_t slot, int64_t cloud) {
        for (size_t s = group.begin; s < group.end; ++s)
            if (is_needed_[s]) run_or_time_step(s, {cloud, cloud + 1, {slot, true}});
    });
}

}  // namespace stipple::engine::cpu
