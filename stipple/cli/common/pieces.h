#pragma once
// Clouds that go through a command piece by piece: the one place where commands that look at points one by one (crop,
// filter, transform, merge, split) read and write. A piece is the whole file for now; the commands do not know.

#include "stipple/cli/common/files.h"

namespace stipple::cli {

/// A file of points, in pieces.
class CloudInput {
public:
    /// Nothing is read yet. `common` and `result`, which gets the warnings, must outlive it.
    CloudInput(InputFile file, const Common& common, Result& result)
        : file_(std::move(file)), common_(common), result_(result) {}

    /// Calls body for each piece in the order of the file. Errors of the body that name no file are put at this one.
    /// May be called again: a file is then gone through again, standard input is kept.
    void for_each(const std::function<void(const Mesh& piece)>& body);

    const std::string& path() const { return file_.path; }

private:
    InputFile file_;
    const Common& common_;
    Result& result_;
    std::optional<Mesh> whole_;
};

/// A warning that counts the faces that a command for points leaves out, if there are any.
void warn_of_faces(const Mesh& piece, const std::string& path, Result& result);

/// The bounds of two pieces together.
void extend(Bounds& all, const Bounds& more);

/// A file that is written in pieces.
class CloudOutput {
public:
    /// Throws as require_output, before anything is read.
    CloudOutput(OutputFile file, const Common& common, std::string_view product = {});

    /// Pieces must have the same attributes.
    void add(Mesh piece);
    int64_t points() const { return points_; }
    const std::string& path() const { return file_.path; }
    io::Format format() const { return format_; }

    /// Writes what was added, and reports it as save_output does. With no points a format that can hold none gets a
    /// file all the same, with a warning; else throws Error{bad_argument}. `why_empty` is for both.
    void finish(const std::string& what, const std::string& why_empty, Result& result);

private:
    OutputFile file_;
    const Common& common_;
    io::Format format_;
    std::vector<Mesh> pieces_;
    int64_t points_ = 0;
};

/// Reads, keeps of every piece the points whose mask is not 0, writes: crop and filter. `points` and `kept` in the
/// fields. `what` names those kept: "inside". Faces are left out, with a warning.
struct KeepReport {
    int64_t points = 0, kept = 0;
};
KeepReport keep_points(const InputFile& input, CloudOutput& output,
                       const std::function<std::vector<uint8_t>(const PointCloud& piece)>& mask_of,
                       const std::string& what, const Common& common, Result& result);

/// The points of a cloud whose mask is not 0, with all that they carry.
PointCloud masked(const PointCloud& cloud, const std::vector<uint8_t>& mask);

}  // namespace stipple::cli
