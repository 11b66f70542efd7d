#pragma once
// A study: every method on every input, scored. Rows are kept in a folder, so that a study that was interrupted goes
// on.

#include <functional>

#include "stipple/tasks/upsampling_study/methods.h"
#include "stipple/tasks/upsampling_study/scores.h"

namespace stipple::tasks::study {

struct StudyPlan {
    std::vector<Condition> conditions;
    std::vector<Method> methods;
    std::vector<Shape> shapes;
    uint64_t first_seed = 0;
    int64_t seeds = 5;   // draws of every input
    std::string folder;  // results.csv, inputs/ and outputs/ go there
    bool again = false;  // rows that are there do not count
    std::string device = "auto";
    int64_t figure_shapes = 5;  // of so many, the first ones, outputs of the first seed are kept for figures

    std::function<Mesh(const std::string& path)> load_mesh;  // with faces and finite corners
    std::function<void(int64_t rows)> advance = {};          // so many more of study_rows() are done

    bool has_several_inputs() const { return conditions.size() * static_cast<size_t>(seeds) > 1; }
};

/// Rows that a plan will have, at most.
int64_t study_rows(const StudyPlan& plan);

/// inputs/CONDITION-SEED/SHAPE.ply: what every method was given, for programs whose results --compare brings in.
std::string input_path(const StudyPlan& plan, const Condition& condition, const Shape& shape, uint64_t seed);
/// outputs/METHOD/CONDITION-SEED/SHAPE.ply; METHOD "truth" is what was scored against.
std::string output_path(const StudyPlan& plan, const std::string& method, const Condition& condition,
                        const Shape& shape, uint64_t seed);

/// Writes the inputs alone.
void write_inputs(const StudyPlan& plan);

/// Rows by condition, shape, seed and method. Draws every input anew and compares its points and the method's weights
/// with those of a row that is kept: only what is missing is computed. Networks and files are looked for first.
/// results.csv is written after each input. Throws what methods and metrics throw, Error{cannot_write}; can be
/// interrupted.
std::vector<Row> run_study(const StudyPlan& plan);

/// The folder and those on the way to it. Throws Error{cannot_write}.
void make_folders(const std::string& path);
/// Replaces the file. Throws Error{cannot_write}.
void write_text(const std::string& path, std::string_view text);

}  // namespace stipple::tasks::study
