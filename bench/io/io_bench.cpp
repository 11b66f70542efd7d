// Reading and writing clouds, beside Open3D and PCL on the same files in the same run. Best of N (default 5).
//
//   io_bench [FOLDER for the files, default /tmp] [repetitions]
//
// Every program reads the same file (float32 x y z, written by stipple) from the page cache and writes the cloud it
// read to the same folder. stipple's writes include the fsync and the rename that make them atomic; the peers' do not.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include "peer.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/io/format.h"

namespace {

using namespace stipple;

class Stipple : public bench::Peer {
public:
    std::string name() const override { return "stipple"; }
    size_t read(const std::string& path) override {
        io::Warnings warnings;
        mesh_ = {};
        mesh_ = io::load(path, {}, warnings);
        return static_cast<size_t>(mesh_.vertices.size());
    }
    void write(const std::string& path, bool ascii) override {
        io::Warnings warnings;
        io::save(path, mesh_, Overwrite::allow, {ascii}, warnings);
    }
    bool handles(const std::string&, bool) const override { return true; }

private:
    Mesh mesh_;
};

Mesh random_cloud(int64_t n) {
    Mesh mesh;
    mesh.vertices = PointCloud(n);
    parallel_for(3 * n, 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            mesh.vertices.positions.data()[i] = 100 * Rng(1).uniform(static_cast<uint64_t>(i));
    });
    return mesh;
}

double seconds(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The limit: the file's bytes copied out of the page cache into fresh memory, and back to the disk with a flush.
void copy_raw(const std::string& path, const std::string& copy, double& read_seconds, double& write_seconds) {
    const int in = ::open(path.c_str(), O_RDONLY);
    const off_t size = ::lseek(in, 0, SEEK_END);
    ::lseek(in, 0, SEEK_SET);
    constexpr int64_t kPiece = int64_t{8} << 20;
    Buffer memory;
    read_seconds = std::min(read_seconds, seconds([&] {
                                memory = Buffer(size);
                                for (int64_t done = 0; done < size;) {
                                    const ssize_t count = ::read(in, memory.data() + done,
                                                                 static_cast<size_t>(std::min(kPiece, size - done)));
                                    if (count <= 0) std::abort();
                                    done += count;
                                }
                            }));
    ::close(in);
    ::unlink(copy.c_str());
    write_seconds = std::min(write_seconds, seconds([&] {
                                 const int out = ::open(copy.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
                                 for (int64_t done = 0; done < size;) {
                                     const ssize_t count = ::write(out, memory.data() + done,
                                                                   static_cast<size_t>(std::min(kPiece, size - done)));
                                     if (count <= 0) std::abort();
                                     done += count;
                                 }
                                 if (::fsync(out) != 0 || ::close(out) != 0) std::abort();
                             }));
}

struct Row {
    double read = std::numeric_limits<double>::infinity(), write = read;
};

/// Peak memory of a child that reads the file, beyond what a child that does nothing has.
double peak_megabytes(const std::function<void()>& work) {
    const auto run = [](const std::function<void()>& child_work) {
        int channel[2];
        if (::pipe(channel) != 0) std::abort();
        if (::fork() == 0) {
            child_work();
            rusage usage{};
            ::getrusage(RUSAGE_SELF, &usage);
            const long peak = usage.ru_maxrss;
            if (::write(channel[1], &peak, sizeof peak) != sizeof peak) std::abort();
            ::_exit(0);
        }
        long peak = 0;
        if (::read(channel[0], &peak, sizeof peak) != sizeof peak) peak = 0;
        ::close(channel[0]);
        ::close(channel[1]);
        ::wait(nullptr);
        return peak;
    };
    return static_cast<double>(run(work) - run([] {})) * 1024 / 1e6;
}

}  // namespace

namespace bench {
std::unique_ptr<Peer> make_stipple() {
    return std::make_unique<Stipple>();
}
}  // namespace bench

int main(int argc, char** argv) {
    const std::string folder = argc > 1 ? argv[1] : "/tmp";
    const int repetitions = argc > 2 ? std::atoi(argv[2]) : 5;
    struct Case {
        const char* name;
        const char* file;
        int64_t points;
        bool ascii;
    };
    const Case cases[] = {{"binary PLY, 5M points", "bench_binary.ply", 5'000'000, false},
                          {"ascii PLY, 1M points", "bench_ascii.ply", 1'000'000, true},
                          {"XYZ, 1M points", "bench.xyz", 1'000'000, true}};
    const auto make_peers = [] {
        std::vector<std::unique_ptr<bench::Peer>> peers;
        peers.push_back(bench::make_stipple());
#ifdef STIPPLE_BENCH_OPEN3D
        peers.push_back(bench::make_open3d());
#endif
#ifdef STIPPLE_BENCH_PCL
        peers.push_back(bench::make_pcl());
#endif
        return peers;
    };
    std::printf("best of %d, %d threads, files in %s\n\n", repetitions, threads(), folder.c_str());

    // Memory first, while this process is small: a child inherits its parent's peak.
    const std::string binary = folder + "/bench_binary.ply";
    for (const Case& c : cases) {
        ::pid_t child = ::fork();
        if (child == 0) {
            io::Warnings warnings;
            io::save(folder + "/" + c.file, random_cloud(c.points), Overwrite::allow, {c.ascii}, warnings);
            ::_exit(0);
        }
        ::waitpid(child, nullptr, 0);
    }
    const double payload = 5e6 * 12 / 1e6;
    const double peak = peak_megabytes([&] { Stipple().read(binary); });
    std::printf("peak memory of reading the binary PLY: %.1f MB, %.2f x its payload of %.0f MB\n\n", peak,
                peak / payload, payload);

    std::printf("| %-22s | %-8s | %9s | %9s | %12s | %12s |\n", "file", "program", "read ms", "write ms",
                "read, ours x", "write, ours x");
    std::printf("|%s|%s|%s:|%s:|%s:|%s:|\n", "------------------------", "----------", "----------", "----------",
                "-------------", "--------------");
    for (const Case& c : cases) {
        const std::string path = folder + "/" + c.file, copy = folder + "/copy_" + c.file;
        auto peers = make_peers();
        std::vector<Row> rows(peers.size());
        Row raw;
        for (int i = 0; i < repetitions; ++i) {
            copy_raw(path, copy, raw.read, raw.write);
            for (size_t p = 0; p < peers.size(); ++p) {
                if (!peers[p]->handles(path, false)) continue;
                rows[p].read = std::min(rows[p].read, seconds([&] {
                                            if (peers[p]->read(path) != static_cast<size_t>(c.points)) std::abort();
                                        }));
                ::unlink(copy.c_str());
                rows[p].write = std::min(rows[p].write, seconds([&] { peers[p]->write(copy, c.ascii); }));
            }
        }
        std::printf("| %-22s | %-8s | %9.1f | %9.1f | %12.2f | %13.2f |\n", c.name, "raw copy", 1e3 * raw.read,
                    1e3 * raw.write, raw.read / rows[0].read, raw.write / rows[0].write);
        for (size_t p = 0; p < peers.size(); ++p) {
            if (!peers[p]->handles(path, false)) continue;
            std::printf("| %-22s | %-8s | %9.1f | %9.1f | %12.1f | %13.1f |\n", c.name, peers[p]->name().c_str(),
                        1e3 * rows[p].read, 1e3 * rows[p].write, rows[p].read / rows[0].read,
                        rows[p].write / rows[0].write);
        }
        ::unlink(copy.c_str());
        ::unlink(path.c_str());
    }
    return 0;
}
