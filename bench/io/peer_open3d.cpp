#include <open3d/geometry/PointCloud.h>
#include <open3d/io/PointCloudIO.h>
#include <open3d/utility/Logging.h>
#include <stdexcept>

#include "peer.h"

namespace bench {
namespace {

class Open3d : public Peer {
public:
    Open3d() { open3d::utility::SetVerbosityLevel(open3d::utility::VerbosityLevel::Error); }
    std::string name() const override { return "Open3D"; }
    size_t read(const std::string& path) override {
        cloud_ = {};
        if (!open3d::io::ReadPointCloud(path, cloud_)) throw std::runtime_error("Open3D cannot read " + path);
        return cloud_.points_.size();
    }
    void write(const std::string& path, bool ascii) override {
        open3d::io::WritePointCloudOption option;
        option.write_ascii = open3d::io::WritePointCloudOption::IsAscii(ascii);
        if (!open3d::io::WritePointCloud(path, cloud_, option)) throw std::runtime_error("Open3D cannot write " + path);
    }
    bool handles(const std::string&, bool) const override { return true; }

private:
    open3d::geometry::PointCloud cloud_;
};

}  // namespace

std::unique_ptr<Peer> make_open3d() {
    return std::make_unique<Open3d>();
}

}  // namespace bench
