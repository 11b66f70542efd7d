// Names of classes and categories of parts.

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/data/class_names.h"
#include "stipple/data/part_categories.h"
#include "tests/support/temporary_folder.h"

namespace stipple::data {
namespace {

using test::TemporaryFolder;
using test::write_file;

template <class Work>
std::string message_of(Work&& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(ClassNames, ComeFromFileMetadataOrNumbers) {
    const TemporaryFolder folder;
    write_file(folder / "names.txt", "chair\n\n  night stand \r\nlamp");
    const std::vector<std::string> lines = {"chair", "night stand", "lamp"};
    EXPECT_EQ(load_names(folder / "names.txt"), lines);
    const std::map<std::string, std::string> metadata = {{"stipple.classes", R"(["a", "b \"c\""])"}};
    EXPECT_EQ(class_names(metadata, folder / "names.txt", 3), lines);
    EXPECT_EQ(class_names(metadata, "", 2), (std::vector<std::string>{"a", "b \"c\""}));
    EXPECT_EQ(class_names({}, "", 2), (std::vector<std::string>{"class 0", "class 1"}));
    EXPECT_EQ(part_names({{"stipple.parts", R"(["leg"])"}}, "", 1), std::vector<std::string>{"leg"});
    EXPECT_EQ(part_names(metadata, "", 1), std::vector<std::string>{"part 0"});
    EXPECT_TRUE(contains(message_of([&] { part_names({}, folder / "names.txt", 2); }), "names 3 parts"));
    EXPECT_TRUE(contains(message_of([&] { class_names(metadata, "", 3); }), "names 2 classes, the network has 3"));
    EXPECT_TRUE(contains(message_of([&] { class_names({{"stipple.classes", "[1]"}}, "", 1); }), "no list of names"));
    EXPECT_TRUE(contains(message_of([&] { class_names({{"stipple.classes", "[\"a\""}}, "", 1); }), "no JSON"));
    EXPECT_TRUE(contains(message_of([&] { load_names(folder / "none"); }), "none"));
}

TEST(PartCategories, OfShapeNetCoverAllParts) {
    const std::vector<PartCategory> categories = part_categories({}, 16, 50);
    ASSERT_EQ(categories.size(), 16u);
    int64_t next = 0;
    for (const PartCategory& category : categories) {
        EXPECT_EQ(category.begin, next) << category.name;
        EXPECT_GT(category.end, category.begin);
        next = category.end;
    }
    EXPECT_EQ(next, 50);
    EXPECT_EQ(find_category(categories, "Chair"), 4u);
    EXPECT_EQ(find_category(categories, "15"), 15u);
    EXPECT_TRUE(contains(message_of([&] { find_category(categories, "boat"); }), "boat: no such category"));
    EXPECT_TRUE(contains(message_of([&] { find_category(categories, "16"); }), "no such category"));
    EXPECT_TRUE(contains(message_of([&] { find_category(categories, ""); }), "which category?"));
}

TEST(PartCategories, OfMetadataMustFit) {
    const auto of = [](const std::string& json, int64_t count, int64_t parts) {
        return part_categories({{"stipple.categories", json}}, count, parts);
    };
    const std::vector<PartCategory> two = of(R"({"mug": [0, 2], "cap": [2, 5]})", 2, 5);
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two[1].name, "cap");
    EXPECT_EQ(two[1].begin, 2);
    EXPECT_EQ(two[1].end, 5);
    EXPECT_TRUE(contains(message_of([&] { of(R"({"mug": [0, 2]})", 2, 5); }), "names 1 categories"));
    EXPECT_TRUE(contains(message_of([&] { of(R"({"mug": [0, 6]})", 1, 5); }), "has parts 0 to 6"));
    EXPECT_TRUE(contains(message_of([&] { of(R"({"mug": [2, 2]})", 1, 5); }), "has parts 2 to 2"));
    EXPECT_TRUE(contains(message_of([&] { of(R"({"mug": [0]})", 1, 5); }), "no JSON object of ranges"));
    EXPECT_TRUE(contains(message_of([&] { of(R"({"mug": [0, 1, 2]})", 1, 5); }), "more than a first and a last"));
    const std::vector<PartCategory> nameless = part_categories({}, 3, 7);
    ASSERT_EQ(nameless.size(), 3u);
    EXPECT_EQ(nameless[2].name, "category 2");
    EXPECT_EQ(nameless[2].end, 7);
}

}  // namespace
}  // namespace stipple::data
