#include "stipple/engine/run/step_profile.h"

#include <set>

namespace stipple::engine {

std::vector<std::string> step_titles(const Program& program) {
    std::vector<std::string> titles;
    std::set<std::string> taken;
    for (const Step& step : program.steps) {
        std::string title;
        for (const Dense& layer : step.layers) title += (title.empty() ? "" : " + ") + layer.name;
        if (step.layers.empty() || step.layers.back().name != step.name)
            title += (title.empty() ? "" : " + ") + step.name;
        std::string made = title;
        for (int i = 2; !taken.insert(made).second; ++i) made = fmt::format("{} ({})", title, i);
        titles.push_back(std::move(made));
    }
    return titles;
}

StepProfile::StepProfile(Profile& of, const Program& what, std::string_view name)
    : profile(of), program(what), run(profile.row(Profile::kRoot, name)) {
    for (const std::string& title : step_titles(program)) steps.push_back(profile.row(run, title));
}

int64_t StepProfile::bytes(size_t step, std::span<const ops::Batch* const> batches, int64_t begin, int64_t end) const {
    const TensorType& type = program.values[static_cast<size_t>(program.steps[step].output)].type;
    const ops::Batch& batch = *batches[static_cast<size_t>(type.set)];
    int64_t rows = end - begin;
    if (type.level == Level::point)
        rows = (begin == 0 && end == batch.clouds() ? batch.rows()
                                                    : batch.begin(end - 1) + batch.size(end - 1) - batch.begin(begin)) *
               type.width;
    return rows * type.channels * 4;
}

}  // namespace stipple::engine
