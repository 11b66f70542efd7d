#include "stipple/io/laz/fields.h"

namespace stipple::io::laz {

// === Times

TimeDecoder::TimeDecoder(int64_t first, bool tells_same)
    : same_(tells_same),
      multiples_(static_cast<uint32_t>(kTimeCodes + 4 + same_)),
      after_same_(static_cast<uint32_t>(5 + same_)),
      differences_(32, 9) {
    sequences_[0].time = first;
}

void TimeDecoder::decode_whole(Decoder& decoder) {
    const int32_t above = static_cast<int32_t>(sequences_[current_].time >> 32);
    const auto high = static_cast<uint32_t>(differences_.decode(decoder, above, 8));
    const uint32_t low = decoder.bits(32);
    newest_ = (newest_ + 1) % 4;
    current_ = newest_;
    sequences_[current_] = {static_cast<int64_t>(uint64_t{high} << 32 | low), 0, 0};
}

void TimeDecoder::note_odd(Sequence& sequence, int32_t difference) {
    if (++sequence.odd > 3) {
        sequence.difference = difference;
        sequence.odd = 0;
    }
}

int64_t TimeDecoder::decode(Decoder& decoder) {
    const auto wrapped = [](int64_t time, int32_t difference) {
        return static_cast<int64_t>(static_cast<uint64_t>(time) + static_cast<uint64_t>(int64_t{difference}));
    };
    while (true) {
        Sequence& now = sequences_[current_];
        int other = 0;  // -1: as before, 0: whole, else so many sequences further
        if (now.difference == 0) {
            other = static_cast<int>(decoder.symbol(after_same_)) - same_ - 1;
            if (other == -1) {
                now.difference = differences_.decode(decoder, 0, 0);
                now.time = wrapped(now.time, now.difference);
                now.odd = 0;
                return now.time;
            }
            if (other == -2) return now.time;
        } else {
            const int code = static_cast<int>(decoder.symbol(multiples_));
            if (code < kTimeCodes) {
                const auto times = [&](int factor) {
                    return static_cast<int32_t>(static_cast<uint32_t>(factor) * static_cast<uint32_t>(now.difference));
                };
                int32_t difference = 0;
                if (code == 0) {
                    difference = differences_.decode(decoder, 0, 7);
                    note_odd(now, difference);
                } else if (code == 1) {
                    difference = differences_.decode(decoder, now.difference, 1);
                    now.odd = 0;
                } else if (code < kMultiples) {
                    difference = differences_.decode(decoder, times(code), code < 10 ? 2 : 3);
                } else if (code == kMultiples) {
                    difference = differences_.decode(decoder, times(code), 4);
                    note_odd(now, difference);
                } else if (kMultiples - code > -kNegativeMultiples) {
                    difference = differences_.decode(decoder, times(kMultiples - code), 5);
                } else {
                    difference = differences_.decode(decoder, times(-kNegativeMultiples), 6);
                    note_odd(now, difference);
                }
                now.time = wrapped(now.time, difference);
                return now.time;
            }
            other = code - kTimeCodes - same_;
            if (other == -1) return now.time;
        }
        if (other == 0) {
            decode_whole(decoder);
            return sequences_[current_].time;
        }
        current_ = (current_ + static_cast<size_t>(other)) % 4;
    }
}

// === Colours

ColorDecoder::ColorDecoder() : used_(128) {
    bytes_.fill(SymbolModel(256));
}

void ColorDecoder::decode(Decoder& decoder, Color& last) {
    const uint32_t used = decoder.symbol(used_);
    const auto coded = [&](uint32_t bit, size_t model, int prediction, int before) {
        if (!(used & bit)) return static_cast<uint32_t>(before);
        return (decoder.symbol(bytes_[model]) + static_cast<uint32_t>(clamp_byte(prediction))) & 255;
    };
    const Color from = last;
    const int from_low[3] = {low_byte(from[0]), low_byte(from[1]), low_byte(from[2])};
    const int from_high[3] = {high_byte(from[0]), high_byte(from[1]), high_byte(from[2])};
    const auto red_low = static_cast<int>(coded(1, 0, from_low[0], from_low[0]));
    const auto red_high = static_cast<int>(coded(2, 1, from_high[0], from_high[0]));
    last[0] = static_cast<uint16_t>(red_high << 8 | red_low);
    if (!(used & 64)) {
        last[1] = last[2] = last[0];
        return;
    }
    int change = red_low - from_low[0];
    const auto green_low = static_cast<int>(coded(4, 2, change + from_low[1], from_low[1]));
    change = (change + green_low - from_low[1]) / 2;
    const auto blue_low = static_cast<int>(coded(16, 4, change + from_low[2], from_low[2]));
    change = red_high - from_high[0];
    const auto green_high = static_cast<int>(coded(8, 3, change + from_high[1], from_high[1]));
    change = (change + green_high - from_high[1]) / 2;
    const auto blue_high = static_cast<int>(coded(32, 5, change + from_high[2], from_high[2]));
    last[1] = static_cast<uint16_t>(green_high << 8 | green_low);
    last[2] = static_cast<uint16_t>(blue_high << 8 | blue_low);
}

NirDecoder::NirDecoder() : used_(4) {
    bytes_.fill(SymbolModel(256));
}

void NirDecoder::decode(Decoder& decoder, uint16_t& last) {
    const uint32_t used = decoder.symbol(used_);
    uint32_t low = low_byte(last), high = high_byte(last);
    if (used & 1) low = (low + decoder.symbol(bytes_[0])) & 255;
    if (used & 2) high = (high + decoder.symbol(bytes_[1])) & 255;
    last = static_cast<uint16_t>(high << 8 | low);
}

}  // namespace stipple::io::laz
