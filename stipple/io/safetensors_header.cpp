// The header of a safetensors file: JSON, read event by event so that hostile text never becomes a tree in memory.

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "stipple/core/error.h"
#include "stipple/core/json_events.h"
#include "stipple/io/safetensors.h"

namespace stipple::io {
namespace {

constexpr int64_t kHeaderStart = 8;
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeName {
    DType dtype;
    std::string_view name;
};
constexpr std::array<DTypeName, 13> kDTypes = {{{DType::u8, "U8"},
                                                {DType::i8, "I8"},
                                                {DType::u16, "U16"},
                                                {DType::i16, "I16"},
                                                {DType::u32, "U32"},
                                                {DType::i32, "I32"},
                                                {DType::u64, "U64"},
                                                {DType::i64, "I64"},
                                                {DType::f16, "F16"},
                                                {DType::bf16, "BF16"},
                                                {DType::f32, "F32"},
                                                {DType::f64, "F64"},
                                                {DType::boolean, "BOOL"}}};

// The grammar is three levels deep and fixed:
//   { "__metadata__": {name: text, ...}, name: {"dtype": text, "shape": [n, ...], "data_offsets": [begin, end]}, ... }
// so a state is enough, and anything deeper is refused where it starts.
class HeaderReader : public JsonEvents {
public:
    HeaderReader(const Limits& limits, TensorHeader& header) : limits_(limits), header_(header) {}

    bool start_object() override {
        switch (state_) {
            case State::start: state_ = State::file; return true;
            case State::metadata_value: state_ = State::metadata; return true;
            case State::tensor_value: state_ = State::tensor; return true;
            default: refuse("an object");
        }
    }

    bool key(std::string& text) override {
        switch (state_) {
            case State::file:
                if (text == kMetadata) {
                    if (has_metadata_) fail("the header has two __metadata__");
                    has_metadata_ = true;
                    state_ = State::metadata_value;
                } else {
                    if (static_cast<int64_t>(header_.tensors.size()) >= limits_.max_tensors)
                        fail(fmt::format("more than {} tensors", limits_.max_tensors));
                    header_.tensors.emplace_back().name = std::move(text);
                    has_dtype_ = has_shape_ = has_offsets_ = false;
                    state_ = State::tensor_value;
                }
                return true;
            case State::metadata:
                metadata_key_ = std::move(text);
                count_metadata(metadata_key_.size());
                if (header_.metadata.count(metadata_key_))
                    fail(fmt::format("two metadata entries are named {}", io::in_quotes(metadata_key_)));
                state_ = State::metadata_text;
                return true;
            case State::tensor:
                if (text == "dtype" && !has_dtype_)
                    state_ = State::dtype;
                else if (text == "shape" && !has_shape_)
                    state_ = State::shape_value;
                else if (text == "data_offsets" && !has_offsets_)
                    state_ = State::offsets_value;
                else if (text == "dtype" || text == "shape" || text == "data_offsets")
                    fail_tensor(fmt::format("{} is there twice", io::in_quotes(text)));
                else
                    fail_tensor(fmt::format("unknown key {}", io::in_quotes(text)));
                return true;
            default: STIPPLE_ASSERT(!"a key outside an object");
        }
    }

    bool end_object() override {
        if (state_ == State::tensor) {
            if (!has_dtype_) fail_tensor("\"dtype\" is missing");
            if (!has_shape_) fail_tensor("\"shape\" is missing");
            if (!has_offsets_) fail_tensor("\"data_offsets\" is missing");
            state_ = State::file;
        } else if (state_ == State::metadata) {
            state_ = State::file;
        } else {
            state_ = State::end;
        }
        return true;
    }

    bool start_array() override {
        if (state_ == State::shape_value) {
            state_ = State::shape;
        } else if (state_ == State::offsets_value) {
            state_ = State::offsets;
            n_offsets_ = 0;
        } else {
            refuse("an array");
        }
        return true;
    }

    bool end_array() override {
        if (state_ == State::shape) {
            has_shape_ = true;
        } else {
            if (n_offsets_ != 2) fail_tensor("\"data_offsets\" must be two numbers");
            has_offsets_ = true;
        }
        state_ = State::tensor;
        return true;
    }

    bool whole(uint64_t value) override {
        if (state_ != State::shape && state_ != State::offsets) refuse("a number");
        if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
            fail_tensor(fmt::format("{} does not fit in 63 bits", value));
        const auto number = static_cast<int64_t>(value);
        TensorHeader::Entry& tensor = header_.tensors.back();
        if (state_ == State::shape) {
            if (static_cast<int64_t>(tensor.shape.size()) >= limits_.max_tensor_rank)
                fail_tensor(fmt::format("more than {} dimensions", limits_.max_tensor_rank));
            tensor.shape.push_back(number);
        } else {
            if (n_offsets_ == 2) fail_tensor("\"data_offsets\" must be two numbers");
            (n_offsets_++ == 0 ? tensor.begin : tensor.end) = number;
        }
        return true;
    }

    bool string(std::string& text) override {
        if (state_ == State::metadata_text) {
            count_metadata(text.size());
            header_.metadata.emplace(std::move(metadata_key_), std::move(text));
            state_ = State::metadata;
        } else if (state_ == State::dtype) {
            const auto* found =
                std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeName& d) { return d.name == text; });
            if (found == kDTypes.end()) fail_tensor(fmt::format("unknown dtype {}", io::in_quotes(text)));
            header_.tensors.back().dtype = found->dtype;
            has_dtype_ = true;
            state_ = State::tensor;
        } else {
            refuse("a string");
        }
        return true;
    }

    bool null() override { refuse("null"); }
    bool boolean(bool) override { refuse("a boolean"); }
    bool negative(int64_t) override { refuse("a negative number"); }
    bool real(double) override { refuse("a number that is not a whole one below 2^63"); }
    bool error(size_t position) override {
        // `position` counts the characters read, the offending one included.
        const auto at = static_cast<int64_t>(position);
        throw Error(ErrorCode::bad_file, Place{{}, {}, kHeaderStart + std::max<int64_t>(0, at - 1)},
                    "the header is not valid UTF-8 JSON");
    }

private:
    enum class State {
        start,
        file,
        metadata_value,
        metadata,
        metadata_text,
        tensor_value,
        tensor,
        dtype,
        shape_value,
        shape,
        offsets_value,
        offsets,
        end
    };

    [[noreturn]] void fail(std::string message) const {
        throw Error(ErrorCode::bad_file, Place{{}, {}, kHeaderStart}, std::move(message));
    }
    [[noreturn]] void fail_tensor(const std::string& message) const {
        fail(fmt::format("tensor {}: {}", io::in_quotes(header_.tensors.back().name), message));
    }
    [[noreturn]] void refuse(const char* found) const {
        switch (state_) {
            case State::metadata_value: fail(fmt::format("__metadata__ must be an object, found {}", found));
            case State::metadata_text:
                fail(fmt::format("metadata {} must be a string, found {}", io::in_quotes(metadata_key_), found));
            case State::tensor_value: fail_tensor(fmt::format("expected an object, found {}", found));
            case State::dtype: fail_tensor(fmt::format("\"dtype\" must be a string, found {}", found));
            case State::shape_value: fail_tensor(fmt::format("\"shape\" must be an array, found {}", found));
            case State::shape: fail_tensor(fmt::format("\"shape\" must hold whole numbers, found {}", found));
            case State::offsets_value:
            case State::offsets: fail_tensor(fmt::format("\"data_offsets\" must be two numbers, found {}", found));
            default: fail(fmt::format("the header must be an object, found {}", found));
        }
    }
    void count_metadata(size_t bytes) {
        metadata_bytes_ += static_cast<int64_t>(bytes);
        if (metadata_bytes_ > limits_.max_metadata)
            fail(fmt::format("more than {} bytes of metadata", limits_.max_metadata));
    }

    const Limits& limits_;
    TensorHeader& header_;
    State state_ = State::start;
    bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
    int n_offsets_ = 0;
    int64_t metadata_bytes_ = 0;
    std::string metadata_key_;
};

[[noreturn]] void fail_header_at(int64_t offset, std::string message) {
    throw Error(ErrorCode::bad_file, Place{{}, {}, offset}, std::move(message));
}

void check_names(const TensorHeader& header) {
    std::vector<std::string_view> names;
    names.reserve(header.tensors.size());
    for (const auto& tensor : header.tensors) names.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    const auto twin = std::adjacent_find(names.begin(), names.end());
    if (twin != names.end())
        fail_header_at(kHeaderStart, fmt::format("two tensors are named {}", io::in_quotes(*twin)));
}

// Byte ranges follow from shapes, and each other without hole or overlap. Returns the bytes of all data.
int64_t check_ranges(const TensorHeader& header) {
    std::vector<const TensorHeader::Entry*> order;
    order.reserve(header.tensors.size());
    for (const auto& tensor : header.tensors) {
        int64_t bytes = size_of(tensor.dtype);
        for (int64_t extent : tensor.shape)
            if (__builtin_mul_overflow(bytes, extent, &bytes))
                fail_header_at(kHeaderStart,
                               fmt::format("tensor {}: the shape overflows 64 bits", io::in_quotes(tensor.name)));
        if (tensor.begin > tensor.end || tensor.end - tensor.begin != bytes)
            fail_header_at(kHeaderStart,
                           fmt::format("tensor {}: shape and dtype need {} bytes, data_offsets are {} to {}",
                                       io::in_quotes(tensor.name), bytes, tensor.begin, tensor.end));
        order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
        return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
    });
    int64_t end = 0;
    for (const auto* tensor : order) {
        if (tensor->begin != end)
            fail_header_at(kHeaderStart,
                           fmt::format("tensor {}: data start at {}, {} the data before, which end at {}",
                                       io::in_quotes(tensor->name), tensor->begin,
                                       tensor->begin < end ? "overlapping" : "leaving a hole behind", end));
        end = tensor->end;
    }
    return end;
}

}  // namespace

std::string_view safetensors_dtype(DType dtype) {
    for (const DTypeName& entry : kDTypes)
        if (entry.dtype == dtype) return entry.name;
    STIPPLE_ASSERT(!"dtype");
}

TensorHeader read_safetensors_header(ByteReader& reader) {
    if (reader.at_end()) reader.fail("the file is empty");
    const int64_t start = reader.offset();
    const auto length = reader.read_number<uint64_t>("the header length");
    const Limits& limits = reader.limits();
    if (length > static_cast<uint64_t>(limits.max_tensor_header))
        fail_header_at(
            start, fmt::format("a header of {} bytes, more than {} are not read", length, limits.max_tensor_header));
    const auto bytes = static_cast<int64_t>(length);
    if (bytes < 2) fail_header_at(start, fmt::format("a header of {} bytes is too short", bytes));
    reader.require_remaining(bytes, "the header");
    TensorHeader header;
    {
        const Buffer buffer = reader.read_buffer(bytes, "the header");
        const char* text = reinterpret_cast<const char*>(buffer.data());
        if (text[0] != '{') fail_header_at(kHeaderStart, "the header must start with '{'");
        // The JSON parser takes a zero byte for the end of its input and would not look behind it.
        if (const void* zero = std::memchr(text, 0, static_cast<size_t>(bytes)))
            fail_header_at(kHeaderStart + (static_cast<const char*>(zero) - text),
                           "the header is not valid UTF-8 JSON");
        HeaderReader events(limits, header);
        parse_json({text, static_cast<size_t>(bytes)}, events);
    }
    check_names(header);
    header.data_offset = kHeaderStart + bytes;
    header.data_bytes = check_ranges(header);
    if (const auto left = reader.remaining(); left && *left != header.data_bytes)
        fail_header_at(header.data_offset,
                       fmt::format("the header describes {} bytes of data, the file has {}", header.data_bytes, *left));
    return header;
}

}  // namespace stipple::io
