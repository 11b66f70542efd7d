#pragma once
// AtomicFile: a file appears under its name complete and on disk, or not at all.
//
// Bytes go to a hidden temporary file in the same folder; commit() flushes it to the disk, renames it and flushes the
// folder. Without commit() - an exception, a signal that unwinds - the temporary file is removed and whatever stood
// under the name before is untouched. A killed process leaves at most the hidden ".NAME.PID-N.tmp".

#include <string>

#include "stipple/core/byte_sink.h"

namespace stipple {

enum class Overwrite { refuse, allow };

class AtomicFile : public RewritableSink {
public:
    /// Throws Error{cannot_write} when `path` exists (and may not be overwritten), is a folder, or its folder is
    /// missing or read-only. Nothing is written at `path` before commit().
    AtomicFile(std::string path, Overwrite overwrite);
    ~AtomicFile() override;
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    using ByteSink::write;
    void write(const void* data, int64_t bytes) override;
    void rewrite(int64_t offset, const void* data, int64_t bytes) override;

    /// Makes the file appear. Throws Error{cannot_write}; then nothing has appeared, unless it was the folder that the
    /// disk refused to flush: then the file is there, whole, and may be gone after a power failure.
    void commit();

    /// The temporary file, for libraries that insist on a path. Bytes written through write() are flushed first.
    const std::string& temporary_path();

private:
    void flush();
    [[noreturn]] void fail(const char* doing) const;

    std::string path_, temporary_;
    Overwrite overwrite_;
    int fd_ = -1;
    std::vector<std::byte> pending_;
};

/// The checks of AtomicFile's constructor without writing anything: call before a long computation.
void require_writable(const std::string& path, Overwrite overwrite);

/// Flushes a folder's entries to the disk (after a rename in it). Throws Error{cannot_write}.
void sync_folder(const std::string& folder);

/// The folder part of a path; "." when there is none.
std::string folder_of(const std::string& path);

/// Unlinks the temporary files of this process. Async-signal-safe: for the handler of a second SIGINT.
void remove_temporary_files_now();

}  // namespace stipple
