#include "stipple/tasks/network_runner.h"

#include <algorithm>

#include "stipple/core/number_text.h"

namespace stipple::tasks {

const Fields& precision_fields() {
    static const Fields fields = {field<&RunnerOptions::precision>(
                                      "precision", "fp32, tf32, fp16, bf16, int8, fp8; else fp32, or an engine's own")
                                      .words(engine::kPrecisionWords)};
    return fields;
}

NetworkRunner::NetworkRunner(ModelOrEngine source, const RunnerOptions& options)
    : source_(std::move(source)),
      precision_given_(options.precision.has_value()),
      max_batch_(options.batch),
      profile_(options.profile) {
    STIPPLE_REQUIRE(options.batch >= 1 && options.points >= 1, "{} clouds of {} points make no batch", options.batch,
                    options.points);
    options_.device = device_for(source_, options.device);
    options_.precision = options.precision.value_or(engine::Precision::fp32);
    options_.max_batch = options.batch;
    options_.max_points = options.points;
    if (source_.file) max_batch_ = std::min(max_batch_, source_.file->options.max_batch);
    compile();
}

int64_t NetworkRunner::max_points() const {
    return source_.file ? source_.file->options.max_batch * source_.file->options.max_points : INT64_MAX;
}

std::span<engine::Context> NetworkRunner::reserve(int64_t points, int64_t count) {
    STIPPLE_REQUIRE(points <= max_points(), "{} points, the engine was built for {}", grouped(points),
                    grouped(max_points()));
    const int64_t needed = (points + options_.max_batch - 1) / options_.max_batch;
    if (source_.model && needed > options_.max_points) {
        options_.max_points = std::max(needed, 2 * options_.max_points);
        compile();
    }
    while (!profile_ && static_cast<int64_t>(contexts_.size()) < count) add_context();
    return contexts_;
}

void NetworkRunner::compile() {
    contexts_.clear();  // before what they refer to
    engine_.reset();
    engine_.emplace(tasks::compile(source_, options_, precision_given_));
    add_context();
}

void NetworkRunner::add_context() {
    contexts_.emplace_back(*engine_);
    contexts_.back().profile_into(profile_);
}

}  // namespace stipple::tasks
