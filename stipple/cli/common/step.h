#pragma once
// Steps: what the commands that make a cloud of a cloud do between reading and writing. The command of that name and
// `stipple run` do their work with the same one.

#include "stipple/cli/command.h"

namespace stipple::cli {

/// What a step did.
struct StepReport {
    std::string what = {};         // "12 of 30 points inside"
    std::string text = {};         // lines for people besides
    Json fields = Json::object();  // for --json
    io::Warnings warnings = {};    // without a place
};

/// The work of a command on a cloud, with its options, which make sense. Either `run` or `mask` does it.
struct Step {
    /// On the whole cloud, in its place.
    std::function<StepReport(Mesh& mesh)> run = {};

    /// Of a step that looks at points one by one, so that a large file may come in pieces: not 0 for those that stay.
    std::function<std::vector<uint8_t>(const PointCloud& piece)> mask = {};
    std::string kept = {};                                // what those are: "inside"
    std::vector<std::string> attributes = {};             // that `mask` looks at
    std::function<void(StepReport& report)> finish = {};  // adds to the report when all pieces have come; may be empty

    bool only_removes = false;  // points that stay are what they were: records of LAS can pass as they stand
    std::string product = {};   // the attribute that it is about, if it makes one
};

/// Points that a mask has seen.
struct KeepCount {
    int64_t points = 0, kept = 0, faces = 0;
};

/// The points of a piece that the mask of the step keeps, without faces.
Mesh keep(const Step& step, const Mesh& piece, KeepCount& count);
/// Of a mask, when all pieces have come: `points` and `kept` in the fields, faces that were left out in a warning.
StepReport report_of(const Step& step, const KeepCount& count);
/// Does the step on a whole cloud, whichever way it works.
StepReport run_step(const Step& step, Mesh& mesh);

/// A warning that counts the faces that a step for points leaves out, if there are any.
void warn_of_faces(int64_t faces, StepReport& report);

/// Puts a report into the result of a command; `place`, a path or the name of a step, goes before each warning.
void tell(const StepReport& report, const std::string& place, Result& result);

/// The points of a cloud whose mask is not 0, with all that they carry.
PointCloud masked(const PointCloud& cloud, const std::vector<uint8_t>& mask);

/// Makes the step when its options are parsed. Throws Error{bad_argument} for those that make no sense, and for a file
/// of theirs that cannot be read as Error{bad_file}.
using MakeStep = std::function<Step()>;

}  // namespace stipple::cli
