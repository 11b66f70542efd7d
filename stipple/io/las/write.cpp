// The writer of LAS for a whole cloud.

#include <algorithm>

#include "stipple/io/common/conversion.h"
#include "stipple/io/las.h"
#include "stipple/io/las/head.h"
#include "stipple/io/las/raw_records.h"

namespace stipple::io {

using namespace las;

namespace {

constexpr int64_t kWriteBytes = int64_t{4} << 20;

std::array<int64_t, 16> count_returns(const Plan& plan, int64_t n) {
    std::array<int64_t, 16> counts = {};
    for (const Placed& placed : plan.placed)
        if (placed.column.name == "return_number") {
            for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(placed.source->data()[i]) & 15];
            return counts;
        }
    counts[1] = n;
    return counts;
}

/// The records as they were read, perhaps on another grid.
void write_as_read(const PointCloud& cloud, const Attribute& records, ByteSink& sink, const WriteOptions& options) {
    require_records_of(cloud, records);
    const int64_t n = cloud.size(), record = records.components(), step = std::max<int64_t>(1, kWriteBytes / record);
    const Grid grid = target_grid(cloud.facts, options);
    const int format = format_of(*cloud.facts.las);
    Head head = head_as_read(cloud.facts, grid);
    Buffer chunk(std::min(n, step) * record);
    Tally tally;
    // Two passes: a sink takes the header first.
    for (const bool writing : {false, true}) {
        std::string extended;
        if (writing) {
            set_tally(head.header, tally, grid);
            extended = extended_for(cloud.facts, head.bytes() + n * record, head.header);
            sink.write(head.header);
            sink.write(head.records);
        }
        for (int64_t done = 0; done < n; done += step) {
            const int64_t count = std::min(step, n - done);
            std::memcpy(chunk.data(), records.data() + done * record, static_cast<size_t>(count * record));
            if (grid != *cloud.facts.grid) requantise(*cloud.facts.grid, grid, chunk.data(), record, count);
            if (writing)
                sink.write(chunk.data(), count * record);
            else
                tally.add(chunk.data(), count, record, format);
        }
        if (writing) sink.write(extended);
    }
}

}  // namespace

void write_las(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    std::vector<std::string> dropped;
    if (mesh.faces() > 0) dropped.push_back("faces");
    if (const Attribute* records = records_of(cloud)) {
        warn_dropped(dropped, "LAS", "", warnings);
        return write_as_read(cloud, *records, sink, options);
    }
    Tally tally;
    const Grid grid = choose_grid(cloud, options, tally.bounds, warnings);
    const Plan plan = make_plan(cloud, dropped, warnings);
    Head head = head_for(cloud, plan, grid, dropped);
    warn_dropped(dropped, "LAS", "", warnings);
    const int64_t n = cloud.size(), step = std::max<int64_t>(1, kWriteBytes / plan.record);
    tally.count = n;
    tally.returns = count_returns(plan, n);
    set_tally(head.header, tally, grid);
    const std::string extended = extended_for(cloud.facts, head.bytes() + n * plan.record, head.header);
    sink.write(head.header);
    sink.write(head.records);
    Buffer chunk(std::min(n, step) * plan.record);
    for (int64_t done = 0; done < n; done += step) {
        const int64_t count = std::min(step, n - done);
        pack(cloud, plan, grid, done, chunk.data(), count);
        sink.write(chunk.data(), count * plan.record);
    }
    sink.write(extended);
}

}  // namespace stipple::io
