#include "stipple/learn/distributed/launcher.h"

#include <cstdlib>
#include <limits>

#include "stipple/core/error.h"
#include "stipple/io/text.h"

namespace stipple::learn {
namespace {

constexpr int kDefaultPort = 29500;                         // torchrun's
constexpr int64_t kFirstJobPort = 20000, kJobPorts = 9000;  // below those that Linux gives to clients
constexpr const char* kHint = "--launcher none trains in one process, whatever is set";

/// The variables of one launcher.
class Variables {
public:
    Variables(const char* launcher, const Environment& environment) : launcher_(launcher), environment_(environment) {}

    bool has(const char* name) const { return environment_(name).has_value(); }

    std::string text(const char* name) const {
        const std::optional<std::string> value = environment_(name);
        if (!value) throw Error(ErrorCode::bad_argument, fmt::format("{}: {} is not set", launcher_, name), kHint);
        return *value;
    }

    int number(const char* name, int least, int64_t below) const {
        const std::string value = text(name);
        int64_t number = 0;
        if (!io::parse_number(value, number))
            throw Error(ErrorCode::bad_argument, fmt::format("{}={} is no number", name, value), kHint);
        if (number < least || number >= below)
            throw Error(ErrorCode::bad_argument, fmt::format("{}={} must be {} to {}", name, value, least, below - 1),
                        kHint);
        return static_cast<int>(number);
    }

    /// Rank and size, and the place on the machine where it is told.
    Launch launch(const char* rank, const char* size, const char* local) const {
        Launch launch;
        launch.launcher = launcher_;
        launch.world = number(size, 1, 1 << 20);
        launch.rank = number(rank, 0, std::numeric_limits<int32_t>::max());
        if (launch.rank >= launch.world)
            throw Error(ErrorCode::bad_argument,
                        fmt::format("{}={} is not below {}={}", rank, launch.rank, size, launch.world), kHint);
        if (has(local)) launch.local_rank = number(local, 0, launch.world);
        return launch;
    }

    int port_or(int otherwise) const { return has("MASTER_PORT") ? number("MASTER_PORT", 1, 65536) : otherwise; }

    /// Jobs that share a machine should not share a port.
    int port_of_job(const char* job) const {
        int64_t number = 0;
        const std::optional<std::string> value = environment_(job);
        if (!value || !io::parse_number(*value, number) || number < 0) return kDefaultPort;
        return static_cast<int>(kFirstJobPort + number % kJobPorts);
    }

private:
    const char* launcher_;
    const Environment& environment_;
};

Launch by_torchrun(const Variables& variables) {
    Launch launch = variables.launch("RANK", "WORLD_SIZE", "LOCAL_RANK");
    if (launch.world == 1) return launch;
    launch.address = variables.text("MASTER_ADDR");
    variables.text("MASTER_PORT");
    launch.port = variables.port_or(0);
    // torchrun's agent keeps a store at the port that it names.
    launch.has_store =
        variables.has("TORCHELASTIC_USE_AGENT_STORE") && variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    if (launch.has_store)
        launch.prefix =
            "stipple/" + (variables.has("TORCHELASTIC_RESTART_COUNT") ? variables.text("TORCHELASTIC_RESTART_COUNT")
                                                                      : std::string("0"));
    return launch;
}

Launch by_mpi(const Variables& variables) {
    Launch launch = variables.launch("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK");
    if (launch.world == 1) return launch;
    const bool is_one_machine = variables.has("OMPI_COMM_WORLD_LOCAL_SIZE") &&
                                variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, launch.world + 1) == launch.world;
    if (!variables.has("MASTER_ADDR") && !is_one_machine)
        throw Error(ErrorCode::bad_argument, "Open MPI: ranks on several machines, and MASTER_ADDR is not set",
                    "name the machine of rank 0: mpirun -x MASTER_ADDR=host ...");
    launch.address = variables.has("MASTER_ADDR") ? variables.text("MASTER_ADDR") : "127.0.0.1";
    launch.port = variables.port_or(variables.port_of_job("OMPI_MCA_ess_base_jobid"));
    return launch;
}

Launch by_slurm(const Variables& variables) {
    Launch launch = variables.launch("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID");
    if (variables.has("SLURM_STEP_NUM_TASKS")) {
        const int of_step = variables.number("SLURM_STEP_NUM_TASKS", 1, 1 << 20);
        if (of_step != launch.world)
            throw Error(ErrorCode::bad_argument,
                        fmt::format("SLURM_NTASKS={} contradicts SLURM_STEP_NUM_TASKS={}", launch.world, of_step),
                        kHint);
    }
    if (launch.world == 1) return launch;
    const char* nodes = variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
    launch.address = variables.has("MASTER_ADDR") ? variables.text("MASTER_ADDR") : first_host(variables.text(nodes));
    if (launch.address.empty())
        throw Error(ErrorCode::bad_argument, fmt::format("{}={} names no node", nodes, variables.text(nodes)),
                    "set MASTER_ADDR to the machine of rank 0");
    launch.port = variables.port_or(variables.port_of_job("SLURM_JOB_ID"));
    return launch;
}

}  // namespace

Environment process_environment() {
    return [](const char* name) -> std::optional<std::string> {
        const char* value = std::getenv(name);
        if (!value || !*value) return {};
        return value;
    };
}

std::string first_host(std::string_view nodes) {
    const size_t end = nodes.find_first_of(",[");
    std::string host(nodes.substr(0, end));
    if (end == std::string_view::npos || nodes[end] == ',') return host;
    const std::string_view numbers = nodes.substr(end + 1);
    host += numbers.substr(0, numbers.find_first_of(",-]"));
    const size_t close = numbers.find(']');
    if (close == std::string_view::npos) return "";
    const std::string_view behind = numbers.substr(close + 1);  // "node[1-2].cluster"
    host += behind.substr(0, behind.find_first_of(",["));
    return host;
}

Launch find_launch(Launcher launcher, const Environment& environment) {
    const Variables torchrun("torchrun", environment), mpi("Open MPI", environment), slurm("SLURM", environment);
    switch (launcher) {
        case Launcher::none: return {};
        case Launcher::torchrun: return by_torchrun(torchrun);
        case Launcher::mpi: return by_mpi(mpi);
        case Launcher::slurm: return by_slurm(slurm);
        case Launcher::automatic: break;
    }
    if (torchrun.has("RANK") || torchrun.has("WORLD_SIZE")) return by_torchrun(torchrun);
    if (mpi.has("OMPI_COMM_WORLD_RANK") || mpi.has("OMPI_COMM_WORLD_SIZE")) return by_mpi(mpi);
    if (slurm.has("SLURM_STEP_NUM_TASKS") && slurm.has("SLURM_PROCID")) return by_slurm(slurm);
    return {};
}

}  // namespace stipple::learn
