#include "stipple/data/layouts/common.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/folder.h"
#include "stipple/core/json_walk.h"
#include "stipple/data/class_names.h"
#include "stipple/io/text.h"

namespace stipple::data {
namespace {

constexpr int64_t kMaxText = int64_t{64} << 20;

void require_finite(std::span<const float> values, const char* what, const std::string& place) {
    for (size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i])) fail_at(place, fmt::format("{} {} is not finite", what, i / 3));
}

}  // namespace

std::string join(const std::string& folder, std::string_view name) {
    return fmt::format("{}/{}", folder, name);
}

bool is_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_plain_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
}

void fail_at(const std::string& path, std::string message, std::string hint) {
    throw Error(ErrorCode::bad_file, Place{path}, std::move(message), std::move(hint));
}

std::string load_text(const std::string& path) {
    io::FileSource source(path);
    if (!source.size()) fail_at(path, "a file is wanted, not a pipe");
    if (*source.size() > kMaxText) fail_at(path, fmt::format("{} bytes, the limit is {}", *source.size(), kMaxText));
    io::ByteReader reader(source);
    std::string text(static_cast<size_t>(*source.size()), '\0');
    try {
        reader.read_exact(text.data(), *source.size(), "text");
    } catch (const Error& error) {
        throw error.at_path(path);
    }
    return text;
}

std::vector<std::string> load_json_names(const std::string& path, std::string_view what) {
    std::vector<std::string> names;
    // walk_json wants an object.
    const bool valid = walk_json("{\"a\":" + load_text(path) + "}", [&](std::string_view at, const JsonValue& value) {
        if (at != fmt::format("a/{}", names.size()) || value.kind != JsonValue::Kind::string)
            fail_at(path, fmt::format("must be {}: [\"...\", ...]", what));
        names.emplace_back(value.text);
    });
    if (!valid) fail_at(path, fmt::format("must be {}, and is no JSON", what));
    return names;
}

Rows load_rows(const std::string& path, int columns, int64_t rows, const io::Limits& limits) {
    io::FileSource source(path);
    io::ByteReader reader(source, limits);
    Rows result;
    try {
        while (const auto line = reader.line()) {
            const char* at = line->data();
            const char* const end = at + line->size();
            const auto skip = [&] {
                while (at < end && (io::is_blank(*at) || *at == ',')) ++at;
            };
            skip();
            if (at == end) continue;
            if (++result.total > limits.max_points)
                reader.fail_line(fmt::format("more than {} rows", limits.max_points));
            const bool keep = result.kept < rows;
            for (int column = 0; column < columns; ++column) {
                double value = 0;
                const char* const before = at;
                if (!io::scan_number(at, end, value) || (at < end && !io::is_blank(*at) && *at != ','))
                    reader.fail_line(fmt::format("expected {} number{}, found {}", columns, columns == 1 ? "" : "s",
                                                 in_quotes({before, static_cast<size_t>(end - before)})));
                if (!std::isfinite(value)) reader.fail_line("a number is not finite");
                if (keep) result.values.push_back(value);
                skip();
            }
            if (at < end) reader.fail_line(fmt::format("expected {} columns, there are more", columns));
            if (keep) ++result.kept;
        }
    } catch (const Error& error) {
        throw error.at_path(path);
    }
    if (result.total == 0) fail_at(path, "holds no rows");
    return result;
}

std::vector<std::string> listed_files(const std::string& folder, const std::string& list, const std::string& prefix) {
    std::vector<std::string> files;
    const std::string list_path = join(folder, list);
    if (is_file(list_path)) {
        for (const std::string& line : load_names(list_path)) {
            const std::string name = line.substr(line.rfind('/') + 1);
            if (!is_plain_name(name)) fail_at(list_path, fmt::format("{} names no file", in_quotes(line)));
            files.push_back(join(folder, name));
            if (!is_file(files.back()))
                fail_at(list_path, fmt::format("names {}, which is not beside it", in_quotes(line)));
        }
        return files;
    }
    for (const std::string& name : list_folder(folder))
        if (name.starts_with(prefix) && name.ends_with(".h5")) files.push_back(join(folder, name));
    return files;
}

void append_cloud(Clouds& clouds, std::span<const float> points, int64_t taken, const std::string& place) {
    if (taken <= 0) fail_at(place, "a cloud without points");
    points = points.first(static_cast<size_t>(3 * taken));
    require_finite(points, "point", place);
    clouds.points.insert(clouds.points.end(), points.begin(), points.end());
    clouds.offsets.push_back(clouds.offsets.back() + taken);
}

void ItemSink::add(const Item& item, const std::string& place) {
    const int64_t taken = request_.taken(static_cast<int64_t>(item.points.size() / 3));
    const int64_t number_of_classes = static_cast<int64_t>(set_.classes.size());
    if (item.label && (*item.label < 0 || *item.label >= number_of_classes))
        fail_at(place, fmt::format("label {}, there are {} classes", *item.label, number_of_classes));
    append_cloud(set_.clouds, item.points, taken, place);
    if (item.label) set_.labels.push_back(static_cast<int32_t>(*item.label));
    if (!item.normals.empty()) {
        const auto normals = item.normals.first(static_cast<size_t>(3 * taken));
        require_finite(normals, "normal", place);
        if (with_normals_++ == set_.size() - 1) set_.normals.insert(set_.normals.end(), normals.begin(), normals.end());
    }
    if (!item.parts.empty()) {
        STIPPLE_ASSERT(item.label && !set_.categories.empty());
        const PartCategory& category = set_.categories[static_cast<size_t>(*item.label)];
        for (int64_t i = 0; i < taken; ++i) {
            const int32_t part = item.parts[static_cast<size_t>(i)];
            if (part < category.begin || part >= category.end)
                fail_at(place, fmt::format("point {} is part {}, {} has parts {} to {}", i, part, category.name,
                                           category.begin, category.end - 1));
            set_.parts.push_back(part);
        }
    }
    with_names_ += !item.name.empty();
    set_.names.push_back(item.name);
}

void ItemSink::add(const io::CloudSet& file, const std::string& path) {
    const auto n = static_cast<size_t>(file.points.size(1));
    for (int64_t i = 0; i < file.size(); ++i) {
        const auto at = static_cast<size_t>(i);
        Item item{.points = file.points.span().subspan(3 * n * at, 3 * n)};
        if (file.normals.elements() > 0) item.normals = file.normals.span().subspan(3 * n * at, 3 * n);
        if (!set_.categories.empty() && file.parts.elements() > 0) item.parts = file.parts.span().subspan(n * at, n);
        if (!file.labels.empty()) item.label = file.labels[at];
        if (!file.names.empty()) item.name = file.names[at];
        add(item, fmt::format("{}[{}]", path, i));
    }
}

void ItemSink::finish() {
    const int64_t items = set_.size();
    const auto warn = [&](int64_t with, const char* what) {
        if (with > 0 && with < items)
            request_.warnings.push_back(
                fmt::format("{}: {} of {} items have {}: left out", request_.folder, with, items, what));
        return with == items;
    };
    if (!warn(with_normals_, "normals")) set_.normals.clear();
    if (!warn(with_names_, "a name")) set_.names.clear();
}

}  // namespace stipple::data
