#pragma once
// The structs of the DLPack protocol, versions 0 and 1, as its specification lays them out: how arrays travel between
// libraries of one process without a copy. Their layout is fixed for ever; they are written here, so that no header of
// a particular version is needed.

#include <cstdint>

namespace stipple::python::dlpack {

enum DeviceKind : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

struct DeviceTag {
    int32_t kind;  // DeviceKind, or another
    int32_t index;
};

struct TypeTag {
    uint8_t code;  // TypeCode, or another
    uint8_t bits;
    uint16_t lanes;
};

struct Tensor {
    void* data;
    DeviceTag device;
    int32_t rank;
    TypeTag type;
    int64_t* shape;
    int64_t* strides;  // in elements; null: contiguous
    uint64_t byte_offset;
};

/// Capsule "dltensor".
struct Managed {
    Tensor tensor;
    void* context;
    void (*deleter)(Managed*);
};

/// Capsule "dltensor_versioned".
struct ManagedVersioned {
    uint32_t major, minor;
    void* context;
    void (*deleter)(ManagedVersioned*);
    uint64_t flags;
    Tensor tensor;
};

constexpr uint64_t kReadOnly = 1;

}  // namespace stipple::python::dlpack
