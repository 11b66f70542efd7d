#pragma once
// What a peer must do: read a file of points, write them binary or as text. Each in a file of its own, so that its
// headers meet nobody else's.

#include <cstddef>
#include <memory>
#include <string>

namespace bench {

class Peer {
public:
    virtual ~Peer() = default;
    virtual std::string name() const = 0;
    virtual size_t read(const std::string& path) = 0;             // keeps the cloud, returns its size
    virtual void write(const std::string& path, bool ascii) = 0;  // writes the cloud that was read
    virtual bool handles(const std::string& path, bool writing) const = 0;
};

std::unique_ptr<Peer> make_stipple();
std::unique_ptr<Peer> make_pcl();
std::unique_ptr<Peer> make_open3d();

}  // namespace bench
