#include "stipple/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "stipple/core/checked.h"
#include "stipple/core/error.h"
#include "stipple/core/json_events.h"

namespace stipple::io {
namespace {

constexpr int64_t kAlignment = 64;

// Indices of tensors in the order of their data.
template <class Less>
std::vector<size_t> sorted_indices(size_t count, Less less) {
    std::vector<size_t> order(count);
    for (size_t i = 0; i < count; ++i) order[i] = i;
    // Ties by index: a stable sort that needs no memory of its own.
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        if (less(a, b)) return true;
        if (less(b, a)) return false;
        return a < b;
    });
    return order;
}

void check_bool(const TensorHeader::Entry& entry, const Buffer& data, int64_t offset) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
    const auto* end = bytes + data.bytes();
    const auto* bad = std::find_if(bytes, end, [](unsigned char value) { return value > 1; });
    if (bad != end)
        throw Error(ErrorCode::bad_file, Place{{}, {}, offset + (bad - bytes)},
                    fmt::format("tensor {}: a BOOL must be 0 or 1, found {}", io::in_quotes(entry.name), *bad));
}

void check(const TensorFile& file) {
    std::set<std::string_view> names;
    for (const Tensor& tensor : file.tensors) {
        STIPPLE_REQUIRE(tensor.name != "__metadata__", "a tensor may not be named __metadata__");
        STIPPLE_REQUIRE(names.insert(tensor.name).second, "two tensors are named {}", io::in_quotes(tensor.name));
        STIPPLE_REQUIRE(tensor.data.device().type == DeviceType::cpu, "tensor {} is on {}", io::in_quotes(tensor.name),
                        tensor.data.device());
        int64_t bytes = size_of(tensor.dtype);
        for (int64_t extent : tensor.shape) {
            STIPPLE_REQUIRE(extent >= 0, "tensor {}: negative shape", io::in_quotes(tensor.name));
            bytes = checked_mul(bytes, extent);
        }
        STIPPLE_REQUIRE(bytes == tensor.data.bytes(), "tensor {}: its shape needs {} bytes, it has {}",
                        io::in_quotes(tensor.name), bytes, tensor.data.bytes());
    }
}

std::string header_text(const TensorFile& file, const std::vector<size_t>& order) {
    std::vector<int64_t> begins(file.tensors.size());
    int64_t end = 0;
    for (size_t index : order) {
        begins[index] = end;
        end = checked_add(end, file.tensors[index].data.bytes());
    }
    std::string text = "{\"__metadata__\":{";
    if (!file.metadata.count("format")) text += "\"format\":\"pt\",";
    for (const auto& [key, value] : file.metadata) text += json_string(key) + ":" + json_string(value) + ",";
    text.back() = '}';
    for (size_t i = 0; i < file.tensors.size(); ++i) {
        const Tensor& tensor = file.tensors[i];
        std::string shape;
        for (int64_t extent : tensor.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ",", extent);
        text +=
            fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json_string(tensor.name),
                        safetensors_dtype(tensor.dtype), shape, begins[i], begins[i] + tensor.data.bytes());
    }
    text += '}';
    const size_t over = (8 + text.size()) % kAlignment;
    if (over != 0) text.append(kAlignment - over, ' ');
    return text;
}

[[noreturn]] void refuse_pickle() {
    throw Error(ErrorCode::bad_file, "pickle checkpoints are not read", "convert with scripts/pth_to_safetensors.py");
}

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// A pickle runs code when it is loaded; nothing of it is looked at but its first bytes.
void refuse_pickles(const std::string& path, ByteReader& reader) {
    for (std::string_view extension : {".pt", ".pth", ".ckpt", ".pkl"})
        if (ends_with(path, extension)) refuse_pickle();
    const auto head = reader.peek(8);
    const auto byte = [&](size_t i) { return std::to_integer<int>(head[i]); };
    if (head.size() >= 4 && byte(0) == 'P' && byte(1) == 'K' && byte(2) == 3 && byte(3) == 4) refuse_pickle();
    // Protocol 2 to 5; as a header length the eight bytes would be beyond the limit unless the rest were zero.
    if (head.size() == 8 && byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5 && (byte(4) | byte(5) | byte(6) | byte(7)))
        refuse_pickle();
}

}  // namespace

const Tensor* find(const TensorFile& file, std::string_view name) {
    for (const Tensor& tensor : file.tensors)
        if (tensor.name == name) return &tensor;
    return nullptr;
}

TensorFile parse_safetensors(ByteReader& reader) {
    TensorHeader header = read_safetensors_header(reader);
    const auto& entries = header.tensors;
    const auto order = sorted_indices(entries.size(), [&](size_t a, size_t b) {
        return entries[a].begin != entries[b].begin ? entries[a].begin < entries[b].begin
                                                    : entries[a].end < entries[b].end;
    });
    TensorFile file;
    file.metadata = std::move(header.metadata);
    file.tensors.resize(entries.size());
    for (size_t index : order) {
        TensorHeader::Entry& entry = header.tensors[index];
        Tensor& tensor = file.tensors[index];
        const std::string what = fmt::format("tensor {}", io::in_quotes(entry.name));
        tensor.data = reader.read_buffer(entry.end - entry.begin, what);
        if (entry.dtype == DType::boolean) check_bool(entry, tensor.data, header.data_offset + entry.begin);
        tensor.name = std::move(entry.name);
        tensor.dtype = entry.dtype;
        tensor.shape = std::move(entry.shape);
    }
    if (!reader.at_end()) reader.fail("bytes follow the last tensor");  // a pipe; files were measured
    return file;
}

void write_safetensors(const TensorFile& file, ByteSink& sink) {
    check(file);
    const auto order = sorted_indices(file.tensors.size(), [&](size_t a, size_t b) {
        return size_of(file.tensors[a].dtype) > size_of(file.tensors[b].dtype);
    });
    const std::string header = header_text(file, order);
    const uint64_t length = header.size();
    sink.write(&length, sizeof length);  // hosts are little-endian
    sink.write(header);
    for (size_t index : order) sink.write(file.tensors[index].data.data(), file.tensors[index].data.bytes());
}

TensorFile load_safetensors(const std::string& path, const Limits& limits) {
    try {
        FileSource source(path);
        ByteReader reader(source, limits);
        refuse_pickles(path, reader);
        return parse_safetensors(reader);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

void save_safetensors(const std::string& path, const TensorFile& file, Overwrite overwrite) {
    AtomicFile output(path, overwrite);
    write_safetensors(file, output);
    output.commit();
}

}  // namespace stipple::io
