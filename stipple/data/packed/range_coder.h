#pragma once
// Binary range coding [Martin 1979] with adaptive probabilities: a decision that was usual costs a fraction of a bit.
// Whole numbers only, so that every machine writes and reads the same bytes.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace stipple::data {

inline constexpr int kProbabilityBits = 15;

/// How often a decision was 0 and 1, the younger past counting more. Probabilities stay 1/64 away from 0 and 1: so no
/// decision is free, and a file's size bounds how many there are.
class AdaptiveBit {
public:
    /// Of a 0, in units of 2^-15.
    uint32_t probability() const {
        constexpr uint32_t kLeast = 1u << (kProbabilityBits - 6), kMost = (1u << kProbabilityBits) - kLeast;
        const uint32_t p = (uint32_t{count_[0]} << kProbabilityBits) / (uint32_t{count_[0]} + count_[1]);
        return p < kLeast ? kLeast : p > kMost ? kMost : p;
    }
    void see(int bit) {
        ++count_[bit];
        if (count_[0] + count_[1] < 8192) return;
        count_[0] = static_cast<uint16_t>((count_[0] + 1) / 2);
        count_[1] = static_cast<uint16_t>((count_[1] + 1) / 2);
    }

private:
    uint16_t count_[2] = {2, 2};  // the start: of 1, 2 and 4 the best on ModelNet40
};

class RangeEncoder {
public:
    /// `probability` of a 0.
    void encode(int bit, uint32_t probability) {
        const uint32_t bound = (range_ >> kProbabilityBits) * probability;
        if (bit == 0) {
            range_ = bound;
        } else {
            low_ += bound;
            range_ -= bound;
        }
        for (; range_ < (1u << 24); range_ <<= 8) shift();
    }
    /// All bytes; nothing may be encoded after it.
    std::vector<uint8_t> finish() {
        for (int i = 0; i < 5; ++i) shift();
        return std::move(bytes_);
    }

private:
    /// A byte leaves; bytes of 255 wait, for a carry may still come through them.
    void shift() {
        if (low_ < 0xFF000000u || low_ > 0xFFFFFFFFu) {
            const auto carry = static_cast<uint8_t>(low_ >> 32);
            for (uint8_t byte = first_; waiting_ > 0; --waiting_, byte = 0xFF)
                bytes_.push_back(static_cast<uint8_t>(byte + carry));
            first_ = static_cast<uint8_t>(low_ >> 24);
        }
        ++waiting_;
        low_ = (low_ & 0x00FFFFFFu) << 8;
    }

    uint64_t low_ = 0;
    uint32_t range_ = 0xFFFFFFFFu;
    uint8_t first_ = 0;    // of the waiting bytes
    int64_t waiting_ = 1;  // the first byte is always 0
    std::vector<uint8_t> bytes_;
};

/// Any bytes decode to something; behind their end follow zeros.
class RangeDecoder {
public:
    explicit RangeDecoder(std::span<const uint8_t> bytes) : bytes_(bytes) {
        for (int i = 0; i < 5; ++i) code_ = code_ << 8 | next();
    }

    int decode(uint32_t probability) {
        const uint32_t bound = (range_ >> kProbabilityBits) * probability;
        const int bit = code_ < bound ? 0 : 1;
        if (bit == 0) {
            range_ = bound;
        } else {
            code_ -= bound;
            range_ -= bound;
        }
        for (; range_ < (1u << 24); range_ <<= 8) code_ = code_ << 8 | next();
        return bit;
    }

    /// More was read than there is.
    bool is_past_end() const { return position_ > bytes_.size(); }
    /// All was read and no more: so it is after what an encoder has written.
    bool is_at_end() const { return position_ == bytes_.size(); }

private:
    uint8_t next() {
        const size_t at = position_++;
        return at < bytes_.size() ? bytes_[at] : 0;
    }

    std::span<const uint8_t> bytes_;
    size_t position_ = 0;
    uint32_t code_ = 0, range_ = 0xFFFFFFFFu;
};

/// Whole numbers of up to 16 bits, the highest bit first; the probability of each of the first 12 depends on those
/// before it, the others are as likely 0 as 1.
class NumberModel {
public:
    explicit NumberModel(int bits) : bits_(bits), modelled_(bits < 12 ? bits : 12), nodes_(size_t{1} << modelled_) {}

    void forget() { nodes_.assign(nodes_.size(), {}); }

    void encode(RangeEncoder& coder, uint32_t number) {
        size_t node = 1;
        for (int place = bits_ - 1; place >= 0; --place) {
            const int bit = static_cast<int>(number >> place & 1);
            if (node >= nodes_.size()) {
                coder.encode(bit, 1u << (kProbabilityBits - 1));
                continue;
            }
            coder.encode(bit, nodes_[node].probability());
            nodes_[node].see(bit);
            node = 2 * node + static_cast<size_t>(bit);
        }
    }
    uint32_t decode(RangeDecoder& coder) {
        size_t node = 1;
        uint32_t number = 0;
        for (int place = bits_ - 1; place >= 0; --place) {
            int bit = 0;
            if (node >= nodes_.size()) {
                bit = coder.decode(1u << (kProbabilityBits - 1));
            } else {
                bit = coder.decode(nodes_[node].probability());
                nodes_[node].see(bit);
                node = 2 * node + static_cast<size_t>(bit);
            }
            number = number << 1 | static_cast<uint32_t>(bit);
        }
        return number;
    }

private:
    int bits_, modelled_;
    std::vector<AdaptiveBit> nodes_;  // a binary tree; 1 is the root
};

}  // namespace stipple::data
