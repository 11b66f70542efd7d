#include <algorithm>

#include "stipple/io/common/conversion.h"
#include "stipple/io/las.h"
#include "stipple/io/las/raw_records.h"
#include "stipple/io/las/stream.h"

namespace stipple::io::las {

bool StreamWriter::takes(const PointCloud& chunk) {
    return chunk.facts.las && chunk.facts.grid;
}

StreamWriter::StreamWriter(RewritableSink& sink, const WriteOptions& options, Warnings& warnings)
    : sink_(sink), options_(options), warnings_(warnings) {}

void StreamWriter::begin(const PointCloud& chunk) {
    began_ = true;
    raw_ = records_of(chunk);
    facts_ = chunk.facts;
    grid_ = target_grid(chunk.facts, options_);
    if (raw_) {
        head_ = head_as_read(chunk.facts, grid_);
        format_ = format_of(*chunk.facts.las);
        record_ = record_of(*chunk.facts.las);
    } else {
        std::vector<std::string> dropped;
        plan_ = make_plan(chunk, dropped, warnings_);
        head_ = head_for(chunk, plan_, grid_, dropped);
        warn_dropped(dropped, "LAS", "", warnings_);
        format_ = plan_.format;
        record_ = plan_.record;
    }
    sink_.write(head_.header);
    sink_.write(head_.records);
}

void StreamWriter::write_records(const std::byte* records, int64_t n) {
    tally_.add(records, n, record_, format_);
    if (head_.header[at::kVersion + 1] < 4 && tally_.count > std::numeric_limits<uint32_t>::max())
        throw Error(
            ErrorCode::bad_argument,
            fmt::format("LAS 1.{} counts up to 4294967295 points", static_cast<int>(head_.header[at::kVersion + 1])),
            "write several files, or LAS 1.4");
    sink_.write(records, n * record_);
}

void StreamWriter::write(const PointCloud& chunk) {
    if (!began_) begin(chunk);
    facts_.las = chunk.facts.las;  // the last chunk of a pipe knows the extended records
    const int64_t n = chunk.size();
    const Attribute* records = records_of(chunk);
    STIPPLE_REQUIRE(raw_ == (records != nullptr), "chunks of one LAS file with and without {}", kLasRecord);
    if (n == 0) return;
    if (raw_) {
        require_records_of(chunk, *records);
        STIPPLE_REQUIRE(records->components() == record_, "records of {} bytes, not {}", records->components(),
                        record_);
        const Grid& stored = *chunk.facts.grid;
        if (stored == grid_) return write_records(records->data(), n);
        if (bytes_.bytes() < n * record_) bytes_ = Buffer(n * record_);
        std::memcpy(bytes_.data(), records->data(), static_cast<size_t>(n * record_));
        requantise(stored, grid_, bytes_.data(), record_, n);
        return write_records(bytes_.data(), n);
    }
    require_finite(chunk);
    require_fits(chunk, grid_);
    std::vector<std::string> dropped;
    Warnings said;  // by begin()
    const Plan plan = make_plan(chunk, dropped, said);
    STIPPLE_REQUIRE(plan.same_layout(plan_),
                    "attributes of a chunk do not fit the fields that the first chunk chose for point format {}",
                    plan_.format);
    if (bytes_.bytes() < n * record_) bytes_ = Buffer(n * record_);
    pack(chunk, plan, grid_, 0, bytes_.data(), n);
    write_records(bytes_.data(), n);
}

int64_t StreamWriter::finish() {
    STIPPLE_ASSERT(began_);
    set_tally(head_.header, tally_, grid_);
    const std::string extended = extended_for(facts_, head_.bytes() + tally_.count * record_, head_.header);
    sink_.write(extended);
    sink_.rewrite(0, head_.header.data(), static_cast<int64_t>(head_.header.size()));
    return tally_.count;
}

}  // namespace stipple::io::las
