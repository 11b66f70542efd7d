// Every op has a header, an implementation for each device it claims, tests, a benchmark and a line in docs/ops.md.

#include "stipple/ops/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "stipple/bench/cases.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;
using ops::OpInfo;

const fs::path kRoot = STIPPLE_SOURCE_DIR;

bool ends_with(const std::string& text, const std::string& suffix) {
    return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

bool exists(const std::string& path) {
    return fs::exists(kRoot / path);
}

bool contains(const std::string& path, const std::string& text) {
    return exists(path) && read_file((kRoot / path).string()).find(text) != std::string::npos;
}

/// The tests in this very program that were written in a file.
int tests_in(const std::string& path) {
    int count = 0;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i)
        for (int j = 0; j < all.GetTestSuite(i)->total_test_count(); ++j)
            count += ends_with(all.GetTestSuite(i)->GetTestInfo(j)->file(), path);
    return count;
}

/// What an op lacks, one line each.
std::vector<std::string> missing(const OpInfo& op) {
    const std::string name = op.name, group = std::string(op.group) + "/", folder = "stipple/ops/" + group;
    const std::string header = "stipple/ops/" + name + ".h", tests = "tests/ops/" + group + name + "_test.cpp";
    std::vector<std::string> lines;
    const auto need = [&](bool there, const std::string& what) {
        if (!there) lines.push_back(name + ": " + what);
    };
    need(contains(header, "namespace stipple::ops"), "no contract in " + header);
    need(!op.cpu || exists(folder + name + ".cpp") || exists(folder + name + "_cpu.cpp"), "no CPU implementation");
    const std::string kernels = op.source ? op.source : name + ".cu";
    need(!op.cuda || (ends_with(kernels, ".cu") && contains(folder + kernels, "namespace stipple::ops::cuda")),
         "no kernels in " + folder + kernels);
    need(tests_in(tests) > 0, "no tests in " + tests);
    need(!op.cuda || contains(tests, "STIPPLE_ON_EVERY_DEVICE"), tests + " does not run on every device");
    for (DeviceType type : {DeviceType::cpu, DeviceType::cuda}) {
        const auto cases = bench::op_cases();
        const bool benched = std::any_of(cases.begin(), cases.end(), [&](const bench::Case& c) {
            return c.op == name && (type == DeviceType::cpu ? c.on_cpu : c.on_cuda);
        });
        const bool claimed = type == DeviceType::cpu ? op.cpu : op.cuda;
        need(!claimed || benched, std::string("no case in stipple/bench for ") + to_string(Device{type, 0}));
    }
    return lines;
}

TEST(OpsRegistry, EveryOpIsThereTestedAndBenched) {
    ASSERT_FALSE(ops::registry().empty());
    for (const OpInfo& op : ops::registry())
        for (const std::string& line : missing(op)) ADD_FAILURE() << line;
}

TEST(OpsRegistry, WhatIsMissingIsFound) {
    const OpInfo nothing{"no_such_op", "sampling", "", true, true, false, ""};
    EXPECT_EQ(missing(nothing).size(), 7u);
    OpInfo elsewhere = ops::registry()[0];  // whole, but for the kernels' file
    elsewhere.cuda = true;
    elsewhere.source = "no_such_file.cu";
    EXPECT_EQ(missing(elsewhere),
              std::vector<std::string>{std::string(elsewhere.name) + ": no kernels in stipple/ops/" + elsewhere.group +
                                       "/no_such_file.cu"});
    elsewhere.source = "point_tree.cpp";
    EXPECT_EQ(missing(elsewhere).size(), 1u);
}

/// A function of that name on clouds, declared at the beginning of a line.
bool declares(const std::string& text, const std::string& name) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (!line.empty() && std::isalpha(static_cast<unsigned char>(line[0])) &&
            line.find(" " + name + "(const Clouds&") != std::string::npos)
            return true;
    return false;
}

/// Headers that declare an op: a function of the header's name, or, by rule, one that ends with a stream.
std::set<std::string> headers_of_ops() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(kRoot / "stipple/ops")) {
        if (entry.path().extension() != ".h") continue;
        const std::string name = entry.path().stem().string(), text = read_file(entry.path().string());
        if (declares(text, name) || text.find("Stream stream = {});") != std::string::npos) names.insert(name);
    }
    names.erase("point_index");  // what ops search, no op itself
    names.erase("registry");
    return names;
}

TEST(OpsRegistry, NoOpIsLeftOut) {
    std::set<std::string> names;
    for (const OpInfo& op : ops::registry()) names.insert(op.name);
    EXPECT_EQ(headers_of_ops(), names) << "headers in stipple/ops, and rows in stipple/ops/registry.cpp";
}

TEST(OpsRegistry, NamesAndGroupsAreInOrder) {
    std::set<std::string> names, groups;
    std::string group;
    for (const OpInfo& op : ops::registry()) {
        EXPECT_TRUE(names.insert(op.name).second) << op.name << " is there twice";
        if (group != op.group) {
            EXPECT_TRUE(groups.insert(op.group).second) << op.group << " is in two parts";
        }
        group = op.group;
        EXPECT_STRNE(op.summary, "") << op.name;
        EXPECT_STRNE(op.cost, "") << op.name;
        EXPECT_TRUE(op.cpu || op.cuda) << op.name;
    }
}

TEST(OpsRegistry, EveryCaseIsOfAnOpAndCanBeToldFromTheOthers) {
    std::set<std::string> names, cases;
    for (const OpInfo& op : ops::registry()) names.insert(op.name);
    for (const bench::Case& c : bench::op_cases()) {
        EXPECT_TRUE(names.count(c.op)) << c.op;
        EXPECT_TRUE(cases.insert(c.op + " " + c.shape).second) << c.op << " " << c.shape << " is there twice";
        EXPECT_GT(c.points, 0) << c.op;
        EXPECT_GT(c.bytes, 0) << c.op;
    }
}

TEST(OpsRegistry, TheDocumentIsTheRegistry) {
    EXPECT_EQ(read_file((kRoot / "docs/ops.md").string()), ops::registry_markdown())
        << "stipple info --ops --markdown > docs/ops.md";
}

}  // namespace
}  // namespace stipple::test
