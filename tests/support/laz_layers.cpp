#include <cstdlib>
#include <memory>

#include "tests/support/laz_chunks.h"

namespace stipple::test {
namespace {

using io::laz::RunningMedian;

constexpr const char* kReturns14[16] = {
    "0123453445555555", "1013333333333333", "2124444444433333", "3345444444444444",
    "4344544444444444", "5344454444444444", "3344445444444444", "4344444544444444",
    "4344444454444444", "5344444445444444", "5344444444544444", "5334444444455444",
    "5334444444455544", "5334444444445554", "5334444444444555", "5334444444444455",
};

/// A stream that is only kept if its field ever changes.
struct LazLayer {
    LazEncoder encoder;
    bool changed = false;
};

/// Models of one scanner channel.
struct LazChannel {
    explicit LazChannel(const std::byte* first) : last(first, first + 30), times(laz_field<int64_t>(first, 22), false) {
        std::fill(std::begin(heights), std::end(heights), laz_field<int32_t>(first, 8));
        std::fill(std::begin(intensities), std::end(intensities), laz_field<uint16_t>(first, 12));
    }
    std::vector<std::byte> last;
    bool new_time = false;
    SymbolModels changed{8, 128}, of{16, 16}, number{16, 16}, labels{64, 256}, flags{64, 64}, users{64, 256};
    SymbolModel channel{3}, steps{13};
    LazIntegers dx{32, 2}, dy{32, 22}, z{32, 20}, intensity{16, 4}, angle{16, 2}, source{16};
    RunningMedian x_medians[12], y_medians[12];
    int32_t heights[8];
    uint16_t intensities[8];
    LazTimes times;
};

uint32_t flags_of(const std::byte* record) {
    const uint32_t bits = laz_byte(record, 15);
    return (bits & 15) | bits >> 6 << 4;
}

class Points14 {
public:
    explicit Points14(const std::byte* first) : now_(laz_byte(first, 15) >> 4 & 3) {
        channels_[now_] = std::make_unique<LazChannel>(first);
    }
    LazLayer layers[9];

    void encode(const std::byte* p) {
        LazEncoder& e = layers[0].encoder;
        const size_t channel = laz_byte(p, 15) >> 4 & 3, old = now_;
        LazChannel& before = *channels_[old];
        const uint32_t number_was = laz_byte(before.last.data(), 14) & 15,
                       of_was = laz_byte(before.last.data(), 14) >> 4;
        const size_t context = (number_was == 1) + 2 * (number_was >= of_was) + 4 * before.new_time;
        if (!channels_[channel]) channels_[channel] = std::make_unique<LazChannel>(before.last.data());
        now_ = channel;
        LazChannel& c = *channels_[channel];
        const std::byte* last = c.last.data();
        const uint32_t number = laz_byte(p, 14) & 15, of = laz_byte(p, 14) >> 4;
        const uint32_t last_number = laz_byte(last, 14) & 15, last_of = laz_byte(last, 14) >> 4;
        const bool new_time = laz_field<int64_t>(p, 22) != laz_field<int64_t>(last, 22);
        const bool new_source = laz_field<uint16_t>(p, 20) != laz_field<uint16_t>(last, 20);
        const bool new_angle = laz_field<uint16_t>(p, 18) != laz_field<uint16_t>(last, 18);
        const uint32_t step = (number + 16 - last_number) % 16;
        const uint32_t what = uint32_t{channel != old} << 6 | uint32_t{new_source} << 5 | uint32_t{new_time} << 4 |
                              uint32_t{new_angle} << 3 | uint32_t{of != last_of} << 2 |
                              (step == 0    ? 0u
                               : step == 1  ? 1u
                               : step == 15 ? 2u
                                            : 3u);
        e.symbol(before.changed[context], what);
        if (channel != old) e.symbol(before.channel, static_cast<uint32_t>((channel + 3 - old) % 4));
        if (of != last_of) e.symbol(c.of[last_of], of);
        if ((what & 3) == 3) {
            if (new_time)
                e.symbol(c.number[last_number], number);
            else
                e.symbol(c.steps, step - 2);
        }
        encode_place(c, p, number, of, new_time);
        encode_rest(c, p, (number == 1 ? 2u : 0u) + (number >= of), new_time, new_source, new_angle);
        c.last.assign(p, p + 30);
        c.new_time = new_time;
    }

private:
    void encode_place(LazChannel& c, const std::byte* p, uint32_t number, uint32_t of, bool new_time) {
        const std::byte* last = c.last.data();
        const bool single = of == 1;
        LazEncoder& e = layers[0].encoder;
        const auto median = static_cast<size_t>(2 * (kReturns14[of][number] - '0') + new_time);
        const int32_t x = laz_difference(p, last, 0), y = laz_difference(p, last, 4);
        c.dx.encode(e, c.x_medians[median].median(), x, single);
        c.x_medians[median].add(x);
        c.dy.encode(e, c.y_medians[median].median(), y, laz_width_context(c.dx.width(), 20, single));
        c.y_medians[median].add(y);
        const int level = std::min(7, std::abs(static_cast<int>(of) - static_cast<int>(number)));
        const auto z = laz_field<int32_t>(p, 8);
        c.z.encode(layers[1].encoder, c.heights[level], z,
                   laz_width_context((c.dx.width() + c.dy.width()) / 2, 18, single));
        c.heights[level] = z;
        layers[1].changed |= z != laz_field<int32_t>(last, 8);
    }

    void encode_rest(LazChannel& c, const std::byte* p, size_t kind, bool new_time, bool new_source, bool new_angle) {
        const std::byte* last = c.last.data();
        layers[2].encoder.symbol(c.labels[(laz_byte(last, 16) & 31) * 2 + (kind == 3)], laz_byte(p, 16));
        layers[2].changed |= p[16] != last[16];
        layers[3].encoder.symbol(c.flags[flags_of(last)], flags_of(p));
        layers[3].changed |= flags_of(p) != flags_of(last);
        const auto light = laz_field<uint16_t>(p, 12);
        uint16_t& predicted = c.intensities[2 * kind + new_time];
        c.intensity.encode(layers[4].encoder, predicted, light, kind);
        predicted = light;
        layers[4].changed |= light != laz_field<uint16_t>(last, 12);
        if (new_angle)
            c.angle.encode(layers[5].encoder, laz_field<int16_t>(last, 18), laz_field<int16_t>(p, 18), new_time);
        layers[5].changed |= new_angle;
        layers[6].encoder.symbol(c.users[laz_byte(last, 17) / 4], laz_byte(p, 17));
        layers[6].changed |= p[17] != last[17];
        if (new_source) c.source.encode(layers[7].encoder, laz_field<uint16_t>(last, 20), laz_field<uint16_t>(p, 20));
        layers[7].changed |= new_source;
        if (new_time) c.times.encode(layers[8].encoder, laz_field<int64_t>(p, 22));
        layers[8].changed |= new_time;
    }

    std::unique_ptr<LazChannel> channels_[4];
    size_t now_;
};

/// Colours, near infrared and further bytes of one scanner channel.
struct LazTail {
    LazTail(const std::byte* first, size_t bytes) : last(first, first + bytes), bytes_models(bytes, 256) {}
    std::vector<std::byte> last;
    LazColors colors;
    SymbolModel nir_used{4};
    SymbolModels nir{2, 256}, bytes_models;
};

/// Channels and last values as version 3 has them: see stipple/io/laz/layered.cpp.
class Tails14 {
public:
    Tails14(const std::byte* first, size_t bytes, int format) : format_(format), layers_(bytes) {
        now_ = last_own_ = laz_byte(first, 15) >> 4 & 3;
        tails_[now_] = std::make_unique<LazTail>(first + 30, bytes);
    }

    void encode(const std::byte* p) {
        const size_t own = laz_byte(p, 15) >> 4 & 3, channel = own != last_own_ ? own : 0;
        last_own_ = own;
        size_t from = now_;
        if (channel != now_ && !tails_[channel]) {
            tails_[channel] = std::make_unique<LazTail>(tails_[now_]->last.data(), tails_[now_]->last.size());
            from = channel;
        }
        now_ = channel;
        LazTail& models = *tails_[channel];
        std::vector<std::byte>& last = tails_[from]->last;
        const std::byte* now = p + 30;
        if (format_ >= 7) {
            uint16_t before[3], after[3];
            std::memcpy(before, last.data(), 6);
            std::memcpy(after, now, 6);
            models.colors.encode(color.encoder, before, after);
            color.changed |= std::memcmp(before, after, 6) != 0;
        }
        if (format_ == 8) {
            const uint32_t used = uint32_t{last[6] != now[6]} | uint32_t{last[7] != now[7]} << 1;
            nir.encoder.symbol(models.nir_used, used);
            for (size_t b = 0; b < 2; ++b)
                if (used >> b & 1)
                    nir.encoder.symbol(models.nir[b], (laz_byte(now, 6 + b) - laz_byte(last.data(), 6 + b)) & 255);
            nir.changed |= used != 0;
        }
        for (size_t b = extra_at(); b < last.size(); ++b) {
            layers_[b].encoder.symbol(models.bytes_models[b], (laz_byte(now, b) - laz_byte(last.data(), b)) & 255);
            layers_[b].changed |= now[b] != last[b];
        }
        last.assign(now, now + last.size());
    }

    std::vector<LazLayer*> layers() {
        std::vector<LazLayer*> all;
        if (format_ >= 7) all.push_back(&color);
        if (format_ == 8) all.push_back(&nir);
        for (size_t b = extra_at(); b < layers_.size(); ++b) all.push_back(&layers_[b]);
        return all;
    }

private:
    size_t extra_at() const { return format_ == 8 ? 8 : format_ == 7 ? 6 : 0; }

    int format_;
    LazLayer color, nir;
    std::vector<LazLayer> layers_;
    std::unique_ptr<LazTail> tails_[4];
    size_t now_, last_own_;
};

}  // namespace

std::vector<std::byte> laz_layered_chunk(const std::byte* records, size_t count, size_t record, int format) {
    Points14 points(records);
    Tails14 tails(records, record - 30, format);
    for (size_t i = 1; i < count; ++i) {
        points.encode(records + i * record);
        tails.encode(records + i * record);
    }
    std::vector<LazLayer*> layers;
    points.layers[0].changed = true;
    for (LazLayer& layer : points.layers) layers.push_back(&layer);
    for (LazLayer* layer : tails.layers()) layers.push_back(layer);

    std::vector<std::byte> out(records, records + record), coded;
    const auto append = [&](uint32_t value) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&value);
        out.insert(out.end(), bytes, bytes + 4);
    };
    append(static_cast<uint32_t>(count));
    for (LazLayer* layer : layers) {
        std::vector<std::byte> bytes;
        if (layer->changed) bytes = layer->encoder.finish();
        append(static_cast<uint32_t>(bytes.size()));
        coded.insert(coded.end(), bytes.begin(), bytes.end());
    }
    out.insert(out.end(), coded.begin(), coded.end());
    return out;
}

}  // namespace stipple::test
