#pragma once
// Event files of TensorBoard (events.out.tfevents.*): what a run measured, record after record, scalars and images by
// tag and step.
//
// The bytes of a record (io/common/record.h) are a message Event of Protocol Buffers [TensorBoard, event.proto and
// summary.proto], of which time, step, version, scalars and images are known here. The first record of a file has the
// version, "brain.Event:2".
//
// TensorBoard shows a folder as a run and follows only the last of its event files, and it reads slowly through images:
// these belong into a folder of their own.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/image.h"
#include "stipple/io/byte_source.h"

namespace stipple::io {

struct EventScalar {
    std::string tag = {};
    float value = 0;  // may be NaN or infinite: TensorBoard marks it
    bool operator==(const EventScalar&) const = default;
};

struct EventImage {
    std::string tag = {};
    int32_t width = 0, height = 0;
    int32_t colorspace = 0;            // 1 grey, 3 RGB, 4 RGBA
    std::vector<std::byte> file = {};  // the bytes of a PNG file; of others' events perhaps another format
    bool operator==(const EventImage&) const = default;
};

struct Event {
    double wall_time = 0;  // seconds since 1970
    int64_t step = 0;
    std::string version = {};  // of the file, in its first event
    std::vector<EventScalar> scalars = {};
    std::vector<EventImage> images = {};
    int64_t begin = 0;  // of its record in the file; not written
};

struct EventFile {
    std::vector<Event> events;  // the first has the version
    int64_t whole_bytes = 0;    // where the last whole record ends
    std::string damage;         // what ends the records before the file does: "the file ends within a record"
};

/// All records up to the first one that is cut short or whose checksum is wrong, as after a power failure; `damage`
/// says so. An empty file has no events. Throws Error{bad_file} when the first record is whole and none of an event
/// file, for a record of more than limits().max_record bytes, and for one with a right checksum that breaks the
/// format.
EventFile parse_events(ByteReader& reader);
EventFile load_events(const std::string& path);

/// The record of an event. Zero, no text and empty lists are not written.
std::vector<std::byte> event_record(const Event& event);

/// Drops the records at the end whose step is above `step`, and what is damaged: what a run did after the checkpoint it
/// resumes from will be done, and logged, again. The version stays. Throws what load_events throws, and
/// Error{cannot_write}.
void rewind_events(const std::string& path, int64_t step);

/// FOLDER/events.out.tfevents.SECONDS.HOST, with the name of this machine.
std::string event_path(const std::string& folder, int64_t seconds);

/// The last event file of a folder by name, which a resumed run goes on with; none where there is none.
std::optional<std::string> find_event_file(const std::string& folder);

/// Appends events to a file, each in one call of the system, so that it survives the death of this process; a write
/// that fails leaves no part of it. Not for two writers of one file.
class EventWriter {
public:
    /// Makes the file, with its version, or goes on with one, from which a damaged end is cut. Throws
    /// Error{cannot_write}, and Error{bad_file} when it is none.
    EventWriter(std::string path, double wall_time);
    ~EventWriter();
    EventWriter(const EventWriter&) = delete;
    EventWriter& operator=(const EventWriter&) = delete;

    const std::string& path() const { return path_; }

    /// All in one record. Throws Error{cannot_write}.
    void add_scalars(int64_t step, std::span<const EventScalar> scalars, double wall_time);
    /// The image as PNG; 1, 3 or 4 channels.
    void add_image(int64_t step, std::string tag, const Image& image, double wall_time);

    /// Flushes the file to the disk. Call before saving a checkpoint.
    void sync();

private:
    void append(const Event& event);

    std::string path_;
    int fd_ = -1;
};

}  // namespace stipple::io
