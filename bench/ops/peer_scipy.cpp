// SciPy, in a Python of its own for every run; the clock runs inside it, without its start.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "peer.h"

namespace peer {
namespace {

/// The system's Python, whatever else is first in the search path: scipy is a system package.
const std::string kPython = "command -p python3 ";

std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot run " + command);
    char piece[256];
    while (std::fgets(piece, sizeof piece, pipe)) text += piece;
    if (::pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
    return text;
}

/// Both clouds in a file that goes with the object.
class PointFile {
public:
    explicit PointFile(const Job& job) {
        std::string path = "/tmp/stipple_bench_XXXXXX";
        const int fd = ::mkstemp(path.data());
        std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "wb");
        if (!file) throw std::runtime_error("cannot write " + path);
        path_ = path;
        const auto count = static_cast<size_t>(3 * job.n);
        const bool whole = std::fwrite(job.a, sizeof(float), count, file) == count &&
                           std::fwrite(job.b, sizeof(float), count, file) == count;
        if (std::fclose(file) != 0 || !whole) throw std::runtime_error("cannot write " + path);
    }
    ~PointFile() { ::unlink(path_.c_str()); }
    PointFile(const PointFile&) = delete;
    PointFile& operator=(const PointFile&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

Run run_script(const Job& job) {
    const auto file = std::make_shared<PointFile>(job);
    const std::string arguments = " " + job.op + " " + file->path() + " " + std::to_string(job.n) + " " +
                                  std::to_string(job.count) + " " + std::to_string(job.length);
    return [file, arguments](int threads) {
        const std::string limit = "OMP_NUM_THREADS=" + std::to_string(threads) + " ";
        const std::string text =
            output_of(limit + kPython + STIPPLE_SOURCE_DIR "/bench/ops/scipy_peers.py" + arguments);
        Outcome outcome(0, 0);
        if (std::sscanf(text.c_str(), "{\"seconds\": %lf, \"value\": %lf}", &outcome.seconds, &outcome.value) != 2)
            throw std::runtime_error("unexpected: " + text);
        return outcome;
    };
}

}  // namespace

std::vector<Peer> scipy_peers() {
    if (std::system((kPython + "-c 'import scipy' 2>/dev/null").c_str()) != 0) return {};
    return {{"SciPy linear_sum_assignment", "emd", false, run_script},
            {"SciPy logsumexp", "sinkhorn", false, run_script}};
}

}  // namespace peer
