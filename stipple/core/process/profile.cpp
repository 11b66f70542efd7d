#include "stipple/core/profile.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "stipple/core/error.h"
#include "stipple/core/json_writer.h"

namespace stipple {
namespace {

int64_t clock_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double seconds(int64_t nanoseconds) {
    return 1e-9 * static_cast<double>(nanoseconds);
}

}  // namespace

Profile::Profile(int64_t most_spans)
    : start_(clock_now()), most_spans_(static_cast<size_t>(std::max<int64_t>(0, most_spans))) {}

int64_t Profile::now() const {
    return clock_now() - start_;
}

const Profile::Sums& Profile::sums(int32_t row) const {
    STIPPLE_REQUIRE(row >= 0 && static_cast<size_t>(row) < sums_.size(), "the profile has no row {}", row);
    return sums_[static_cast<size_t>(row)];
}

int32_t Profile::row(int32_t parent, std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (parent != kRoot) sums(parent);
    std::pair<int32_t, std::string> key(parent, name);
    if (const auto found = row_of_.find(key); found != row_of_.end()) return found->second;
    const auto made = static_cast<int32_t>(sums_.size());
    sums_.push_back({key.second, parent});
    if (parent != kRoot) sums_[static_cast<size_t>(parent)].below.push_back(made);
    row_of_.emplace(std::move(key), made);
    return made;
}

int32_t Profile::track(std::string_view name, ProfileDevice device) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < tracks_.size(); ++i)
        if (tracks_[i].name == name && tracks_[i].device == device) return static_cast<int32_t>(i);
    tracks_.push_back({std::string(name), device});
    return static_cast<int32_t>(tracks_.size() - 1);
}

void Profile::add(const ProfileSpan& span) {
    STIPPLE_REQUIRE(span.duration >= 0 && span.side_by_side >= 1, "a span of {} ns, {} side by side", span.duration,
                    span.side_by_side);
    const std::lock_guard lock(mutex_);
    sums(span.row);
    STIPPLE_REQUIRE(span.track >= 0 && static_cast<size_t>(span.track) < tracks_.size(), "the profile has no track {}",
                    span.track);
    Sums& of = sums_[static_cast<size_t>(span.row)];
    const bool is_gpu = tracks_[static_cast<size_t>(span.track)].device == ProfileDevice::gpu;
    (is_gpu ? of.gpu_calls : of.cpu_calls) += 1;
    (is_gpu ? of.gpu_ns : of.cpu_ns) += span.duration / span.side_by_side;
    of.bytes += span.bytes;
    of.peak_bytes = std::max(of.peak_bytes, span.peak_bytes);
    if (spans_.size() < most_spans_)
        spans_.push_back(span);
    else
        ++left_out_;
}

std::vector<ProfileRow> Profile::rows() const {
    const std::lock_guard lock(mutex_);
    int64_t cpu_all = 0, gpu_all = 0;
    std::vector<int64_t> cpu_self(sums_.size()), gpu_self(sums_.size());
    std::vector<char> is_used(sums_.size());
    for (size_t i = sums_.size(); i-- > 0;) {  // a parent comes before its children
        const Sums& of = sums_[i];
        cpu_self[i] = of.cpu_ns, gpu_self[i] = of.gpu_ns;
        is_used[i] = is_used[i] || of.cpu_calls + of.gpu_calls > 0;
        for (const int32_t child : of.below) {
            cpu_self[i] -= sums_[static_cast<size_t>(child)].cpu_ns;
            gpu_self[i] -= sums_[static_cast<size_t>(child)].gpu_ns;
        }
        // Below 0 where a child ran beside its parent, on another thread or stream.
        cpu_all += cpu_self[i] = std::max<int64_t>(0, cpu_self[i]);
        gpu_all += gpu_self[i] = std::max<int64_t>(0, gpu_self[i]);
        if (is_used[i] && of.parent != kRoot) is_used[static_cast<size_t>(of.parent)] = 1;
    }
    std::vector<ProfileRow> rows;
    const std::function<void(size_t, int32_t, int32_t)> put = [&](size_t i, int32_t parent, int32_t depth) {
        if (!is_used[i]) return;
        const Sums& of = sums_[i];
        const auto place = static_cast<int32_t>(rows.size());
        ProfileRow& row = rows.emplace_back();
        row.name = of.name;
        row.parent = parent;
        row.depth = depth;
        row.calls = of.cpu_calls > 0 ? of.cpu_calls : of.gpu_calls;
        row.cpu_total = seconds(of.cpu_ns), row.cpu_self = seconds(cpu_self[i]);
        row.gpu_total = seconds(of.gpu_ns), row.gpu_self = seconds(gpu_self[i]);
        if (cpu_all > 0) row.cpu_share = static_cast<double>(cpu_self[i]) / static_cast<double>(cpu_all);
        if (gpu_all > 0) row.gpu_share = static_cast<double>(gpu_self[i]) / static_cast<double>(gpu_all);
        row.bytes = of.bytes, row.peak_bytes = of.peak_bytes;
        for (const int32_t child : of.below) put(static_cast<size_t>(child), place, depth + 1);
    };
    for (size_t i = 0; i < sums_.size(); ++i)
        if (sums_[i].parent == kRoot) put(i, kRoot, 0);
    return rows;
}

bool Profile::has_gpu() const {
    const std::lock_guard lock(mutex_);
    return std::any_of(sums_.begin(), sums_.end(), [](const Sums& of) { return of.gpu_calls > 0; });
}

std::vector<ProfileSpan> Profile::spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
}

int64_t Profile::left_out() const {
    const std::lock_guard lock(mutex_);
    return left_out_;
}

std::vector<Profile::Track> Profile::tracks() const {
    const std::lock_guard lock(mutex_);
    return tracks_;
}

std::string Profile::path(int32_t row) const {
    const std::lock_guard lock(mutex_);
    std::string text = sums(row).name;
    for (int32_t at = sums(row).parent; at != kRoot; at = sums(at).parent) text = sums(at).name + "/" + text;
    return text;
}

std::string Profile::name(int32_t row) const {
    const std::lock_guard lock(mutex_);
    return sums(row).name;
}

int64_t Profile::memory_bytes() const {
    const std::lock_guard lock(mutex_);
    size_t bytes = spans_.capacity() * sizeof(ProfileSpan) + sums_.capacity() * sizeof(Sums);
    for (const Sums& of : sums_) bytes += 2 * of.name.capacity() + of.below.capacity() * sizeof(int32_t) + 64;
    return static_cast<int64_t>(bytes + tracks_.capacity() * sizeof(Track));
}

void write_trace(const Profile& profile, ByteSink& sink) {
    const std::vector<Profile::Track> tracks = profile.tracks();
    const std::vector<ProfileSpan> spans = profile.spans();
    const auto process_of = [](ProfileDevice device) { return device == ProfileDevice::cpu ? 1 : 2; };
    bool is_first = true;
    const auto put = [&](JsonWriter& event) {
        sink.write(is_first ? "\n" : ",\n");
        sink.write(event.end_object().text());
        is_first = false;
    };
    const auto put_name = [&](const char* what, int process, size_t thread, std::string_view name) {
        JsonWriter event;
        event.begin_object().field("ph", "M").field("name", what).field("pid", process).field("tid", thread);
        event.key("args").begin_object().field("name", name).end_object();
        put(event);
    };
    sink.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (const ProfileDevice device : {ProfileDevice::cpu, ProfileDevice::gpu})
        if (std::any_of(tracks.begin(), tracks.end(), [&](const auto& track) { return track.device == device; }))
            put_name("process_name", process_of(device), 0, device == ProfileDevice::cpu ? "CPU" : "GPU");
    for (size_t i = 0; i < tracks.size(); ++i)
        put_name("thread_name", process_of(tracks[i].device), i + 1, tracks[i].name);
    std::map<int32_t, std::pair<std::string, std::string>> names;  // of rows: name and path
    for (const ProfileSpan& span : spans) {
        auto found = names.find(span.row);
        if (found == names.end())
            found = names.emplace(span.row, std::pair(profile.name(span.row), profile.path(span.row))).first;
        const ProfileDevice device = tracks[static_cast<size_t>(span.track)].device;
        JsonWriter event;
        event.begin_object().field("ph", "X").field("name", std::string_view(found->second.first));
        event.field("cat", device == ProfileDevice::cpu ? "cpu" : "gpu");
        event.field("pid", process_of(device)).field("tid", span.track + 1);
        event.field("ts", 1e-3 * static_cast<double>(span.begin))
            .field("dur", 1e-3 * static_cast<double>(span.duration));
        event.key("args").begin_object().field("path", std::string_view(found->second.second));
        if (span.bytes > 0) event.field("bytes", span.bytes);
        if (span.peak_bytes > 0) event.field("peak_bytes", span.peak_bytes);
        event.end_object();
        put(event);
    }
    sink.write(fmt::format("\n],\"otherData\":{{\"spans_left_out\":{}}}}}\n", profile.left_out()));
}

void save_trace(const Profile& profile, const std::string& path, Overwrite overwrite) {
    AtomicFile file(path, overwrite);
    write_trace(profile, file);
    file.commit();
}

}  // namespace stipple
