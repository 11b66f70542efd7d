#pragma once
// What loaders share: names of files, lists, rows of numbers, items that are checked when they are added.

#include <optional>

#include "stipple/data/layouts/layout.h"
#include "stipple/io/hdf5.h"

namespace stipple::data {

inline constexpr std::string_view kSplits[] = {"train", "val", "test"};

std::string join(const std::string& folder, std::string_view name);
bool is_file(const std::string& path);

/// A name that stays in its folder: not empty, no ".", "..", slash or NUL.
bool is_plain_name(std::string_view name);

/// Throws Error{bad_file} at a path.
[[noreturn]] void fail_at(const std::string& path, std::string message, std::string hint = {});

/// A list of names in JSON: ["a", "b"]. `what` is for the message: "a list of shapes".
std::vector<std::string> load_json_names(const std::string& path, std::string_view what);

/// The content of a small text file, up to 64 MiB.
std::string load_text(const std::string& path);

/// Rows of exactly `columns` finite numbers separated by blanks or commas; empty lines are left out. At most `rows`
/// rows are kept, all are read. Throws Error{bad_file} with the line.
struct Rows {
    std::vector<double> values;  // [kept, columns]
    int64_t kept = 0, total = 0;
};
Rows load_rows(const std::string& path, int columns, int64_t rows, const io::Limits& limits);

/// Files that a list names, one a line, by their base names beside it; folder/PREFIX*.h5 where there is no list. Throws
/// Error{bad_file} for a name that leads nowhere.
std::vector<std::string> listed_files(const std::string& folder, const std::string& list, const std::string& prefix);

/// One item, as loaders give it: rows of three.
struct Item {
    std::span<const float> points, normals = {};
    std::span<const int32_t> parts = {};
    std::optional<int64_t> label = {};
    std::string name = {};
};

/// Adds items to a set; what one of them lacks (normals, names) is left out of all, with a warning.
class ItemSink {
public:
    ItemSink(const SetRequest& request, DataSet& set) : request_(request), set_(set) {}

    /// Checks finite values, the label against the classes and parts against the category; keeps the first
    /// options.points points. `place` is for messages: "train0.h5[12]".
    void add(const Item& item, const std::string& place);
    /// Every item of an HDF5 file.
    void add(const io::CloudSet& file, const std::string& path);
    void finish();

private:
    const SetRequest& request_;
    DataSet& set_;
    int64_t with_normals_ = 0, with_names_ = 0;
};

/// Appends the first points of a cloud, checked.
void append_cloud(Clouds& clouds, std::span<const float> points, int64_t taken, const std::string& place);

}  // namespace stipple::data
