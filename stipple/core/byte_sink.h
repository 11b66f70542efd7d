#pragma once
// ByteSink: where bytes go, in order. Writers of every format take one, so that a file, standard output and memory
// are the same to them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace stipple {

class ByteSink {
public:
    virtual ~ByteSink() = default;
    /// All of the bytes, or throws Error{cannot_write}.
    virtual void write(const void* data, int64_t bytes) = 0;
    void write(std::string_view text) { write(text.data(), static_cast<int64_t>(text.size())); }
};

/// A sink whose beginning can be corrected when the end is known, as counts in a header must be.
class RewritableSink : public ByteSink {
public:
    /// Replaces bytes that were written before, which must be there.
    virtual void rewrite(int64_t offset, const void* data, int64_t bytes) = 0;
};

class MemorySink : public RewritableSink {
public:
    using ByteSink::write;
    void rewrite(int64_t offset, const void* data, int64_t bytes) override {
        std::memcpy(bytes_.data() + offset, data, static_cast<size_t>(bytes));
    }
    void write(const void* data, int64_t bytes) override {
        const auto* begin = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), begin, begin + bytes);
    }
    std::vector<std::byte>& bytes() { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace stipple
