// --shard I/N: the parts of a command's inputs are disjoint and together all of them.

#include "stipple/cli/common/shard.h"

#include <filesystem>
#include <numeric>
#include <set>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliShard : public CliTest {
protected:
    void SetUp() override {
        std::filesystem::create_directory(in);
        for (int i = 0; i < 5; ++i) cloud("in/" + std::string(1, static_cast<char>('a' + i)) + ".ply", 40 + i);
    }
    /// The words of a command with --shard for each part; what each part reports as written, all of it once.
    void expect_disjoint(std::vector<std::string> call, int parts, const std::vector<size_t>& sizes) {
        std::set<std::string> written;
        for (int i = 0; i < parts; ++i) {
            std::vector<std::string> words = call;
            for (const std::string& word :
                 {std::string("--shard"), fmt::format("{}/{}", i, parts), std::string("--json")})
                words.push_back(word);
            const LaunchResult result = stipple(words);
            expect_success(result);
            const Json json = json_of(result);
            const Json outputs = json.value("outputs", Json::array());
            EXPECT_EQ(outputs.size(), sizes[static_cast<size_t>(i)]) << report(result);
            for (const Json& output : outputs) EXPECT_TRUE(written.insert(output["path"]).second) << output;
        }
        EXPECT_EQ(written.size(), 5u);
    }

    std::string in = folder / "in";
};

TEST(CliShardOf, PartsAreEveryNthItem) {
    for (const int64_t count : {1, 2, 3, 7}) {
        std::vector<int> all;
        size_t least = 100, most = 0;
        for (int64_t index = 0; index < count; ++index) {
            std::vector<int> items(5);
            std::vector<std::string> names = {"0", "1", "2", "3", "4"};
            std::iota(items.begin(), items.end(), 0);
            cli::keep_shard({index, count}, items, names);
            ASSERT_EQ(items.size(), names.size());
            for (size_t i = 0; i < items.size(); ++i) {
                EXPECT_EQ(items[i] % count, index);
                EXPECT_EQ(names[i], std::to_string(items[i]));
            }
            least = std::min(least, items.size()), most = std::max(most, items.size());
            all.insert(all.end(), items.begin(), items.end());
        }
        EXPECT_LE(most - least, 1u);
        std::sort(all.begin(), all.end());
        EXPECT_EQ(all, (std::vector<int>{0, 1, 2, 3, 4}));
    }
}

TEST_F(CliShard, FoldersAreWorkedOnInParts) {
    std::filesystem::create_directory(folder / "few");
    expect_disjoint({"sample", in, "-n", "5", "-o", folder / "few"}, 2, {3, 2});
    std::filesystem::create_directory(folder / "dense");
    expect_disjoint({"upsample", in, "--model", "midpoints", "--ratio", "2", "-o", folder / "dense"}, 3, {2, 2, 1});
    std::filesystem::create_directory(folder / "xyz");
    std::vector<std::string> convert = {"convert"};
    for (const char* name : {"a", "b", "c", "d", "e"}) convert.push_back(in + "/" + name + ".ply");
    for (const std::string& word : {std::string("-o"), folder / "xyz", std::string("--format"), std::string("xyz")})
        convert.push_back(word);
    expect_disjoint(convert, 2, {3, 2});
}

TEST_F(CliShard, MetricsOfEachPairAreThoseOfAll) {
    const std::string truth = folder / "truth";
    std::filesystem::create_directory(truth);
    for (const char* name : {"a", "b", "c", "d", "e"}) cloud(std::string("truth/") + name + ".ply", 70);
    const std::string all = stipple({"metrics", in, truth, "--table", "csv", "--metrics", "cd"}).out;
    std::set<std::string> wanted, found;
    for (const std::string& line : lines_of(all)) wanted.insert(line);
    for (const char* shard : {"0/3", "1/3", "2/3"}) {
        const LaunchResult part =
            stipple({"metrics", in, truth, "--table", "csv", "--metrics", "cd", "--shard", shard});
        EXPECT_EQ(part.exit_code, 0) << report(part);
        for (const std::string& line : lines_of(part.out)) found.insert(line);
    }
    for (const char* name : {"a,", "b,", "c,", "d,", "e,"}) {
        const auto starts = [&](const std::string& line) { return line.rfind(name, 0) == 0; };
        const auto a = std::find_if(wanted.begin(), wanted.end(), starts),
                   b = std::find_if(found.begin(), found.end(), starts);
        ASSERT_TRUE(a != wanted.end() && b != found.end()) << name << all;
        EXPECT_EQ(*a, *b);
    }
}

TEST_F(CliShard, MorePartsThanInputsAreNoMistake) {
    std::filesystem::create_directory(folder / "few");
    const LaunchResult result = stipple({"sample", in, "-n", "5", "-o", folder / "few", "--shard", "6/8"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "nothing to do: of 5 inputs none is in part 6/8")) << result.out;
    expect_success(stipple({"metrics", in, in, "--shard", "7/8"}));
    expect_success(stipple({"classify", in, "--shard", "7/8"}));
}

TEST_F(CliShard, WrongPartsAreRefused) {
    std::filesystem::create_directory(folder / "few");
    const auto call = [&](const std::string& shard) {
        return stipple({"sample", in, "-n", "5", "-o", folder / "few", "--shard", shard});
    };
    for (const char* wrong : {"1", "a/2", "1/b", "/", "1/2/3", "0x1/2", "1.5/3"})
        expect_error(call(wrong), 2, "--shard must be I/N, as 0/8, got");
    expect_error(call("2/2"), 2, "--shard 2/2: parts are counted from 0, so of 2 the last is 1");
    expect_error(call("-1/2"), 2, "counted from 0");
    expect_error(call("0/0"), 2, "must be above 0");
    expect_error(call("0/-3"), 2, "must be above 0");
    expect_error(call("0/99999999999999999999"), 2, "--shard must be I/N");
    for (const char* command : {"upsample", "segment", "classify", "reconstruct"}) {
        std::vector<std::string> words = {command, in, "--shard", "3/3", "-o", folder / "few"};
        if (words[0] == "upsample") words.insert(words.end(), {"--ratio", "2"});
        if (words[0] == "classify") words.resize(4);
        expect_error(stipple(words), 2, "counted from 0");
    }
    // What is wrong for all parts is wrong for each, even one with a single input.
    expect_error(stipple({"sample", in, "-n", "5", "-o", folder / "one.ply", "--shard", "4/5"}), 2,
                 "5 clouds need a folder as output");
}

}  // namespace
}  // namespace stipple::test
