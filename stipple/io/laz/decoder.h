#pragma once
// The arithmetic decoder of LASzip and the integers that it codes by their difference from a prediction.

#include <functional>

#include "stipple/io/byte_source.h"
#include "stipple/io/laz/models.h"

namespace stipple::io::laz {

/// Bytes for a decoder: those of memory, or of a reader as they come. Never gives a byte that is not there.
class ByteFeed {
public:
    /// `on_end` must throw.
    ByteFeed(std::span<const std::byte> bytes, std::function<void()> on_end);
    ByteFeed(ByteReader& reader, std::function<void()> on_end);

    uint32_t next() {
        if (next_ == end_) refill();
        return static_cast<uint32_t>(*next_++);
    }
    /// The reader stands behind the last byte that was given. Call before anybody else reads.
    void release();

private:
    void refill();

    ByteReader* reader_ = nullptr;
    const std::byte *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
    std::function<void()> on_end_;
};

class Decoder {
public:
    explicit Decoder(ByteFeed& feed) : feed_(feed) {}

    /// Starts on the next bytes of the feed.
    void begin();

    uint32_t symbol(SymbolModel& model) {
        const uint32_t unit = length_ >> SymbolModel::kShift;
        // Only damaged bytes put the value beyond the last part.
        const uint32_t symbol = model.symbol_at(std::min(value_ / unit, (1u << SymbolModel::kShift) - 1));
        const uint32_t low = unit * model.below(symbol);
        const uint32_t high = symbol + 1 == model.symbols() ? length_ : unit * model.below(symbol + 1);
        value_ -= low;
        length_ = high - low;
        if (length_ < kLeast) renormalise();
        model.count(symbol);
        return symbol;
    }

    uint32_t bit(BitModel& model) {
        const uint32_t split = model.zero_share * (length_ >> BitModel::kShift);
        const uint32_t bit = value_ >= split;
        if (bit) {
            value_ -= split;
            length_ -= split;
        } else {
            length_ = split;
        }
        if (length_ < kLeast) renormalise();
        model.count(bit);
        return bit;
    }

    /// Bits without a model, at most 32.
    uint32_t bits(int count) {
        if (count > 19) {
            const uint32_t low = bits(16);
            return bits(count - 16) << 16 | low;
        }
        length_ >>= count;
        const uint32_t found = value_ / length_;
        value_ -= found * length_;
        if (length_ < kLeast) renormalise();
        return found & ((1u << count) - 1);  // the mask only changes what damaged bytes say
    }

private:
    static constexpr uint32_t kLeast = 1u << 24;

    void renormalise() {
        do {
            value_ = value_ << 8 | feed_.next();
            length_ <<= 8;
        } while (length_ < kLeast);
    }

    ByteFeed& feed_;
    uint32_t value_ = 0, length_ = 0xffffffffu;
};

/// Integers of `bits` bits (16 or 32), modulo 2^bits: the width k of the difference from a prediction is a symbol, of
/// which each context has its own model; of the difference the eight high bits are a symbol of the model for k, the
/// rest plain bits.
class IntegerDecoder {
public:
    explicit IntegerDecoder(int bits, size_t contexts = 1);

    int32_t decode(Decoder& decoder, int32_t prediction, size_t context = 0) {
        width_ = decoder.symbol(widths_[context]);
        const uint32_t sum = static_cast<uint32_t>(prediction) + difference(decoder);
        return static_cast<int32_t>(bits_ == 32 ? sum : sum & ((1u << bits_) - 1));
    }

    /// Of the difference that was decoded last.
    uint32_t width() const { return width_; }

private:
    uint32_t difference(Decoder& decoder) {
        if (width_ == 0) return decoder.bit(unit_);
        if (width_ == 32) return 0x80000000u;
        uint32_t code = decoder.symbol(values_[width_]);
        if (width_ > 8) {
            const int low = static_cast<int>(width_) - 8;
            code = code << low | decoder.bits(low);
        }
        // Codes from 2^(k-1) on are the positive differences, the others the negative ones.
        return code >= 1u << (width_ - 1) ? code + 1 : code - ((1u << width_) - 1);
    }

    int bits_;
    uint32_t width_ = 0;
    std::vector<SymbolModel> widths_, values_;  // values_[k] for differences of k bits
    BitModel unit_;                             // 0 or 1
};

}  // namespace stipple::io::laz
