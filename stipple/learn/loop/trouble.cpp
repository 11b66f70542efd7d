#include "stipple/learn/loop/trouble.h"

#include <new>
#include <torch/torch.h>

#include "stipple/core/error.h"

namespace stipple::learn {
namespace {

bool is_finite(const torch::Tensor& tensor) {
    return torch::isfinite(tensor).all().item<bool>();
}

/// Without what torch advises, which is for programs in Python.
std::string first_line(const char* text) {
    const std::string all = text, line = all.substr(0, all.find('\n'));
    return line.substr(0, std::min(line.find(" Process "), line.find(" Including non-PyTorch")));
}

}  // namespace

std::string find_trouble(Module& module, Objective& objective, const data::LoadedBatch& batch,
                         const RunOptions& options) {
    std::string found;
    for (const auto& [name, tensor] : module.parameters())
        if (found.empty() && !is_finite(tensor.detach())) found = "parameter " + name;
    if (!found.empty()) return found;
    // The statistics that this run of the layers leaves behind must not stay.
    std::map<std::string, torch::Tensor> copies;
    for (const auto& [name, tensor] : module.parameters()) copies.emplace(name, tensor.detach().clone());
    module.exchange(copies);
    RunOptions watching = options;
    watching.watch = [&](const network::Layer& layer, const torch::Tensor& output) {
        if (found.empty() && output.is_floating_point() && !is_finite(output))
            found = fmt::format("{} {}", layer.kind == network::Kind::input ? "input" : "layer", layer.name);
    };
    {
        const torch::NoGradGuard no_gradients;
        try {
            objective.step(module, batch, watching);
        } catch (const Error&) {  // a loss may refuse such numbers; the layer has been found by then
        }
    }
    module.exchange(copies);
    if (!found.empty()) return found;
    for (const auto& [name, tensor] : module.parameters())
        if (tensor.grad().defined() && !is_finite(tensor.grad())) return "gradient of " + name;
    return kNoTrouble;
}

void run_or_explain_memory(int64_t batch, const std::function<void()>& step) {
    const auto out_of_memory = [&](const std::string& words) {
        return Error(ErrorCode::out_of_memory, fmt::format("a step of {} clouds: {}", batch, words),
                     batch > 1 ? fmt::format("try --set run.batch={}", batch / 2) : "the model is too large");
    };
    try {
        step();
    } catch (const c10::OutOfMemoryError& error) {
        throw out_of_memory(first_line(error.what_without_backtrace()));
    } catch (const std::bad_alloc&) {
        throw out_of_memory("the system has no more memory");
    } catch (const c10::Error& error) {
        const std::string words = first_line(error.what_without_backtrace());
        if (words.find("alloc") != std::string::npos && words.find("memory") != std::string::npos)
            throw out_of_memory(words);
        throw Error(ErrorCode::internal, "torch: " + words);
    }
}

}  // namespace stipple::learn
