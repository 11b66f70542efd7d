#include "stipple/io/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "stipple/core/append.h"
#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/io/common/protobuf_writer.h"
#include "stipple/io/common/record.h"
#include "stipple/io/image_file.h"

namespace stipple::io {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr const char* kEventVersion = "brain.Event:2";

[[noreturn]] void fail_writing(const std::string& path, const char* doing, int error) {
    throw Error(ErrorCode::cannot_write, Place{path}, fmt::format("{}: {}", doing, std::strerror(error)));
}

// Field numbers are those of event.proto and summary.proto; each function names its message.

ProtobufWriter image_message(const EventImage& image) {
    ProtobufWriter out;
    out.integer(1, image.height);
    out.integer(2, image.width);
    out.integer(3, image.colorspace);
    out.bytes(4, image.file);
    return out;
}

ProtobufWriter summary_message(const Event& event) {
    ProtobufWriter summary;
    for (const EventScalar& scalar : event.scalars) {
        ProtobufWriter value;
        value.text(1, scalar.tag);
        value.real(2, scalar.value);
        summary.message(1, value);
    }
    for (const EventImage& image : event.images) {
        ProtobufWriter value;
        value.text(1, image.tag);
        value.message(4, image_message(image));
        summary.message(1, value);
    }
    return summary;
}

ProtobufWriter event_message(const Event& event) {
    ProtobufWriter out;
    out.real(1, event.wall_time);
    if (event.step != 0) out.integer(2, event.step);
    if (!event.version.empty()) out.text(3, event.version);
    if (!event.scalars.empty() || !event.images.empty()) out.message(5, summary_message(event));
    return out;
}

int open_to_append(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
    if (fd < 0) fail_writing(path, "cannot open", errno);
    return fd;
}

}  // namespace

std::vector<std::byte> event_record(const Event& event) {
    return record_of(event_message(event).data());
}

void rewind_events(const std::string& path, int64_t step) {
    const EventFile file = load_events(path);
    int64_t end = file.whole_bytes;
    for (size_t i = file.events.size(); i-- > 1 && file.events[i].step > step;) end = file.events[i].begin;
    if (end == file.whole_bytes && file.damage.empty()) return;
    const int fd = open_to_append(path, 0);
    const int error = ::ftruncate(fd, end) == 0 ? 0 : errno;
    ::close(fd);
    if (error != 0) fail_writing(path, "cannot cut", error);
}

std::string event_path(const std::string& folder, int64_t seconds) {
    char name[256] = {};
    std::string host = ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
    std::replace(host.begin(), host.end(), '/', '_');
    return fmt::format("{}/{}{:010}.{}", folder, kPrefix, seconds, host);
}

std::optional<std::string> find_event_file(const std::string& folder) {
    std::optional<std::string> last;
    for (const std::string& name : list_folder(folder))
        if (name.rfind(kPrefix, 0) == 0 && (!last || name > *last)) last = name;
    if (last) last = folder + "/" + *last;
    return last;
}

EventWriter::EventWriter(std::string path, double wall_time) : path_(std::move(path)) {
    fd_ = open_to_append(path_, O_CREAT);
    try {
        const EventFile file = load_events(path_);
        if (!file.damage.empty() && ::ftruncate(fd_, file.whole_bytes) != 0) fail_writing(path_, "cannot cut", errno);
        if (file.whole_bytes == 0) {
            Event first;
            first.wall_time = wall_time;
            first.version = kEventVersion;
            append(first);
        }
    } catch (...) {
        ::close(fd_);
        throw;
    }
}

EventWriter::~EventWriter() {
    ::close(fd_);
}

void EventWriter::append(const Event& event) {
    const std::vector<std::byte> record = event_record(event);
    append_whole(fd_, path_, {reinterpret_cast<const char*>(record.data()), record.size()});
}

void EventWriter::add_scalars(int64_t step, std::span<const EventScalar> scalars, double wall_time) {
    Event event;
    event.wall_time = wall_time;
    event.step = step;
    event.scalars.assign(scalars.begin(), scalars.end());
    append(event);
}

void EventWriter::add_image(int64_t step, std::string tag, const Image& image, double wall_time) {
    MemorySink png;
    write_png(image, png);
    Event event;
    event.wall_time = wall_time;
    event.step = step;
    event.images.push_back({std::move(tag), static_cast<int32_t>(image.width()), static_cast<int32_t>(image.height()),
                            static_cast<int32_t>(image.channels()), std::move(png.bytes())});
    append(event);
}

void EventWriter::sync() {
    if (::fsync(fd_) != 0) fail_writing(path_, "cannot flush to the disk", errno);
}

}  // namespace stipple::io
