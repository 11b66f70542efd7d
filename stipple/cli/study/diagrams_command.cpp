#include "stipple/cli/study/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/models/registry.h"
#include "stipple/network/diagram.h"
#include "stipple/network/subgraph.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct DiagramArguments {
    std::string model, output = "runs/upsampling-diagrams";
};

/// A part of a model by names of its layers: those that begin with one of `begins` and have none of `without` in them.
struct DiagramPart {
    const char *family, *name, *caption;
    std::vector<std::string_view> begins, without;
};

const std::vector<DiagramPart>& diagram_parts() {
    static const std::vector<DiagramPart> parts = {
        {"flow-upsampler", "block", "One block of the flow", {"step1.flow1."}, {}},
        {"flow-upsampler",
         "features",
         "Features of the input points",
         {"knn", "edge", "offset", "levels", "features"},
         {}},
        {"flow-upsampler",
         "aggregation",
         "What a query gathers from its neighbours",
         {"step1."},
         {".flow", ".interpolate", ".towards", ".share", ".blend", ".part", ".shift", ".latent_offset", ".origin",
          ".moved", ".uncertainty"}},
        {"flow-upsampler",
         "interpolation",
         "Interpolation in the latent space",
         {"step1.interpolate", "step1.towards", "step1.share", "step1.blend", "step1.part", "step1.shift",
          "step1.latent_offset"},
         {}},
        {"puflow", "block", "One block of the flow", {"flow_blocks.1."}, {"log_det", ".scales", "coupling2.scale"}},
        {"puflow", "features", "Features and conditions", {"knn", "feat_convs.", "merge_convs."}, {}},
        {"puflow", "aggregation", "One densely connected edge convolution", {"feat_convs.1"}, {}},
        {"puflow", "interpolation", "Interpolation in the latent space", {"interp"}, {}},
    };
    return parts;
}

bool is_part(const DiagramPart& part, const std::string& layer) {
    const auto begins = [&](std::string_view text) { return layer.starts_with(text); };
    const auto has = [&](std::string_view text) { return layer.find(text) != std::string::npos; };
    return std::any_of(part.begins.begin(), part.begins.end(), begins) &&
           std::none_of(part.without.begin(), part.without.end(), has);
}

/// Of weights, or as a model is by default.
network::Network network_of(const std::string& model) {
    for (const models::ModelEntry& entry : models::model_table())
        if (entry.name == model) return models::build_model(model, {});
    return models::load_model(model.empty() ? tasks::shipped_weights(tasks::kUpsamplerWeights)
                                            : tasks::find_weights(model))
        .network;
}

Result run_diagrams(const DiagramArguments& arguments, const Arguments& app, const Common& common) {
    require_study_folder(arguments.output, common);
    const network::Network network = network_of(arguments.model);
    Result result;
    result.fields["inputs"] = arguments.model.empty() ? Json::array() : Json::array({arguments.model});
    result.fields["model"] = network.name;
    study::Report report{.title = fmt::format("Diagrams of {}", network.name), .command = command_line(app, common)};
    if (!common.dry_run) study::make_folders(arguments.output);
    const auto write = [&](const std::string& file, const std::string& text) {
        const std::string name = arguments.output + "/" + file;
        if (!common.dry_run) study::write_text(name, text);
        result.fields["outputs"].push_back({{"path", name}, {"written", !common.dry_run}});
        result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(name));
    };
    write("whole.svg", network::to_svg(network));
    report.figures.push_back({"whole.svg", "The whole network"});
    for (const DiagramPart& part : diagram_parts()) {
        if (part.family != network.name) continue;
        const network::Network drawn = network::subgraph(
            network, part.name, [&](const network::Layer& layer) { return is_part(part, layer.name); });
        const std::string file = std::string(part.name) + ".svg";
        write(file, network::to_svg(drawn));
        report.figures.push_back({file, part.caption});
    }
    if (report.figures.size() == 1)
        result.warnings.push_back(fmt::format("{} has no named parts: only the whole is drawn", network.name));
    write("index.html", study::to_page(report));
    return result;
}

}  // namespace

Command add_study_diagrams(Arguments& group, Common& common) {
    auto arguments = std::make_shared<DiagramArguments>();
    Arguments& app = group.command("upsampling-diagrams", "The method drawn from its network, whole and by parts");
    app.option("--model", arguments->model, "Weights, or a model by its name: puflow [upsampler]").text("FILE|NAME");
    app.option("-o,--output", arguments->output, "Folder of the diagrams");
    app.footer(
        "Writes whole, block, features, aggregation and interpolation as .svg, and index.html.\n\n"
        "Example:\n  stipple study upsampling-diagrams -o runs/diagrams");
    return {&app, [arguments, &app, &common] { return run_diagrams(*arguments, app, common); }};
}

}  // namespace stipple::cli
