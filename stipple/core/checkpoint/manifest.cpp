#include "stipple/core/checkpoint/manifest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>

#include "stipple/core/json_walk.h"

namespace stipple::manifest {
namespace {

constexpr int64_t kMaxManifest = int64_t{64} << 20;
constexpr size_t kBlock = size_t{1} << 20;

[[noreturn]] void fail(const std::string& path, std::string message) {
    throw Error(ErrorCode::bad_file, Place{path}, std::move(message));
}

// The line that closes the text: fixed length, so that it is found without trusting what it protects.
std::string last_line(std::string_view before) {
    const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(before.data()), before.size());
    return fmt::format("  \"manifest_crc32\": \"{:08x}\"\n}}\n", static_cast<uint32_t>(crc));
}

class Descriptor {
public:
    explicit Descriptor(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (fd_ < 0) fail(path, fmt::format("cannot open: {}", std::strerror(errno)));
        struct stat status {};
        if (::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
            bytes_ = status.st_size;
            return;
        }
        ::close(fd_);
        fail(path, "is not a regular file");
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int64_t bytes() const { return bytes_; }

    /// 0 at the end.
    size_t read(char* to, size_t capacity) {
        for (;;) {
            const ssize_t count = ::read(fd_, to, capacity);
            if (count >= 0) return static_cast<size_t>(count);
            if (errno != EINTR) fail(path_, fmt::format("cannot read: {}", std::strerror(errno)));
        }
    }

private:
    const std::string& path_;
    int fd_;
    int64_t bytes_ = 0;
};

std::string read_text(const std::string& path) {
    Descriptor file(path);
    if (file.bytes() > kMaxManifest) fail(path, fmt::format("larger than {} bytes", kMaxManifest));
    std::string text(static_cast<size_t>(file.bytes()), '\0');
    size_t done = 0;
    while (done < text.size()) {
        const size_t count = file.read(text.data() + done, text.size() - done);
        if (count == 0) break;
        done += count;
    }
    text.resize(done);
    return text;
}

// Collects the fields of a manifest as they come.
struct Reader {
    Checkpoint checkpoint;
    bool is_ours = false;
    int64_t version = 0;
    int fields = 0;  // known ones of the right type, without those in lists

    void visit(std::string_view path, const JsonValue& value) {
        const bool is_text = value.kind == JsonValue::Kind::string, is_integer = value.kind == JsonValue::Kind::integer;
        CheckpointInfo& info = checkpoint.info;
        if (path == "format" && is_text) {
            is_ours = value.text == "stipple-checkpoint";
        } else if (path == "format_version" && is_integer) {
            version = value.integer;
        } else if (path == "step" && is_integer) {
            info.step = value.integer;
            ++fields;
        } else if (path == "config_hash" && is_text) {
            info.config_hash = value.text;
            ++fields;
        } else if (path == "world_size" && is_integer) {
            info.world_size = static_cast<int>(value.integer);
            ++fields;
        } else if (path == "threads" && is_integer) {
            info.threads = static_cast<int>(value.integer);
            ++fields;
        } else if (path == "extra" && is_text) {
            info.extra = value.text;
            ++fields;
        } else if (path == "score" && (is_integer || value.kind == JsonValue::Kind::number)) {
            info.score = value.number;
        } else if (path.rfind("versions/", 0) == 0 && is_text) {
            info.versions[std::string(path.substr(9))] = value.text;
        } else if (path.rfind("files/", 0) == 0) {
            visit_file(path.substr(path.rfind('/') + 1), value);
        }
    }

    void visit_file(std::string_view field, const JsonValue& value) {
        auto& files = checkpoint.files;
        if (field == "name" && value.kind == JsonValue::Kind::string) files.push_back({std::string(value.text), -1, 0});
        if (files.empty() || value.kind != JsonValue::Kind::integer) return;
        if (field == "bytes") files.back().bytes = value.integer;
        if (field == "crc32") files.back().crc32 = static_cast<uint32_t>(value.integer);
    }

    bool is_complete() const {
        std::set<std::string_view> names;
        for (const Checkpoint::File& file : checkpoint.files)
            if (!is_file_name(file.name) || !names.insert(file.name).second || file.bytes < 0) return false;
        return fields == 5 && checkpoint.info.step >= 0;
    }
};

}  // namespace

bool is_file_name(std::string_view name) {
    return !name.empty() && name.size() <= 200 && name[0] != '.' && name != kName &&
           name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string format(const CheckpointInfo& info, const std::vector<Checkpoint::File>& files) {
    STIPPLE_REQUIRE(is_json_object(info.extra), "the extra part of a checkpoint must be the text of a JSON object");
    const bool has_score = info.score && std::isfinite(*info.score);
    std::string versions, list;
    for (const auto& [name, version] : info.versions)
        versions += fmt::format("{}{}: {}", versions.empty() ? "" : ", ", json_string(name), json_string(version));
    for (const Checkpoint::File& file : files)
        list += fmt::format("{}\n    {{\"name\": {}, \"bytes\": {}, \"crc32\": {}}}", list.empty() ? "" : ",",
                            json_string(file.name), file.bytes, file.crc32);
    const std::string text = fmt::format(
        "{{\n"
        "  \"format\": \"stipple-checkpoint\",\n"
        "  \"format_version\": {},\n"
        "  \"step\": {},\n"
        "  \"config_hash\": {},\n"
        "  \"world_size\": {},\n"
        "  \"threads\": {},\n"
        "  \"versions\": {{{}}},\n"
        "  \"score\": {},\n"
        "  \"extra\": {},\n"
        "  \"files\": [{}],\n",
        kCheckpointVersion, info.step, json_string(info.config_hash), info.world_size, info.threads, versions,
        has_score ? fmt::format("{}", *info.score) : "null", json_string(info.extra), list);
    return text + last_line(text);
}

Checkpoint read(const std::string& directory) {
    const std::string path = directory + "/" + kName;
    const std::string text = read_text(path);
    const size_t length = last_line({}).size();
    if (text.size() < length) fail(path, "the manifest is incomplete");
    const std::string_view before(text.data(), text.size() - length);
    if (last_line(before) != std::string_view(text).substr(before.size())) fail(path, "the checksum does not match");
    // From here on the text is what was written; an error means that something else wrote it.
    Reader reader;
    const bool valid = walk_json(text, [&](std::string_view at, const JsonValue& value) { reader.visit(at, value); });
    if (!valid || !reader.is_ours) fail(path, "not a manifest of a stipple checkpoint");
    if (reader.version > kCheckpointVersion)
        throw NewerVersion(ErrorCode::bad_file, Place{path},
                           fmt::format("checkpoint format {} is newer than {}, the newest that this program reads",
                                       reader.version, kCheckpointVersion),
                           "use a newer stipple");
    if (reader.version < 1 || !reader.is_complete()) fail(path, "a field is missing or of another type");
    reader.checkpoint.path = directory;
    return std::move(reader.checkpoint);
}

void check_sizes(const Checkpoint& checkpoint) {
    for (const Checkpoint::File& file : checkpoint.files) {
        const std::string path = checkpoint.path + "/" + file.name;
        const int64_t bytes = Descriptor(path).bytes();
        if (bytes != file.bytes) fail(path, fmt::format("{} bytes, the manifest says {}", bytes, file.bytes));
    }
}

void check_contents(const Checkpoint& checkpoint) {
    const auto block = std::make_unique<char[]>(kBlock);
    for (const Checkpoint::File& file : checkpoint.files) {
        const std::string path = checkpoint.path + "/" + file.name;
        Descriptor descriptor(path);
        uLong crc = 0;
        while (const size_t count = descriptor.read(block.get(), kBlock))
            crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(block.get()), count);
        if (static_cast<uint32_t>(crc) != file.crc32) fail(path, "the checksum does not match");
    }
}

}  // namespace stipple::manifest
