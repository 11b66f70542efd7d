#include "stipple/core/json_reader.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/core/json_writer.h"

namespace stipple {
namespace {

struct Item {
    std::string name;
    int32_t small = 0;
    int64_t large = 0;
    float weight = 0;
    double exact = 0;
    bool is_on = false;
    size_t colour = 0;
};

std::vector<Item> read_items(std::string_view text) {
    std::vector<Item> items;
    read_json("the list", text, [&](JsonField& field) {
        if (field.word() != "items") field.fail("is not known");
        Item& item = field.element(items);
        const std::string_view key = field.word();
        constexpr std::string_view kColours[] = {"red", "green", "blue"};
        if (key == "name")
            field.take(item.name);
        else if (key == "small")
            field.take(item.small);
        else if (key == "large")
            field.take(item.large);
        else if (key == "weight")
            field.take(item.weight);
        else if (key == "exact")
            field.take(item.exact);
        else if (key == "on")
            field.take(item.is_on);
        else if (key == "colour")
            item.colour = field.take_word(kColours);
        else
            field.fail("is not known");
    });
    return items;
}

std::string complaint(std::string_view text) {
    try {
        read_items(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        return error.message();
    }
    return "";
}

TEST(JsonReader, TakesValuesByTheirType) {
    const std::vector<Item> items =
        read_items(R"({"items":[{"name":"a","small":-5,"large":9007199254740993,"weight":0.5,"exact":1e300,"on":true},)"
                   R"({"weight":3,"colour":"blue"}]})");
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(items[0].name, "a");
    EXPECT_EQ(items[0].small, -5);
    EXPECT_EQ(items[0].large, 9007199254740993);
    EXPECT_EQ(items[0].weight, 0.5f);
    EXPECT_EQ(items[0].exact, 1e300);
    EXPECT_TRUE(items[0].is_on);
    EXPECT_EQ(items[1].weight, 3);
    EXPECT_EQ(items[1].colour, 2u);
    EXPECT_TRUE(read_items("{}").empty());
    EXPECT_TRUE(read_items(R"({"items":[]})").empty());
}

TEST(JsonReader, SaysWhatIsWrongAndWhere) {
    EXPECT_EQ(complaint("{"), "the list is no JSON object");
    EXPECT_EQ(complaint("[]"), "the list is no JSON object");
    EXPECT_EQ(complaint(R"({"more":1})"), "the list: \"more\" is not known");
    EXPECT_EQ(complaint(R"({"items":[{"name":1}]})"), "the list: \"items/0/name\" must be text");
    EXPECT_EQ(complaint(R"({"items":[{"small":1.5}]})"), "the list: \"items/0/small\" must be a whole number");
    EXPECT_EQ(complaint(R"({"items":[{"small":2147483648}]})"), "the list: \"items/0/small\" must be a whole number");
    EXPECT_EQ(complaint(R"({"items":[{"large":1e30}]})"), "the list: \"items/0/large\" must be a whole number");
    EXPECT_EQ(complaint(R"({"items":[{"large":null}]})"), "the list: \"items/0/large\" must be a whole number");
    EXPECT_EQ(complaint(R"({"items":[{"weight":"1"}]})"), "the list: \"items/0/weight\" must be a number");
    EXPECT_EQ(complaint(R"({"items":[{"weight":-1e39}]})"), "the list: \"items/0/weight\" must be a number of float32");
    EXPECT_EQ(complaint(R"({"items":[{"on":1}]})"), "the list: \"items/0/on\" must be true or false");
    EXPECT_EQ(complaint(R"({"items":[{"colour":"pink"}]})"), "the list: \"items/0/colour\" must be red, green or blue");
    EXPECT_EQ(complaint(R"({"items":[{"name":{"a":"b"}}]})"), "the list: \"items/0/name/a\" is not known");
    EXPECT_EQ(complaint(R"({"items":[1]})"), "the list: \"items/0\" is not where it belongs");
    EXPECT_EQ(complaint(R"({"items":1})"), "the list: \"items\" is not where it belongs");
    EXPECT_EQ(complaint(R"({"items":{"1":{"name":"a"}}})"), "the list: \"items/1/name\" is not where it belongs");
    // What a hostile file may put into a message: no control characters, no page of text.
    EXPECT_EQ(complaint("{\"a\\u001b\\u00e4\":1}"), "the list: \"a???\" is not known");
    EXPECT_LT(complaint("{\"" + std::string(10000, 'x') + "\":1}").size(), 100u);
}

TEST(JsonReader, NamesMayHoldASlash) {
    std::string found;
    read_json("it", R"({"layers":{"a/b":{"range":1}}})", [&](JsonField& field) {
        EXPECT_EQ(field.word(), "layers");
        std::string_view name;
        const std::string_view key = field.last_word(name);
        found = std::string(name) + " " + std::string(key);
    });
    EXPECT_EQ(found, "a/b range");
}

TEST(JsonWriter, WritesWhatReadsBack) {
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    json.begin_object().field("name", "a\"b\n").field("small", -5).field("large", int64_t{1} << 62).end_object();
    json.begin_object().field("weight", 0.1f).field("exact", 0.1).field("on", true).end_object();
    json.begin_object().field("exact", 2.0).field("colour", std::string("green")).end_object();
    json.end_array().key("none").begin_object().end_object().end_object();
    EXPECT_EQ(json.text(),
              R"({"items":[{"name":"a\"b\n","small":-5,"large":4611686018427387904},)"
              R"({"weight":0.10000000149011612,"exact":0.1,"on":true},{"exact":2.0,"colour":"green"}],"none":{}})");
    const std::vector<Item> items = read_items(json.text());
    ASSERT_EQ(items.size(), 3u);
    EXPECT_EQ(items[0].name, "a\"b\n");
    EXPECT_EQ(items[0].large, int64_t{1} << 62);
    EXPECT_EQ(items[1].weight, 0.1f);
    EXPECT_EQ(items[1].exact, 0.1);
    EXPECT_EQ(items[2].exact, 2);
}

TEST(JsonWriter, RefusesWhatJsonHasNot) {
    JsonWriter json;
    json.begin_array();
    EXPECT_THROW(json.value(1.0 / 0.0), Error);
    EXPECT_THROW(json.value("\xff"), Error);
    EXPECT_THROW(json.key("\xff"), Error);
}

}  // namespace
}  // namespace stipple
