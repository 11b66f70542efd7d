#pragma once
// The files of a command: how they are named on the command line, checked before any work, read, written and reported.

#include "stipple/cli/common/step.h"
#include "stipple/core/folder.h"
#include "stipple/core/image.h"
#include "stipple/data/cloud_list.h"

namespace stipple::cli {

/// A cloud or mesh to read.
struct InputFile {
    std::string path, from;
    int64_t item = -1;
};

/// A cloud or mesh to write.
struct OutputFile {
    std::string path, format;
    io::WriteOptions writing = {};
};

/// A cloud that is read, and what becomes of it.
struct CloudFiles {
    InputFile input;
    OutputFile output;
};

/// A command that works on one cloud as `how` says and may draw what came of it.
template <class How>
struct CloudCommand {
    CloudFiles files;
    std::string picture;
    std::shared_ptr<How> how;
};

/// --size: "800x600", or "800" for a square. Throws Error{bad_argument} for anything else.
std::pair<int64_t, int64_t> parse_size(const std::string& text);

/// --from and --item.
void add_input_format(Arguments& app, InputFile& input);
/// -o.
Option add_output(Arguments& app, OutputFile& output);
/// --format and --ascii.
void add_output_format(Arguments& app, OutputFile& output);

/// The format that the output will have. Throws Error{bad_argument} when neither its name nor --format tells one,
/// Error{cannot_write} when the file exists and may not be replaced. `product` names the attribute that the command is
/// about, if it makes one: a format that cannot hold it is refused, Error{bad_argument}. Done before the first byte is
/// read.
io::Format require_output(const OutputFile& output, const Common& common, std::string_view product = {});

/// The same of many outputs.
std::vector<io::Format> require_outputs(const std::vector<OutputFile>& outputs, const Common& common,
                                        std::string_view product = {});

/// Where a command writes what it makes of each cloud: one file for one cloud, or files in a folder, named after the
/// clouds. Throws Error{bad_argument} for many clouds and one file, and for two clouds that would have the same file.
std::vector<OutputFile> outputs_of(const OutputFile& output, const std::vector<data::CloudEntry>& entries);

/// Throws Error{bad_argument} unless the path ends with .png, Error{cannot_write} as above; an empty one is no picture.
void require_picture(const std::string& path, const Common& common);

/// The cloud or mesh of the input, which becomes `inputs` in the result's fields.
Mesh load_input(const InputFile& input, const Common& common, Result& result);

/// The points of the input that have a place, with a warning that counts what was left out; `points` and `non_finite`
/// in the result's fields. Throws Error{bad_file} when no point is left.
PointCloud load_points(const InputFile& input, const Common& common, Result& result);
/// The same of a cloud that was read; the error names no file.
PointCloud finite_points(const Mesh& mesh, StepReport& report);

/// Moves the large part of coordinates that are far from 0 for their extent into the origin; nothing is rounded. Files
/// of float32 leave it in the positions, where new points between them would be rounded to what float32 has there.
void recentre(PointCloud& cloud);

/// Throws Error{bad_file} for a face with a corner that is not finite.
void require_finite_faces(const Mesh& mesh, const std::string& path);

/// A mesh whose faces have finite corners, recentred. Throws Error{bad_file} for a file without faces, and for a corner
/// that is not finite.
Mesh load_faces(const InputFile& input, const Common& common, Result& result);

/// Writes unless it is a dry run, and reports it: a line "wrote out.ply: WHAT" and an element of `outputs`.
void save_output(const Mesh& mesh, const OutputFile& output, io::Format format, const std::string& what,
                 const Common& common, Result& result);

/// The report of save_output() alone, for a command that has written the file itself.
void report_output(const OutputFile& output, io::Format format, int64_t points, int64_t faces, const std::string& what,
                   const Common& common, Result& result);

/// Writes a text of that `format`, "csv" or "transform", and reports it; an empty path is none.
void save_text(const std::string& path, const std::string& text, std::string_view format, const Common& common,
               Result& result);

/// The same for a picture, which is drawn only when it is wanted; an empty path is none.
void save_picture(const std::string& path, const std::function<Image()>& draw, const Common& common, Result& result);

/// Runs `work`; an Error{bad_argument} or Error{bad_file} that names no file is put at `path`: the library does not
/// know it.
template <class Work>
auto about_file(const std::string& path, Work&& work) {
    try {
        return work();
    } catch (const Error& error) {
        const bool is_about_input = error.code() == ErrorCode::bad_argument || error.code() == ErrorCode::bad_file;
        if (!is_about_input || !error.place().path.empty()) throw;
        throw error.at_path(path);
    }
}

}  // namespace stipple::cli
