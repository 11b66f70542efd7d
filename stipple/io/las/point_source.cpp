#include "stipple/io/las/point_source.h"

namespace stipple::io::las {

PointSource::PointSource(ByteReader& reader, const Header& header, const Records& records, Warnings& warnings)
    : reader_(reader), record_(header.record) {
    const auto left = reader.remaining();
    bounded_ = left.has_value();
    if (!records.compression) return;
    bounded_ = left && header.count * header.record / reader.limits().max_inflation <= *left;
    compressed_.emplace(reader, header, *records.compression, warnings);
}

void PointSource::read(std::byte* to, int64_t count) {
    if (compressed_)
        compressed_->read(to, count);
    else
        reader_.read_exact(to, count * record_, "the points");
}

Buffer PointSource::read_buffer(int64_t count) {
    if (!compressed_) return reader_.read_buffer(count * record_, "the points");
    int64_t have = std::min(count, std::max<int64_t>(1, (int64_t{1} << 20) / record_));
    Buffer buffer(have * record_);
    compressed_->read(buffer.data(), have);
    while (have < count) {
        const int64_t next = std::min(count, 2 * have);
        Buffer larger(next * record_);
        std::memcpy(larger.data(), buffer.data(), static_cast<size_t>(have * record_));
        buffer = std::move(larger);
        compressed_->read(buffer.data() + have * record_, next - have);
        have = next;
    }
    return buffer;
}

}  // namespace stipple::io::las
