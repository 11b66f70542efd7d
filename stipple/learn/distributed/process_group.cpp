#include "stipple/learn/distributed/process_group.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/core/error.h"

namespace stipple::learn {

using torch::Tensor;

double broadcast_number(ProcessGroup& group, double number) {
    Tensor value = torch::full({1}, number, torch::kFloat64);
    group.broadcast(value);
    return value.item<double>();
}

std::string broadcast_text(ProcessGroup& group, const std::string& text) {
    Tensor size = torch::full({1}, static_cast<int64_t>(text.size()), torch::kInt64);
    group.broadcast(size);
    Tensor bytes = torch::zeros({size.item<int64_t>()}, torch::kUInt8);
    if (bytes.numel() == 0) return {};
    if (group.rank() == 0) std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
    group.broadcast(bytes);
    return {reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()), static_cast<size_t>(bytes.numel())};
}

std::vector<std::string> gather_texts(ProcessGroup& group, const std::string& text) {
    constexpr int64_t kBytes = 512;
    Tensor bytes = torch::zeros({group.size(), kBytes}, torch::kUInt8);
    const auto own = std::min<int64_t>(kBytes, static_cast<int64_t>(text.size()));
    std::copy_n(text.begin(), own, bytes[group.rank()].data_ptr<uint8_t>());
    group.sum(bytes);
    std::vector<std::string> texts;
    for (int rank = 0; rank < group.size(); ++rank) {
        const auto* begin = reinterpret_cast<const char*>(bytes[rank].data_ptr<uint8_t>());
        texts.emplace_back(begin, std::find(begin, begin + kBytes, '\0'));
    }
    return texts;
}

std::vector<Tensor> sums_of_ranks(ProcessGroup& group, const std::vector<Tensor>& parts) {
    std::vector<Tensor> flat;
    for (const Tensor& part : parts) flat.push_back(part.to(torch::kFloat64).flatten());
    Tensor all = torch::cat(flat);
    group.sum(all);
    std::vector<Tensor> sums;
    int64_t begin = 0;
    for (const Tensor& part : parts) {
        sums.push_back(all.narrow(0, begin, part.numel()).view(part.sizes()));
        begin += part.numel();
    }
    return sums;
}

void require_equal(ProcessGroup& group, const std::string& what, int64_t number) {
    Tensor numbers = torch::zeros({group.size()}, torch::kInt64);
    numbers[group.rank()] = number;
    group.sum(numbers);
    const int64_t* of_rank = numbers.data_ptr<int64_t>();
    for (int rank = 1; rank < group.size(); ++rank)
        if (of_rank[rank] != of_rank[0])
            throw Error(ErrorCode::bad_config,
                        fmt::format("rank {} has {} {}, rank 0 has {}", rank, of_rank[rank], what, of_rank[0]),
                        "all ranks need the same data and the same program");
}

}  // namespace stipple::learn
