#pragma once
// The adaptive models of LASzip's arithmetic coder [Said 2004, FastAC]: how probable each symbol is, learnt while
// coding. A decoder and an encoder that start a model afresh and pass the same symbols through it keep it equal.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stipple::io::laz {

/// Probabilities of 0 and 1, in parts of 2^13.
struct BitModel {
    static constexpr int kShift = 13;

    uint32_t zeros = 1, total = 2, zero_share = 1u << (kShift - 1);
    uint32_t cycle = 4, until_update = 4;

    void count(uint32_t bit) {
        zeros += 1 - bit;
        if (--until_update == 0) update();
    }

private:
    void update() {
        total += cycle;
        if (total > 1u << kShift) {
            total = (total + 1) / 2;
            zeros = (zeros + 1) / 2;
            if (zeros == total) ++total;
        }
        zero_share = zeros * (0x80000000u / total) >> (31 - kShift);
        cycle = std::min<uint32_t>(5 * cycle / 4, 64);
        until_update = cycle;
    }
};

/// Probabilities of the symbols 0 to n - 1, in parts of 2^15. Every symbol keeps a share of at least one part.
class SymbolModel {
public:
    static constexpr int kShift = 15;

    explicit SymbolModel(uint32_t symbols = 0) : symbols_(symbols), counts_(symbols), below_(symbols + 1) {
        if (symbols == 0) return;
        if (symbols > 16) {
            while (symbols_ > uint32_t{1} << (table_bits_ + 2)) ++table_bits_;
            table_.resize((size_t{1} << table_bits_) + 1);
        }
        reset();
    }

    /// As new.
    void reset() {
        std::fill(counts_.begin(), counts_.end(), uint16_t{1});
        total_ = 0;
        cycle_ = symbols_;
        update();
        cycle_ = until_update_ = (symbols_ + 6) / 2;
    }

    uint32_t symbols() const { return symbols_; }

    /// Parts that the symbols before this one have; below(symbols()) is 2^15.
    uint32_t below(uint32_t symbol) const { return below_[symbol]; }

    /// The symbol that part `part` of 2^15 belongs to.
    uint32_t symbol_at(uint32_t part) const {
        uint32_t low = 0, high = symbols_;
        if (!table_.empty()) {
            const uint32_t slot = part >> (kShift - table_bits_);
            low = table_[slot];
            high = uint32_t{table_[slot + 1]} + 1;
        }
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            (below_[middle] > part ? high : low) = middle;
        }
        return low;
    }

    void count(uint32_t symbol) {
        ++counts_[symbol];
        if (--until_update_ == 0) update();
    }

private:
    void update() {
        total_ += cycle_;
        if (total_ > 1u << kShift) {
            total_ = 0;
            for (uint16_t& count : counts_) {
                count = static_cast<uint16_t>((count + 1) / 2);
                total_ += count;
            }
        }
        const uint32_t scale = 0x80000000u / total_;
        uint32_t sum = 0;
        for (uint32_t s = 0; s < symbols_; ++s) {
            below_[s] = static_cast<uint16_t>(scale * sum >> (31 - kShift));
            sum += counts_[s];
        }
        below_[symbols_] = 1u << kShift;
        if (!table_.empty()) {
            // The symbol at the first part of each slot; the search goes on from there.
            const uint32_t slots = 1u << table_bits_;
            uint32_t symbol = 0;
            for (uint32_t slot = 0; slot < slots; ++slot) {
                const uint32_t part = slot << (kShift - table_bits_);
                while (symbol + 1 < symbols_ && below_[symbol + 1] <= part) ++symbol;
                table_[slot] = static_cast<uint16_t>(symbol);
            }
            table_[slots] = static_cast<uint16_t>(symbols_ - 1);
        }
        cycle_ = std::min(5 * cycle_ / 4, 8 * (symbols_ + 6));
        until_update_ = cycle_;
    }

    uint32_t symbols_ = 0, total_ = 0, cycle_ = 0, until_update_ = 0, table_bits_ = 3;
    std::vector<uint16_t> counts_, below_, table_;
};

/// One model for each context, made when it is first used: most contexts of a file never are.
class SymbolModels {
public:
    SymbolModels(size_t contexts, uint32_t symbols) : symbols_(symbols), models_(contexts) {}
    SymbolModel& operator[](size_t context) {
        SymbolModel& model = models_[context];
        if (model.symbols() == 0) model = SymbolModel(symbols_);
        return model;
    }

private:
    uint32_t symbols_;
    std::vector<SymbolModel> models_;
};

/// Five values in order, near the median of what came. Each newcomer pushes out the largest or the smallest, the other
/// side as soon as one has gone to the side that loses.
class RunningMedian {
public:
    int32_t median() const { return sorted_[2]; }
    void add(int32_t value) {
        const int32_t before = sorted_[2];
        int at = 0;
        if (drops_largest_) {
            for (at = 4; at > 0 && value < sorted_[at - 1]; --at) sorted_[at] = sorted_[at - 1];
            if (value >= before) drops_largest_ = false;
        } else {
            for (at = 0; at < 4 && value > sorted_[at + 1]; ++at) sorted_[at] = sorted_[at + 1];
            if (value <= before) drops_largest_ = true;
        }
        sorted_[at] = value;
    }

private:
    int32_t sorted_[5] = {};
    bool drops_largest_ = true;
};

}  // namespace stipple::io::laz
