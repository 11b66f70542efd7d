#pragma once
// Which of several processes this one is, as whoever started them says in the environment. No torch here.
//
//   launcher   rank and size                                   on its machine               where rank 0 is
//   torchrun   RANK, WORLD_SIZE                                LOCAL_RANK                   MASTER_ADDR, MASTER_PORT
//   Open MPI   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE      OMPI_COMM_WORLD_LOCAL_RANK   the same, or this machine
//   SLURM      SLURM_PROCID, SLURM_NTASKS                      SLURM_LOCALID                the same, or the first node
//
// The first of these that is there counts. SLURM's variables are there in batch scripts and interactive shells too,
// which are one process: they count in a step of srun alone, which SLURM_STEP_NUM_TASKS tells.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stipple::learn {

enum class Launcher { automatic, torchrun, mpi, slurm, none };
inline constexpr const char* kLauncherWords[] = {"auto", "torchrun", "mpi", "slurm", "none"};

struct Launch {
    int rank = 0, world = 1;
    int local_rank = 0;   // on its machine: which GPU is its own
    std::string address;  // of rank 0; empty for one process
    int port = 0;
    bool has_store = false;         // somebody listens there already: torchrun; else rank 0 will
    std::string prefix;             // of our keys in a store that is somebody's
    std::string launcher = "none";  // "torchrun", "Open MPI", "SLURM"
};

/// The value of a variable; empty ones count as none.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

/// Throws Error{bad_argument} of one line that names the variable: one that is missing beside others of its launcher,
/// is no number, is out of range, or contradicts another; and for a launcher that is asked for and is not there.
Launch find_launch(Launcher launcher, const Environment& environment);

/// The first of a SLURM node list: "gpu[07-12,14],login1" is gpu07. Empty for what is none.
std::string first_host(std::string_view nodes);

}  // namespace stipple::learn
