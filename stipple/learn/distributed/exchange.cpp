#include "stipple/learn/distributed/exchange.h"

#include <csignal>
#include <torch/torch.h>

#include "stipple/core/error.h"
#include "stipple/learn/loop/trouble.h"
#include "stipple/learn/short_numbers.h"

namespace stipple::learn {

using torch::Tensor;

int64_t shared_batch(int64_t batch, int64_t items, ProcessGroup* group) {
    if (!group) return batch;
    require_equal(*group, "items to train on", items);
    const int64_t ranks = group->size(), fitting = batch / ranks * ranks;
    if (fitting != batch)
        throw Error(ErrorCode::bad_config,
                    fmt::format("a batch of {} clouds cannot be shared by {} ranks", batch, ranks),
                    fitting > 0 ? fmt::format("run.batch is that of all ranks: try --set run.batch={}", fitting)
                                : "there are more ranks than clouds");
    return batch;
}

void share_tensors(ProcessGroup& group, const std::map<std::string, Tensor>& tensors) {
    const torch::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : tensors) {
        Tensor values = tensor.detach().contiguous();
        group.broadcast(values);
        if (!values.is_same(tensor)) tensor.detach().copy_(values);
    }
}

void sum_gradients(ProcessGroup& group, const std::vector<Tensor>& parameters) {
    const torch::NoGradGuard no_gradients;
    std::map<torch::Dtype, std::vector<Tensor>> by_type;
    for (const Tensor& parameter : parameters)
        if (parameter.grad().defined()) by_type[at_least_float(parameter.grad()).scalar_type()].push_back(parameter);
    for (const auto& [type, of_type] : by_type) {
        std::vector<Tensor> flat;
        for (const Tensor& parameter : of_type) flat.push_back(at_least_float(parameter.grad()).flatten());
        Tensor bucket = torch::cat(flat);
        group.sum(bucket);
        int64_t begin = 0;
        for (const Tensor& parameter : of_type) {
            parameter.grad().copy_(bucket.narrow(0, begin, parameter.numel()).view_as(parameter));
            begin += parameter.numel();
        }
    }
}

SharedStep share_step(ProcessGroup& group, const StepOutput& own, int signal) {
    const torch::NoGradGuard no_gradients;
    const Tensor sums = own.sums.flatten();
    const double signals[] = {signal == SIGINT ? 1.0 : 0.0, signal != 0 && signal != SIGINT ? 1.0 : 0.0};
    Tensor all = torch::cat({own.loss.detach().to(torch::kFloat64).reshape({1}), sums,
                             torch::tensor({signals[0], signals[1]}, torch::kFloat64).to(sums.device())});
    group.sum(all);
    all.narrow(0, 0, 2).div_(group.size());  // the losses are means
    return {all.narrow(0, 0, 1), all.narrow(0, 1, sums.numel()), all.narrow(0, 1 + sums.numel(), 2)};
}

void check_signals(const double* signals) {
    if (signals[0] > 0) throw Error(ErrorCode::interrupted, "interrupted");
    if (signals[1] > 0) throw Error(ErrorCode::terminated, "terminated");
}

std::string share_trouble(ProcessGroup& group, const std::string& found) {
    const std::vector<std::string> all = gather_texts(group, found);
    std::string text;
    for (size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank].rfind(kNoTrouble, 0) != 0 && all[rank].rfind("gradient of ", 0) != 0)
            text += fmt::format("{}rank {}: {}", text.empty() ? "" : "; ", rank, all[rank]);
    return text.empty() ? all[0] : text;
}

}  // namespace stipple::learn
