#pragma once
// How a program is laid out on the CPU, decided once for an engine: packed chains, groups of steps, memory.
//
// Steps are grouped. A chain with one row a cloud (a head) is a group of its own and runs on all clouds at once: its
// weights are large and are read once. The steps between two such chains are a group that may run cloud by cloud, each
// cloud on one thread, so that what a step leaves in the caches is there for the next one.

#include <memory>
#include <vector>

#include "stipple/engine/cpu/chain/chain.h"
#include "stipple/engine/engine.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/program.h"

namespace stipple::engine::cpu {

/// Most layers of a chain, and most parts and addends of its first layer.
constexpr size_t kMostSources = 64;

/// Some output channels of one layer.
struct LayerSlice {
    Chain chain;
    int64_t begin = 0;  // its first channel
};

/// A layer of a chain with one row a cloud, cut by output channels: one row is work for all threads too.
struct HeadLayer {
    int64_t in = 0, out = 0;
    std::vector<LayerSlice> slices;
};

struct StepPlan {
    const StepType* type = nullptr;
    std::unique_ptr<const Chain> chain;  // of a chain that is no head
    std::vector<HeadLayer> head;
    std::vector<size_t> readers;  // steps that read its output
};

struct Group {
    size_t begin = 0, end = 0;  // steps
    bool is_head = false;
};

/// Where a value lives.
struct Home {
    enum Kind {
        caller,  // an input, or an output that no step reads
        shared,  // at `offset` of the block: clouds * stride or points * width * stride numbers
        local,   // needed by one group only: at `offset` for every kLocalRows points of the rows in work
    } kind = shared;
    int64_t offset = 0;
    bool per_cloud = false;
    int64_t width = 1;     // rows of a point
    int64_t channels = 0;  // numbers of a row
    int32_t set = 0;       // the point set of its rows
    bool is_index = false;
};

/// Local values are planned for so many points and scaled by the number there is: 256-byte steps are then no waste.
constexpr int64_t kLocalRows = 16;

struct Plan {
    std::vector<StepPlan> steps;
    std::vector<Group> groups;
    std::vector<Home> homes;    // of each value
    int64_t shared_bytes = 0;   // of the largest batch
    int64_t local_bytes = 0;    // of kLocalRows points, the hungriest group's
    int64_t head_numbers = 0;   // of the widest row between two layers of a head
    int64_t scratch_bytes = 0;  // of one thread
    int64_t widest_max = 0;     // channels of the widest chain that ends in a maximum over points
    std::vector<PointSet> sets;
    std::vector<int64_t> most_neighbours;  // by point set, of a knn step: a cloud must have as many points
    int64_t weight_bytes = 0;
};

/// The most points of all clouds in any set.
int64_t most_points(const Plan& plan, const Options& options);

Plan make_plan(const Program& program, const Options& options);

}  // namespace stipple::engine::cpu
