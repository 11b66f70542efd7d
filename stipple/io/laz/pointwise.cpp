#include <cstring>
#include <optional>

#include "stipple/io/laz/fields.h"
#include "stipple/io/laz/points.h"

namespace stipple::io::laz {
namespace {

/// A context for each pair of number of returns (row) and return number, fewer for the rare ones.
constexpr uint8_t kReturnContext[8][8] = {
    {15, 14, 13, 12, 11, 10, 9, 8},  {14, 0, 1, 3, 6, 10, 10, 9},    {13, 1, 2, 4, 7, 11, 11, 10},
    {12, 3, 4, 5, 8, 12, 12, 11},    {11, 6, 7, 8, 9, 13, 13, 12},   {10, 10, 11, 12, 13, 14, 14, 13},
    {9, 10, 11, 12, 13, 14, 15, 14}, {8, 9, 10, 11, 12, 13, 14, 15},
};

/// Coordinates, intensity, returns, classification, scan angle, user data, source.
class Point10Decoder {
public:
    explicit Point10Decoder(const std::byte* first) {
        std::memcpy(last_, first, sizeof last_);
        put<uint16_t>(12, 0);  // intensities are told from 0 on
    }

    void next(Decoder& decoder, std::byte* record) {
        const uint32_t changed = decoder.symbol(changed_);
        const auto coded = [&](uint32_t bit, SymbolModels& models, size_t at) {
            if (changed & bit) last_[at] = static_cast<uint8_t>(decoder.symbol(models[last_[at]]));
        };
        coded(32, returns_, 14);
        const uint32_t number = last_[14] & 7, of = last_[14] >> 3 & 7;
        const size_t context = kReturnContext[of][number];
        if (changed & 16)
            intensities_[context] =
                static_cast<uint16_t>(intensity_.decode(decoder, intensities_[context], std::min<size_t>(context, 3)));
        put(12, intensities_[context]);
        coded(8, classes_, 15);
        if (changed & 4) last_[16] = low_byte(last_[16] + decoder.symbol(angles_[last_[14] >> 6 & 1]));
        coded(2, users_, 17);
        if (changed & 1) put(18, static_cast<uint16_t>(source_.decode(decoder, get<uint16_t>(18))));

        const bool single = of == 1;
        const int32_t dx = dx_.decode(decoder, x_medians_[context].median(), single);
        x_medians_[context].add(dx);
        const int32_t dy = dy_.decode(decoder, y_medians_[context].median(), width_context(dx_.width(), 20, single));
        y_medians_[context].add(dy);
        int32_t& height = heights_[of > number ? of - number : number - of];
        height = z_.decode(decoder, height, width_context((dx_.width() + dy_.width()) / 2, 18, single));
        put(0, get<uint32_t>(0) + static_cast<uint32_t>(dx));
        put(4, get<uint32_t>(4) + static_cast<uint32_t>(dy));
        put(8, height);
        std::memcpy(record, last_, sizeof last_);
    }

private:
    template <class T>
    T get(size_t at) const {
        T value;
        std::memcpy(&value, last_ + at, sizeof value);
        return value;
    }
    template <class T>
    void put(size_t at, T value) {
        std::memcpy(last_ + at, &value, sizeof value);
    }

    uint8_t last_[20];
    SymbolModel changed_{64};
    SymbolModels returns_{256, 256}, classes_{256, 256}, users_{256, 256}, angles_{2, 256};
    IntegerDecoder intensity_{16, 4}, source_{16}, dx_{32, 2}, dy_{32, 22}, z_{32, 20};
    RunningMedian x_medians_[16], y_medians_[16];
    uint16_t intensities_[16] = {};
    int32_t heights_[8] = {};
};

class PointwiseDecoder : public ChunkDecoder {
public:
    PointwiseDecoder(const std::vector<Item>& items, const std::byte* first, ByteFeed& feed)
        : decoder_(feed), point_(first) {
        int64_t at = 0;
        for (const Item& item : items) {
            if (item.part == Part::time11) {
                int64_t time;
                std::memcpy(&time, first + at, sizeof time);
                time_.emplace(time, true);
            } else if (item.part == Part::color12) {
                std::memcpy(color_.data(), first + at, sizeof color_);
                colors_.emplace();
            } else if (item.part == Part::bytes) {
                bytes_.resize(static_cast<size_t>(item.bytes));
                std::memcpy(bytes_.data(), first + at, bytes_.size());
                byte_models_.assign(bytes_.size(), SymbolModel(256));
            }
            at += item.bytes;
        }
        decoder_.begin();
    }

    void next(std::byte* record) override {
        point_.next(decoder_, record);
        record += 20;
        if (time_) {
            const int64_t time = time_->decode(decoder_);
            std::memcpy(record, &time, sizeof time);
            record += sizeof time;
        }
        if (colors_) {
            colors_->decode(decoder_, color_);
            std::memcpy(record, color_.data(), sizeof color_);
            record += sizeof color_;
        }
        for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = low_byte(bytes_[i] + decoder_.symbol(byte_models_[i]));
        if (!bytes_.empty()) std::memcpy(record, bytes_.data(), bytes_.size());
    }

private:
    Decoder decoder_;
    Point10Decoder point_;
    std::optional<TimeDecoder> time_;
    std::optional<ColorDecoder> colors_;
    ColorDecoder::Color color_ = {};
    std::vector<uint8_t> bytes_;
    std::vector<SymbolModel> byte_models_;
};

}  // namespace

std::unique_ptr<ChunkDecoder> decode_pointwise(const std::vector<Item>& items, const std::byte* first, ByteFeed& feed) {
    return std::make_unique<PointwiseDecoder>(items, first, feed);
}

}  // namespace stipple::io::laz
