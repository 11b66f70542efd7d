#include "stipple/io/stl.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/common/world.h"

namespace stipple::io {
namespace {

constexpr int64_t kHeader = 84, kFacet = 50;
constexpr int64_t kChunkFacets = int64_t{1} << 16;  // 3 MiB

/// Corners into vertices and indices. Open addressing over the three words of a corner; entries are vertex numbers.
class Welder {
public:
    explicit Welder(const ByteReader& reader) : reader_(reader), table_(1024, -1) {}

    void add(const float* corner) {
        std::array<uint32_t, 3> key;
        std::memcpy(key.data(), corner, 12);
        size_t slot = hash(key);
        for (; table_[slot] >= 0; slot = (slot + 1) & (table_.size() - 1))
            if (same(vertices_[static_cast<size_t>(table_[slot])], key)) {
                indices_.push_back(table_[slot]);
                return;
            }
        const auto index = static_cast<int64_t>(vertices_.size());
        if (index >= reader_.limits().max_points)
            reader_.fail(fmt::format("more vertices than the limit of {}", reader_.limits().max_points));
        table_[slot] = static_cast<int32_t>(index);
        vertices_.push_back(key);
        indices_.push_back(static_cast<int32_t>(index));
        if (vertices_.size() * 2 > table_.size()) grow();
    }

    /// Room for a closed surface of so many facets, which has half as many vertices. For counts that the file backs.
    void reserve(int64_t facets) {
        indices_.reserve(static_cast<size_t>(3 * facets));
        vertices_.reserve(static_cast<size_t>(facets / 2 + 3));
        table_.assign(std::bit_ceil(static_cast<size_t>(facets + 1024)), -1);
    }

    int64_t facets() const { return static_cast<int64_t>(indices_.size() / 3); }

    Mesh mesh() const {
        Mesh mesh;
        mesh.vertices = PointCloud(static_cast<int64_t>(vertices_.size()));
        mesh.triangles = Array<int32_t, 2>({facets(), 3});
        if (indices_.empty()) return mesh;
        std::memcpy(mesh.vertices.positions.data(), vertices_.data(), 12 * vertices_.size());
        std::memcpy(mesh.triangles.data(), indices_.data(), 4 * indices_.size());
        return mesh;
    }

private:
    static uint32_t canonical(uint32_t bits) { return bits == 0x80000000u ? 0 : bits; }  // -0 is 0
    static bool same(const std::array<uint32_t, 3>& a, const std::array<uint32_t, 3>& b) {
        return canonical(a[0]) == canonical(b[0]) && canonical(a[1]) == canonical(b[1]) &&
               canonical(a[2]) == canonical(b[2]);
    }
    size_t hash(const std::array<uint32_t, 3>& key) const {
        uint64_t h = canonical(key[0]) * 0x9E3779B97F4A7C15u;
        h = (std::rotl(h, 23) ^ canonical(key[1])) * 0xC2B2AE3D27D4EB4Fu;
        h = (std::rotl(h, 23) ^ canonical(key[2])) * 0x9E3779B97F4A7C15u;
        return static_cast<size_t>(h ^ (h >> 32)) & (table_.size() - 1);
    }
    void grow() {
        table_.assign(2 * table_.size(), -1);
        for (size_t i = 0; i < vertices_.size(); ++i) {
            size_t slot = hash(vertices_[i]);
            while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
            table_[slot] = static_cast<int32_t>(i);
        }
    }

    const ByteReader& reader_;
    std::vector<std::array<uint32_t, 3>> vertices_;
    std::vector<int32_t> indices_, table_;
};

void add_facets(Welder& welder, const std::byte* facets, int64_t count, bool& attribute_bytes) {
    for (int64_t i = 0; i < count; ++i) {
        float corners[9];
        uint16_t attribute;
        std::memcpy(corners, facets + kFacet * i + 12, sizeof corners);
        std::memcpy(&attribute, facets + kFacet * i + 48, 2);
        attribute_bytes = attribute_bytes || attribute != 0;
        for (int c = 0; c < 3; ++c) welder.add(corners + 3 * c);
    }
}

Mesh parse_binary(ByteReader& reader, Warnings& warnings) {
    if (const auto size = reader.remaining(); size && *size < kHeader)
        reader.fail(fmt::format("neither an ascii STL (solid ...) nor a binary one: {} bytes, a header has {}", *size,
                                kHeader));
    reader.skip(kHeader - 4, "the STL header");
    const int64_t count = reader.read_number<uint32_t>("the number of facets");
    if (count > reader.limits().max_points)
        reader.fail(fmt::format("{} facets, the limit is {}", count, reader.limits().max_points));
    reader.require_remaining(kFacet * count, fmt::format("{} facets", count));
    Welder welder(reader);
    if (reader.remaining()) welder.reserve(count);
    bool attribute_bytes = false;
    Buffer chunk(kFacet * std::min(count, kChunkFacets));
    for (int64_t done = 0; done < count;) {
        const int64_t step = std::min(kChunkFacets, count - done);
        reader.read_exact(chunk.data(), kFacet * step, "a facet");
        add_facets(welder, chunk.data(), step, attribute_bytes);
        done += step;
    }
    if (!reader.at_end()) reader.fail(fmt::format("bytes after the last of {} facets", count));
    if (attribute_bytes)
        warnings.push_back("STL: the attribute bytes of the facets (colours of some programs) are dropped");
    return welder.mesh();
}

class AsciiParser {
public:
    explicit AsciiParser(ByteReader& reader) : reader_(reader), welder_(reader) {}

    Mesh parse() {
        bool solid = false;
        while (next_line()) {
            const std::string_view word = token();
            if (!solid) {
                if (word != "solid") fail("solid", word);
                solid = true;
            } else if (word == "endsolid") {
                solid = false;
            } else if (word == "facet") {
                facet();
            } else {
                fail("facet or endsolid", word);
            }
        }
        if (solid) reader_.fail_line("the file ends without endsolid");
        return welder_.mesh();
    }

private:
    void facet() {
        if (lower(token()) != "normal") reader_.fail_line("expected facet normal x y z");
        for (int i = 0; i < 3; ++i) number("a facet normal");
        end_of_line();
        require("outer", "loop");
        for (int c = 0; c < 3; ++c) {
            require("vertex", "");
            float corner[3];
            for (float& value : corner) value = number("a vertex");
            end_of_line();
            welder_.add(corner);
        }
        require("endloop", "");
        require("endfacet", "");
        if (welder_.facets() > reader_.limits().max_points)
            reader_.fail_line(fmt::format("more facets than the limit of {}", reader_.limits().max_points));
    }

    /// The next line that is not blank; false at the end.
    bool next_line() {
        while (const auto line = reader_.line()) {
            rest_ = *line;
            skip_space();
            if (!rest_.empty()) return true;
        }
        return false;
    }
    void require(std::string_view first, std::string_view second) {
        if (!next_line()) reader_.fail_line(fmt::format("the file ends where {} should be", first));
        const std::string_view word = token();
        if (word != first) fail(first, word);
        if (!second.empty() && lower(token()) != second)
            reader_.fail_line(fmt::format("expected {} {}", first, second));
        if (first != "vertex") end_of_line();
    }
    void skip_space() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1);
    }
    std::string_view raw_token() {
        skip_space();
        size_t length = 0;
        while (length < rest_.size() && rest_[length] != ' ' && rest_[length] != '\t' && rest_[length] != '\r')
            ++length;
        if (static_cast<int64_t>(length) > reader_.limits().max_token)
            reader_.fail_line(fmt::format("a word longer than {} characters", reader_.limits().max_token));
        const std::string_view result = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return result;
    }
    /// Keywords are written in either case.
    std::string_view lower(std::string_view word) {
        word_.assign(word);
        for (char& c : word_)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        return word_;
    }
    std::string_view token() { return lower(raw_token()); }
    float number(const char* what) {
        std::string_view text = raw_token();
        const std::string_view whole = text;
        if (!text.empty() && text[0] == '+') text.remove_prefix(1);
        float value = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (stop != text.data() + text.size() || text.empty() || error == std::errc::invalid_argument)
            reader_.fail_line(fmt::format("{}: expected a number, got {}", what, in_quotes(whole)));
        // Out of float32's range: double decides between 0 and infinity.
        if (error == std::errc::result_out_of_range) {
            double wide = 0;
            const auto second = std::from_chars(text.data(), text.data() + text.size(), wide);
            if (second.ec != std::errc{})
                reader_.fail_line(fmt::format("{}: {} is out of range", what, in_quotes(whole)));
            value = static_cast<float>(wide);
        }
        return value;
    }
    void end_of_line() {
        skip_space();
        if (!rest_.empty()) reader_.fail_line(fmt::format("unexpected {}", in_quotes(rest_)));
    }
    [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
        reader_.fail_line(fmt::format("expected {}, got {}", expected, in_quotes(found)));
    }

    ByteReader& reader_;
    Welder welder_;
    std::string_view rest_;
    std::string word_;
};

bool is_binary(ByteReader& reader) {
    const auto head = reader.peek(512);
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const size_t start = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    std::string word(text.substr(start, 5));
    for (char& c : word)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (word != "solid") return true;
    if (head.size() >= kHeader)
        if (const auto size = reader.remaining()) {
            uint32_t count;
            std::memcpy(&count, head.data() + 80, 4);
            if (*size == kHeader + kFacet * int64_t{count}) return true;
        }
    // Numbers in binary are sure to have a byte that no text has.
    return std::any_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
    });
}

std::array<float, 3> normal_of(const float* a, const float* b, const float* c) {
    double u[3], v[3];
    for (int i = 0; i < 3; ++i) {
        u[i] = static_cast<double>(b[i]) - a[i];
        v[i] = static_cast<double>(c[i]) - a[i];
    }
    const double x = u[1] * v[2] - u[2] * v[1], y = u[2] * v[0] - u[0] * v[2], z = u[0] * v[1] - u[1] * v[0];
    const double length = std::sqrt(x * x + y * y + z * z);
    if (!(length > 0) || !std::isfinite(length)) return {};
    return {static_cast<float>(x / length), static_cast<float>(y / length), static_cast<float>(z / length)};
}

void append_triple(std::string& text, const char* before, const float* values) {
    text += before;
    for (int i = 0; i < 3; ++i) {
        char digits[32];
        text += ' ';
        text.append(digits, std::to_chars(digits, digits + sizeof digits, values[i]).ptr);
    }
    text += '\n';
}

}  // namespace

Mesh parse_stl(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    if (reader.at_end()) reader.fail("empty file");
    return is_binary(reader) ? parse_binary(reader, warnings) : AsciiParser(reader).parse();
}

void write_stl(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings) {
    if (mesh.faces() == 0 && mesh.vertices.size() > 0)
        throw Error(ErrorCode::bad_argument, "STL holds faces only, and the cloud has none", "write .ply instead");
    const PointCloud& cloud = mesh.vertices;
    const int32_t* triangles = mesh.triangles.data();
    const int64_t faces = mesh.faces();
    std::vector<bool> used(static_cast<size_t>(cloud.size()));
    for (int64_t i = 0; i < 3 * faces; ++i) used[static_cast<size_t>(triangles[i])] = true;
    const auto unused = std::count(used.begin(), used.end(), false);

    std::vector<std::string> dropped = names_except(cloud.attributes, {});
    for (const Attribute& attribute : mesh.face_attributes) dropped.push_back("face attribute " + attribute.name());
    if (unused > 0) dropped.push_back(fmt::format("{} vertices of no face", unused));
    warn_dropped(dropped, "STL", "", warnings);

    const FloatWorld world(cloud, "STL", warnings);
    const auto corner = [&](int64_t face, int c) { return world.data() + 3 * int64_t{triangles[3 * face + c]}; };
    if (options.ascii) {
        std::string text = "solid stipple\n";
        for (int64_t f = 0; f < faces; ++f) {
            append_triple(text, "facet normal", normal_of(corner(f, 0), corner(f, 1), corner(f, 2)).data());
            text += "outer loop\n";
            for (int c = 0; c < 3; ++c) append_triple(text, "vertex", corner(f, c));
            text += "endloop\nendfacet\n";
            if (text.size() > (size_t{1} << 20)) {
                sink.write(text);
                text.clear();
            }
        }
        sink.write(text + "endsolid stipple\n");
        return;
    }
    // Not "solid" in front: that would make it look like ascii.
    char header[kHeader] = "binary STL by stipple";
    const auto count = checked_narrow<uint32_t>(faces, "number of facets");
    std::memcpy(header + 80, &count, 4);
    sink.write(header, kHeader);
    Buffer chunk(kFacet * std::min(faces, kChunkFacets));
    for (int64_t done = 0; done < faces;) {
        const int64_t step = std::min(kChunkFacets, faces - done);
        parallel_for(step, int64_t{1} << 12, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                std::byte* to = chunk.data() + kFacet * i;
                const std::array<float, 3> normal =
                    normal_of(corner(done + i, 0), corner(done + i, 1), corner(done + i, 2));
                std::memcpy(to, normal.data(), 12);
                for (int c = 0; c < 3; ++c) std::memcpy(to + 12 + 12 * c, corner(done + i, c), 12);
                std::memset(to + 48, 0, 2);
            }
        });
        sink.write(chunk.data(), kFacet * step);
        done += step;
    }
}

}  // namespace stipple::io
