#include <cstring>
#include <optional>

#include "stipple/io/las/header.h"
#include "stipple/io/laz/fields.h"
#include "stipple/io/laz/points.h"

namespace stipple::io::laz {
namespace {

/// A context for each pair of number of returns (row) and return number.
constexpr const char* kReturnContext14[16] = {
    "0123453445555555", "1013333333333333", "2124444444433333", "3345444444444444",
    "4344544444444444", "5344454444444444", "3344445444444444", "4344444544444444",
    "4344444454444444", "5344444445444444", "5344444444544444", "5334444444455444",
    "5334444444455544", "5334444444445554", "5334444444444555", "5334444444444455",
};

/// One field's stream. An empty one has nothing to tell: the field never changes.
struct Layer {
    Layer(const Buffer& bytes, int64_t at)
        : feed({bytes.data(), static_cast<size_t>(bytes.bytes())},
               [at] { las::fail_at(at, "a layer of this chunk of points ends too early: it is damaged"); }),
          decoder(feed),
          used(bytes.bytes() > 0) {
        if (used) decoder.begin();
    }
    Layer(const Layer&) = delete;

    ByteFeed feed;
    Decoder decoder;
    bool used;
};

struct Point14 {
    int32_t x, y, z;
    uint16_t intensity;
    uint8_t number, of, flags, channel, label, user;  // flags: bits 0 to 3, scan direction 4, edge of flight line 5
    int16_t angle;
    uint16_t source;
    int64_t time;
};

template <class T>
T at(const std::byte* record, size_t offset) {
    T value;
    std::memcpy(&value, record + offset, sizeof value);
    return value;
}

template <class T>
void set(std::byte* record, size_t offset, T value) {
    std::memcpy(record + offset, &value, sizeof value);
}

Point14 unpacked14(const std::byte* r) {
    const auto returns = at<uint8_t>(r, 14), bits = at<uint8_t>(r, 15);
    return {at<int32_t>(r, 0),
            at<int32_t>(r, 4),
            at<int32_t>(r, 8),
            at<uint16_t>(r, 12),
            static_cast<uint8_t>(returns & 15),
            static_cast<uint8_t>(returns >> 4),
            static_cast<uint8_t>((bits & 15) | (bits >> 6 << 4)),
            static_cast<uint8_t>(bits >> 4 & 3),
            at<uint8_t>(r, 16),
            at<uint8_t>(r, 17),
            at<int16_t>(r, 18),
            at<uint16_t>(r, 20),
            at<int64_t>(r, 22)};
}

void pack14(const Point14& p, std::byte* r) {
    set(r, 0, p.x);
    set(r, 4, p.y);
    set(r, 8, p.z);
    set(r, 12, p.intensity);
    set(r, 14, static_cast<uint8_t>(p.number | p.of << 4));
    set(r, 15, static_cast<uint8_t>((p.flags & 15) | p.channel << 4 | p.flags >> 4 << 6));
    set(r, 16, p.label);
    set(r, 17, p.user);
    set(r, 18, p.angle);
    set(r, 20, p.source);
    set(r, 22, p.time);
}

/// All that is learnt of one scanner channel.
struct Channel14 {
    explicit Channel14(const Point14& first) : last(first), times(first.time, false) {
        std::fill(std::begin(heights), std::end(heights), first.z);
        std::fill(std::begin(intensities), std::end(intensities), first.intensity);
    }

    Point14 last;
    bool new_time = false;  // the last point had another time than the one before
    SymbolModels changed{8, 128}, returns_of{16, 16}, return_numbers{16, 16};
    SymbolModel channel{3}, return_steps{13};
    IntegerDecoder dx{32, 2}, dy{32, 22}, z{32, 20}, intensity{16, 4}, angle{16, 2}, source{16};
    SymbolModels labels{64, 256}, flags{64, 64}, users{64, 256};
    RunningMedian x_medians[12], y_medians[12];
    int32_t heights[8];
    uint16_t intensities[8];
    TimeDecoder times;
};

class Point14Decoder {
public:
    static constexpr int64_t kLayers = 9;

    Point14Decoder(const std::byte* first, const Buffer* layers, int64_t place)
        : xy_(layers[0], place),
          z_(layers[1], place),
          label_(layers[2], place),
          flags_(layers[3], place),
          intensity_(layers[4], place),
          angle_(layers[5], place),
          user_(layers[6], place),
          source_(layers[7], place),
          time_(layers[8], place) {
        const Point14 point = unpacked14(first);
        current_ = point.channel;
        channels_[current_] = std::make_unique<Channel14>(point);
    }

    /// Returns the channel by which version 3 of the format codes the other parts of the record: the point's own where
    /// it differs from the last point's, else 0. (Version 4 mends that.)
    size_t next(std::byte* record) {
        Decoder& xy = xy_.decoder;
        const Channel14& before = *channels_[current_];
        const Point14& previous = before.last;
        const size_t context =
            (previous.number == 1) + 2 * size_t{previous.number >= previous.of} + 4 * before.new_time;
        const uint32_t changed = xy.symbol(channels_[current_]->changed[context]);
        if (changed & 64) switch_channel((current_ + xy.symbol(channels_[current_]->channel) + 1) % 4);
        Channel14& c = *channels_[current_];
        const bool new_time = changed & 16;
        decode_returns(c, changed, new_time);
        decode_place(c, new_time);
        decode_rest(c, changed, new_time);
        c.new_time = new_time;
        pack14(c.last, record);
        return changed & 64 ? current_ : 0;
    }

private:
    void switch_channel(size_t channel) {
        if (!channels_[channel]) channels_[channel] = std::make_unique<Channel14>(channels_[current_]->last);
        channels_[channel]->last.channel = static_cast<uint8_t>(channel);
        current_ = channel;
    }

    void decode_returns(Channel14& c, uint32_t changed, bool new_time) {
        const uint32_t number = c.last.number;
        if (changed & 4) c.last.of = static_cast<uint8_t>(xy_.decoder.symbol(c.returns_of[c.last.of]));
        uint32_t step = 0;
        switch (changed & 3) {
            case 0: return;
            case 1: step = 1; break;
            case 2: step = 15; break;
            default:
                step = new_time ? xy_.decoder.symbol(c.return_numbers[number]) + 16 - number
                                : xy_.decoder.symbol(c.return_steps) + 2;
        }
        c.last.number = static_cast<uint8_t>((number + step) % 16);
    }

    void decode_place(Channel14& c, bool new_time) {
        const uint32_t number = c.last.number, of = c.last.of;
        const bool single = of == 1;
        const auto context = static_cast<size_t>(kReturnContext14[of][number] - '0');
        const size_t median = 2 * context + (new_time ? 1 : 0);
        const int32_t dx = c.dx.decode(xy_.decoder, c.x_medians[median].median(), single);
        c.x_medians[median].add(dx);
        const int32_t dy =
            c.dy.decode(xy_.decoder, c.y_medians[median].median(), width_context(c.dx.width(), 20, single));
        c.y_medians[median].add(dy);
        c.last.x = static_cast<int32_t>(static_cast<uint32_t>(c.last.x) + static_cast<uint32_t>(dx));
        c.last.y = static_cast<int32_t>(static_cast<uint32_t>(c.last.y) + static_cast<uint32_t>(dy));
        if (!z_.used) return;
        int32_t& height = c.heights[std::min(of > number ? of - number : number - of, 7u)];
        height = c.z.decode(z_.decoder, height, width_context((c.dx.width() + c.dy.width()) / 2, 18, single));
        c.last.z = height;
    }

    void decode_rest(Channel14& c, uint32_t changed, bool new_time) {
        Point14& p = c.last;
        const size_t kind = 2 * size_t{p.number == 1} + (p.number >= p.of);  // first, last, only, inner
        if (label_.used)
            p.label = static_cast<uint8_t>(
                label_.decoder.symbol(c.labels[static_cast<size_t>(p.label & 31) * 2 + (kind == 3)]));
        if (flags_.used) p.flags = static_cast<uint8_t>(flags_.decoder.symbol(c.flags[p.flags]));
        if (intensity_.used) {
            uint16_t& value = c.intensities[2 * kind + new_time];
            value = static_cast<uint16_t>(c.intensity.decode(intensity_.decoder, value, kind));
            p.intensity = value;
        }
        if (angle_.used && changed & 8)
            p.angle = static_cast<int16_t>(c.angle.decode(angle_.decoder, p.angle, new_time));
        if (user_.used) p.user = static_cast<uint8_t>(user_.decoder.symbol(c.users[p.user / 4]));
        if (source_.used && changed & 32) p.source = static_cast<uint16_t>(c.source.decode(source_.decoder, p.source));
        if (time_.used && new_time) p.time = c.times.decode(time_.decoder);
    }

    Layer xy_, z_, label_, flags_, intensity_, angle_, user_, source_, time_;
    std::array<std::unique_ptr<Channel14>, 4> channels_;
    size_t current_ = 0;
};

/// What another part of the record has learnt of each channel. Version 3 of the format takes, at the switch to a
/// channel that was used before, the last value of the channel before, and also overwrites it. (Version 4 mends that.)
template <class Value>
class ByChannel {
public:
    explicit ByChannel(size_t channel, Value first) : current_(channel) { values_[channel] = std::move(first); }

    /// The models of the channel, and where its last value is.
    std::pair<Value&, Value&> at(size_t channel) {
        size_t from = current_;
        if (channel != current_) {
            if (!values_[channel]) {
                values_[channel].emplace(values_[current_]->last);
                from = channel;
            }
            current_ = channel;
        }
        return {*values_[channel], *values_[from]};
    }

private:
    std::array<std::optional<Value>, 4> values_;
    size_t current_;
};

struct ColorChannel {
    explicit ColorChannel(std::array<uint16_t, 4> first) : last(first) {}
    std::array<uint16_t, 4> last;  // red, green, blue, near infrared
    ColorDecoder color;
    NirDecoder nir;
};

class Color14Decoder {
public:
    Color14Decoder(const std::byte* first, bool with_nir, size_t channel, const Buffer* layers, int64_t place)
        : color_(layers[0], place), channels_(channel, ColorChannel(first_of(first, with_nir))) {
        if (with_nir) nir_.emplace(layers[1], place);
    }

    void next(std::byte* record, size_t channel) {
        const auto [models, stored] = channels_.at(channel);
        if (color_.used) {
            ColorDecoder::Color color = {stored.last[0], stored.last[1], stored.last[2]};
            models.color.decode(color_.decoder, color);
            std::copy(color.begin(), color.end(), stored.last.begin());
        }
        if (nir_ && nir_->used) models.nir.decode(nir_->decoder, stored.last[3]);
        std::memcpy(record, stored.last.data(), nir_ ? 8 : 6);
    }

private:
    static std::array<uint16_t, 4> first_of(const std::byte* first, bool with_nir) {
        std::array<uint16_t, 4> values = {};
        std::memcpy(values.data(), first, with_nir ? 8 : 6);
        return values;
    }

    Layer color_;
    std::optional<Layer> nir_;
    ByChannel<ColorChannel> channels_;
};

struct BytesChannel {
    explicit BytesChannel(std::vector<uint8_t> first) : last(std::move(first)), models(last.size(), 256) {}
    std::vector<uint8_t> last;
    SymbolModels models;
};

class Bytes14Decoder {
public:
    Bytes14Decoder(const std::byte* first, int64_t bytes, size_t channel, const Buffer* layers, int64_t place)
        : channels_(channel, BytesChannel({reinterpret_cast<const uint8_t*>(first),
                                           reinterpret_cast<const uint8_t*>(first) + bytes})) {
        for (int64_t i = 0; i < bytes; ++i) layers_.push_back(std::make_unique<Layer>(layers[i], place));
    }

    void next(std::byte* record, size_t channel) {
        const auto [models, stored] = channels_.at(channel);
        for (size_t i = 0; i < layers_.size(); ++i)
            if (layers_[i]->used)
                stored.last[i] = low_byte(stored.last[i] + layers_[i]->decoder.symbol(models.models[i]));
        std::memcpy(record, stored.last.data(), stored.last.size());
    }

private:
    std::vector<std::unique_ptr<Layer>> layers_;
    ByChannel<BytesChannel> channels_;
};

class LayeredDecoder : public ChunkDecoder {
public:
    LayeredDecoder(const std::vector<Item>& items, const std::byte* first, Layers layers, int64_t place)
        : layers_(std::move(layers)), point_(first, layers_.data(), place) {
        const size_t channel = static_cast<size_t>(first[15]) >> 4 & 3;
        int64_t offset = 0;
        const Buffer* layer = layers_.data();
        for (const Item& item : items) {
            if (item.part == Part::color14 || item.part == Part::color_nir14)
                color_.emplace(first + offset, item.part == Part::color_nir14, channel, layer, place);
            if (item.part == Part::bytes14) bytes_.emplace(first + offset, item.bytes, channel, layer, place);
            if (item.part == Part::bytes14) bytes_at_ = offset;
            offset += item.bytes;
            layer += layers_of(item);
        }
    }

    void next(std::byte* record) override {
        const size_t channel = point_.next(record);
        if (color_) color_->next(record + 30, channel);
        if (bytes_) bytes_->next(record + bytes_at_, channel);
    }

private:
    Layers layers_;
    Point14Decoder point_;
    std::optional<Color14Decoder> color_;
    std::optional<Bytes14Decoder> bytes_;
    int64_t bytes_at_ = 0;
};

}  // namespace

int64_t layers_of(const Item& item) {
    switch (item.part) {
        case Part::point14: return Point14Decoder::kLayers;
        case Part::color14: return 1;
        case Part::color_nir14: return 2;
        case Part::bytes14: return item.bytes;
        default: return 0;
    }
}

std::unique_ptr<ChunkDecoder> decode_layered(const std::vector<Item>& items, const std::byte* first, Layers layers,
                                             int64_t place) {
    return std::make_unique<LayeredDecoder>(items, first, std::move(layers), place);
}

}  // namespace stipple::io::laz
