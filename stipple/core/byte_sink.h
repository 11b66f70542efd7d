#pragma once
// ByteSink: where bytes go, in order. Writers of every format take one, so that a file, standard output and memory
// are the same to them.

#include <cstddef>
#include <cstdint>
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

class MemorySink : public ByteSink {
public:
    using ByteSink::write;
    void write(const void* data, int64_t bytes) override {
        const auto* begin = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), begin, begin + bytes);
    }
    std::vector<std::byte>& bytes() { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace stipple
