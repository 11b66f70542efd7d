#include "tests/support/laz_writer.h"

#include <memory>
#include <stdexcept>

#include "tests/support/laz_chunks.h"

namespace stipple::test {
namespace {

template <class T>
T laz_get(const std::vector<std::byte>& bytes, size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

template <class T>
void laz_put(std::vector<std::byte>& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
void laz_append(std::vector<std::byte>& bytes, T value) {
    bytes.resize(bytes.size() + sizeof value);
    laz_put(bytes, bytes.size() - sizeof value, value);
}

struct LazItem {
    int type;
    size_t bytes;
};

std::vector<LazItem> laz_items(int format, size_t record) {
    std::vector<LazItem> items;
    if (format >= 6) {
        items = {{10, 30}};
        if (format == 7) items.push_back({11, 6});
        if (format == 8) items.push_back({12, 8});
    } else {
        items = {{6, 20}};
        if (format == 1 || format == 3) items.push_back({7, 8});
        if (format == 2 || format == 3) items.push_back({8, 6});
    }
    size_t sum = 0;
    for (const LazItem& item : items) sum += item.bytes;
    if (record > sum) items.push_back({format >= 6 ? 14 : 0, record - sum});
    return items;
}

std::vector<std::byte> laz_record(const std::vector<LazItem>& items, bool layered, const LazOptions& options) {
    std::vector<std::byte> vlr(54);
    std::memcpy(vlr.data() + 2, "laszip encoded", 14);
    laz_put<uint16_t>(vlr, 18, 22204);
    laz_put<uint16_t>(vlr, 20, static_cast<uint16_t>(34 + 6 * items.size()));
    laz_append<uint16_t>(vlr, layered ? 3 : 2);
    laz_append<uint16_t>(vlr, 0);
    laz_append<uint8_t>(vlr, layered ? 3 : 2);
    laz_append<uint8_t>(vlr, 2);
    laz_append<uint16_t>(vlr, 0);
    laz_append<uint32_t>(vlr, 0);
    laz_append<uint32_t>(vlr, options.chunks.empty() ? static_cast<uint32_t>(options.chunk_points) : 0xffffffffu);
    laz_append<int64_t>(vlr, -1);
    laz_append<int64_t>(vlr, -1);
    laz_append<uint16_t>(vlr, static_cast<uint16_t>(items.size()));
    for (const LazItem& item : items) {
        laz_append<uint16_t>(vlr, static_cast<uint16_t>(item.type));
        laz_append<uint16_t>(vlr, static_cast<uint16_t>(item.bytes));
        laz_append<uint16_t>(vlr, layered ? 3 : 2);
    }
    return vlr;
}

}  // namespace

std::vector<std::byte> to_laz(const std::vector<std::byte>& las, const LazOptions& options) {
    const size_t header = laz_get<uint16_t>(las, 94), points = laz_get<uint32_t>(las, 96);
    const size_t record = laz_get<uint16_t>(las, 105);
    const int format = laz_get<uint8_t>(las, 104), minor = laz_get<uint8_t>(las, 25);
    if (format > 8 || format == 4 || format == 5) throw std::runtime_error("to_laz: point format");
    auto count = static_cast<int64_t>(laz_get<uint32_t>(las, 107));
    if (minor == 4 && laz_get<uint64_t>(las, 247) > 0) count = static_cast<int64_t>(laz_get<uint64_t>(las, 247));
    const std::vector<LazItem> items = laz_items(format, record);

    const std::vector<std::byte> vlr = laz_record(items, format >= 6, options);
    // Behind the header, where no gap before the points can lie between records.
    std::vector<std::byte> laz(las.begin(), las.begin() + static_cast<int64_t>(header));
    laz.insert(laz.end(), vlr.begin(), vlr.end());
    laz.insert(laz.end(), las.begin() + static_cast<int64_t>(header), las.begin() + static_cast<int64_t>(points));
    laz_put<uint32_t>(laz, 96, static_cast<uint32_t>(laz.size()));
    laz_put<uint32_t>(laz, 100, laz_get<uint32_t>(las, 100) + 1);
    laz_put<uint8_t>(laz, 104, static_cast<uint8_t>(format | 0x80));

    const size_t place = laz.size();
    laz_append<int64_t>(laz, -1);
    LazEncoder table;
    LazIntegers numbers(32, 2);
    int32_t last_points = 0, last_bytes = 0;
    uint32_t chunks = 0;
    for (int64_t done = 0; done < count; ++chunks) {
        const int64_t n =
            options.chunks.empty() ? std::min(options.chunk_points, count - done) : options.chunks.at(chunks);
        const std::byte* from = las.data() + points + static_cast<size_t>(done) * record;
        const std::vector<std::byte> chunk = format >= 6
                                                 ? laz_layered_chunk(from, static_cast<size_t>(n), record, format)
                                                 : laz_pointwise_chunk(from, static_cast<size_t>(n), record, format);
        laz.insert(laz.end(), chunk.begin(), chunk.end());
        if (!options.chunks.empty()) numbers.encode(table, last_points, static_cast<int32_t>(n), 0);
        numbers.encode(table, last_bytes, static_cast<int32_t>(chunk.size()), 1);
        last_points = static_cast<int32_t>(n);
        last_bytes = static_cast<int32_t>(chunk.size());
        done += n;
    }
    const auto table_at = static_cast<int64_t>(laz.size());
    if (options.table) {
        laz_append<uint32_t>(laz, 0);
        laz_append<uint32_t>(laz, chunks);
        if (chunks > 0)
            for (const std::byte byte : table.finish()) laz.push_back(byte);
        if (options.place_at_end)
            laz_append<int64_t>(laz, table_at);
        else
            laz_put<int64_t>(laz, place, table_at);
    }
    if (minor == 4 && laz_get<uint32_t>(las, 243) > 0) {
        const auto extended = laz_get<uint64_t>(las, 235);
        laz_put<uint64_t>(laz, 235, laz.size());
        laz.insert(laz.end(), las.begin() + static_cast<int64_t>(extended), las.end());
    }
    return laz;
}

}  // namespace stipple::test
