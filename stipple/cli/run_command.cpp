#include <fmt/format.h>

#include <chrono>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/step_words.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/nearest_name.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr struct {
    const char* name;
    MakeStep (*add)(Arguments& app, const Common& common);
} kSteps[] = {{"crop", add_crop_step},           {"filter", add_filter_step},
              {"transform", add_transform_step}, {"clean", add_clean_step},
              {"sample", add_sample_step},       {"normals", add_normals_step},
              {"ground", add_ground_step},       {"planes", add_planes_step},
              {"clusters", add_clusters_step},   {"reconstruct", add_reconstruct_step}};

struct RunCommand {
    CloudFiles files;
    std::vector<std::string> steps;
};

/// A step, and what came of it.
struct Stage {
    std::string place;  // "step 1, crop"
    Step step;
    KeepCount count;     // of a mask
    tasks::StepRun run;  // what came of it
};

/// Runs `work`, and says in its errors which step they are of.
template <class Work>
auto about_step(const std::string& place, Work&& work) {
    try {
        return work();
    } catch (const Error& error) {
        const bool is_ours = error.code() == ErrorCode::interrupted || error.code() == ErrorCode::terminated;
        if (is_ours) throw;
        throw Error(error.code(), error.place(), fmt::format("{}: {}", place, error.message()), error.hint());
    }
}

/// The same, with the seconds that it took.
template <class Work>
auto timed(Stage& stage, Work&& work) {
    const Clock::time_point begin = Clock::now();
    auto result = about_step(stage.place, work);
    stage.run.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    return result;
}

std::vector<std::string> step_names() {
    std::vector<std::string> names;
    for (const auto& known : kSteps) names.emplace_back(known.name);
    return names;
}

MakeStep (*find_step(const std::string& name))(Arguments& app, const Common& common) {
    for (const auto& known : kSteps)
        if (name == known.name) return known.add;
    const std::vector<std::string> names = step_names();
    const std::string near = nearest_name(name, names);
    throw Error(ErrorCode::bad_argument, fmt::format("there is no step {}", name),
                fmt::format("{}steps are {}", near.empty() ? "" : fmt::format("did you mean {}? The ", near),
                            fmt::join(names, ", ")));
}

/// Its options, parsed as the command of its name parses them.
Step parse_step(const std::vector<std::string>& words, const Common& common) {
    Arguments program("", "stipple", "");
    const MakeStep make = find_step(words[0])(program.command(words[0], ""), common);
    std::vector<std::string> line = {"stipple"};
    line.insert(line.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : line) argv.push_back(word.data());
    if (const auto end = program.parse(static_cast<int>(argv.size()), argv.data(), {})) {
        if (end->error) throw *end->error;
        throw Error(ErrorCode::bad_argument, "has no help of its own", fmt::format("see: stipple {} --help", words[0]));
    }
    program.named().check();
    return make();
}

std::vector<Stage> stages_of(const std::vector<std::string>& steps, const Common& common) {
    STIPPLE_REQUIRE(!steps.empty(), "which steps? Give --then STEP for each");
    std::vector<Stage> stages;
    for (const std::string& text : steps) {
        Stage stage;
        stage.place = fmt::format("step {}", stages.size() + 1);
        const std::vector<std::string> words = about_step(stage.place, [&] {
            std::vector<std::string> found = split_words(text);
            STIPPLE_REQUIRE(!found.empty() && !found[0].empty(), "is empty");
            find_step(found[0]);
            return found;
        });
        stage.run.step = words[0];
        stage.place += ", " + stage.run.step;
        stage.step = about_step(stage.place, [&] { return parse_step(words, common); });
        stages.push_back(std::move(stage));
    }
    return stages;
}

/// Says what came of a step. Throws where nothing is left for the next.
void conclude(std::vector<Stage>& stages, size_t at, StepReport report, int64_t left, Result& result) {
    Stage& stage = stages[at];
    stage.run.left = left;
    report.fields.update(to_json(tasks::step_run_fields(), &stage.run));
    result.fields["steps"].push_back(report.fields);
    result.text += fmt::format("{}: {}\n", stage.place, report.what);
    for (size_t line = 0; line < report.text.size();) {  // indented
        const size_t end = report.text.find('\n', line) + 1;
        result.text += "  " + report.text.substr(line, end - line);
        line = end == 0 ? report.text.size() : end;
    }
    for (const std::string& warning : report.warnings)
        result.warnings.push_back(fmt::format("{}: {}", stage.place, warning));
    if (at + 1 == stages.size()) return;
    STIPPLE_REQUIRE(left > 0, "{}: no point is left for {}", stage.place, stages[at + 1].place);
    stages[at + 1].run.points = left;
}

/// Reads, through the steps in front that take a file in pieces: so many `masks` are. Where these are all, the pieces
/// go to the output; else the cloud that is left of them is returned.
Mesh read_through(std::vector<Stage>& stages, size_t masks, CloudInput& input, CloudOutput& output) {
    std::vector<Mesh> pieces;
    input.for_each([&](const Mesh& piece) {
        Mesh part;
        if (masks == 0) part.vertices = piece.vertices.clone();
        for (size_t i = 0; i < masks; ++i)
            part = timed(stages[i], [&] { return keep(stages[i].step, i == 0 ? piece : part, stages[i].count); });
        if (masks == stages.size())
            output.add(std::move(part));
        else
            pieces.push_back(std::move(part));
    });
    bool systems_differ = false;  // not in one file
    return masks == stages.size() ? Mesh() : pieces.size() == 1 ? std::move(pieces[0]) : joined(pieces, systems_differ);
}

/// From the points of the file to those of the output. Returns how many the file has.
void run_stages(std::vector<Stage>& stages, const InputFile& file, CloudOutput& output, const Common& common,
                Result& result) {
    Wanted wanted;
    wanted.records = output.format() == io::Format::las;
    size_t masks = 0;
    for (size_t i = 0; i < stages.size(); ++i) {
        const Step& step = stages[i].step;
        wanted.records = wanted.records && step.only_removes;
        wanted.attributes.insert(wanted.attributes.end(), step.attributes.begin(), step.attributes.end());
        masks += masks == i && step.mask;
    }
    CloudInput input(file, common, result, wanted);
    const bool in_pieces = masks > 0 || (wanted.records && input.is_streamed());
    Mesh mesh;
    if (in_pieces) {
        // Attributes that a step adds are not there yet.
        for (size_t i = 0; i < stages.size() && (i < masks || wanted.records); ++i)
            about_step(stages[i].place, [&] { require_attributes(stages[i].step, input); });
        mesh = read_through(stages, masks, input, output);
        if (masks == 0) stages[0].run.points = mesh.vertices.size();
        for (size_t i = 0; i < masks; ++i) {
            if (i == 0) stages[0].run.points = stages[0].count.points;
            conclude(stages, i, report_of(stages[i].step, stages[i].count), stages[i].count.kept, result);
        }
        if (masks == stages.size()) return;
    } else {
        mesh = load_with_progress(file.path, file.from, file.item, common, result.warnings);
        stages[0].run.points = mesh.vertices.size();
    }
    Progress progress("run", static_cast<int64_t>(stages.size() - masks), progress_mode(common), "steps");
    for (size_t i = masks; i < stages.size(); ++i) {
        check_interrupted();
        StepReport report =
            about_file(file.path, [&] { return timed(stages[i], [&] { return run_step(stages[i].step, mesh); }); });
        conclude(stages, i, std::move(report), mesh.vertices.size(), result);
        progress.add();
    }
    progress.finish();
    output.add(std::move(mesh));
}

Result run_steps(const RunCommand& command, const Common& common) {
    const Clock::time_point begin = Clock::now();
    const auto& [input, file] = command.files;
    std::vector<Stage> stages = stages_of(command.steps, common);
    CloudOutput output(file, common);
    for (const Stage& stage : stages)
        if (!stage.step.product.empty())
            about_step(stage.place, [&] { io::require_can_hold(output.format(), stage.step.product); });
    Result result;
    result.fields["inputs"] = Json::array({input.path});
    result.fields["steps"] = Json::array();
    run_stages(stages, input, output, common, result);
    const tasks::RunTotals totals{stages.front().run.points, stages.back().run.left};
    result.fields.update(to_json(tasks::run_totals_fields(), &totals));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    output.finish(fmt::format("{} of {} points, {} step{} in {:.2f} s", grouped(totals.left), grouped(totals.points),
                              stages.size(), stages.size() == 1 ? "" : "s", seconds),
                  fmt::format("no point is left after {}", stages.back().place), result);
    if (!common.table.empty()) {
        Table table{{"step", "name", "points", "left", "seconds"}, {}};
        for (size_t i = 0; i < stages.size(); ++i)
            table.rows.push_back(
                {i + 1, stages[i].run.step, stages[i].run.points, stages[i].run.left, stages[i].run.seconds});
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

Command add_run(Arguments& root, Common& common) {
    auto command = std::make_shared<RunCommand>();
    Arguments& app = root.command("run", "Several commands on a cloud, read once and written once");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    app.option(std::string(kThen), command->steps, "A step: a command with its options, once for each")
        .offers(step_names())
        .count(1, 1 << 20)
        .one_word()
        .text("STEP OPTIONS...");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        fmt::format("Steps: {}.\n", fmt::join(step_names(), ", ")) +
        "Their options: stipple crop --help, but no files nor pictures. INPUT comes first, -o may be last.\n"
        "The cloud is held in memory, but for crop and filter in front: these take LAS in pieces.\n\n"
        "Example:\n  stipple run scan.las --then crop --box 0 0 0 50 50 9 --then clean --then ground -o out.las\n"
        "  stipple run scan.ply --then filter 'z > 0.1' --then sample -n 4096 --then normals -o few.ply");
    return {&app, [command, &common] { return run_steps(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
