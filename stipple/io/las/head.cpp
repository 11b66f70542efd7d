#include "stipple/io/las/head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "stipple/core/parallel.h"

namespace stipple::io::las {
namespace {

constexpr int64_t kTallyGrain = int64_t{1} << 14;

template <class T>
void put(std::string& to, int64_t offset, T value) {
    std::memcpy(to.data() + offset, &value, sizeof value);
}

template <class T>
T get(const std::string& from, int64_t offset) {
    return number_at<T>(reinterpret_cast<const std::byte*>(from.data()), offset);
}

std::string user_of(const std::string& raw) {
    return text_at(reinterpret_cast<const std::byte*>(raw.data()), 2, 16);
}

uint16_t id_of(const std::string& raw) {
    return get<uint16_t>(raw, 18);
}

std::string vlr(std::string_view user, uint16_t id, std::string_view description, const std::string& payload) {
    std::string out(kVlrHeader, '\0');
    std::copy(user.begin(), user.end(), out.begin() + 2);
    put<uint16_t>(out, 18, id);
    put<uint16_t>(out, 20, static_cast<uint16_t>(payload.size()));
    std::copy(description.begin(), description.end(), out.begin() + 22);
    return out + payload;
}

/// The first minor version that has the point format.
int least_minor(int format) {
    return format >= 6 ? 4 : format >= 4 ? 3 : format >= 2 ? 2 : 0;
}

/// Whether the records of a coordinate system that the file had may stay as they are.
bool keeps_projection(const FileFacts& facts, int format) {
    return facts.las && !facts.coordinate_system.empty() && (format_of(*facts.las) >= 6) == (format >= 6);
}

bool has_projection(const LasFacts& las) {
    const auto is_projection = [](const std::string& raw) { return user_of(raw) == kProjectionUser; };
    return std::any_of(las.records.begin(), las.records.end(), is_projection) ||
           std::any_of(las.extended.begin(), las.extended.end(), is_projection);
}

/// The records of the coordinate system that the point format may have; see las.h.
std::vector<const FileFacts::Record*> projection_records(const FileFacts& facts, int format) {
    std::vector<const FileFacts::Record*> records;
    for (const FileFacts::Record& record : facts.coordinate_system) {
        const bool fits = record.owner == kProjectionUser && record.description.size() <= 32 &&
                          record.bytes.size() <= std::numeric_limits<uint16_t>::max();
        if (fits && (record.id == kWktRecord) == (format >= 6)) records.push_back(&record);
    }
    return records;
}

/// The header of the file that the points come from where its version has the format, else a new one with its facts.
std::string base_header(const FileFacts& facts, int format) {
    const LasFacts* las = facts.las.get();
    if (las && minor_of(*las) >= least_minor(format)) return las->header;
    const int64_t size = format >= 6 ? kHeader14 : kHeader12;
    std::string h(static_cast<size_t>(size), '\0');
    h.replace(0, 4, "LASF");
    h.replace(at::kSystem, 5, "OTHER");
    if (las) {
        h.replace(at::kSystem, 32, las->header, at::kSystem, 32);
        h.replace(at::kDate, 4, las->header, at::kDate, 4);
        if (minor_of(*las) >= 1) h.replace(at::kSource, 2, las->header, at::kSource, 2);
        if (minor_of(*las) >= 2) h.replace(at::kGlobalEncoding, 2, las->header, at::kGlobalEncoding, 2);
        h.replace(at::kGuid, 16, las->header, at::kGuid, 16);
    }
    put<uint8_t>(h, at::kVersion, 1);
    put<uint8_t>(h, at::kVersion + 1, format >= 6 ? 4 : 2);
    put<uint16_t>(h, at::kHeaderSize, static_cast<uint16_t>(size));
    // The standard asks for the WKT bit with the wide formats.
    const int encoding = get<uint16_t>(h, at::kGlobalEncoding);
    put<uint16_t>(h, at::kGlobalEncoding, static_cast<uint16_t>(format >= 6 ? encoding | kWkt : encoding & ~kWkt));
    return h;
}

void set_layout(Head& head, const FileFacts& facts, uint32_t records, int format, int64_t record, const Grid& grid) {
    std::string& h = head.header;
    if (get<uint8_t>(h, at::kVersion + 1) >= 2) {
        int encoding = get<uint16_t>(h, at::kGlobalEncoding) & ~(kAdjustedTime | kSyntheticReturns);
        if (facts.time_type == TimeType::gps_adjusted_standard) encoding |= kAdjustedTime;
        if (facts.synthetic_returns) encoding |= kSyntheticReturns;
        if (!has_wave_packets(format)) encoding &= ~(kWavesInside | kWavesOutside);
        put<uint16_t>(h, at::kGlobalEncoding, static_cast<uint16_t>(encoding));
    }
    h.replace(at::kSoftware, 32, std::string(32, '\0').replace(0, 7, "stipple"));
    put<uint32_t>(h, at::kPoints, static_cast<uint32_t>(head.bytes()));
    put<uint32_t>(h, at::kVlrs, records);
    put<uint8_t>(h, at::kFormat, static_cast<uint8_t>(format));
    put<uint16_t>(h, at::kRecordLength, static_cast<uint16_t>(record));
    for (size_t a = 0; a < 3; ++a) {
        put<double>(h, at::kScale + 8 * static_cast<int64_t>(a), grid.scale[a]);
        put<double>(h, at::kOffset + 8 * static_cast<int64_t>(a), grid.offset[a]);
    }
}

}  // namespace

void Tally::add(const std::byte* records, int64_t n, int64_t record_bytes, int format) {
    count += n;
    std::mutex mutex;
    const int mask = format >= 6 ? 15 : 7;
    parallel_for(n, kTallyGrain, [&](int64_t begin, int64_t end) {
        IntBounds part;
        std::array<int64_t, 16> seen = {};
        for (int64_t i = begin; i < end; ++i) {
            const std::byte* record = records + i * record_bytes;
            for (size_t a = 0; a < 3; ++a) {
                const auto value = number_at<int32_t>(record, 4 * static_cast<int64_t>(a));
                part.min[a] = std::min(part.min[a], value);
                part.max[a] = std::max(part.max[a], value);
            }
            ++seen[static_cast<size_t>(static_cast<int>(record[14]) & mask)];
        }
        const std::lock_guard lock(mutex);  // minima, maxima and whole sums do not depend on the order
        bounds.add(part);
        for (size_t r = 0; r < seen.size(); ++r) returns[r] += seen[r];
    });
}

int format_of(const LasFacts& las) {
    return get<uint8_t>(las.header, at::kFormat);
}

int minor_of(const LasFacts& las) {
    return get<uint8_t>(las.header, at::kVersion + 1);
}

int64_t record_of(const LasFacts& las) {
    return get<uint16_t>(las.header, at::kRecordLength);
}

bool needs_wkt(const FileFacts& facts) {
    const std::vector<FileFacts::Record>& records = facts.coordinate_system;
    return !records.empty() && std::all_of(records.begin(), records.end(),
                                           [](const FileFacts::Record& record) { return record.id == kWktRecord; });
}

Head head_for(const PointCloud& cloud, const Plan& plan, const Grid& grid, std::vector<std::string>& dropped) {
    const FileFacts& facts = cloud.facts;
    Head head{base_header(facts, plan.format), {}};
    uint32_t count = 0;
    const auto add = [&](const std::string& record) {
        head.records += record;
        ++count;
    };
    bool own = !facts.las || !plan.plain;
    const bool as_it_was = keeps_projection(facts, plan.format) && has_projection(*facts.las);
    if (!plan.extra.empty()) add(vlr("LASF_Spec", kExtraRecord, "Extra Bytes Record", extra_descriptors(plan)));
    if (facts.las)
        for (const std::string& raw : facts.las->records) {
            const std::string user = user_of(raw);
            const bool ours = user == kOwnUser && id_of(raw) == kOwnRecord;
            own = own || ours;
            if (ours || (user == "LASF_Spec" && id_of(raw) == kExtraRecord)) continue;
            if (user == kProjectionUser && !as_it_was) continue;
            add(raw);
        }
    if (!as_it_was) {
        const auto records = projection_records(facts, plan.format);
        for (const FileFacts::Record* record : records)
            add(vlr(record->owner, record->id, record->description, record->bytes));
        if (records.empty() && !facts.coordinate_system.empty())
            dropped.push_back(fmt::format("a coordinate system in {} with point format {}",
                                          plan.format >= 6 ? "GeoTIFF keys" : "WKT", plan.format));
    }
    if (own)
        add(vlr(kOwnUser, kOwnRecord, "origin and attributes",
                std::string(reinterpret_cast<const char*>(cloud.origin.data()), 24) + plan.own));
    if (facts.las) head.records += facts.las->gap;
    set_layout(head, facts, count, plan.format, plan.record, grid);
    return head;
}

Head head_as_read(const FileFacts& facts, const Grid& grid) {
    const LasFacts& las = *facts.las;
    Head head{las.header, {}};
    uint32_t count = 0;
    for (const std::string& raw : las.records) {
        if (facts.coordinate_system.empty() && user_of(raw) == kProjectionUser) continue;
        head.records += raw;
        ++count;
    }
    head.records += las.gap;
    set_layout(head, facts, count, format_of(las), record_of(las), grid);
    return head;
}

void set_tally(std::string& h, const Tally& tally, const Grid& grid) {
    const int format = get<uint8_t>(h, at::kFormat);
    const bool legacy = format < 6 && tally.count <= std::numeric_limits<uint32_t>::max();
    put<uint32_t>(h, at::kLegacyCount, legacy ? static_cast<uint32_t>(tally.count) : 0);
    for (int64_t r = 1; r <= 5; ++r)
        put<uint32_t>(h, at::kLegacyReturns + 4 * (r - 1),
                      legacy ? static_cast<uint32_t>(tally.returns[static_cast<size_t>(r)]) : 0);
    if (get<uint8_t>(h, at::kVersion + 1) == 4) {
        put<uint64_t>(h, at::kCount, static_cast<uint64_t>(tally.count));
        for (int64_t r = 1; r <= 15; ++r)
            put<uint64_t>(h, at::kReturns + 8 * (r - 1), static_cast<uint64_t>(tally.returns[static_cast<size_t>(r)]));
    }
    for (size_t a = 0; a < 3; ++a) {
        const int64_t at = at::kBounds + 16 * static_cast<int64_t>(a);
        double one = grid.offset[a], two = grid.offset[a];
        if (tally.count > 0) {
            one += tally.bounds.min[a] * grid.scale[a];
            two += tally.bounds.max[a] * grid.scale[a];
        }
        const auto set = [&](int64_t place, double value) {
            // A bound that only differs in its last bits was computed in another order: it is right as it is.
            if (!(std::abs(get<double>(h, place) - value) <= 1e-3 * std::abs(grid.scale[a]))) put(h, place, value);
        };
        set(at, std::max(one, two));
        set(at + 8, std::min(one, two));
    }
}

std::string extended_for(const FileFacts& facts, int64_t end, std::string& h) {
    const int minor = get<uint8_t>(h, at::kVersion + 1);
    std::string bytes;
    uint32_t count = 0;
    uint64_t waves = 0;
    if (facts.las && minor == 4) {
        const bool projection = keeps_projection(facts, get<uint8_t>(h, at::kFormat));
        for (const std::string& raw : facts.las->extended) {
            if (!projection && user_of(raw) == kProjectionUser) continue;
            if (user_of(raw) == "LASF_Spec" && id_of(raw) == kWaveRecord)
                waves = static_cast<uint64_t>(end) + bytes.size();
            bytes += raw;
            ++count;
        }
    }
    if (minor >= 3) put<uint64_t>(h, at::kWaves, waves);
    if (minor == 4) {
        put<uint64_t>(h, at::kFirstEvlr, count > 0 ? static_cast<uint64_t>(end) : 0);
        put<uint32_t>(h, at::kEvlrs, count);
    }
    return bytes;
}

}  // namespace stipple::io::las
