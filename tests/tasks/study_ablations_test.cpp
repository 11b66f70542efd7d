// The variants of the method: what their names stand for, and where their rows are stored.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/tasks/upsampling_study/ablations.h"
#include "tests/support/expect_error.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks::study {
namespace {

TEST(StudyAblations, NamesStandForSettings) {
    std::set<std::string> names;
    for (const Ablation& ablation : ablations()) {
        EXPECT_TRUE(names.insert(ablation.name).second) << ablation.name;
        for (const char* text : {ablation.settings, ablation.overrides})
            for (const std::string& word : words_of(text)) {
                EXPECT_GT(word.find('='), 0u) << word;
                EXPECT_LT(word.find('='), word.size() - 1) << word;
            }
        if (ablation.weights[0] != '\0') {
            EXPECT_STREQ(find_ablation(ablation.weights).weights, "");  // which is trained
        }
    }
    EXPECT_STREQ(ablations()[0].name, "coupling");
    EXPECT_STREQ(find_ablation("no-likelihood").settings, "loss.nll_weight=0");
    EXPECT_GT(find_ablation("sampled-latent").temperature, 0);
    EXPECT_ERROR(find_ablation("none"), bad_argument, "there is no variant none");
    EXPECT_EQ(words_of("  a=1 b=2 "), (std::vector<std::string>{"a=1", "b=2"}));
    EXPECT_TRUE(words_of("").empty());
}

// What options name must be there: a model of another width has other tensors.
TEST(StudyAblations, ModelsOfTheTableCanBeBuilt) {
    int built = 0;
    for (const Ablation& ablation : ablations())
        for (const std::string& word : words_of(ablation.settings)) {
            if (!word.starts_with("model.")) continue;
            const size_t equals = word.find('=');
            EXPECT_NO_THROW(models::build_model("puflow", {{word.substr(6, equals - 6), word.substr(equals + 1)}}))
                << word;
            ++built;
        }
    EXPECT_EQ(built, 19);
}

TEST(StudyAblations, RowsAreStoredInPlace) {
    const test::TemporaryFolder folder(test::Where::memory);
    const std::string path = folder / "rows.csv";
    const auto row = [](const std::string& method, double cd) {
        Mean mean{.input = "c", .method = method, .seeds = 5, .commit = "abc", .command = "a, b"};
        mean.mean.fill(NAN);
        mean.mean[0] = cd;
        mean.shapes = 14;
        return mean;
    };
    store_means(path, {row("one", 0.25), row("two", 0.5)});
    ASSERT_EQ(load_stored(path).size(), 2u);
    EXPECT_EQ(load_stored(path)[1].mean[0], 0.5);
    EXPECT_TRUE(std::isnan(load_stored(path)[1].mean[3]));
    EXPECT_EQ(load_stored(path)[0].command, "a, b");
    store_means(path, {row("three", 2), row("one", 0.125)});
    const std::vector<Mean> means = load_stored(path);
    ASSERT_EQ(means.size(), 3u);
    EXPECT_EQ(means[0].mean[0], 0.125);
    EXPECT_EQ(means[2].method, "three");
    EXPECT_EQ(means[2].shapes, 14);
    // Columns of others stay, those that are missing come.
    test::write_file(path, "method,remark,input,commit,command\nold,kept,c,x,y\n");
    store_means(path, {row("old", 1)});
    const std::string text = test::read_file(path);
    EXPECT_NE(text.find("old,kept,c,abc,\"a, b\",1,"), std::string::npos) << text;
    EXPECT_EQ(load_stored(path).size(), 1u);
    test::write_file(path, "method,input\n\"open\n");
    EXPECT_ERROR(store_means(path, {row("a", 1)}), bad_file, "rows.csv:2");
    EXPECT_ERROR(store_means(folder / "no/rows.csv", {row("a", 1)}), cannot_write, "rows.csv");
}

}  // namespace
}  // namespace stipple::tasks::study
