// Recipes: read, changed, printed and refused.

#include "stipple/learn/recipe.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/models/registry.h"
#include "tests/support/expect_error.h"

namespace stipple::learn {
namespace {

TEST(LearnRecipe, ReadsBackWhatItPrints) {
    Recipe recipe = parse_recipe(
        "name = \"x\"\n[model]\nvariant = \"tf\"\n[augment]\nmirror = [true, false, false]\nshift = [0.1, 0.2, 0.3]\n"
        "dropout_form = \"repeat\"\n[optimizer]\nkind = \"sgd\"\n[run]\nseed = 7\nepochs = 3\n");
    EXPECT_EQ(recipe.options.at("variant"), "tf");
    EXPECT_TRUE(recipe.augment.mirror[0]);
    EXPECT_EQ(recipe.augment.shift[2], 0.3);
    EXPECT_EQ(recipe.optimizer.kind, OptimizerKind::sgd);
    EXPECT_TRUE(differences(recipe, parse_recipe(to_toml(recipe))).empty());
    set_option(recipe, "augment.shift", "[0, 0, 1]");
    set_option(recipe, "schedule.rate", "0.25");
    set_option(recipe, "model.variant", "torch");
    EXPECT_EQ(recipe.augment.shift[2], 1);
    EXPECT_EQ(recipe.schedule.rate, 0.25);
    EXPECT_EQ(to_toml(parse_recipe(to_toml(recipe))), to_toml(recipe));
}

TEST(LearnRecipe, MistakesAreNamed) {
    const auto expect = [](const char* text, const char* message) {
        EXPECT_ERROR(parse_recipe(text), bad_config, message);
    };
    expect("[run]\nepochss = 3\n", "there is no key \"run.epochss\"");
    expect("[run]\nepochs = 0\n", "run.epochs must be 1 to 16777216, got 0");
    expect("[run]\nepochs = 2.5\n", "run.epochs must be a whole number, 1 to 16777216, got \"2.5\"");
    expect("[run]\ndeterministic = 1\n", "run.deterministic must be true or false, got \"1\"");
    expect("[optimizer]\nkind = \"adagrad\"\n", "optimizer.kind must be one of sgd, adam, adamw, got \"adagrad\"");
    expect("[augment]\nshift = [1, 2]\n", "augment.shift must be 3 values, got 2 values");
    expect("[augment]\ndropout_ratio = 2\n", "augment.dropout_ratio must be 0 to 1, got 2");
    expect("[view]\nscale_min = 0\n", "view.scale_min must be above 0, got 0");
    expect("[augment]\nscale_min = 3\n", "scale_min, scale_max must ascend");
    expect("[run]\nstorage = \"f8\"\n", "run.storage must be one of f32, f16, bf16, int8-rows");
    expect("[data]\nsubset = \"all\"\n", "data.subset must be one of random, first");
    expect("[sampling]\ntask = \"dance\"\n", "sampling.task must be one of classification");
    expect("[model]\nvariant = [1, 2]\n", "model.variant must be one value, got 2 values");
    expect("[data]\nheld_out = 0.1\nvalidation = \"val\"\n", "exclude each other");
    expect("task = \"translation\"\n", "task must be");
    Recipe recipe;
    EXPECT_ERROR(set_option(recipe, "batch", "3"), bad_config, "there is no key \"batch\"");
    try {
        parse_recipe("[run]\nepochss = 3\n");
        ADD_FAILURE() << "a key that is not there was taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.hint(), "did you mean run.epochs?");
        EXPECT_EQ(error.place().line, 2);
    }
}

TEST(LearnRecipe, TextsStayByteForByte) {
    // Runs of before are gone on with, and cards name differences by these texts.
    Recipe recipe;
    recipe.name = "a \"b\"";
    recipe.options = {{"classes", "3"}, {"variant", "tf"}};
    recipe.augment.mirror[1] = true;
    recipe.optimizer.weight_decay = 1e-4;
    recipe.schedule.rate = 0.0005;
    recipe.data.items = 1000000;
    const std::string text = to_toml(recipe);
    for (const char* part :
         {"name = \"a \\\"b\\\"\"\nabout = \"\"\ntask = \"classification\"\nmodel = \"pointnet-classifier\"\ninit = "
          "\"\"\n\n"
          "[model]\nclasses = \"3\"\nvariant = \"tf\"\n\n[data]\nfolder = \"\"\n",
          "items = 1000000\n", "\n\n[augment]\nchoose = 0\n", "mirror = [false, true, false]\n", "tilt_clip = inf\n",
          "jitter_clip = inf\n\n[view]\nweight = 0\npoints = 256\nchoose = 0\n", "weight_decay = 1e-04\n",
          "eps = 1e-08\n", "rate = 5e-04\n", "precision = \"fp32\"\nstorage = \"f16\"\nconfidence = true\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part << text;
    Recipe other = recipe;
    other.optimizer.weight_decay = 0.25;
    other.optimizer.kind = OptimizerKind::sgd;
    other.options["variant"] = "torch";
    const std::vector<Difference> found = differences(recipe, other);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].key + found[0].first + found[0].second, "optimizer.kind\"adamw\"\"sgd\"");
    EXPECT_EQ(found[1].key + " " + found[1].first + " " + found[1].second, "optimizer.weight_decay 1e-04 0.25");
    EXPECT_EQ(found[2].key + " " + found[2].first + " " + found[2].second, "model.variant tf torch");
}

TEST(LearnRecipe, ThoseThatShipAreSound) {
    const std::string folder = std::string(STIPPLE_SOURCE_DIR) + "/recipes";
    int recipes = 0;
    for (const std::string& file : list_folder(folder)) {
        if (!file.ends_with(".toml")) continue;
        const Recipe recipe = load_recipe(folder + "/" + file);
        EXPECT_EQ(recipe.name + ".toml", file);
        EXPECT_FALSE(recipe.about.empty()) << file;
        EXPECT_NO_THROW(models::build_model(recipe.model, recipe.options)) << file;
        ++recipes;
    }
    EXPECT_GE(recipes, 1);
}

}  // namespace
}  // namespace stipple::learn
