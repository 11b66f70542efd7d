#include "stipple/learn/loop/run_state.h"

#include <cstring>
#include <torch/torch.h>

#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"
#include "stipple/io/safetensors.h"
#include "stipple/learn/short_numbers.h"

namespace stipple::learn {
namespace {

/// Doubles as text that reads back as the same bits.
template <class Visit>
void visit_counters(Visit&& visit, auto& c) {
    visit("step", c.step);
    visit("epoch", c.epoch);
    visit("batch", c.batch);
    visit("optimizer_steps", c.optimizer_steps);
    visit("average_updates", c.average_updates);
    visit("skipped", c.skipped);
    visit("skipped_in_a_row", c.skipped_in_a_row);
    visit("evaluations_without_better", c.evaluations_without_better);
    visit("best_score", c.best_score);
    visit("best_epoch", c.best_epoch);
    visit("last_score", c.last_score);
    visit("plateau_best", c.plateau.best);
    visit("plateau_evaluations", c.plateau.evaluations);
    visit("plateau_without", c.plateau.without);
    visit("plateau_reductions", c.plateau.reductions);
    visit("summed_steps", c.summed_steps);
    visit("loss_scale", c.loss_scale.scale);
    visit("loss_scale_good_steps", c.loss_scale.good_steps);
    visit("is_finished", c.is_finished);
}

}  // namespace

std::string to_json(const Counters& counters) {
    JsonWriter json;
    json.begin_object();
    visit_counters([&](const char* name, const auto& value) { json.field(name, value); }, counters);
    json.key("sums").begin_array();
    for (const double sum : counters.sums) json.value(sum);
    return json.end_array().end_object().text();
}

Counters counters_from_json(std::string_view text) {
    Counters counters;
    read_json("the checkpoint's counters", text, [&](JsonField& field) {
        const std::string key(field.word());
        if (key == "sums") {
            field.word();
            field.take(counters.sums.emplace_back());
            return;
        }
        bool is_known = false;
        visit_counters(
            [&](const char* name, auto& value) {
                if (key != name) return;
                field.take(value);
                is_known = true;
            },
            counters);
        if (!is_known) field.fail("is not known");
    });
    return counters;
}

void write_tensors(const std::map<std::string, torch::Tensor>& tensors, ByteSink& sink) {
    io::TensorFile file;
    for (const auto& [name, tensor] : tensors) {
        const torch::Tensor copy = at_least_float(tensor.detach()).cpu().contiguous();
        io::Tensor stored;
        stored.name = name;
        stored.dtype = copy.scalar_type() == torch::kFloat64 ? DType::f64 : DType::f32;
        STIPPLE_REQUIRE(copy.scalar_type() == torch::kFloat64 || copy.scalar_type() == torch::kFloat32,
                        "{}: only float32 and float64 are saved", name);
        stored.shape = copy.sizes().vec();
        stored.data = Buffer(static_cast<int64_t>(copy.nbytes()), Device{});
        if (copy.nbytes() > 0) std::memcpy(stored.data.data(), copy.data_ptr(), copy.nbytes());
        file.tensors.push_back(std::move(stored));
    }
    io::write_safetensors(file, sink);
}

std::map<std::string, torch::Tensor> load_tensors(const std::string& path) {
    io::TensorFile file = io::load_safetensors(path);
    std::map<std::string, torch::Tensor> tensors;
    for (io::Tensor& stored : file.tensors) {
        if (stored.dtype != DType::f32 && stored.dtype != DType::f64)
            throw Error(ErrorCode::bad_file, Place{path}, fmt::format("{}: float32 or float64 expected", stored.name));
        torch::Tensor tensor =
            torch::empty(stored.shape, stored.dtype == DType::f64 ? torch::kFloat64 : torch::kFloat32);
        if (tensor.nbytes() > 0) std::memcpy(tensor.data_ptr(), stored.data.data(), tensor.nbytes());
        tensors.emplace(stored.name, tensor);
    }
    return tensors;
}

void copy_tensors(const std::map<std::string, torch::Tensor>& from, const std::string& prefix,
                  const std::map<std::string, torch::Tensor>& to) {
    const torch::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : to) {
        const auto found = from.find(prefix + name);
        if (found == from.end() || found->second.sizes() != tensor.sizes())
            throw Error(ErrorCode::bad_file, fmt::format("{}{} is missing or has another shape", prefix, name));
        torch::Tensor(tensor).copy_(found->second);
    }
}

}  // namespace stipple::learn
