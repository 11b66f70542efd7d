#pragma once
// Checkpoints: directories ckpt/step-00001234 of a run folder that are complete and on disk, or do not exist.
//
// Saving
//   1. the files are written into ckpt/.tmp-STEP-PID/ (space reserved first where the size is known), each flushed
//   2. manifest.json is written last: step, sizes and CRC-32 of the files, and a CRC-32 of itself
//   3. the directory is flushed, renamed to step-NNNNNNNN, and ckpt/ is flushed: from here on the step is saved
//   4. the symbolic link ckpt/latest is replaced, for people; loading does not trust it
//   5. older checkpoints go, except the last few and the best; a directory is renamed to .tmp-* before it is emptied
// A process that dies at any moment leaves the checkpoints before it untouched. What it left unfinished is removed by
// RunFolder::resume. Saving is not interrupted by SIGINT and SIGTERM: they ask for exactly this save.
//
// Failpoints (failpoint.h), in the order in which they are passed; checkpoint_failpoints() lists them:
//   ckpt.begin, ckpt.after_mkdir, then for each file ckpt.mid_write, ckpt.after_write, ckpt.after_fsync, then
//   ckpt.before_manifest, ckpt.after_manifest, ckpt.after_dir_fsync, ckpt.after_rename, ckpt.after_ckpt_fsync,
//   ckpt.before_latest, ckpt.after_latest, then for each old one ckpt.before_delete, ckpt.mid_delete, then ckpt.end
//
// A checkpoint is not exchanged with strangers: checksums find accidents, not attacks.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/byte_sink.h"

namespace stipple {

inline constexpr int kCheckpointVersion = 1;  // of manifest.json; its last line, the checksum, is the same in all

struct CheckpointInfo {
    int64_t step = 0;
    std::string config_hash;                      // a change of configuration shows
    int world_size = 1, threads = 1;              // a change of either is not bit-exact
    std::map<std::string, std::string> versions;  // "stipple", "torch", ...
    std::optional<double> score;                  // smaller is better (negate an accuracy); NaN is never the best
    std::string extra = "{}";  // whatever else the trainer needs: the text of a JSON object, kept as it is
};

/// A file to be saved. The name is a plain file name other than manifest.json.
struct CheckpointFile {
    std::string name;
    std::function<void(ByteSink&)> write;
    int64_t bytes = -1;  // when known, so that a full disk shows before anything is written
};

struct KeepRule {
    int last = 3;      // at least 1
    bool best = true;  // and the one with the smallest score
};

/// Saves and returns the directory's path. When it returns, the step survives a power failure. Throws
/// Error{cannot_write}, and whatever the writers throw; then the checkpoints there before are as they were, and what
/// was written is removed - unless the failure came after step 3, when the new checkpoint is there and sound.
/// A checkpoint of the same step is replaced. The caller holds the RunFolder.
std::string save_checkpoint(const std::string& run, const CheckpointInfo& info, std::span<const CheckpointFile> files,
                            KeepRule keep = {});

struct Checkpoint {
    struct File {
        std::string name;
        int64_t bytes = 0;
        uint32_t crc32 = 0;
    };
    std::string path;  // of the directory
    CheckpointInfo info;
    std::vector<File> files;

    int64_t bytes() const;  // of all files
    /// The path of a file; throws Error{bad_file} when the checkpoint has none of that name.
    std::string file(const std::string& name) const;
};

/// Reads the manifest and checks every byte of every file. Throws Error{bad_file} that names the damaged file, or both
/// versions when the checkpoint is from a newer stipple.
Checkpoint open_checkpoint(const std::string& path);

enum class Damaged { skip, refuse };

/// The newest checkpoint of a run that is sound; nothing when there is none. Damaged ones are named in `warnings` and
/// skipped, or with Damaged::refuse are an Error{bad_file}. One from a newer stipple is an error in either case: an
/// older one would silently undo its work. Changes nothing on disk and needs no lock.
std::optional<Checkpoint> find_checkpoint(const std::string& run, Damaged damaged, std::vector<std::string>& warnings);

/// Removes ckpt/.tmp-*. Only for the holder of the run's lock, which RunFolder::resume is.
void remove_unfinished_checkpoints(const std::string& run);

/// Names of the failpoints above.
std::span<const char* const> checkpoint_failpoints();

}  // namespace stipple
