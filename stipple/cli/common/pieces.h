#pragma once
// Clouds that go through a command piece by piece: the one place where commands that look at points one by one (crop,
// filter, transform, merge, split) read and write. A LAS file comes and goes in chunks, so that it may be larger than
// the memory; of other formats a piece is the whole file. The commands do not know.

#include "stipple/cli/common/files.h"
#include "stipple/cli/common/step.h"
#include "stipple/io/cloud_stream.h"

namespace stipple::cli {

/// What a command takes of a LAS file.
struct Wanted {
    /// Point records as they stand, which the output writes unchanged: for commands that move no point, into LAS.
    bool records = false;
    /// Beside the records only these attributes. Without records all come.
    std::vector<std::string> attributes = {};
};

/// A file of points, in pieces.
class CloudInput {
public:
    /// Nothing is read yet. `common` and `result`, which gets the warnings, must outlive it.
    CloudInput(InputFile file, const Common& common, Result& result, Wanted wanted = {})
        : file_(std::move(file)), common_(common), result_(result), wanted_(std::move(wanted)) {}

    /// Calls body for each piece in the order of the file. Errors of the body that name no file are put at this one.
    /// May be called again: a file is then gone through again, standard input is kept.
    void for_each(const std::function<void(const Mesh& piece)>& body);

    /// Its first point, with all attributes; a LAS file is not read further.
    PointCloud first();

    /// Whether it comes in chunks.
    bool is_streamed() const;
    const std::string& path() const { return file_.path; }
    void want(Wanted wanted) { wanted_ = std::move(wanted); }

private:
    InputFile file_;
    const Common& common_;
    Result& result_;
    Wanted wanted_;
    bool has_warned_ = false;
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

    /// Pieces must have the same attributes. Those of a LAS file go into one as they come.
    void add(Mesh piece);
    /// Of LAS, before the first piece: instead of the grid that the pieces come with.
    void set_grid(const FileFacts::Grid& grid);
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
    io::Warnings warnings_;  // of the writer
    std::unique_ptr<io::CloudWriter> writer_;
    std::vector<Mesh> pieces_;
    int64_t points_ = 0;
    bool is_streamed_ = false;
};

/// Reads, keeps of every piece what the mask of the step keeps, writes: crop and filter. `points` and `kept` in the
/// fields.
Result keep_points(const Step& step, const CloudFiles& files, const Common& common);

/// Names in the step are checked against all attributes, so that a wrong one is answered with what there is: pieces
/// of LAS may come without those that no step asks for.
void require_attributes(const Step& step, CloudInput& input);

/// One cloud of all pieces of a file, which have the same attributes. `systems_differ` becomes true where they tell of
/// different coordinate systems; then none is kept.
Mesh joined(const std::vector<Mesh>& pieces, bool& systems_differ);

}  // namespace stipple::cli
