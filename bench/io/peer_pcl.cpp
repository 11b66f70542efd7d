#include <pcl/io/ply_io.h>
#include <pcl/point_types.h>
#include <stdexcept>

#include "peer.h"

namespace bench {
namespace {

class Pcl : public Peer {
public:
    std::string name() const override { return "PCL"; }
    size_t read(const std::string& path) override {
        cloud_ = {};
        if (pcl::PLYReader().read(path, cloud_) < 0) throw std::runtime_error("PCL cannot read " + path);
        return cloud_.size();
    }
    void write(const std::string& path, bool ascii) override {
        if (pcl::PLYWriter().write(path, cloud_, !ascii) < 0) throw std::runtime_error("PCL cannot write " + path);
    }
    bool handles(const std::string& path, bool) const override { return path.find(".ply") != std::string::npos; }

private:
    pcl::PointCloud<pcl::PointXYZ> cloud_;
};

}  // namespace

std::unique_ptr<Peer> make_pcl() {
    return std::make_unique<Pcl>();
}

}  // namespace bench
