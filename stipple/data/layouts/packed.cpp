// One packed file (data/packed.h).

#include "stipple/data/packed.h"

#include "stipple/data/layouts/common.h"

namespace stipple::data {
namespace {

std::vector<std::string> splits_of_packed(const std::string& path) {
    if (!is_file(path) || !is_packed_file(path)) return {};
    return load_packed_content(path).splits;
}

void load_packed(const SetRequest& request, DataSet& set) {
    request.report(0, 1);
    io::FileSource source(request.folder);
    io::ByteReader reader(source, request.options.limits);
    try {
        DataSet parsed = parse_packed(reader, request.split, request.options.points);
        parsed.layout = set.layout;
        set = std::move(parsed);
    } catch (const Error& error) {
        throw error.at_path(request.folder);
    }
    request.report(1, 1);
}

}  // namespace

const Layout kPacked = {{"packed", "a file .stpk", "clouds, classes, parts, names"}, splits_of_packed, load_packed};

}  // namespace stipple::data
