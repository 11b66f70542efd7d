#include "stipple/learn/distributed/c10d_group.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <netdb.h>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "stipple/core/device.h"
#include "stipple/core/interrupt.h"
#include "stipple/learn/distributed/backend.h"
#include "stipple/learn/distributed/rank_board.h"

namespace stipple::learn {
namespace {

using torch::Tensor;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kSpeaksEvery = milliseconds(200);
constexpr auto kLooksEvery = milliseconds(1000);  // at the board, while a GPU is waited for

/// Whether somebody listens there, asked for at most a second.
bool is_reachable(const std::string& address, int port, std::string& reason) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
        reason = ::gai_strerror(error);
        return false;
    }
    bool is_there = false;
    for (const addrinfo* at = found; at && !is_there; at = at->ai_next) {
        const int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
        if (socket < 0) continue;
        pollfd waits = {socket, POLLOUT, 0};
        int error = ::connect(socket, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
        if (error == EINPROGRESS) {
            socklen_t size = sizeof error;
            error = ETIMEDOUT;
            if (::poll(&waits, 1, 1000) > 0) ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
        }
        is_there = error == 0;
        reason = std::strerror(error);
        ::close(socket);
    }
    ::freeaddrinfo(found);
    return is_there;
}

/// Until rank 0 listens: it may be reading data on a slow disk still.
void wait_for_listener(const Launch& launch, milliseconds timeout) {
    std::string reason;
    const Clock::time_point deadline = Clock::now() + timeout;
    while (!is_reachable(launch.address, launch.port, reason)) {
        check_interrupted();
        if (Clock::now() >= deadline)
            throw Error(ErrorCode::lost_rank,
                        fmt::format("rank 0 of {} did not come within {} s: {}:{}: {}", launch.world,
                                    timeout.count() / 1000, launch.address, launch.port, reason),
                        "MASTER_ADDR and MASTER_PORT name where it is");
        std::this_thread::sleep_for(milliseconds(50));
    }
}

c10::intrusive_ptr<c10d::Store> open_store(const Launch& launch, milliseconds timeout) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(launch.port);
    options.isServer = launch.rank == 0 && !launch.has_store;
    options.numWorkers = launch.world;
    options.waitWorkers = false;  // the board knows who is missing
    options.timeout = timeout;
    if (!options.isServer) wait_for_listener(launch, timeout);
    try {
        c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::TCPStore>(launch.address, options);
        if (!launch.prefix.empty()) store = c10::make_intrusive<c10d::PrefixStore>(launch.prefix, store);
        return store;
    } catch (const std::exception& error) {
        const std::string words = error.what();
        throw Error(ErrorCode::bad_argument,
                    fmt::format("{}:{}: {}", launch.address, launch.port, words.substr(0, words.find('\n'))),
                    options.isServer ? "set MASTER_PORT to a port that is free" : "");
    }
}

std::string host_name() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

}  // namespace

class C10dGroup::State {
public:
    State(const Launch& launch, const GroupOptions& options)
        : launch_(launch),
          options_(options),
          store_(open_store(launch, options.timeout)),
          board_(store_, launch.rank, launch.world,
                 launch.has_store ? launch.launcher : fmt::format("rank 0 of {}", launch.world)),
          name_(options.device.is_cuda() ? "NCCL" : "Gloo") {
        const BackendOptions of_backend = {c10::make_intrusive<c10d::PrefixStore>(name_, store_), launch.rank,
                                           launch.world, launch.address, options.timeout};
        try {
            board_.say(RankState::running, fmt::format("joined, process {} of {}", ::getpid(), host_name()));
            board_.wait_for_all(options.timeout);
            if (options.device.is_cuda())
                STIPPLE_CUDA_CALL(backend_ = cuda::make_nccl, of_backend);
            else
                backend_ = make_gloo(of_backend);
        } catch (const Error&) {
            throw;
        } catch (const std::exception& error) {
            throw board_.explain(error.what(), options.grace);
        }
    }

    ~State() {
        if (!is_over_) fail(Error(ErrorCode::internal, "ended without a reason"));
        drop_backend();
        try {
            if (launch_.rank == 0 && !launch_.has_store) board_.linger(options_.grace);
        } catch (const std::exception&) {  // nobody is left to read it
        }
    }

    const Launch& launch() const { return launch_; }
    const std::string& name() const { return name_; }

    template <class Collective>
    void run(Tensor& tensor, const Collective& collective) {
        if (!backend_) throw Error(ErrorCode::lost_rank, "this rank has left the group");
        const bool is_elsewhere = tensor.is_cuda() != options_.device.is_cuda();
        try {
            std::vector<Tensor> tensors = {is_elsewhere ? tensor.to(options_.device) : tensor};
            last_ = collective(*backend_, tensors);
            last_->wait();
            if (!is_elsewhere) return;
            settle();
            tensor.copy_(tensors[0]);
        } catch (const Error&) {
            throw;
        } catch (const std::exception& error) {
            give_up(error.what());
        }
    }

    void settle() {
        if (!last_ || !options_.device.is_cuda()) return;
        const Clock::time_point begin = Clock::now();
        Clock::time_point looks = begin + kLooksEvery;
        try {
            while (!last_->isCompleted()) {
                const Clock::time_point now = Clock::now();
                if (now - begin < milliseconds(2)) continue;  // steps are shorter than a sleep
                if (now - begin > options_.timeout) give_up("timed out");
                if (now > looks) {
                    if (board_.has_trouble()) give_up("another rank has stopped");
                    looks = now + kLooksEvery;
                }
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
        } catch (const Error&) {
            throw;
        } catch (const std::exception& error) {
            give_up(error.what());
        }
    }

    void say(const std::string& what) {
        const Clock::time_point now = Clock::now();
        if (is_over_ || now - spoke_ < kSpeaksEvery) return;
        spoke_ = now;
        try {
            board_.say(RankState::running, what);
        } catch (const std::exception& error) {
            give_up(error.what());
        }
    }

    void finish() {
        is_over_ = true;
        try {
            board_.say(RankState::finished, "");
        } catch (const std::exception&) {  // rank 0 has ended before: it needs nobody
        }
    }

    void fail(const Error& error) noexcept {
        if (is_over_) return;
        is_over_ = true;
        try {
            if (error.code() == ErrorCode::lost_rank)
                board_.say(RankState::left, "");
            else
                board_.say(RankState::failed, error.what(), error.code());
        } catch (const std::exception&) {  // the store is gone, and with it whoever would have read this
        }
        drop_backend();
    }

private:
    /// Connections are closed at once, so that those who wait for this rank learn of it.
    [[noreturn]] void give_up(const std::string& reason) {
        try {
            board_.say(RankState::stopped, "");
        } catch (const std::exception&) {
        }
        drop_backend();
        throw board_.explain(reason, options_.grace);
    }

    void drop_backend() noexcept {
        if (!backend_) return;
        try {
#ifdef STIPPLE_WITH_CUDA
            if (options_.device.is_cuda()) cuda::close_nccl(*backend_, last_ && !last_->isCompleted());
#endif
        } catch (const std::exception&) {
        }
        last_.reset();
        backend_.reset();
    }

    const Launch launch_;
    const GroupOptions options_;
    c10::intrusive_ptr<c10d::Store> store_;
    RankBoard board_;
    std::string name_;
    c10::intrusive_ptr<Backend> backend_;
    c10::intrusive_ptr<c10d::Work> last_;
    Clock::time_point spoke_ = {};
    bool is_over_ = false;  // finished or failed
};

C10dGroup::C10dGroup(const Launch& launch, const GroupOptions& options)
    : state_(std::make_unique<State>(launch, options)) {}

C10dGroup::~C10dGroup() = default;

int C10dGroup::rank() const {
    return state_->launch().rank;
}

int C10dGroup::size() const {
    return state_->launch().world;
}

void C10dGroup::sum(Tensor& tensor) {
    state_->run(tensor, [](Backend& backend, std::vector<Tensor>& tensors) { return backend.allreduce(tensors); });
}

void C10dGroup::broadcast(Tensor& tensor) {
    state_->run(tensor, [](Backend& backend, std::vector<Tensor>& tensors) { return backend.broadcast(tensors); });
}

void C10dGroup::settle() {
    state_->settle();
}

void C10dGroup::say(const std::string& what) {
    state_->say(what);
}

const std::string& C10dGroup::backend() const {
    return state_->name();
}

void C10dGroup::finish() {
    state_->finish();
}

void C10dGroup::fail(const Error& error) noexcept {
    state_->fail(error);
}

}  // namespace stipple::learn
