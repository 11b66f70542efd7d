#include "stipple/core/checkpoint_manifest.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>

namespace stipple::manifest {
namespace {

using Json = nlohmann::ordered_json;

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

Checkpoint from_json(const Json& json, const std::string& directory) {
    Checkpoint checkpoint;
    checkpoint.path = directory;
    CheckpointInfo& info = checkpoint.info;
    info.step = json.at("step").get<int64_t>();
    info.config_hash = json.at("config_hash").get<std::string>();
    info.world_size = json.at("world_size").get<int>();
    info.threads = json.at("threads").get<int>();
    info.versions = json.at("versions").get<std::map<std::string, std::string>>();
    if (const Json& score = json.at("score"); score.is_number()) info.score = score.get<double>();
    info.extra = json.at("extra").dump();
    std::set<std::string> names;
    for (const Json& entry : json.at("files")) {
        Checkpoint::File file;
        file.name = entry.at("name").get<std::string>();
        file.bytes = entry.at("bytes").get<int64_t>();
        file.crc32 = entry.at("crc32").get<uint32_t>();
        if (!is_file_name(file.name) || !names.insert(file.name).second || file.bytes < 0)
            fail(directory, "the manifest lists an impossible file");
        checkpoint.files.push_back(std::move(file));
    }
    return checkpoint;
}

}  // namespace

bool is_file_name(std::string_view name) {
    return !name.empty() && name.size() <= 200 && name[0] != '.' && name != kName &&
           name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string format(const CheckpointInfo& info, const std::vector<Checkpoint::File>& files) {
    Json list = Json::array();
    for (const Checkpoint::File& file : files)
        list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32", file.crc32}});
    const Json extra = Json::parse(info.extra, nullptr, false);
    STIPPLE_REQUIRE(extra.is_object(), "the extra part of a checkpoint must be a JSON object");
    Json json = {{"format", "stipple-checkpoint"},
                 {"format_version", kCheckpointVersion},
                 {"step", info.step},
                 {"config_hash", info.config_hash},
                 {"world_size", info.world_size},
                 {"threads", info.threads},
                 {"versions", info.versions},
                 {"score", nullptr},
                 {"extra", extra},
                 {"files", list}};
    if (info.score && std::isfinite(*info.score)) json["score"] = *info.score;
    std::string text;
    try {
        text = json.dump(2);
    } catch (const Json::exception&) {
        STIPPLE_REQUIRE(false, "the description of a checkpoint is not UTF-8");
    }
    text.resize(text.size() - 2);  // the closing "\n}" goes behind the checksum
    text += ",\n";
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
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || json.value("format", "") != "stipple-checkpoint")
        fail(path, "not a manifest of a stipple checkpoint");
    try {
        const int version = json.at("format_version").get<int>();
        if (version > kCheckpointVersion)
            throw NewerVersion(ErrorCode::bad_file, Place{path},
                               fmt::format("checkpoint format {} is newer than {}, the newest that this program reads",
                                           version, kCheckpointVersion),
                               "use a newer stipple");
        return from_json(json, directory);
    } catch (const Json::exception& error) {
        fail(path, fmt::format("a field is missing or of another type ({})", error.what()));
    }
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
