// Work that is told to stop by the host it is embedded in.

#include "stipple/core/interrupt.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "stipple/core/parallel.h"

namespace stipple::test {
namespace {

int g_polls = 0;

TEST(Interrupt, AsksTheHostWhereThereIsOne) {
    EXPECT_NO_THROW(check_interrupted());
    set_interrupt_poll([] { ++g_polls; });
    check_interrupted();
    check_interrupted();
    EXPECT_EQ(g_polls, 2);
    set_interrupt_poll(nullptr);
    check_interrupted();
    EXPECT_EQ(g_polls, 2);
}

TEST(Interrupt, WhatTheHostThrowsUnwindsTheWork) {
    set_interrupt_poll([] { throw std::runtime_error("enough"); });
    EXPECT_THROW(parallel_for(100, 1, [](int64_t, int64_t) { check_interrupted(); }), std::runtime_error);
    set_interrupt_poll(nullptr);
    EXPECT_NO_THROW(parallel_for(100, 1, [](int64_t, int64_t) { check_interrupted(); }));
}

}  // namespace
}  // namespace stipple::test
