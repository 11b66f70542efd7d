#pragma once
// Devices: where an array lives and where an operation runs.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/error.h"

namespace stipple {

enum class DeviceType { cpu, cuda };

struct Device {
    DeviceType type = DeviceType::cpu;
    int index = 0;
    bool operator==(const Device&) const = default;
};

std::string to_string(Device device);  // "cpu", "cuda:0"

/// "cpu", "cuda", "cuda:1" or "auto" (the first GPU, else the CPU). Throws Error{no_device} when a GPU is asked for and
/// none is there, Error{bad_argument} for any other text.
Device parse_device(std::string_view text);

struct DeviceInfo {
    Device device;
    std::string name;            // "Neoverse-V1", "NVIDIA H200"
    int64_t memory_bytes = 0;    // total
    int units = 0;               // CPU cores or multiprocessors
    int compute_capability = 0;  // 90 for sm_90; 0 for the CPU
};

/// The CPU first, then every usable GPU. Never throws for want of a driver.
std::vector<DeviceInfo> list_devices();

/// A CUDA stream by its raw handle, so that headers need no CUDA. The default is the default stream.
struct Stream {
    void* handle = nullptr;
};

}  // namespace stipple

/// Calls a CUDA launcher in a CUDA build; throws Error{no_device} in any other, so that CPU builds need no stubs.
#ifdef STIPPLE_WITH_CUDA
#define STIPPLE_CUDA_CALL(function, ...) function(__VA_ARGS__)
#else
#define STIPPLE_CUDA_CALL(function, ...) \
    throw ::stipple::Error(::stipple::ErrorCode::no_device, "built without CUDA: " #function)
#endif

template <>
struct fmt::formatter<stipple::Device> : fmt::formatter<fmt::string_view> {
    fmt::format_context::iterator format(stipple::Device device, fmt::format_context& context) const;
};
