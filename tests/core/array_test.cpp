#include "stipple/core/array.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/support/allocation.h"

namespace stipple {
namespace {

constexpr int64_t k31 = int64_t{1} << 31;

ErrorCode code_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& error) {
        return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::internal;
}

TEST(View, CountsAndStridesAreSixtyFourBit) {
    // No memory behind it: sizes and strides only.
    const View<const char, 2> view(nullptr, {k31 + 1, 3});
    EXPECT_EQ(view.elements(), 3 * (k31 + 1));
    EXPECT_EQ(view.stride(0), 3);
    EXPECT_TRUE(view.is_contiguous());
    const View<const char, 3> cube(nullptr, {k31, k31, 1});
    EXPECT_EQ(cube.elements(), int64_t{1} << 62);
    EXPECT_EQ(cube.stride(0), k31);
}

TEST(View, RefusesShapesThatOverflow) {
    EXPECT_EQ(code_of([] { View<const char, 3>(nullptr, {k31, k31, 2}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { View<const char, 2>(nullptr, {-1, 3}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { View<const char, 3>(nullptr, {k31, k31, 2}, {0, 0, 0}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { View<const char, 2>(nullptr, {-1, -1}, {1, 1}); }), ErrorCode::bad_argument);
    // An empty dimension does not excuse the others.
    EXPECT_EQ(code_of([] { View<const char, 4>(nullptr, {0, k31, k31, 2}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { View<const char, 4>(nullptr, {k31, k31, 2, 0}); }), ErrorCode::bad_argument);
}

TEST(View, EmptyOnes) {
    const View<const float, 2> view(nullptr, {0, 3});
    EXPECT_EQ(view.elements(), 0);
    EXPECT_TRUE(view.is_contiguous());
    EXPECT_TRUE((View<const float, 3>(nullptr, {4, 0, 3}).is_contiguous()));
    EXPECT_EQ(view.slice(0, 0).size(0), 0);
    EXPECT_EQ(code_of([&] { view.slice(0, 1); }), ErrorCode::bad_argument);
    EXPECT_EQ((View<float, 2>().elements()), 0);
}

TEST(View, StridesAndSlices) {
    std::vector<int> values(24);
    std::iota(values.begin(), values.end(), 0);
    const View<int, 2> rows(values.data(), {4, 6});
    EXPECT_EQ(rows(2, 5), 17);
    const View<int, 2> column(values.data() + 1, {4, 2}, {6, 1});
    EXPECT_EQ(column(3, 1), 20);
    EXPECT_FALSE(column.is_contiguous());
    const View<const int, 2> part = rows.slice(1, 3);
    EXPECT_EQ(part.size(0), 2);
    EXPECT_EQ(part(0, 0), 6);
    const View<int, 1> backwards(values.data() + 23, {24}, {-1});
    EXPECT_EQ(backwards(23), 0);
    EXPECT_EQ(code_of([&] { rows.slice(3, 2); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([&] { rows.slice(-1, 2); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([&] { rows.slice(0, 5); }), ErrorCode::bad_argument);
}

TEST(View, SliceBeyond31Bits) {
    // A fake: row 2^31 of a byte array that is not there.
    char* const base = reinterpret_cast<char*>(uintptr_t{1} << 40);
    const View<char, 2> view(base, {k31 + 10, 1});
    EXPECT_EQ(view.slice(k31, k31 + 1).data() - base, k31);
}

TEST(Array, RefusesShapesThatOverflowBeforeItAllocates) {
    EXPECT_EQ(code_of([] { Array<float, 2>({k31, int64_t{1} << 30}); }), ErrorCode::bad_argument);  // 2^63 bytes
    EXPECT_EQ(code_of([] { Array<char, 2>({-1, 3}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { Array<char, 2>({k31, int64_t{1} << 32}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { Array<double, 3>({0, k31 * 2, k31}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { Array<float, 1>(Buffer(16), {5}); }), ErrorCode::bad_argument);
    EXPECT_EQ(code_of([] { Buffer(-1); }), ErrorCode::bad_argument);
}

TEST(Array, NamesTheBytesItCannotHave) {
    if (!test::can_fail_allocations()) GTEST_SKIP() << "a sanitizer's operator new aborts";
    try {
        Array<char, 2> array({int64_t{1} << 40, int64_t{1} << 20});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos) << error.what();
    }
}

TEST(Array, OwnsAlignedMemory) {
    Array<float, 2> array({5, 3});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
    std::iota(array.span().begin(), array.span().end(), 0.f);
    const Array<float, 2> copy = array.clone();
    array.data()[0] = 99;
    EXPECT_EQ(copy.view()(0, 0), 0);
    EXPECT_EQ(copy.view()(4, 2), 14);
    const Array<float, 2> moved = std::move(array);
    EXPECT_EQ(moved.view()(0, 0), 99);
    EXPECT_EQ(copy.to(Device{}).view()(4, 2), 14);
}

TEST(Buffer, BorrowedMemoryStaysItsOwners) {
    auto memory = std::make_shared<std::vector<float>>(6, 1.0f);
    const std::weak_ptr<std::vector<float>> watched = memory;
    float* numbers = memory->data();
    Array<float, 2> array(Buffer::borrowed(numbers, 6 * sizeof(float), Device{}, std::move(memory)), {2, 3});
    EXPECT_EQ(array.data(), numbers);
    const Array<float, 2> copy = array.clone();
    EXPECT_NE(copy.data(), numbers);
    array.data()[5] = 7;
    Array<float, 2> moved = std::move(array);
    EXPECT_EQ(moved.view()(1, 2), 7);
    EXPECT_EQ(copy.view()(1, 2), 1);
    ASSERT_FALSE(watched.expired());
    moved = {};
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(code_of([&] { Buffer::borrowed(numbers, 4, Device{}, nullptr); }), ErrorCode::bad_argument);
}

TEST(Array, EmptyOnesHaveNoMemoryAndCanBeCopied) {
    const Array<float, 2> array({0, 3});
    EXPECT_EQ(array.elements(), 0);
    EXPECT_EQ(array.clone().elements(), 0);
    EXPECT_TRUE(array.span().empty());
    EXPECT_EQ((Array<float, 2>().elements()), 0);
    EXPECT_EQ((Array<float, 2>().clone().elements()), 0);
}

TEST(Array, BoundaryOf31BitsInOneByteElements) {
    // 2 GiB and a little, reserved and touched at both ends only.
    Array<uint8_t, 1> array({k31 + 2});
    array.data()[0] = 1;
    array.data()[k31 + 1] = 2;
    EXPECT_EQ(array.view()(k31 + 1), 2);
    EXPECT_EQ(array.view().slice(k31, k31 + 2)(1), 2);
    EXPECT_EQ(array.span().size(), static_cast<size_t>(k31) + 2);
}

TEST(Array, SurvivesAllocationFailures) {
    test::for_each_allocation_failure([] {
        Array<float, 2> array({100, 3});
        std::memset(array.data(), 0, 1200);
        const Array<float, 2> copy = array.clone();
    });
}

}  // namespace
}  // namespace stipple
