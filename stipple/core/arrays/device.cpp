#include "stipple/core/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <thread>

#include "stipple/core/cuda/memory.h"

namespace stipple {
namespace {

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.rfind("model name", 0) == 0) {
            const size_t colon = line.find(": ");
            if (colon != std::string::npos) return line.substr(colon + 2);
        }
#if defined(__aarch64__)
    return "aarch64";
#elif defined(__x86_64__)
    return "x86-64";
#else
    return "CPU";
#endif
}

std::vector<DeviceInfo> list_gpus() {
#ifdef STIPPLE_WITH_CUDA
    return cuda::list_devices();
#else
    return {};
#endif
}

}  // namespace

std::string to_string(Device device) {
    return device.type == DeviceType::cpu ? "cpu" : fmt::format("cuda:{}", device.index);
}

std::vector<DeviceInfo> list_devices() {
    DeviceInfo cpu;
    cpu.name = cpu_name();
    cpu.memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    cpu.units = static_cast<int>(std::thread::hardware_concurrency());
    std::vector<DeviceInfo> devices = {cpu};
    for (DeviceInfo& gpu : list_gpus()) devices.push_back(std::move(gpu));
    return devices;
}

Device parse_device(std::string_view text) {
    if (text == "cpu") return {};
    if (text == "auto") return list_gpus().empty() ? Device{} : Device{DeviceType::cuda, 0};
    int index = 0;
    bool valid = text == "cuda";
    if (text.substr(0, 5) == "cuda:") {
        const auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), index);
        valid = error == std::errc() && end == text.data() + text.size() && index >= 0;
    }
    STIPPLE_REQUIRE(valid, "device must be cpu, cuda, cuda:N or auto, got \"{}\"", text);
    const int count = static_cast<int>(list_gpus().size());
#ifndef STIPPLE_WITH_CUDA
    throw Error(ErrorCode::no_device, "this build has no CUDA", "use --device cpu, or build the gpu preset");
#endif
    if (index >= count)
        throw Error(ErrorCode::no_device, fmt::format("no device cuda:{}: {} usable GPUs found", index, count),
                    "use --device cpu or --device auto");
    return {DeviceType::cuda, index};
}

}  // namespace stipple

fmt::format_context::iterator fmt::formatter<stipple::Device>::format(stipple::Device device,
                                                                      fmt::format_context& context) const {
    return fmt::formatter<fmt::string_view>::format(stipple::to_string(device), context);
}
