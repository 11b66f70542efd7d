// The header of an NPY file: magic, version, length and a Python dict literal.

#include <charconv>
#include <cstring>
#include <optional>

#include "stipple/io/npy.h"

namespace stipple::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

/// A strict reader of {'descr': '<f4', 'fortran_order': False, 'shape': (n, 3), }: three known keys, each once.
class DictParser {
public:
    DictParser(std::string_view text, const ByteReader& reader) : text_(text), reader_(reader) {}

    void parse(NpyHeader& header) {
        bool have_descr = false, have_order = false, have_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string_view key = string("a key");
            expect(':');
            const auto once = [&](bool& have) {
                if (have) fail(fmt::format("key {} occurs twice", in_quotes(key)));
                have = true;
            };
            if (key == "descr") {
                once(have_descr);
                descr(header);
            } else if (key == "fortran_order") {
                once(have_order);
                header.fortran_order = boolean();
            } else if (key == "shape") {
                once(have_shape);
                shape(header);
            } else {
                fail(fmt::format("unknown key {}", in_quotes(key)));
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        space();
        if (next_ != text_.size()) fail("text after the dict");
        if (!have_descr || !have_order || !have_shape) fail("needs descr, fortran_order and shape");
    }

private:
    [[noreturn]] void fail(const std::string& message, std::string hint = {}) const {
        reader_.fail("NPY header: " + message, std::move(hint));
    }
    void space() {
        while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\n' || text_[next_] == '\t')) ++next_;
    }
    bool accept(char c) {
        space();
        if (next_ >= text_.size() || text_[next_] != c) return false;
        ++next_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(fmt::format("expected '{}' at {}", c, in_quotes(text_.substr(next_))));
    }
    std::string_view string(const char* what) {
        space();
        const char quote = next_ < text_.size() ? text_[next_] : '\0';
        const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, next_ + 1) : text_.npos;
        if (end == text_.npos) fail(fmt::format("expected {} in quotes at {}", what, in_quotes(text_.substr(next_))));
        const std::string_view result = text_.substr(next_ + 1, end - next_ - 1);
        if (result.find('\\') != result.npos) fail("a backslash in a string");
        next_ = end + 1;
        return result;
    }
    bool boolean() {
        space();
        for (const bool value : {true, false}) {
            const std::string_view word = value ? "True" : "False";
            if (text_.substr(next_, word.size()) == word) {
                next_ += word.size();
                return value;
            }
        }
        fail(fmt::format("fortran_order must be True or False, got {}", in_quotes(text_.substr(next_))));
    }
    void shape(NpyHeader& header) {
        expect('(');
        while (!accept(')')) {
            space();
            int64_t extent = 0;
            const char* begin = text_.data() + next_;
            const char* end = text_.data() + text_.size();
            const auto [stop, error] = std::from_chars(begin, end, extent);
            if (error != std::errc{} || extent < 0)
                fail(fmt::format("shape: expected a count at {}", in_quotes(text_.substr(next_))));
            next_ += static_cast<size_t>(stop - begin);
            if (next_ < text_.size() && text_[next_] == 'L') ++next_;  // Python 2 wrote 3L
            header.shape.push_back(extent);
            if (static_cast<int64_t>(header.shape.size()) > reader_.limits().max_tensor_rank)
                fail(fmt::format("more than {} dimensions", reader_.limits().max_tensor_rank));
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
    }
    void descr(NpyHeader& header) {
        space();
        if (next_ < text_.size() && text_[next_] == '[')
            fail("a structured array (fields with names)", "save its columns as one plain array, or as an .npz");
        const std::string_view type = string("a type");
        std::string_view rest = type;
        if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != rest.npos) {
            header.big_endian = rest[0] == '>';
            rest.remove_prefix(1);
        }
        if (rest.substr(0, 1) == "O")
            fail("an object array, which is a pickle",
                 "save numbers: np.save(file, array.astype('float32'), allow_pickle=False)");
        struct Known {
            std::string_view text;
            DType dtype;
        };
        static constexpr Known kKnown[] = {{"b1", DType::boolean}, {"u1", DType::u8},  {"i1", DType::i8},
                                           {"u2", DType::u16},     {"i2", DType::i16}, {"u4", DType::u32},
                                           {"i4", DType::i32},     {"u8", DType::u64}, {"i8", DType::i64},
                                           {"f2", DType::f16},     {"f4", DType::f32}, {"f8", DType::f64}};
        for (const Known& known : kKnown)
            if (rest == known.text) {
                header.dtype = known.dtype;
                return;
            }
        fail(fmt::format("type {} is not read; bool, integers and floats of up to 8 bytes are", in_quotes(type)));
    }

    std::string_view text_;
    const ByteReader& reader_;
    size_t next_ = 0;
};

}  // namespace

NpyHeader read_npy_header(ByteReader& reader) {
    if (reader.at_end()) reader.fail("empty file");
    char magic[8];
    reader.read_exact(magic, 6, "the NPY magic");
    if (std::string_view(magic, 6) != kMagic) reader.fail("not an NPY file: it must begin with \\x93NUMPY");
    reader.read_exact(magic + 6, 2, "the NPY version");
    const int major = static_cast<unsigned char>(magic[6]);
    if (major < 1 || major > 3) reader.fail(fmt::format("NPY version {}; 1 to 3 are read", major));

    NpyHeader header;
    header.raw.assign(magic, 8);
    int64_t length = 0;
    if (major == 1) {
        const auto value = reader.read_number<uint16_t>("the NPY header length");
        header.raw.append(reinterpret_cast<const char*>(&value), sizeof value);
        length = value;
    } else {
        const auto value = reader.read_number<uint32_t>("the NPY header length");
        header.raw.append(reinterpret_cast<const char*>(&value), sizeof value);
        length = value;
    }
    if (length > reader.limits().max_npy_header)
        reader.fail(fmt::format("NPY header of {} bytes, the limit is {}", length, reader.limits().max_npy_header));
    reader.require_remaining(length, "the NPY header");
    const size_t before = header.raw.size();
    header.raw.resize(before + static_cast<size_t>(length));
    reader.read_exact(header.raw.data() + before, length, "the NPY header");
    DictParser(std::string_view(header.raw).substr(before), reader).parse(header);

    header.bytes = size_of(header.dtype);
    bool empty = false;
    for (const int64_t extent : header.shape) empty = empty || extent == 0;
    for (const int64_t extent : header.shape)
        if (!empty && __builtin_mul_overflow(header.bytes, extent, &header.bytes))
            reader.fail(fmt::format("NPY header: the size of shape {} overflows 64 bits",
                                    shape_text(header.shape.data(), static_cast<int>(header.shape.size()))));
    if (empty) header.bytes = 0;
    return header;
}

std::string npy_header(DType dtype, const std::vector<int64_t>& shape) {
    const char* descr = nullptr;
    switch (dtype) {
        case DType::u8: descr = "|u1"; break;
        case DType::i8: descr = "|i1"; break;
        case DType::u16: descr = "<u2"; break;
        case DType::i16: descr = "<i2"; break;
        case DType::u32: descr = "<u4"; break;
        case DType::i32: descr = "<i4"; break;
        case DType::u64: descr = "<u8"; break;
        case DType::i64: descr = "<i8"; break;
        case DType::f16: descr = "<f2"; break;
        case DType::f32: descr = "<f4"; break;
        case DType::f64: descr = "<f8"; break;
        case DType::boolean: descr = "|b1"; break;
        case DType::bf16: break;
    }
    STIPPLE_REQUIRE(descr, "numpy has no {}", name_of(dtype));
    std::string tuple;
    for (const int64_t extent : shape) tuple += fmt::format("{},{}", extent, shape.size() == 1 ? "" : " ");
    if (shape.size() > 1) tuple.resize(tuple.size() - 2);
    std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, tuple);
    dict.append(63 - (10 + dict.size()) % 64, ' ');
    dict += '\n';
    std::string header(kMagic);
    header += '\x01';
    header += '\0';
    header += static_cast<char>(dict.size() & 0xff);
    header += static_cast<char>(dict.size() >> 8);
    return header + dict;
}

}  // namespace stipple::io
