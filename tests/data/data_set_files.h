#pragma once
// Small data sets that tests write themselves, and how loading one fails.

#include <gtest/gtest.h>

#include "stipple/data/data_set.h"
#include "stipple/io/hdf5.h"
#include "tests/support/temporary_folder.h"

namespace stipple::data {

/// A folder in which tests of data sets make files.
class DataSetTest : public testing::Test {
protected:
    void write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
        test::write_file(folder / name, text);
    }

    DataSet load(DataSetOptions options = {}) { return load_data_set(folder.path(), options, warnings); }

    /// The message of the error that loading throws, after its code: "bad_file: ...".
    std::string error(DataSetOptions options = {}) {
        try {
            load(std::move(options));
        } catch (const Error& failure) {
            return std::string(rule_of(failure.code()).name) + ": " + failure.what() + " " + failure.hint();
        }
        return "no error";
    }

    static void expect_in(const std::string& text, const std::string& part) {
        EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no\n" << part;
    }

    /// m clouds of n points: coordinate a of point p of cloud i is 100 (first + i) + p + a / 4.
    static io::CloudSet clouds(int64_t m, int64_t n, int64_t first = 0) {
        io::CloudSet set;
        set.points = Array<float, 3>({m, n, 3});
        for (int64_t i = 0; i < m * n; ++i)
            for (int64_t a = 0; a < 3; ++a)
                set.points.data()[3 * i + a] =
                    static_cast<float>(100 * (first + i / n) + i % n) + static_cast<float>(a) / 4;
        return set;
    }

    void save(const std::string& name, const io::CloudSet& set) const {
        io::save_hdf5(folder / name, set, Overwrite::allow);
    }

    test::TemporaryFolder folder;
    io::Warnings warnings;
};

}  // namespace stipple::data
