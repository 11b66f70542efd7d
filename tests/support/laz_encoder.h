#pragma once
// The arithmetic encoder of LASzip [Said 2004], with the integers that it codes.

#include <cstddef>
#include <vector>

#include "stipple/io/laz/models.h"

namespace stipple::test {

using io::laz::BitModel;
using io::laz::SymbolModel;
using io::laz::SymbolModels;

class LazEncoder {
public:
    void symbol(SymbolModel& model, uint32_t symbol) {
        const uint32_t unit = length_ >> SymbolModel::kShift, low = unit * model.below(symbol);
        const uint32_t high = symbol + 1 == model.symbols() ? length_ : unit * model.below(symbol + 1);
        narrow(low, high - low);
        model.count(symbol);
    }
    void bit(BitModel& model, uint32_t bit) {
        const uint32_t split = model.zero_share * (length_ >> BitModel::kShift);
        if (bit)
            narrow(split, length_ - split);
        else
            narrow(0, split);
        model.count(bit);
    }
    void bits(int count, uint32_t value) {
        if (count > 19) {
            bits(16, value & 0xffff);
            return bits(count - 16, value >> 16);
        }
        const uint32_t unit = length_ >> count;
        narrow(unit * value, unit);
    }

    /// The bytes, as many as a decoder asks for.
    std::vector<std::byte> finish() {
        const bool wide = length_ > 2 * kLeast;
        narrow(wide ? kLeast : kLeast / 2, wide ? kLeast / 2 : kLeast >> 9);
        bytes_.resize(bytes_.size() + (wide ? 3 : 2));
        return bytes_;
    }

private:
    static constexpr uint32_t kLeast = 1u << 24;

    void narrow(uint32_t low, uint32_t length) {
        base_ += low;
        length_ = length;
        if (base_ < low)  // carry
            for (size_t i = bytes_.size(); i-- > 0;) {
                bytes_[i] = static_cast<std::byte>(static_cast<int>(bytes_[i]) + 1);
                if (bytes_[i] != std::byte{0}) break;
            }
        while (length_ < kLeast) {
            bytes_.push_back(static_cast<std::byte>(base_ >> 24));
            base_ <<= 8;
            length_ <<= 8;
        }
    }

    uint32_t base_ = 0, length_ = 0xffffffffu;
    std::vector<std::byte> bytes_;
};

class LazIntegers {
public:
    explicit LazIntegers(int bits, size_t contexts = 1)
        : bits_(bits), widths_(contexts, SymbolModel(static_cast<uint32_t>(bits) + 1)), values_(1) {
        for (int k = 1; k <= bits && k < 32; ++k) values_.emplace_back(1u << std::min(k, 8));
    }

    void encode(LazEncoder& encoder, int32_t prediction, int32_t value, size_t context = 0) {
        int64_t difference = static_cast<int32_t>(static_cast<uint32_t>(value) - static_cast<uint32_t>(prediction));
        if (bits_ == 16) difference = static_cast<int16_t>(difference);
        const int64_t magnitude = difference <= 0 ? -difference : difference - 1;
        width_ = 0;
        while (magnitude >> width_) ++width_;
        encoder.symbol(widths_[context], width_);
        if (width_ == 0) return encoder.bit(unit_, static_cast<uint32_t>(difference));
        if (width_ == 32) return;
        const auto code =
            static_cast<uint32_t>(difference < 0 ? difference + (int64_t{1} << width_) - 1 : difference - 1);
        const int low = std::max(0, static_cast<int>(width_) - 8);
        encoder.symbol(values_[width_], code >> low);
        if (low > 0) encoder.bits(low, code & ((1u << low) - 1));
    }
    uint32_t width() const { return width_; }

private:
    int bits_;
    uint32_t width_ = 0;
    std::vector<SymbolModel> widths_, values_;
    BitModel unit_;
};

}  // namespace stipple::test
