#include "tests/learn/thread_group.h"

#include <barrier>
#include <thread>
#include <torch/torch.h>

namespace stipple::test {
namespace {

struct MeetingPoint {
    explicit MeetingPoint(int size) : tensors(static_cast<size_t>(size)), all(size) {}
    std::vector<torch::Tensor> tensors;  // by rank
    std::barrier<> all;
};

class ThreadGroup : public learn::ProcessGroup {
public:
    ThreadGroup(MeetingPoint& meeting, int rank) : meeting_(meeting), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(meeting_.tensors.size()); }
    void sum(torch::Tensor& tensor) override {
        meet(tensor, [](const std::vector<torch::Tensor>& tensors) {
            torch::Tensor sum = tensors[0].clone();
            for (size_t i = 1; i < tensors.size(); ++i) sum += tensors[i];
            return sum;
        });
    }
    void broadcast(torch::Tensor& tensor) override {
        meet(tensor, [](const std::vector<torch::Tensor>& tensors) { return tensors[0]; });
    }

private:
    template <class F>
    void meet(torch::Tensor& tensor, const F& f) {
        const torch::NoGradGuard no_gradients;
        meeting_.tensors[static_cast<size_t>(rank_)] = tensor.detach().clone();
        meeting_.all.arrive_and_wait();
        const torch::Tensor result = f(meeting_.tensors);
        meeting_.all.arrive_and_wait();
        tensor.copy_(result);
    }

    MeetingPoint& meeting_;
    int rank_;
};

}  // namespace

void run_ranks(int size, const std::function<void(learn::ProcessGroup& group)>& f) {
    MeetingPoint meeting(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&meeting, &f, rank] {
            ThreadGroup group(meeting, rank);
            f(group);
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace stipple::test
