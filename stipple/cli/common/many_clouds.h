#pragma once
// The driver of commands that do the same with each of many clouds: what they have in common on the command line, what
// is checked before any work, the loop, and how errors of single clouds are reported.
//
//   auto clouds = std::make_shared<ManyClouds>();
//   const std::vector<Option> required = add_inputs(app, *clouds);       // ... options of the command ...
//   add_outputs(app, *clouds);
//   return for_each_cloud(*clouds, {.progress = "segment"}, common, [&](Result& result) {
//       load_the_network();  // once, when everything else is known to be right
//       return [=](const CloudJob& job) { ...; return to_json(fields, &done); };
//   });

#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/profile.h"
#include "stipple/tasks/network_runner.h"

namespace stipple::cli {

struct ManyClouds {
    std::vector<std::string> inputs;
    std::string from, shard, picture, profile_path;
    OutputFile output;
    int64_t picture_size = 0;  // pixels of a cloud; 0: the command chooses
    Profile profile;           // filled where profile_path is given
};

/// Declares INPUT, and -o. Returns both, which are required.
std::vector<Option> add_inputs_and_output(Arguments& app, ManyClouds& clouds, const char* inputs);
/// Declare --picture, which draws what `picture` says, with --size; --from; --shard; --profile. A command chooses their
/// order and leaves out what it does not have.
void add_picture(Arguments& app, ManyClouds& clouds, const char* picture);
void add_input_format(Arguments& app, ManyClouds& clouds);
void add_shard(Arguments& app, ManyClouds& clouds);
void add_profile(Arguments& app, ManyClouds& clouds);
/// The profile that a network is to fill, or null.
inline Profile* wanted_profile(ManyClouds& clouds) {
    return clouds.profile_path.empty() ? nullptr : &clouds.profile;
}

/// The clouds of the inputs that are in the part of --shard, and the output of each, where asked for; the inputs become
/// fields of the result. Where there are none, the result says so and is that of the command. Throws
/// Error{bad_argument} as data::list_clouds() and outputs_of() do, and for a --shard or --from that makes no sense.
std::vector<data::CloudEntry> list_clouds(const ManyClouds& clouds, Result& result,
                                          std::vector<OutputFile>* outputs = nullptr);
/// Checks --picture, --size and --profile, before any work.
void require_drawing(const ManyClouds& clouds, const Common& common);

/// One cloud, and where its result goes.
struct CloudJob {
    const data::CloudEntry& entry;
    const OutputFile& output;
    io::Format format;
    const data::ReadClouds& how;  // to read it
    bool is_alone;                // the only one of the command
    Result& result;               // warnings, and what save_output() and save_picture() report
};
/// Does the work for one cloud and returns what --json tells about it, but for its path.
using CloudWork = std::function<Json(const CloudJob& job)>;

/// Columns of the table: a heading, and the key in the JSON of a cloud. The path is the column "file", whether the
/// output was written the key "written".
using CloudColumns = std::vector<std::pair<std::string, std::string>>;

struct CloudLoop {
    std::string_view product = {};  // the attribute that the command makes, which the output format must hold
    const char* progress = "";      // the bar that counts clouds; "": the work has a bar of its own
    CloudColumns columns = {};      // of the table for --table
    const char* refused = "could not be read";  // what is said of clouds whose work throws Error{check_failed}
    const Table* table = nullptr;  // instead: what the work fills, and what people read before the lines of outputs
};

/// Puts the name of a network and its precision into the fields of a result.
void report_network(const tasks::NetworkRunner& runner, Result& result);

/// Everything that can be known without reading a cloud is checked first: the inputs, the part of --shard, the outputs,
/// picture and profile. Then `begin` is called once, which loads what all clouds share and may put fields into the
/// result, and its work for every cloud. A cloud that fails is an element of `errors` and of `files`, and the others
/// are done; error.code() check_failed of a single cloud is thrown. Can be interrupted between clouds.
Result for_each_cloud(ManyClouds& clouds, const CloudLoop& loop, const Common& common,
                      const std::function<CloudWork(Result& result)>& begin);

}  // namespace stipple::cli
