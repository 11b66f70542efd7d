#include "stipple/core/device.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/buffer.h"
#include "stipple/core/dtype.h"

namespace stipple {
namespace {

ErrorCode code_of(std::string_view text) {
    try {
        parse_device(text);
    } catch (const Error& error) {
        return error.code();
    }
    ADD_FAILURE() << text << " was accepted";
    return ErrorCode::internal;
}

TEST(Device, Names) {
    EXPECT_EQ(to_string(Device{}), "cpu");
    EXPECT_EQ(to_string(Device{DeviceType::cuda, 3}), "cuda:3");
    EXPECT_EQ(fmt::format("{:>6}", Device{}), "   cpu");
    EXPECT_EQ(parse_device("cpu"), Device{});
}

TEST(Device, BadNamesAreBadArguments) {
    for (std::string_view text :
         {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999999999", "cpu:0", "cuda 0", " cpu"})
        EXPECT_EQ(code_of(text), ErrorCode::bad_argument) << text;
}

TEST(Device, AbsentOnesAreNoDevice) {
    EXPECT_EQ(code_of("cuda:4000"), ErrorCode::no_device);
    const auto devices = list_devices();
    if (devices.size() > 1) {
        EXPECT_EQ(parse_device("auto").type, DeviceType::cuda);
        EXPECT_EQ(parse_device("cuda"), devices[1].device);
    } else {
        EXPECT_EQ(parse_device("auto"), Device{});
        EXPECT_EQ(code_of("cuda"), ErrorCode::no_device);
        EXPECT_THROW(Buffer(16, Device{DeviceType::cuda, 0}), Error);
    }
}

TEST(Device, TheListStartsWithTheCpu) {
    const auto devices = list_devices();
    ASSERT_FALSE(devices.empty());
    EXPECT_EQ(devices[0].device, Device{});
    EXPECT_FALSE(devices[0].name.empty());
    EXPECT_GT(devices[0].memory_bytes, 0);
    EXPECT_GE(devices[0].units, 1);
}

TEST(DType, ConvertsHalvesAndBrains) {
    const auto half = [](uint16_t bits) { return load_as_double(DType::f16, &bits); };
    EXPECT_EQ(half(0x3c00), 1.0);
    EXPECT_EQ(half(0xc000), -2.0);
    EXPECT_EQ(half(0x7bff), 65504.0);
    EXPECT_EQ(half(0x0001), 0x1p-24);
    EXPECT_EQ(half(0x0400), 0x1p-14);
    EXPECT_EQ(half(0x7c00), INFINITY);
    EXPECT_EQ(half(0xfc00), -INFINITY);
    EXPECT_TRUE(half(0x7e00) != half(0x7e00));
    const auto brain = [](uint16_t bits) { return load_as_double(DType::bf16, &bits); };
    EXPECT_EQ(brain(0x3f80), 1.0);
    EXPECT_EQ(brain(0xc040), -3.0);
    EXPECT_EQ(brain(0x7f80), INFINITY);
}

TEST(DType, EachHasASizeAndAName) {
    const std::vector<DType> all = {DType::u8,  DType::i8,  DType::u16,    DType::i16, DType::u32,
                                    DType::i32, DType::u64, DType::i64,    DType::f16, DType::bf16,
                                    DType::f32, DType::f64, DType::boolean};
    EXPECT_EQ(all.size(), static_cast<size_t>(DType::boolean) + 1);
    for (DType dtype : all) {
        EXPECT_TRUE(size_of(dtype) == 1 || size_of(dtype) == 2 || size_of(dtype) == 4 || size_of(dtype) == 8);
        EXPECT_FALSE(name_of(dtype).empty());
        EXPECT_EQ(is_integer(dtype) + is_float(dtype) + (dtype == DType::boolean), 1);
        const uint64_t zero = 0;
        EXPECT_EQ(load_as_double(dtype, &zero), 0.0);
    }
    const int64_t large = -(int64_t{1} << 53);
    EXPECT_EQ(load_as_double(DType::i64, &large), -0x1p53);
    const uint64_t top = ~uint64_t{0};
    EXPECT_EQ(load_as_double(DType::u64, &top), 0x1p64);
}

}  // namespace
}  // namespace stipple
