#include "stipple/learn/train_request.h"

#include "stipple/core/error.h"
#include "stipple/tasks/weights.h"

namespace stipple::learn {
namespace {

/// "samplenet", "snet" and "gumbel-subset" are a recipe for each task; S-NET's are SampleNet's without projection.
std::string recipe_name(const TrainRequest& request) {
    const std::string& name = request.recipe;
    const bool is_family = name == "samplenet" || name == "snet" || name == "gumbel-subset";
    STIPPLE_REQUIRE(is_family || request.task.empty(),
                    "--task is for the recipes samplenet, snet and gumbel-subset, not {}", name);
    STIPPLE_REQUIRE(!is_family || !request.task.empty(), "train {} needs --task cls, seg, reg or rec", name);
    if (!is_family) return name;
    return fmt::format("{}-{}", name == "snet" ? "samplenet" : name, request.task);
}

/// Options of samplers.
void set_sampler(Recipe& recipe, const TrainRequest& request) {
    const bool is_sampler = recipe.task == TrainingTask::sampling;
    STIPPLE_REQUIRE(is_sampler || (!request.count && !request.progressive && request.network.empty()),
                    "--count, --progressive and --network are for samplers, not {}", recipe.name);
    if (request.count) recipe.options["count"] = std::to_string(*request.count);
    if (request.progressive) recipe.options["progressive"] = "true";
    if (request.recipe == "snet") recipe.options["neighbours"] = "0";
    if (!request.network.empty()) recipe.sampling.network = tasks::find_weights(request.network);
    // As published: the weights of the simplification that serve one size do not serve all of them.
    if (request.progressive && recipe.model == "samplenet" && recipe.options["shape"] == "classification") {
        recipe.sampling.gamma = 0.5;
        recipe.sampling.delta = 1.0 / 30;
    }
}

}  // namespace

const Fields& train_request_fields() {
    using Request = TrainRequest;
    static const Fields fields = {
        field<&Request::data>("data", "Data set: docs/data.md; upsamplers: meshes, scans or patches").shown("DIR"),
        field<&Request::output>("output", "Run folder; runs/RECIPE without it").shown("DIR").short_name('o'),
        field<&Request::resume>("resume", "Go on with a run, bit for bit").shown("DIR"),
        field<&Request::init>("init", "Start from weights; a head for other classes is new").shown("WEIGHTS"),
        field<&Request::settings>("set", "A number of the recipe: run.batch=32").shown("KEY=VALUE"),
        field<&Request::task>("task", "Samplers: what for, cls, seg, reg or rec").words(kSamplerWords).shown("TASK"),
        field<&Request::count>("count", "Samplers: points that come out").shown("N").short_name('n').between(1, 65536),
        field<&Request::progressive>("progressive", "Samplers: in an order whose beginnings serve too"),
        field<&Request::network>("network", "Samplers: the frozen network of the task").shown("WEIGHTS"),
        field<&Request::epochs>("epochs", "As --set run.epochs").shown("N").between(1, 1 << 24),
        field<&Request::batch>("batch", "As --set run.batch").shown("N").between(1, 1 << 20),
        field<&Request::max_steps>("max_steps", "Save and end after so many steps of the run")
            .shown("N")
            .from(0)
            .no_default(),
        field<&Request::profile>("profile", "Time N steps by layer, write DIR/profile.json, save and end")
            .shown("N")
            .between(1, 10000),
        field<&Request::on_save_error>("on_save_error", "A checkpoint that cannot be written").words(kOnSaveErrorWords),
        field<&Request::processes>("processes", "Train in N processes of this machine").shown("N").between(1, 4096),
        field<&Request::launcher>("launcher", "Whose variables tell that there are several processes")
            .words(kLauncherWords)
            .shown("WHOSE"),
        field<&Request::rank_timeout>("rank_timeout", "After which another process counts as lost")
            .unit("s")
            .shown("SECONDS")
            .between(1, 86400),
        field<&Request::strict>("strict", "A damaged checkpoint is an error, not skipped"),
        field<&Request::prints_recipe>("print_recipe", "Print the resolved recipe and end")};
    return fields;
}

Recipe requested_recipe(const TrainRequest& request, std::optional<uint64_t> seed) {
    Recipe recipe = load_recipe(find_recipe(recipe_name(request)));
    if (!request.data.empty()) recipe.data.folder = request.data;
    if (request.epochs) recipe.run.epochs = *request.epochs;
    if (request.batch) recipe.run.batch = *request.batch;
    if (seed) recipe.run.seed = *seed;
    set_sampler(recipe, request);
    for (const std::string& setting : request.settings) {
        const size_t equals = setting.find('=');
        STIPPLE_REQUIRE(equals != std::string::npos && equals > 0, "--set {}: key=value expected", setting);
        set_option(recipe, setting.substr(0, equals), setting.substr(equals + 1));
    }
    validate(recipe);
    if (!request.init.empty()) recipe.init = tasks::find_weights(request.init);
    return recipe;
}

bool changes_recipe(const TrainRequest& request) {
    return !request.recipe.empty() || !request.data.empty() || !request.output.empty() || !request.init.empty() ||
           !request.settings.empty() || !request.task.empty() || !request.network.empty() || request.count ||
           request.progressive || request.epochs || request.batch;
}

std::string command_line(const Recipe& recipe) {
    std::string line = fmt::format("stipple train {} --data DIR", recipe.name);
    if (!recipe.init.empty()) line += " --init WEIGHTS";
    if (!recipe.sampling.network.empty()) line += " --network WEIGHTS";
    Recipe shipped = recipe;
    try {
        shipped = load_recipe(find_recipe(recipe.name));
    } catch (const Error&) {  // a recipe of the user's: its name must do
    }
    shipped.data.folder = recipe.data.folder;
    shipped.init = recipe.init;
    shipped.sampling.network = recipe.sampling.network;
    for (const Difference& difference : differences(shipped, recipe))
        line += fmt::format(" --set {}={}", difference.key, difference.second);
    return line;
}

}  // namespace stipple::learn
