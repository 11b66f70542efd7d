#include "stipple/io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stipple/core/interrupt.h"

namespace stipple::io {
namespace {

constexpr int64_t kBuffer = int64_t{256} << 10;
constexpr int64_t kMaxPeek = int64_t{64} << 10;

/// On standard input a terminal is a person typing and /dev/null is nothing; other devices (/dev/zero) have no end.
bool never_ends(int fd, const struct stat& status) {
    struct stat null {};
    return !::isatty(fd) && !(::stat("/dev/null", &null) == 0 && null.st_rdev == status.st_rdev);
}

}  // namespace

int64_t MemorySource::read(std::byte* to, int64_t capacity) {
    const size_t count = std::min(static_cast<size_t>(capacity), bytes_.size() - next_);
    if (count) std::memcpy(to, bytes_.data() + next_, count);
    next_ += count;
    return static_cast<int64_t>(count);
}

FileSource::FileSource(const std::string& path, int64_t begin) {
    if (path == "-") {
        fd_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
        if (fd_ < 0) throw Error(ErrorCode::bad_file, Place{path}, "standard input is closed");
    } else {
        do {  // a FIFO without a writer waits here
            check_interrupted();
            fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        } while (fd_ < 0 && errno == EINTR);
        if (fd_ < 0)
            throw Error(ErrorCode::bad_file, Place{path}, fmt::format("cannot open: {}", std::strerror(errno)));
    }
    struct stat status {};
    const char* refusal = nullptr;
    if (::fstat(fd_, &status) != 0)
        refusal = "cannot be examined";
    else if (S_ISDIR(status.st_mode))
        refusal = "is a folder, not a file";
    else if (S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && (path != "-" || never_ends(fd_, status))))
        refusal = "is a device, not a file";
    if (refusal) {
        ::close(fd_);
        throw Error(ErrorCode::bad_file, Place{path}, refusal);
    }
    if (S_ISREG(status.st_mode)) {
        if (begin > 0) ::lseek(fd_, begin, SEEK_SET);
        // Standard input may stand inside a file that the shell has read from.
        const off_t at = ::lseek(fd_, 0, SEEK_CUR);
        size_ = status.st_size - (at > 0 ? at : 0);
    }
}

FileSource::~FileSource() {
    ::close(fd_);
}

int64_t FileSource::read(std::byte* to, int64_t capacity) {
    // Pieces, so that an interrupt is noticed within a large array.
    capacity = std::min<int64_t>(capacity, int64_t{8} << 20);
    for (;;) {
        check_interrupted();
        const ssize_t count = ::read(fd_, to, static_cast<size_t>(capacity));
        if (count >= 0) return count;
        if (errno != EINTR) throw Error(ErrorCode::bad_file, fmt::format("cannot read: {}", std::strerror(errno)));
    }
}

ByteReader::ByteReader(ByteSource& source, Limits limits) : source_(source), limits_(limits) {
    const int64_t size = source.size().value_or(kBuffer);
    buffer_.resize(static_cast<size_t>(std::clamp<int64_t>(size + 1, 256, kBuffer)));
}

std::optional<int64_t> ByteReader::remaining() const {
    const auto size = source_.size();
    if (!size) return std::nullopt;
    return std::max<int64_t>(0, *size - offset_);
}

void ByteReader::require_remaining(int64_t bytes, std::string_view what) const {
    const auto left = remaining();
    if (left && bytes > *left) fail(fmt::format("{}: {} bytes needed, the file has {} left", what, bytes, *left));
}

bool ByteReader::fill(int64_t wanted) {
    if (end_ - begin_ >= wanted) return true;
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, static_cast<size_t>(end_ - begin_));
        end_ -= begin_;
        begin_ = 0;
    }
    if (static_cast<int64_t>(buffer_.size()) < wanted) buffer_.resize(static_cast<size_t>(wanted));
    while (end_ < wanted && !ended_) {
        const int64_t count = source_.read(buffer_.data() + end_, static_cast<int64_t>(buffer_.size()) - end_);
        if (count == 0) ended_ = true;
        end_ += count;
    }
    return end_ - begin_ >= wanted;
}

bool ByteReader::at_end() {
    return !fill(1);
}

std::span<const std::byte> ByteReader::peek(int64_t bytes) {
    STIPPLE_ASSERT(bytes <= kMaxPeek);
    fill(bytes);
    return {buffer_.data() + begin_, static_cast<size_t>(std::min(bytes, end_ - begin_))};
}

void ByteReader::read_exact(void* to, int64_t bytes, std::string_view what) {
    auto* out = static_cast<std::byte*>(to);
    const int64_t buffered = std::min(bytes, end_ - begin_);
    if (buffered) std::memcpy(out, buffer_.data() + begin_, static_cast<size_t>(buffered));
    begin_ += buffered;
    offset_ += buffered;
    int64_t done = buffered;
    while (done < bytes) {
        if (bytes - done < kBuffer / 4) {  // small rests go through the buffer
            if (!fill(bytes - done)) {
                offset_ += end_ - begin_;
                begin_ = end_;
                fail(fmt::format("the file ends in the middle of {}", what));
            }
            std::memcpy(out + done, buffer_.data() + begin_, static_cast<size_t>(bytes - done));
            begin_ += bytes - done;
            offset_ += bytes - done;
            return;
        }
        const int64_t count = ended_ ? 0 : source_.read(out + done, bytes - done);
        if (count == 0) {
            ended_ = true;
            fail(fmt::format("the file ends in the middle of {}", what));
        }
        done += count;
        offset_ += count;
    }
}

Buffer ByteReader::read_buffer(int64_t bytes, std::string_view what) {
    require_remaining(bytes, what);
    if (remaining()) {
        Buffer buffer(bytes);
        read_exact(buffer.data(), bytes, what);
        return buffer;
    }
    int64_t have = std::min<int64_t>(bytes, int64_t{1} << 20);
    Buffer buffer(have);
    read_exact(buffer.data(), have, what);
    while (have < bytes) {
        const int64_t next = std::min(bytes, 2 * have);
        Buffer larger(next);
        std::memcpy(larger.data(), buffer.data(), static_cast<size_t>(have));
        buffer = std::move(larger);
        read_exact(buffer.data() + have, next - have, what);
        have = next;
    }
    return buffer;
}

void ByteReader::skip(int64_t bytes, std::string_view what) {
    require_remaining(bytes, what);
    while (bytes > 0) {
        if (!fill(1)) fail(fmt::format("the file ends in the middle of {}", what));
        const int64_t step = std::min(bytes, end_ - begin_);
        begin_ += step;
        offset_ += step;
        bytes -= step;
    }
}

std::optional<std::string_view> ByteReader::line() {
    int64_t searched = 0;
    for (;;) {
        const char* text = reinterpret_cast<const char*>(buffer_.data() + begin_);
        const int64_t have = end_ - begin_;
        if (const void* found = std::memchr(text + searched, '\n', static_cast<size_t>(have - searched))) {
            int64_t length = static_cast<const char*>(found) - text;
            begin_ += length + 1;
            offset_ += length + 1;
            ++line_number_;
            if (length > limits_.max_line) fail_line(fmt::format("line longer than {} bytes", limits_.max_line));
            if (length > 0 && text[length - 1] == '\r') --length;
            return std::string_view(text, static_cast<size_t>(length));
        }
        if (have > limits_.max_line) {
            ++line_number_;
            fail_line(fmt::format("line longer than {} bytes", limits_.max_line));
        }
        searched = have;
        if (!fill(have + 1)) break;
    }
    const int64_t have = end_ - begin_;
    if (have == 0) return std::nullopt;
    const char* text = reinterpret_cast<const char*>(buffer_.data() + begin_);
    begin_ = end_;
    offset_ += have;
    ++line_number_;
    return std::string_view(text, static_cast<size_t>(have - (text[have - 1] == '\r')));
}

std::string_view ByteReader::lines(int64_t bytes) {
    if (const auto left = remaining()) bytes = std::min(bytes, *left + 1);  // one more, to meet the end
    fill(bytes);
    for (;;) {
        const char* text = reinterpret_cast<const char*>(buffer_.data() + begin_);
        int64_t length = end_ - begin_;
        if (!ended_) {
            while (length > 0 && text[length - 1] != '\n') --length;
            if (length == 0) {  // one line longer than the block
                ++line_number_;
                if (end_ - begin_ > limits_.max_line)
                    fail_line(fmt::format("line longer than {} bytes", limits_.max_line));
                --line_number_;
                fill(2 * (end_ - begin_) + 1);
                continue;
            }
        }
        begin_ += length;
        offset_ += length;
        return {text, static_cast<size_t>(length)};
    }
}

void ByteReader::fail(std::string message, std::string hint) const {
    throw Error(ErrorCode::bad_file, Place{{}, {}, offset_}, std::move(message), std::move(hint));
}

void ByteReader::fail_line(std::string message, std::string hint) const {
    throw Error(ErrorCode::bad_file, Place{{}, line_number_, {}}, std::move(message), std::move(hint));
}

}  // namespace stipple::io
