#include "stipple/io/laz/decoder.h"

namespace stipple::io::laz {

constexpr int64_t kFeedBytes = int64_t{32} << 10;  // at a time

ByteFeed::ByteFeed(std::span<const std::byte> bytes, std::function<void()> on_end)
    : begin_(bytes.data()), next_(begin_), end_(begin_ + bytes.size()), on_end_(std::move(on_end)) {}

ByteFeed::ByteFeed(ByteReader& reader, std::function<void()> on_end) : reader_(&reader), on_end_(std::move(on_end)) {}

void ByteFeed::release() {
    if (!reader_) return;
    reader_->skip(next_ - begin_, "the points");
    begin_ = next_ = end_ = nullptr;
}

void ByteFeed::refill() {
    if (reader_) {
        release();
        const auto bytes = reader_->peek(kFeedBytes);
        begin_ = next_ = bytes.data();
        end_ = begin_ + bytes.size();
    }
    if (next_ == end_) {
        on_end_();
        STIPPLE_ASSERT(!"on_end throws");
    }
}

void Decoder::begin() {
    value_ = 0;
    for (int i = 0; i < 4; ++i) value_ = value_ << 8 | feed_.next();
    length_ = 0xffffffffu;
}

IntegerDecoder::IntegerDecoder(int bits, size_t contexts)
    : bits_(bits), widths_(contexts, SymbolModel(static_cast<uint32_t>(bits) + 1)) {
    values_.emplace_back();
    for (int k = 1; k <= bits && k < 32; ++k) values_.emplace_back(1u << std::min(k, 8));
}

}  // namespace stipple::io::laz
