#pragma once
// A training as people ask for it: a recipe and what is changed in it, a run folder, processes. No torch here.

#include <optional>

#include "stipple/learn/distributed/launcher.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

/// What becomes of a run one of whose checkpoints cannot be written.
enum class OnSaveError { stop, warn };
inline constexpr const char* kOnSaveErrorWords[] = {"stop", "warn"};

/// What a sampler's points are for, as the names of recipes end.
inline constexpr const char* kSamplerWords[] = {"cls", "seg", "reg", "rec"};

struct TrainRequest {
    std::string recipe, data, output, resume, init;
    std::vector<std::string> settings;  // "run.batch=32", which have the last word
    std::string task;                   // one of kSamplerWords
    std::optional<int64_t> count = {};  // points of a sampler
    bool progressive = false;           // a sampler in an order whose beginnings serve too
    std::string network;                // a sampler's frozen network
    std::optional<int64_t> epochs = {}, batch = {};
    int64_t max_steps = 0;
    std::optional<int64_t> profile = {};  // steps
    OnSaveError on_save_error = OnSaveError::stop;
    int64_t processes = 1;
    Launcher launcher = Launcher::automatic;
    int64_t rank_timeout = 600;
    bool strict = false, prints_recipe = false;
};
/// But for the recipe.
const Fields& train_request_fields();

/// The recipe of a new run: the file, then data, epochs and so on, then the settings. Throws Error{bad_argument} for
/// options that the recipe has no use for, and as load_recipe() and set_option().
Recipe requested_recipe(const TrainRequest& request, std::optional<uint64_t> seed);

/// Whether anything is asked for that a run which is gone on with takes from its folder.
bool changes_recipe(const TrainRequest& request);

/// "stipple train NAME --data DIR ...": makes the same run again, for the card of weights. Without the places of files
/// on this machine.
std::string command_line(const Recipe& recipe);

}  // namespace stipple::learn
