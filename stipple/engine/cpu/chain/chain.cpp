#include "stipple/engine/cpu/chain/chain.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "stipple/core/error.h"
#include "stipple/engine/cpu/chain/blocks.h"
#include "stipple/engine/cpu/chain/pack.h"

namespace stipple::engine::cpu {
namespace {

constexpr int64_t kTileRows = 11 * kPanelRows;  // 1024 points are 8 tiles, the last one not much smaller

constexpr int64_t kRowChannels = 256;  // that 12 rows have at a time where addends are added: 12 KiB

/// Weights of one layer while a task runs.
struct Weights {
    const std::byte* panels = nullptr;
    const float* scales = nullptr;  // int8
    const float* bias = nullptr;
};

/// Rows of the task from `begin` on, in panels.
struct Tile {
    int64_t begin = 0, rows = 0, panels = 0;
    int64_t panel_begin(int64_t p) const { return begin + p * kPanelRows; }
    int64_t panel_rows(int64_t p) const { return std::min(kPanelRows, rows - p * kPanelRows); }
};

const float* row_of(const ChainAddend& addend, int64_t row) {
    switch (addend.access) {
        case Access::row: return addend.data + row * addend.stride;
        case Access::cloud: return addend.data;
        case Access::point: return addend.data + row / addend.width * addend.stride;
        case Access::neighbour: return addend.data + addend.neighbours[row] * addend.stride;
    }
    return addend.data;
}

/// One call of Chain::run().
class Run {
public:
    Run(const PackedChain& chain, const ChainTask& task, std::byte* scratch)
        : chain_(chain), task_(task), scratch_(scratch), last_(chain.layers.size() - 1) {}

    void run() {
        prepare();
        const int64_t panels = (task_.rows + kPanelRows - 1) / kPanelRows;
        const int64_t tiles = (panels + chain_.tile_panels - 1) / chain_.tile_panels;
        const int64_t tile_panels = (panels + tiles - 1) / tiles;  // tiles of about the same size
        for (int64_t p = 0; p < panels; p += tile_panels) {
            Tile tile;
            tile.begin = p * kPanelRows;
            tile.panels = std::min(tile_panels, panels - p);
            tile.rows = std::min(tile.panels * kPanelRows, task_.rows - tile.begin);
            std::byte* x = scratch_;
            std::byte* y = scratch_ + chain_.tile_bytes;
            read_rows(tile, x);
            for (size_t l = 0; l < last_; ++l, std::swap(x, y)) inner_layer(l, tile, x, y);
            last_layer(tile, x);
        }
        if (is_raw_maximum()) merge_largest();
    }

private:
    const PackedLayer& layer(size_t l) const { return chain_.layers[l]; }
    bool has_row_addends(size_t l) const { return l == 0 && row_addends_; }
    // The kernel keeps the largest sums of all rows: nothing is added to a row before the maximum.
    bool is_raw_maximum() const {
        return chain_.reduce == Reduce::max_points && !(last_ == 0 && !task_.addends.empty());
    }

    Weights weights_of(size_t l) const {
        const PackedLayer& at = layer(l);
        Weights weights = {at.weights.data(), at.scales.data(), at.bias.data()};
        if (at.has_matrix) {
            weights.scales = reinterpret_cast<const float*>(scratch_ + at.matrix_offset);
            weights.panels = scratch_ + at.matrix_offset + (at.panel_channels() * 4 + 63) / 64 * 64;
        }
        if (at.kernel->precision != Precision::int8) weights.scales = nullptr;
        if (l == 0 && shared_bias_ != nullptr) weights.bias = shared_bias_;
        return weights;
    }

    void prepare() {
        for (size_t l = 0; l <= last_; ++l) {
            const PackedLayer& at = layer(l);
            if (!at.has_matrix) continue;
            std::byte* scales = scratch_ + at.matrix_offset;
            pack_weights(at, task_.matrices[l], scales + (at.panel_channels() * 4 + 63) / 64 * 64,
                         reinterpret_cast<float*>(scales));
        }
        const PackedLayer& first = layer(0);
        for (const ChainAddend& addend : task_.addends) row_addends_ |= addend.access != Access::cloud;
        // Added to the sums of every row alike: part of the bias, unless the bias comes after the maximum.
        row_addends_ |= last_ == 0 && chain_.reduce != Reduce::none;
        if (!task_.addends.empty() && !row_addends_) {
            shared_bias_ = reinterpret_cast<float*>(scratch_ + chain_.bias_offset);
            std::copy(first.bias.begin(), first.bias.end(), shared_bias_);
            for (const ChainAddend& addend : task_.addends)
                for (int64_t c = 0; c < first.out; ++c) shared_bias_[c] += addend.data[c];
        }
        row_addends_ &= !task_.addends.empty();

        const PackedLayer& last = layer(last_);
        if (!is_raw_maximum()) return;
        std::byte* largest = scratch_ + chain_.largest_offset;
        const bool is_int = last.kernel->precision == Precision::int8;
        const int32_t least_int = std::numeric_limits<int32_t>::min();
        const float least_float = -std::numeric_limits<float>::infinity();
        for (int64_t c = 0; c < last.panel_channels(); ++c) {
            if (is_int)
                std::memcpy(largest + 4 * c, &least_int, 4);
            else
                std::memcpy(largest + 4 * c, &least_float, 4);
        }
    }

    // The first layer's input: parts side by side, in the first kernel's factors.
    void read_rows(const Tile& tile, std::byte* x) const {
        const PackedLayer& first = layer(0);
        const Kernel& kernel = *first.kernel;
        alignas(64) float block[kBlockFloats];
        for (int64_t p = 0; p < tile.panels; ++p) {
            std::byte* to = x + p * first.row_bytes;
            float* values = kernel.stores_values() ? reinterpret_cast<float*>(to) : block;
            int64_t filled = 0;  // channels that `values` holds
            const auto flush = [&] {
                if (kernel.stores_values()) {
                    values += filled * kPanelRows;
                    filled = 0;
                    return;
                }
                const int64_t padded = (filled + kernel.group - 1) / kernel.group * kernel.group;
                std::fill(values + filled * kPanelRows, values + padded * kPanelRows, 0.0f);
                kernel.store(values, padded, first.per_scale, to);
                to += padded * kPanelRows * kernel.factor_bytes();
                filled = 0;
            };
            for (const ChainPart& part : task_.parts)
                for (int64_t c = 0; c < part.channels;) {
                    const int64_t n = std::min(part.channels - c, kMostChannels - filled);
                    const float* rows[kPanelRows];
                    for (int64_t r = 0; r < kPanelRows; ++r)
                        rows[r] = part.data + std::min(tile.panel_begin(p) + r, task_.rows - 1) * part.stride + c;
                    take_rows(rows, n, values + filled * kPanelRows);
                    filled += n;
                    c += n;
                    if (filled == kMostChannels) flush();
                }
            if (filled > 0) flush();
        }
    }

    void add_addends(const Tile& tile, int64_t p, int64_t channel, int64_t channels, float* values) const {
        for (const ChainAddend& addend : task_.addends) {
            const float* rows[kPanelRows];
            for (int64_t r = 0; r < kPanelRows; ++r)
                rows[r] = row_of(addend, std::min(tile.panel_begin(p) + r, task_.rows - 1)) + channel;
            add_rows(rows, channels, values);
        }
    }

    // Rows that are missing may then have any value: there must be no maximum over them.
    bool are_few(size_t l, const Tile& tile, int64_t p) const {
        return chain_.reduce == Reduce::none && tile.panel_rows(p) <= layer(l).kernel->few_rows;
    }

    // Products of one panel of rows with one panel of weights.
    void multiply(size_t l, const Weights& weights, const Tile& tile, const std::byte* x, int64_t p, int64_t panel,
                  float* values) const {
        const PackedLayer& at = layer(l);
        (are_few(l, tile, p) ? at.kernel->few : at.kernel->product)(weights.panels + panel * at.panel_bytes,
                                                                    x + p * at.row_bytes, at.groups, values);
    }

    void finish(size_t l, const Weights& weights, const Tile& tile, int64_t p, int64_t panel, float* values) const {
        const PackedLayer& at = layer(l);
        const int64_t channels = at.kernel->channels, channel = panel * channels;
        const float* scales = weights.scales == nullptr ? nullptr : weights.scales + channel;
        if (has_row_addends(l)) {
            if (scales != nullptr) scale_sums(values, channels, scales);
            add_addends(tile, p, channel, std::min(channels, at.out - channel), values);
            scales = nullptr;
        }
        finish_sums(values, channels, scales, weights.bias + channel, at.activation);
    }

    /// What the kernel does to rows of a panel of channels, but where they go; false where it does not go by rows, or
    /// more is added than it takes along.
    bool find_finish(size_t l, const Weights& weights, const Tile& tile, int64_t p, int64_t panel,
                     RowFinish& by_rows) const {
        const PackedLayer& at = layer(l);
        if (at.kernel->rows == nullptr || are_few(l, tile, p) || (has_row_addends(l) && task_.addends.size() > 2))
            return false;
        const int64_t channel = panel * at.kernel->channels;
        by_rows.channels = std::min(at.kernel->channels, at.out - channel);
        by_rows.n_rows = tile.panel_rows(p);
        by_rows.bias = weights.bias + channel;
        by_rows.activation = at.activation;
        by_rows.added.count = 0;
        if (has_row_addends(l))
            for (const ChainAddend& addend : task_.addends)
                find_rows(addend, tile.panel_begin(p), by_rows.n_rows, channel,
                          by_rows.added.rows[by_rows.added.count++]);
        return true;
    }

    /// Rows that are missing become copies of the last one.
    static void fill_up(RowFinish& by_rows) {
        for (int i = 0; i < by_rows.added.count; ++i)
            std::fill(by_rows.added.rows[i] + by_rows.n_rows, by_rows.added.rows[i] + kPanelRows,
                      by_rows.added.rows[i][by_rows.n_rows - 1]);
        by_rows.n_rows = kPanelRows;
    }

    /// values[c][r] = lines[r][c]
    static void turn_lines(const float* lines, int64_t channels, float* values) {
        const float* rows[kPanelRows];
        for (int64_t r = 0; r < kPanelRows; ++r) rows[r] = lines + r * channels;
        take_rows(rows, channels, values);
    }

    void inner_layer(size_t l, const Tile& tile, const std::byte* x, std::byte* y) const {
        const PackedLayer& at = layer(l);
        const PackedLayer& next = layer(l + 1);
        const Weights weights = weights_of(l);
        const int64_t panel_step = at.kernel->channels * kPanelRows * next.kernel->factor_bytes();
        const bool can_advance = at.kernel->advance != nullptr && next.kernel == at.kernel && !has_row_addends(l);
        const bool in_place = next.kernel->stores_values();
        alignas(64) float block[kBlockFloats] = {};
        RowFinish by_rows;
        for (int64_t panel = 0; panel < at.panels; ++panel)
            for (int64_t p = 0; p < tile.panels; ++p) {
                std::byte* to = y + p * next.row_bytes + panel * panel_step;
                if (can_advance && !are_few(l, tile, p)) {
                    const int64_t channel = panel * at.kernel->channels;
                    const float* scales = weights.scales == nullptr ? nullptr : weights.scales + channel;
                    const Finish finish_of_panel = {scales, weights.bias + channel, at.activation};
                    at.kernel->advance(weights.panels + panel * at.panel_bytes, x + p * at.row_bytes, at.groups,
                                       finish_of_panel, next.per_scale, to);
                    continue;
                }
                float* values = in_place ? reinterpret_cast<float*>(to) : block;
                if (find_finish(l, weights, tile, p, panel, by_rows)) {
                    alignas(64) float lines[kBlockFloats];
                    if (by_rows.channels < at.kernel->channels) std::fill_n(lines, kBlockFloats, 0.0f);
                    fill_up(by_rows);
                    by_rows.out = lines;
                    by_rows.stride = at.kernel->channels;
                    at.kernel->rows(weights.panels + panel * at.panel_bytes, x + p * at.row_bytes, at.groups, by_rows);
                    turn_lines(lines, at.kernel->channels, values);
                } else {
                    multiply(l, weights, tile, x, p, panel, values);
                    finish(l, weights, tile, p, panel, values);
                }
                if (!in_place) next.kernel->store(values, at.kernel->channels, next.per_scale, to);
            }
    }

    // A last layer whose rows get something added: turned into rows first, since rows are what the addends are.
    void last_layer_by_rows(const Tile& tile, const std::byte* x) const {
        const PackedLayer& at = layer(last_);
        const Weights weights = weights_of(last_);
        const int64_t channels = at.kernel->channels, most = kRowChannels / channels * channels;  // whole panels
        alignas(64) float values[kBlockFloats] = {};
        alignas(64) float block[kPanelRows * kRowChannels];
        for (int64_t p = 0; p < tile.panels; ++p)
            for (int64_t first = 0, panel = 0; first < at.out; first += most) {
                const int64_t n = std::min(most, at.out - first);
                for (int64_t c = 0; c < n; c += channels, ++panel) {
                    if (at.kernel->lines != nullptr && c + channels <= n && !are_few(last_, tile, p)) {
                        at.kernel->lines(weights.panels + panel * at.panel_bytes, x + p * at.row_bytes, at.groups,
                                         block + c, kRowChannels);
                        continue;
                    }
                    multiply(last_, weights, tile, x, p, panel, values);
                    if (weights.scales != nullptr) scale_sums(values, channels, weights.scales + first + c);
                    put_rows(values, std::min(channels, n - c), tile.panel_rows(p), block + c, kRowChannels);
                }
                take_rows_of_panel(tile, p, first, n, block);
            }
    }

    // Products of a panel of rows, channels [first, first + n): adds what is to be added, and puts them where they
    // belong.
    void take_rows_of_panel(const Tile& tile, int64_t p, int64_t first, int64_t n, float* block) const {
        const PackedLayer& at = layer(last_);
        const int64_t begin = tile.panel_begin(p), rows = tile.panel_rows(p);
        const float* bias = at.bias.data() + first;
        AddedRows added;
        for (const ChainAddend& addend : task_.addends) {
            if (is_late(addend)) continue;
            if (added.count == 2) {  // two go along with what happens next: rows are read and written once less
                for (int64_t r = 0; r < rows; ++r) add_row(added.rows[0][r], n, block + r * kRowChannels);
                std::copy(added.rows[1], added.rows[1] + rows, added.rows[0]);
                --added.count;
            }
            find_rows(addend, begin, rows, first, added.rows[added.count++]);
        }
        if (chain_.reduce == Reduce::none)
            return finish_rows(block, kRowChannels, added, rows, n, bias, at.activation,
                               task_.out + begin * task_.out_stride + first, task_.out_stride);
        const bool is_point = chain_.reduce == Reduce::max_rows;
        int64_t point = is_point ? begin / task_.width : 0, of_point = is_point ? begin % task_.width : 0;
        float* out = task_.out + point * task_.out_stride + first;
        for (int64_t r = 0; r < rows; ++r) {
            raise_row(block + r * kRowChannels, added, r, n, is_point && of_point == 0, out);
            if (!is_point || ++of_point < task_.width) continue;
            for (const ChainAddend& addend : task_.addends)
                if (is_late(addend)) add_row(row_of(addend, begin + r) + first, n, out);
            finish_row(out, n, bias, at.activation, out);
            of_point = 0;
            out += task_.out_stride;
        }
    }

    static void find_rows(const ChainAddend& addend, int64_t begin, int64_t rows, int64_t channel,
                          const float** found) {
        const float* data = addend.data + channel;
        switch (addend.access) {
            case Access::row:
                for (int64_t r = 0; r < rows; ++r) found[r] = data + (begin + r) * addend.stride;
                return;
            case Access::cloud: std::fill(found, found + rows, data); return;
            case Access::point: {
                int64_t of_point = begin % addend.width;
                data += begin / addend.width * addend.stride;
                for (int64_t r = 0; r < rows; ++r) {
                    found[r] = data;
                    if (++of_point < addend.width) continue;
                    of_point = 0;
                    data += addend.stride;
                }
                return;
            }
            case Access::neighbour:
                for (int64_t r = 0; r < rows; ++r) found[r] = data + addend.neighbours[begin + r] * addend.stride;
                return;
        }
    }

    // The same for all rows of a point: added once, after their maximum. Sums are monotone, and so is rounding.
    bool is_late(const ChainAddend& addend) const {
        return chain_.reduce == Reduce::max_rows &&
               (addend.access == Access::cloud || (addend.access == Access::point && addend.width == task_.width));
    }

    void last_layer(const Tile& tile, const std::byte* x) const {
        const PackedLayer& at = layer(last_);
        const bool is_by_rows = chain_.reduce == Reduce::none && at.kernel->rows && task_.addends.size() <= 2;
        if (has_row_addends(last_) && !is_by_rows) return last_layer_by_rows(tile, x);
        const Weights weights = weights_of(last_);
        const int64_t channels = at.kernel->channels;
        alignas(64) float values[kBlockFloats] = {};
        RowFinish by_rows;
        for (int64_t panel = 0; panel < at.panels; ++panel) {
            const int64_t channel = panel * channels, n = std::min(channels, at.out - channel);
            if (is_raw_maximum()) {
                at.kernel->maximum(weights.panels + panel * at.panel_bytes, x, at.groups, tile.panels, at.row_bytes,
                                   scratch_ + chain_.largest_offset + 4 * channel);
                continue;
            }
            for (int64_t p = 0; p < tile.panels; ++p) {
                if (chain_.reduce == Reduce::none && find_finish(last_, weights, tile, p, panel, by_rows)) {
                    by_rows.out = task_.out + tile.panel_begin(p) * task_.out_stride + channel;
                    by_rows.stride = task_.out_stride;
                    at.kernel->rows(weights.panels + panel * at.panel_bytes, x + p * at.row_bytes, at.groups, by_rows);
                    continue;
                }
                multiply(last_, weights, tile, x, p, panel, values);
                if (chain_.reduce == Reduce::none) {
                    finish(last_, weights, tile, p, panel, values);
                    put_rows(values, n, tile.panel_rows(p),
                             task_.out + tile.panel_begin(p) * task_.out_stride + channel, task_.out_stride);
                    continue;
                }
                if (weights.scales != nullptr) scale_sums(values, channels, weights.scales + channel);
                if (chain_.reduce == Reduce::max_points)
                    raise_to(values, n, tile.panel_rows(p), task_.out + channel);
                else
                    raise_points(tile, p, channel, n, values);
            }
        }
    }

    // Reduce::max_rows: rows of a point follow each other, and may begin in one panel and end in another.
    void raise_points(const Tile& tile, int64_t p, int64_t channel, int64_t n, const float* values) const {
        const PackedLayer& last = layer(last_);
        float rows[kBlockFloats];
        put_rows(values, n, tile.panel_rows(p), rows, kMostChannels);
        for (int64_t r = 0; r < tile.panel_rows(p); ++r) {
            const int64_t row = tile.panel_begin(p) + r;
            const float* from = rows + r * kMostChannels;
            float* out = task_.out + row / task_.width * task_.out_stride + channel;
            if (row % task_.width == 0)
                std::copy(from, from + n, out);
            else
                for (int64_t c = 0; c < n; ++c) out[c] = from[c] > out[c] ? from[c] : out[c];
            if (row % task_.width == task_.width - 1)
                finish_row(out, n, last.bias.data() + channel, last.activation, out);
        }
    }

    void merge_largest() const {
        const PackedLayer& last = layer(last_);
        const Weights weights = weights_of(last_);
        const std::byte* largest = scratch_ + chain_.largest_offset;
        for (int64_t c = 0; c < last.out; ++c) {
            float raw;
            std::memcpy(&raw, largest + 4 * c, 4);
            if (weights.scales != nullptr) {
                int32_t sum;
                std::memcpy(&sum, largest + 4 * c, 4);
                raw = static_cast<float>(sum) * weights.scales[c];
            }
            if (raw > task_.out[c]) task_.out[c] = raw;
        }
    }

    const PackedChain& chain_;
    const ChainTask& task_;
    std::byte* scratch_;
    size_t last_;
    bool row_addends_ = false;  // the first layer's addends are added row by row
    float* shared_bias_ = nullptr;
};

std::vector<const Kernel*> best_kernels() {
    return {kernels_of(Precision::fp32).front(), kernels_of(Precision::bf16).front(),
            kernels_of(Precision::int8).front()};
}

}  // namespace

struct Chain::Packed {
    PackedChain chain;
};

Chain::Chain(const std::vector<Dense>& layers, Reduce reduce) : Chain(layers, reduce, best_kernels()) {}

Chain::Chain(const std::vector<Dense>& layers, Reduce reduce, std::span<const Kernel* const> kernels)
    : packed_(std::make_unique<Packed>(Packed{pack_chain(layers, reduce, kernels)})) {}

Chain::~Chain() = default;
Chain::Chain(Chain&&) noexcept = default;

int64_t Chain::weight_bytes() const {
    int64_t bytes = 0;
    for (const PackedLayer& layer : packed_->chain.layers)
        bytes += layer.weights.bytes() + static_cast<int64_t>(4 * (layer.scales.size() + layer.bias.size()));
    return bytes;
}

int64_t Chain::scratch_bytes() const {
    return packed_->chain.scratch_bytes;
}

int64_t Chain::tile_rows() const {
    // A task packs its cloud's matrices: that should be little of its work.
    for (const PackedLayer& layer : packed_->chain.layers)
        if (layer.has_matrix) return 2 * kTileRows;
    return kTileRows;
}

std::string Chain::describe() const {
    std::string text;
    const Kernel* before = nullptr;
    for (const PackedLayer& layer : packed_->chain.layers) {
        if (layer.kernel != before)
            text +=
                fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(layer.kernel->precision), layer.kernel->name);
        before = layer.kernel;
    }
    return text;
}

void Chain::run(const ChainTask& task, std::byte* scratch) const {
    if (task.rows > 0) Run(packed_->chain, task, scratch).run();
}

void Chain::finish(float* raw) const {
    const PackedLayer& last = packed_->chain.layers.back();
    finish_row(raw, last.out, last.bias.data(), last.activation, raw);
}

}  // namespace stipple::engine::cpu
