#include "tests/support/devices.h"

#include <cstring>

#include "stipple/core/parallel.h"

namespace stipple::test {

std::vector<Device> test_gpus() {
    for (const DeviceInfo& info : list_devices())
        if (info.device.type == DeviceType::cuda) return {info.device};
    return {};
}

std::vector<Device> test_devices() {
    std::vector<Device> devices = test_gpus();
    devices.insert(devices.begin(), Device{});
    return devices;
}

Mesh OnDevice::upload(const Mesh& host) const {
    Mesh mesh;
    mesh.vertices.positions = upload(host.vertices.positions);
    mesh.vertices.origin = host.vertices.origin;
    mesh.triangles = upload(host.triangles);
    return mesh;
}

std::string bad_argument_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

void expect_same_on_threads(const std::function<std::vector<Array<float, 2>>()>& f) {
    const int before = threads();
    set_threads(1);
    const std::vector<Array<float, 2>> one = f();
    set_threads(3);
    const std::vector<Array<float, 2>> three = f();
    set_threads(before);
    ASSERT_EQ(one.size(), three.size());
    for (size_t i = 0; i < one.size(); ++i) {
        ASSERT_EQ(one[i].shape(), three[i].shape());
        if (one[i].elements() == 0) continue;
        EXPECT_EQ(0, std::memcmp(one[i].data(), three[i].data(), one[i].elements() * sizeof(float))) << "result " << i;
    }
}

}  // namespace stipple::test
