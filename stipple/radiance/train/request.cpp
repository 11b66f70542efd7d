#include "stipple/core/error.h"
#include "stipple/core/quoted.h"
#include "stipple/core/toml.h"
#include "stipple/radiance/train_keys.h"
#include "stipple/radiance/train_request.h"

namespace stipple::radiance {
namespace {

constexpr int64_t kLeastVoxels = 8, kMostVoxels = 800;

/// What [run] remembers.
const Fields& run_fields() {
    using Run = RecordedRun;
    using Request = TrainRequest;
    static const Fields fields = {
        field<&Run::request, &Request::folder>("folder", "Of the photographs"),
        field<&Run::request, &Request::output>("output", "File of the field"),
        field<&Run::mode>("mode", "Which options training began with").words(kTrainModeWords),
        field<&Run::device>("device", "Where it runs"),
        field<&Run::request, &Request::scene, &SceneOptions::reduce>("reduce", "Factor by which pictures are smaller")
            .from(1),
        field<&Run::request, &Request::scene, &SceneOptions::test_every>("test_every", "Which pictures are for tests")
            .from(0),
        field<&Run::request, &Request::checkpoint_every>("checkpoint_every", "Steps between checkpoints").from(0),
        field<&Run::request, &Request::render_every>("render_every", "Steps between pictures of test views").from(0),
        field<&Run::request, &Request::render_views>("render_views", "How many of them at most").from(0)};
    return fields;
}

int64_t cube(int64_t side) {
    return side * side * side;
}

}  // namespace

const Fields& train_request_fields() {
    using Request = TrainRequest;
    static const Fields fields = {
        field<&Request::mode>("mode", "parity: as published; small: for CPUs; auto: fast or small, by the device")
            .words(kTrainModeWords),
        field<&Request::voxels>("voxels", "Along an edge of a cube with as many; 0: by the mode").from(0),
        field<&Request::background>(
            "background", "Behind everything; auto: white where pictures are transparent, else learned by direction")
            .words(kBackgroundChoiceWords),
        field<&Request::settings>("set", "Options of training: fine.N_iters=5000").shown("KEY=VALUE..."),
        field<&Request::deterministic>("deterministic", "The same bits in every run, for some time more"),
        field<&Request::checkpoints>("checkpoints", "New run folder: checkpoints, metrics, test views").shown("DIR"),
        field<&Request::checkpoint_every>("checkpoint_every", "Steps between checkpoints; without it a minute")
            .shown("N")
            .from(0)
            .no_default(),
        field<&Request::resume>("resume", "Go on with a run, bit for bit").shown("DIR"),
        field<&Request::render_every>("render_every", "Steps between pictures of test views in DIR/renders")
            .shown("N")
            .from(0)
            .no_default(),
        field<&Request::render_views>("render_views", "How many of them at most").shown("N").between(1, 1000),
        field<&Request::max_steps>("max_steps", "Save and end after so many steps of the run")
            .shown("N")
            .from(0)
            .no_default(),
        field<&Request::on_save_error>("on_save_error", "A checkpoint that cannot be written").words(kOnSaveErrorWords),
        field<&Request::strict>("strict", "A damaged checkpoint is an error, not skipped")};
    return fields;
}

TrainMode mode_for(TrainMode mode, Device device) {
    if (mode != TrainMode::automatic) return mode;
    return device.type == DeviceType::cuda ? TrainMode::fast : TrainMode::small;
}

Background background_for(BackgroundChoice choice, const Scene& scene) {
    if (choice == BackgroundChoice::automatic) return usual_background(scene);
    return static_cast<Background>(static_cast<int>(choice) - 1);  // the others are in the same order
}

void apply_setting(TrainOptions& options, const std::string& assignment) {
    const size_t equals = assignment.find('=');
    STIPPLE_REQUIRE(equals != std::string::npos, "--set {}: expected KEY=VALUE", in_quotes(assignment));
    try {
        set_train_option(options, assignment.substr(0, equals), assignment.substr(equals + 1));
    } catch (const Error& error) {
        throw Error(error.code(), "--set " + error.message(), error.hint());
    }
}

TrainOptions train_options(const TrainRequest& request, TrainMode mode, uint64_t seed) {
    const int64_t side = request.voxels;
    STIPPLE_REQUIRE(side == 0 || (side >= kLeastVoxels && side <= kMostVoxels), "--voxels must be {} to {}, got {}",
                    kLeastVoxels, kMostVoxels, side);
    TrainOptions options;
    switch (mode) {
        case TrainMode::small:
            options = small_options();
            if (side > 0) options.fine.num_voxels = options.fine.num_voxels_base = cube(side);
            break;
        case TrainMode::parity: options = parity_options(side > 0 ? side : 160); break;
        case TrainMode::automatic:
        case TrainMode::fast:
        case TrainMode::quality:
            options = mode == TrainMode::quality ? quality_options() : fast_options();
            if (side > 0) options.fine.num_voxels = cube(side);
            break;
    }
    for (const std::string& assignment : request.settings) apply_setting(options, assignment);
    options.seed = seed;
    options.deterministic = request.deterministic;
    return options;
}

TrainRun run_of(const TrainRequest& request) {
    TrainRun run;
    run.checkpoint_every = request.checkpoint_every;
    run.render_every = request.render_every;
    run.render_views = request.render_views;
    run.max_steps = request.max_steps;
    run.refuses_damaged = request.strict;
    run.survives_save_errors = request.on_save_error == OnSaveError::warn;
    return run;
}

std::string run_config(const RecordedRun& run) {
    return "# stipple radiance train\n[run]\n" + to_toml(run_fields(), &run) + "\n" + to_toml(run.training);
}

RecordedRun recorded_run(const std::string& config, const TrainRequest& given) {
    RecordedRun run;
    run.training = train_options_from_toml(config);
    run.request = given;
    for (const TomlItem& item : parse_toml(config)) {
        if (item.table != "run" || item.key.empty()) continue;
        try {
            set_by_key(run_fields(), &run, item.key, item.values);
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_config, Place{"", item.line}, "run: " + error.message(), error.hint());
        }
    }
    const TrainRequest usual;
    if (!given.folder.empty()) run.request.folder = given.folder;
    if (!given.output.empty()) run.request.output = given.output;
    if (given.checkpoint_every != usual.checkpoint_every) run.request.checkpoint_every = given.checkpoint_every;
    if (given.render_every != usual.render_every) run.request.render_every = given.render_every;
    if (given.render_views != usual.render_views) run.request.render_views = given.render_views;
    return run;
}

}  // namespace stipple::radiance
