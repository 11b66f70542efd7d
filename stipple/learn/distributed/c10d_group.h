#pragma once
// A group on torch's c10d: Gloo between CPUs, NCCL between GPUs, and a store at rank 0 where they meet.

#include <chrono>
#include <memory>
#include <string>

#include "stipple/core/error.h"
#include "stipple/learn/distributed/launcher.h"
#include "stipple/learn/distributed/process_group.h"

namespace stipple::learn {

struct GroupOptions {
    torch::Device device = torch::kCPU;                            // CUDA: NCCL
    std::chrono::milliseconds timeout = std::chrono::minutes(10);  // to come, and for each collective
    std::chrono::milliseconds grace = std::chrono::seconds(5);     // for others to say why, when one is lost
};

class C10dGroup : public ProcessGroup {
public:
    /// Joins. Throws Error{lost_rank} that names who did not come in time, Error{no_device} where torch was built
    /// without the backend, Error{bad_argument} for a port that is taken or an address that there is not.
    C10dGroup(const Launch& launch, const GroupOptions& options);
    /// As fail(), unless it has finished or failed.
    ~C10dGroup() override;

    int rank() const override;
    int size() const override;
    void sum(torch::Tensor& tensor) override;
    void broadcast(torch::Tensor& tensor) override;
    void settle() override;
    void say(const std::string& what) override;

    /// "Gloo" or "NCCL".
    const std::string& backend() const;

    /// This rank is done: nobody needs it any more.
    void finish();
    /// This rank ends with an error: the others are told, and end too.
    void fail(const Error& error) noexcept;

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace stipple::learn
