#pragma once
// Times and colours as LASzip codes them.

#include <array>
#include <cmath>
#include <cstring>

#include "tests/support/laz_encoder.h"

namespace stipple::test {

/// Times in four sequences; see stipple/io/laz/fields.h.
class LazTimes {
public:
    LazTimes(int64_t first, bool tells_same)
        : same_(tells_same), multi_(515u + tells_same), zero_(5u + tells_same), integers_(32, 9) {
        time_[0] = first;
    }

    void encode(LazEncoder& e, int64_t time) {
        const int64_t change = wrapping(time, time_[last_]);
        int32_t& step = step_[last_];
        if (change == 0 && same_) return step == 0 ? e.symbol(zero_, 0) : e.symbol(multi_, 511);
        if (!fits(change)) return encode_far(e, time);
        const auto small = static_cast<int32_t>(change);
        if (step == 0) {
            e.symbol(zero_, static_cast<uint32_t>(same_));
            integers_.encode(e, 0, small, 0);
            step = small;
            odd_[last_] = 0;
        } else {
            encode_multiple(e, small, std::lround(static_cast<double>(small) / step));
        }
        time_[last_] = time;
    }

private:
    static int64_t wrapping(int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    }
    static bool fits(int64_t change) { return change == static_cast<int32_t>(change); }
    int32_t times(int64_t factor) const {
        return static_cast<int32_t>(static_cast<uint32_t>(factor) * static_cast<uint32_t>(step_[last_]));
    }
    void odd(int32_t change) {
        if (++odd_[last_] <= 3) return;
        odd_[last_] = 0;
        step_[last_] = change;
    }

    void encode_multiple(LazEncoder& e, int32_t change, int64_t factor) {
        const auto code = [&](int64_t symbol, int64_t predicted, size_t context) {
            e.symbol(multi_, static_cast<uint32_t>(symbol));
            integers_.encode(e, times(predicted), change, context);
        };
        if (factor == 1) {
            code(1, 1, 1);
            odd_[last_] = 0;
        } else if (factor > 0 && factor < 500) {
            code(factor, factor, factor < 10 ? 2 : 3);
        } else if (factor > 0) {
            code(500, 500, 4);
            odd(change);
        } else if (factor == 0) {
            code(0, 0, 7);
            odd(change);
        } else if (factor > -10) {
            code(500 - factor, factor, 5);
        } else {
            code(510, -10, 6);
            odd(change);
        }
    }

    void encode_far(LazEncoder& e, int64_t time) {
        SymbolModel& model = step_[last_] == 0 ? zero_ : multi_;
        const auto first = static_cast<uint32_t>((step_[last_] == 0 ? 1 : 511) + same_);  // code of a whole time
        for (size_t i = 1; i < 4; ++i)
            if (fits(wrapping(time, time_[(last_ + i) % 4]))) {
                e.symbol(model, first + static_cast<uint32_t>(i));
                last_ = (last_ + i) % 4;
                return encode(e, time);
            }
        e.symbol(model, first);
        integers_.encode(e, static_cast<int32_t>(time_[last_] >> 32), static_cast<int32_t>(time >> 32), 8);
        e.bits(32, static_cast<uint32_t>(time));
        last_ = next_ = (next_ + 1) % 4;
        time_[last_] = time;
        step_[last_] = odd_[last_] = 0;
    }

    int same_;
    SymbolModel multi_, zero_;
    LazIntegers integers_;
    std::array<int64_t, 4> time_ = {};
    std::array<int32_t, 4> step_ = {}, odd_ = {};
    size_t last_ = 0, next_ = 0;
};

class LazColors {
public:
    LazColors() : used_(128) { models_.fill(SymbolModel(256)); }

    void encode(LazEncoder& e, const uint16_t* last, const uint16_t* now) {
        const auto half = [](const uint16_t* color, int channel, int byte) {
            return color[channel] >> (8 * byte) & 255;
        };
        uint32_t used = 0;
        for (int channel = 0; channel < 3; ++channel)
            for (int byte = 0; byte < 2; ++byte)
                if (half(last, channel, byte) != half(now, channel, byte)) used |= 1u << (2 * channel + byte);
        if (now[0] != now[1] || now[0] != now[2]) used |= 64;
        e.symbol(used_, used);
        const auto code = [&](int channel, int byte, int change) {
            if (!(used >> (2 * channel + byte) & 1)) return;
            const int predicted = std::clamp(half(last, channel, byte) + change, 0, 255);
            e.symbol(models_[static_cast<size_t>(2 * channel + byte)],
                     static_cast<uint32_t>(half(now, channel, byte) - predicted) & 255);
        };
        code(0, 0, 0);
        code(0, 1, 0);
        if (!(used & 64)) return;
        for (int byte = 0; byte < 2; ++byte) {
            const int red = half(now, 0, byte) - half(last, 0, byte);
            code(1, byte, red);
            code(2, byte, (red + half(now, 1, byte) - half(last, 1, byte)) / 2);
        }
    }

private:
    SymbolModel used_;
    std::array<SymbolModel, 6> models_;
};

}  // namespace stipple::test
