#include "tests/support/laz_chunks.h"

#include <cstdlib>

namespace stipple::test {
namespace {

using io::laz::RunningMedian;

constexpr size_t kReturns10[8][8] = {
    {15, 14, 13, 12, 11, 10, 9, 8},  {14, 0, 1, 3, 6, 10, 10, 9},    {13, 1, 2, 4, 7, 11, 11, 10},
    {12, 3, 4, 5, 8, 12, 12, 11},    {11, 6, 7, 8, 9, 13, 13, 12},   {10, 10, 11, 12, 13, 14, 14, 13},
    {9, 10, 11, 12, 13, 14, 15, 14}, {8, 9, 10, 11, 12, 13, 14, 15},
};

struct Points10 {
    SymbolModel changed{64};
    SymbolModels returns{256, 256}, classes{256, 256}, users{256, 256}, angles{2, 256};
    LazIntegers intensity{16, 4}, source{16}, dx{32, 2}, dy{32, 22}, z{32, 20};
    RunningMedian x_medians[16], y_medians[16];
    uint16_t intensities[16] = {};
    int32_t heights[8] = {};

    void encode(LazEncoder& e, const std::byte* last, const std::byte* now) {
        const uint32_t bits = laz_byte(now, 14), number = bits & 7, of = bits >> 3 & 7;
        const size_t m = kReturns10[of][number];
        const auto light = laz_field<uint16_t>(now, 12);
        const auto differs = [&](size_t at) { return uint32_t{now[at] != last[at]}; };
        const uint32_t what = differs(14) << 5 | uint32_t{light != intensities[m]} << 4 | differs(15) << 3 |
                              differs(16) << 2 | differs(17) << 1 |
                              uint32_t{laz_field<uint16_t>(now, 18) != laz_field<uint16_t>(last, 18)};
        e.symbol(changed, what);
        if (what & 32) e.symbol(returns[laz_byte(last, 14)], bits);
        if (what & 16) intensity.encode(e, intensities[m], light, m < 3 ? m : 3);
        intensities[m] = light;
        if (what & 8) e.symbol(classes[laz_byte(last, 15)], laz_byte(now, 15));
        if (what & 4) e.symbol(angles[bits >> 6 & 1], (laz_byte(now, 16) - laz_byte(last, 16)) & 255);
        if (what & 2) e.symbol(users[laz_byte(last, 17)], laz_byte(now, 17));
        if (what & 1) source.encode(e, laz_field<uint16_t>(last, 18), laz_field<uint16_t>(now, 18));
        const int32_t x = laz_difference(now, last, 0), y = laz_difference(now, last, 4);
        dx.encode(e, x_medians[m].median(), x, of == 1);
        x_medians[m].add(x);
        dy.encode(e, y_medians[m].median(), y, laz_width_context(dx.width(), 20, of == 1));
        y_medians[m].add(y);
        int32_t& height = heights[static_cast<size_t>(std::abs(static_cast<int>(of) - static_cast<int>(number)))];
        z.encode(e, height, laz_field<int32_t>(now, 8), laz_width_context((dx.width() + dy.width()) / 2, 18, of == 1));
        height = laz_field<int32_t>(now, 8);
    }
};

void append_bytes(std::vector<std::byte>& to, const std::vector<std::byte>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::vector<std::byte> laz_pointwise_chunk(const std::byte* records, size_t count, size_t record, int format) {
    std::vector<std::byte> out(records, records + record);
    LazEncoder e;
    Points10 points;
    LazColors colors;
    const size_t color_at = format == 3 ? 28 : 20, extra_at = color_at + (format >= 2 ? 6 : format == 1 ? 8 : 0);
    LazTimes times(format % 2 == 1 ? laz_field<int64_t>(records, 20) : 0, true);
    std::vector<SymbolModel> extra(record - extra_at, SymbolModel(256));
    for (size_t i = 1; i < count; ++i) {
        const std::byte *now = records + i * record, *last = now - record;
        points.encode(e, last, now);
        if (format % 2 == 1) times.encode(e, laz_field<int64_t>(now, 20));
        if (format >= 2) {
            uint16_t before[3], after[3];
            std::memcpy(before, last + color_at, 6);
            std::memcpy(after, now + color_at, 6);
            colors.encode(e, before, after);
        }
        for (size_t b = 0; b < extra.size(); ++b)
            e.symbol(extra[b], (laz_byte(now, extra_at + b) - laz_byte(last, extra_at + b)) & 255);
    }
    append_bytes(out, e.finish());
    return out;
}

}  // namespace stipple::test
