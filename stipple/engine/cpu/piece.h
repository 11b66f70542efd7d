#pragma once
// A piece of a step on one cloud, as the kinds of steps (engine/kinds) see it. Made once for thousands of numbers: what
// it looks up costs nothing beside them.

#include "stipple/engine/cpu/context.h"

namespace stipple::engine::cpu {

struct Piece {
    const Context& context;
    const Step& step;
    int64_t width = 1;  // rows of a point: those of the step's rows, or of the first input where points are cut
    int64_t cloud = 0, slot = 0;
    int64_t begin = 0, end = 0;  // what the step's Cut counts

    RowSource input(size_t i) const { return context.source(step.inputs[i], width, cloud, slot); }
    int64_t channels(size_t i) const { return context.channels_of(step.inputs[i].value); }
    /// Rows of an input in this cloud.
    int64_t rows(size_t i) const { return context.rows_of(step.inputs[i].value, cloud); }
    /// The first input as the neighbours see it that the second names.
    RowSource neighbours() const {
        RowSource x = input(0);
        x.access = Access::neighbour;
        x.neighbours = reinterpret_cast<const int32_t*>(context.at(step.inputs[1].value, cloud, slot));
        return x;
    }
    /// Of this cloud in the step's point set.
    int64_t points() const { return context.batch(step.set).size(cloud); }

    Rows out() const { return {context.at(step.output, cloud, slot), context.stride_of(step.output)}; }
    int64_t out_channels() const { return context.channels_of(step.output); }
};

}  // namespace stipple::engine::cpu
