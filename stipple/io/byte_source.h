#pragma once
// Where bytes come from. Parsers read a ByteReader over a ByteSource; they never see a path and never hold a second
// copy of the file. Files are read, not mapped: a file that shrinks while it is read is an error, not a SIGBUS.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/buffer.h"
#include "stipple/core/quoted.h"
#include "stipple/io/limits.h"

namespace stipple::io {

class ByteSource {
public:
    virtual ~ByteSource() = default;
    /// Up to `capacity` bytes; 0 only at the end. Throws Error{bad_file} when reading fails.
    virtual int64_t read(std::byte* to, int64_t capacity) = 0;
    /// Total bytes, when known: a regular file or memory, not a pipe.
    virtual std::optional<int64_t> size() const = 0;
};

class MemorySource : public ByteSource {
public:
    explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
    int64_t read(std::byte* to, int64_t capacity) override;
    std::optional<int64_t> size() const override { return static_cast<int64_t>(bytes_.size()); }

private:
    std::span<const std::byte> bytes_;
    size_t next_ = 0;
};

/// A regular file or a pipe by its path, or standard input for "-". Throws Error{bad_file} for what is missing,
/// unreadable, a folder or a device.
class FileSource : public ByteSource {
public:
    /// `begin`: where to start in a regular file; size() counts from there.
    explicit FileSource(const std::string& path, int64_t begin = 0);
    ~FileSource() override;
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;
    int64_t read(std::byte* to, int64_t capacity) override;
    std::optional<int64_t> size() const override { return size_; }

private:
    int fd_ = -1;
    std::optional<int64_t> size_;
};

/// A buffered reader that knows where it is. Every failure is an Error{bad_file} with line or byte offset.
class ByteReader {
public:
    explicit ByteReader(ByteSource& source, Limits limits = {});

    const Limits& limits() const { return limits_; }
    int64_t offset() const { return offset_; }            // bytes consumed
    int64_t line_number() const { return line_number_; }  // of the line that line() returned last, 1-based
    bool at_end();

    /// Bytes left, when the source knows its size.
    std::optional<int64_t> remaining() const;

    /// Throws unless `bytes` more can be there: call before any allocation that a header asks for. Says nothing about
    /// a pipe, whose data must arrive first.
    void require_remaining(int64_t bytes, std::string_view what) const;

    // === Binary
    /// The next bytes without consuming them: up to `bytes` (at most 64 KiB), fewer only at the end.
    std::span<const std::byte> peek(int64_t bytes);
    void read_exact(void* to, int64_t bytes, std::string_view what);
    /// `bytes` bytes in a new buffer. Memory grows with what has arrived, not with what was asked for.
    Buffer read_buffer(int64_t bytes, std::string_view what);
    void skip(int64_t bytes, std::string_view what);
    /// One little- or big-endian number.
    template <class T>
    T read_number(std::string_view what, bool big_endian = false);

    // === Text
    /// The next line without its end (LF or CRLF); nothing at the end of the input. Valid until the next call.
    /// Throws when it is longer than limits().max_line.
    std::optional<std::string_view> line();
    /// As many whole lines as fit in about `bytes`, ends included (the last may lack one); empty at the end. Does not
    /// advance line_number(): call count_lines() with what was used of it. Valid until the next call.
    std::string_view lines(int64_t bytes);
    void count_lines(int64_t lines) { line_number_ += lines; }
    /// Un-reads the last `bytes` bytes of what lines() returned.
    void give_back(int64_t bytes) {
        begin_ -= bytes;
        offset_ -= bytes;
    }

    // === Errors
    [[noreturn]] void fail(std::string message, std::string hint = {}) const;       // at the byte offset
    [[noreturn]] void fail_line(std::string message, std::string hint = {}) const;  // at line_number()

private:
    bool fill(int64_t wanted);  // buffer at least `wanted` bytes unless the input ends; false at the end

    ByteSource& source_;
    Limits limits_;
    std::vector<std::byte> buffer_;
    int64_t begin_ = 0, end_ = 0;  // unread part of the buffer
    int64_t offset_ = 0, line_number_ = 0;
    bool ended_ = false;
};

using stipple::in_quotes;

template <class T>
T ByteReader::read_number(std::string_view what, bool big_endian) {
    unsigned char bytes[sizeof(T)];
    read_exact(bytes, sizeof(T), what);
    T value;
    if (big_endian)
        for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    __builtin_memcpy(&value, bytes, sizeof(T));  // hosts are little-endian: aarch64 and x86-64
    return value;
}

}  // namespace stipple::io
