#include <fmt/ranges.h>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/child_program.h"
#include "stipple/cli/common/data_options.h"
#include "stipple/cli/study/commands.h"
#include "stipple/cli/study/sampling_figures.h"
#include "stipple/core/folder.h"
#include "stipple/core/log.h"
#include "stipple/core/program_files.h"
#include "stipple/tasks/sampling_study/find_weights.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

using study::SamplingMethod, study::SamplingTask;

constexpr int64_t kPictureShapes = 3, kPicturePoints = 32;

struct SamplingArguments {
    DataArguments data;
    std::string reconstruction_data;  // "": as data
    std::string output = "runs/sampling", samplers;
    std::vector<std::string> tasks, methods, settings, rows;
    std::vector<int64_t> sizes;
    std::map<std::string, std::string> networks = {{"plain", ""}, {"robust", ""}, {"pcrnet", ""}, {"autoencoder", ""}};
    int64_t clouds = 0, turns = 5, batch = 32, epochs = 0;
    bool train = false, normalise = false;
};

std::vector<std::string> weights_folders_of(const SamplingArguments& arguments) {
    std::vector<std::string> folders;
    if (!arguments.samplers.empty()) folders.push_back(arguments.samplers);
    folders.push_back(arguments.output + "/trained");
    return folders;
}

template <class Kind>
std::vector<Kind> chosen_of(const std::vector<std::string>& words, const std::vector<Kind>& all, const char* option,
                            Kind (*by_name)(std::string_view)) {
    if (words.empty()) return all;
    std::vector<Kind> named;
    for (const std::string& word : words) named.push_back(by_name(word));
    std::vector<Kind> chosen;  // in the order of the tables
    for (const Kind kind : all) {
        const auto times = std::count(named.begin(), named.end(), kind);
        STIPPLE_REQUIRE(times <= 1, "{} names {} twice", option, name_of(kind));
        if (times == 1) chosen.push_back(kind);
    }
    return chosen;
}

/// Of samplers: whether the network of their task is one that the user names. Installed ones were trained for others.
bool is_for_named_network(const std::string& sampler, const SamplingArguments& arguments) {
    for (const study::TaskNetworkName& network : study::task_networks())
        if (!arguments.networks.at(network.network).empty() &&
            sampler.find(fmt::format("-{}-{}", name_of(network.task),
                                     network.network == std::string_view("plain") ? "plain" : "")) != std::string::npos)
            return true;
    return false;
}

study::SamplingPlan plan_of_sampling(const SamplingArguments& arguments, const Common& common) {
    study::SamplingPlan plan;
    plan.tasks = chosen_of(arguments.tasks, study::sampling_tasks(), "--tasks", study::sampling_task_by_name);
    plan.methods = chosen_of(arguments.methods, study::sampling_methods(), "--methods", study::sampling_method_by_name);
    for (const int64_t size : arguments.sizes)
        STIPPLE_REQUIRE(
            size >= 1 && size <= 1024 && std::count(arguments.sizes.begin(), arguments.sizes.end(), size) == 1,
            "--sizes must be 1 to 1024, each once, got {}", size);
    plan.sizes = arguments.sizes;
    plan.inputs = {.clouds = arguments.clouds, .turns = arguments.turns, .seed = common.seed};
    plan.folder = arguments.output;
    plan.again = common.overwrite;
    plan.device = common.device;
    plan.batch = arguments.batch;
    STIPPLE_REQUIRE(arguments.samplers.empty() || is_folder(arguments.samplers),
                    "--samplers {}: there is no such folder", in_quotes(arguments.samplers));
    plan.find_sampler = [folders = weights_folders_of(arguments), arguments](const std::string& name) {
        return study::find_study_weights(name, folders, !is_for_named_network(name, arguments));
    };
    return plan;
}

/// Task networks that are there: named ones, or found by their usual names.
void find_networks(const SamplingArguments& arguments, study::SamplingPlan& plan) {
    for (const study::TaskNetworkName& network : study::task_networks()) {
        const std::string& named = arguments.networks.at(network.network);
        // The classifier also tells critical points for other tasks.
        if (std::find(plan.tasks.begin(), plan.tasks.end(), network.task) == plan.tasks.end() && named.empty() &&
            network.network != std::string_view("robust"))
            continue;
        const std::string path = named.empty() ? plan.find_sampler(network.weights) : tasks::find_weights(named);
        if (!named.empty() && !is_file(path))
            throw Error(ErrorCode::bad_file, Place{named}, fmt::format("--{}: there is no such file", network.network));
        if (!path.empty()) plan.networks[network.network] = path;
    }
}

/// Trains into OUTPUT/trained/NAME; weights are then found there.
void train_weights(const std::string& name, SamplingTask task, std::vector<std::string> call,
                   const SamplingArguments& arguments, const Common& common, Result& result) {
    const std::string folder = arguments.output + "/trained/" + name;
    study::make_folders(arguments.output + "/trained");
    const bool has_own = task == SamplingTask::reconstruction && !arguments.reconstruction_data.empty();
    call.insert(call.end(), {"--data", has_own ? arguments.reconstruction_data : arguments.data.path, "--seed",
                             std::to_string(common.seed)});
    if (arguments.epochs > 0) call.insert(call.end(), {"--epochs", std::to_string(arguments.epochs)});
    for (const std::string& setting : arguments.settings) call.insert(call.end(), {"--set", setting});
    log_info("{}: {}", name, folder);
    const int status = train_in(folder, call, common);
    if (!is_file(folder + "/weights.safetensors"))
        result.warnings.push_back(fmt::format("{}: its training ended with status {}", name, status));
}

/// What is missing: first networks of tasks, then samplers for those that are there.
std::vector<std::string> train_missing(const SamplingArguments& arguments, study::SamplingPlan& plan,
                                       const Common& common, Result& result) {
    std::vector<std::string> trained;
    for (const study::TaskNetworkName& network : study::task_networks()) {
        if (std::find(plan.tasks.begin(), plan.tasks.end(), network.task) == plan.tasks.end() ||
            plan.networks.contains(network.network))
            continue;
        trained.push_back(network.weights);
        if (!common.dry_run)
            train_weights(network.weights, network.task, study::training_of(network), arguments, common, result);
        else
            plan.networks[network.network] = network.weights;
    }
    if (!common.dry_run) find_networks(arguments, plan);
    for (const study::WantedSampler& wanted : study::wanted_samplers(plan)) {
        if (!plan.find_sampler(wanted.name).empty()) continue;
        trained.push_back(wanted.name);
        if (!common.dry_run)
            train_weights(wanted.name, wanted.task,
                          study::training_of(wanted.method, wanted.task, wanted.size, plan.networks.at(wanted.network)),
                          arguments, common, result);
    }
    return trained;
}

void add_pictures(const study::SamplingPlan& plan, const Common& common, study::Report& report, Result& result) {
    if (!plan.set) return;  // rows alone
    for (const SamplingTask task : plan.tasks) {
        const std::vector<study::SamplePicture> samples =
            study::sample_pictures(plan, task, kPicturePoints, kPictureShapes);
        if (samples.empty()) continue;
        add_figure(
            plan.folder, fmt::format("{}-samples.png", title_of(task)),
            fmt::format("{} chosen points on test clouds of {}", kPicturePoints, title_of(task)),
            [&] { return draw_samples(samples); }, common, report, result);
    }
}

/// Tables as files and on the screen, figures, the page.
void write_sampling(const study::SamplingPlan& plan, const study::SamplingResult& made, study::Report& report,
                    const Common& common, Result& result) {
    const std::vector<study::SamplingRow>& rows = made.rows;
    std::string shown, markdown;
    report.tables = study::sampling_summaries(rows);
    for (const study::ReportTable& table : report.tables) markdown += to_markdown(table) + "\n";
    add_text(plan.folder, "table.csv", to_csv(study::results_table(rows)), common, result);
    for (study::SamplingTable& table : study::sampling_tables(rows)) {
        shown += (shown.empty() ? "" : "\n") + table_text(table.table, common);
        add_text(plan.folder, table.name + ".csv", to_csv(table.table), common, result);
        add_text(plan.folder, table.name + ".tex", to_latex(table.table, table.name), common, result);
        report.tables.push_back(std::move(table.table));
    }
    add_text(plan.folder, "summary.md", markdown, common, result);
    for (const SamplingTask task : plan.tasks)
        if (!networks_with_rows(rows, task).empty())
            add_figure(
                plan.folder, fmt::format("{}.png", title_of(task)),
                fmt::format("{} by the number of points; dashed: soft points", title_of(task)),
                [&] { return draw_sampling_task(rows, task); }, common, report, result);
    for (const study::SamplingSweep sweep : {study::SamplingSweep::neighbours, study::SamplingSweep::temperature})
        if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.sweep == sweep; }))
            add_figure(
                plan.folder, fmt::format("{}.png", name_of(sweep)),
                fmt::format("The {} of the soft projection, changed after training", name_of(sweep)),
                [&] { return draw_sampling_sweep(rows, sweep); }, common, report, result);
    add_pictures(plan, common, report, result);
    report.paragraphs.insert(report.paragraphs.end(), made.notes.begin(), made.notes.end());
    add_text(plan.folder, "index.html", to_page(report), common, result);
    result.fields["rows"] = rows_json(study::results_table(rows));
    result.fields["notes"] = report.paragraphs;
    if (!common.table.empty()) {
        result.text = table_text(study::results_table(rows), common);
        return;
    }
    result.text = shown + "\n" + result.text;
    for (const std::string& note : report.paragraphs) result.text += note + "\n";
}

/// Tables and figures of rows that were measured before, be it on other machines.
void show_rows(const SamplingArguments& arguments, const study::SamplingPlan& plan, study::Report& report,
               const Common& common, Result& result) {
    STIPPLE_REQUIRE(arguments.data.path.empty() && !arguments.train,
                    "--rows shows what was measured before: it goes without --data and --train");
    study::SamplingResult made;
    for (const std::string& path : arguments.rows)
        for (study::SamplingRow& row : study::load_sampling_rows(path))
            if (std::find(plan.tasks.begin(), plan.tasks.end(), row.task) != plan.tasks.end())
                made.rows.push_back(std::move(row));
    STIPPLE_REQUIRE(!made.rows.empty(), "--rows: there are none");
    result.fields["inputs"] = arguments.rows;
    if (!common.dry_run) study::make_folders(plan.folder);
    write_sampling(plan, made, report, common, result);
}

Result run_study_sampling(const SamplingArguments& arguments, const Arguments& app, const Common& common) {
    Result result;
    study::Report report{.title = "Samplers and their tasks", .command = command_line(app, common)};
    STIPPLE_REQUIRE(arguments.train || (arguments.epochs == 0 && arguments.settings.empty()),
                    "--epochs and --set are for --train");
    require_study_folder(arguments.output, common);
    study::SamplingPlan plan = plan_of_sampling(arguments, common);
    if (!arguments.rows.empty()) {
        show_rows(arguments, plan, report, common, result);
        return result;
    }
    STIPPLE_REQUIRE(!arguments.data.path.empty(), "--data PACK is needed, or --rows");
    find_networks(arguments, plan);
    if (arguments.train && !common.dry_run) require_learn("study sampling --train");
    result.fields["inputs"] = std::vector<std::string>{arguments.data.path};
    if (common.dry_run) {
        std::vector<std::string> trained;
        if (arguments.train) {
            trained = train_missing(arguments, plan, common, result);
            plan.find_sampler = [](const std::string& name) { return name; };  // all would be there
        }
        result.text = fmt::format("would measure at most {} rows into {}\n", study::sampling_rows(plan), plan.folder);
        if (!trained.empty()) result.text += fmt::format("would train {}\n", fmt::join(trained, ", "));
        return result;
    }
    // Mistakes of the data are told before anything is trained.
    data::DataSet set = load_data(arguments.data, "test", 2048, common, result.warnings), larger;
    if (arguments.normalise) data::to_unit_spheres(set.clouds);
    plan.set = &set;
    if (!arguments.reconstruction_data.empty()) {
        DataArguments own = arguments.data;
        own.path = arguments.reconstruction_data;
        larger = load_data(own, "test", 2048, common, result.warnings);
        if (arguments.normalise) data::to_unit_spheres(larger.clouds);
        plan.reconstruction_set = &larger;
    }
    if (arguments.train) train_missing(arguments, plan, common, result);
    for (const SamplingTask task : plan.tasks) (void)study::sampling_clouds(set_of(plan, task), task, plan.inputs);
    std::optional<Progress> progress;
    progress.emplace("study", study::sampling_rows(plan), progress_mode(common), "rows");
    plan.advance = [&](int64_t rows) { progress->add(rows); };
    plan.report = [&](const std::string& line) {
        if (common.verbose) log_info("{}", line);
    };
    const study::SamplingResult made = study::run_sampling_study(plan);
    progress.reset();
    write_sampling(plan, made, report, common, result);
    return result;
}

}  // namespace

Command add_study_sampling(Arguments& group, Common& common) {
    auto arguments = std::make_shared<SamplingArguments>();
    Arguments& app = group.command("sampling", "Samplers by size, task and task network, sampled and soft points");
    app.option("--data", arguments->data.path, "Data set with a test split").text("PACK");
    app.option("--reconstruction-data", arguments->reconstruction_data,
               "For rec, whose clouds have 2048 points [--data]")
        .text("PACK");
    add_layout(app, arguments->data);
    app.option("-o,--output", arguments->output, "Folder; rows that are in it are kept");
    app.option("--tasks", arguments->tasks, "Of cls, reg, rec these [all]").separated_by(',').text("TASK,...");
    app.option("--methods", arguments->methods,
               "Of random, fps, voxel, critical, gumbel, snet, samplenet, progressive these [all]")
        .separated_by(',')
        .text("NAME,...");
    app.option("--sizes", arguments->sizes, "Points of samples [8 to 512; registration 16 to 128]")
        .separated_by(',')
        .text("N,N,...");
    app.option("--plain", arguments->networks["plain"], "Classifier trained on full clouds [pointnet-plain]").text("W");
    app.option("--robust", arguments->networks["robust"], "Classifier trained on thinned ones too [pointnet-cls]")
        .text("W");
    app.option("--pcrnet", arguments->networks["pcrnet"], "Network of registration [pcrnet]").text("W");
    app.option("--autoencoder", arguments->networks["autoencoder"], "Network of reconstruction [autoencoder]")
        .text("W");
    app.option("--samplers", arguments->samplers, "Folder of weights, by the names below").text("FOLDER");
    app.option("--rows", arguments->rows, "Instead of --data: show rows that were measured before, results.csv")
        .text("FILE...");
    app.flag("--train", arguments->train, "Train weights that are missing; needs the program stipple-learn");
    app.option("--epochs", arguments->epochs, "--train: of each training [as the recipes say]")
        .between(1, 1 << 24)
        .no_default();
    app.option("--set", arguments->settings, "--train: a number of the recipes").text("KEY=VALUE").one_word();
    app.flag("--normalise", arguments->normalise, "Centre clouds, largest radius 1; ModelNet40's are so already");
    app.option("--clouds", arguments->clouds, "At most so many of each task, for a quick look; 0: all")
        .from_zero()
        .text("N");
    app.option("--turns", arguments->turns, "Registration: pairs of each cloud").between(1, 1000).text("N");
    app.option("--batch", arguments->batch, "Clouds at a time").between(1, 4096).text("N");
    app.footer(study::sampler_scheme() +
               "\n\nRows whose weights are nowhere are left out and told. A row is stored in results.csv as soon\n"
               "as it is made: a study that was killed goes on.\n\n"
               "Example:\n  stipple study sampling --data modelnet40.stpk --samplers weights/ -o runs/sampling\n"
               "  stipple study sampling --data modelnet40.stpk --clouds 200 --methods random,fps,voxel -o runs/look\n"
               "  stipple study sampling --data modelnet40.stpk --train -o runs/sampling");
    return {&app, [arguments, &app, &common] { return run_study_sampling(*arguments, app, common); }, {}};
}

}  // namespace stipple::cli
