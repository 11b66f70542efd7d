#pragma once
// Expectations of errors.

#include <gtest/gtest.h>

#include "stipple/core/error.h"

/// The statement throws Error{code} whose text holds `text`.
#define EXPECT_ERROR(statement, expected_code, text)                                            \
    do {                                                                                        \
        try {                                                                                   \
            statement;                                                                          \
            ADD_FAILURE() << "nothing was thrown by " #statement;                               \
        } catch (const ::stipple::Error& error) {                                               \
            EXPECT_EQ(error.code(), ::stipple::ErrorCode::expected_code) << error.what();       \
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what(); \
        }                                                                                       \
    } while (0)
