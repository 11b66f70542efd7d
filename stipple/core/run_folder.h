#pragma once
// RunFolder: everything one training run owns on disk, held by one process at a time.
//
//   config.toml     the resolved configuration, written once
//   metrics.jsonl   one JSON object per line and step
//   ckpt/           checkpoints (checkpoint.h)
//   lock            the process id of the holder; a flock(2) that dies with its process, so a crash never blocks a run
//
// The file `lock` itself stays: removing it would let two processes lock two different files of that name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stipple {

class RunFolder {
public:
    /// A new run. Makes the folder, with its parents, and stores `config`. Throws Error{cannot_write} when the folder
    /// is not empty or held by another process, whose id it names.
    static RunFolder create(const std::string& path, std::string_view config);

    /// An existing run. Repairs what a crash left: removes unfinished checkpoints (`ckpt/.tmp-*`; whoever wrote them is
    /// dead, since this process has the lock) and cuts a torn last line off metrics.jsonl. Throws Error{bad_file} when
    /// there is no run, Error{cannot_write} when another process holds it.
    static RunFolder resume(const std::string& path);

    /// Of a process that has none: another one of the run holds it. path() is empty, and nothing may be stored.
    static RunFolder elsewhere() { return {}; }

    RunFolder(RunFolder&& other) noexcept;
    RunFolder& operator=(RunFolder&& other) noexcept;
    ~RunFolder();

    const std::string& path() const { return path_; }
    const std::string& config() const { return config_; }

    /// Appends one JSON object (text without a newline) as a line and hands it to the system, so that it survives the
    /// death of this process. A write that fails leaves no part of the line. Throws Error{cannot_write}, or
    /// Error{bad_argument} when it is not one JSON object.
    void append_metrics(std::string_view object);

    /// Drops the lines at the end whose "step" is above `step`: what the run did after the checkpoint it resumes from
    /// will be done, and logged, again.
    void rewind_metrics(int64_t step);

    /// Flushes metrics.jsonl to the disk. Call before saving a checkpoint.
    void sync_metrics();

private:
    RunFolder() = default;
    void lock();
    void open_metrics();
    void repair_metrics();
    void close() noexcept;
    std::string metrics_path() const { return path_ + "/metrics.jsonl"; }

    std::string path_, config_;
    int lock_ = -1, metrics_ = -1;
};

/// Bytes that an unprivileged process may still write to the file system of `path`.
int64_t free_space(const std::string& path);

/// Throws Error{cannot_write} unless `count` checkpoints of `bytes` bytes and one being written fit on the disk of
/// `run`, those already there not counted: call it after the first checkpoint of a run, with how many more it will
/// keep.
void require_free_space(const std::string& run, int64_t bytes, int64_t count);

}  // namespace stipple
