// Recipes: read, changed, printed and refused.

#include "stipple/learn/recipe.h"

#include <gtest/gtest.h>

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
    expect("[run]\nepochss = 3\n", "unknown key run.epochss; did you mean run.epochs?");
    expect("[run]\nepochs = 0\n", "run.epochs must be");
    expect("[run]\nepochs = 2.5\n", "run.epochs: a whole number expected, got 2.5");
    expect("[run]\ndeterministic = 1\n", "true or false expected");
    expect("[optimizer]\nkind = \"adagrad\"\n", "one of sgd, adam, adamw expected, got adagrad");
    expect("[augment]\nshift = [1, 2]\n", "3 values expected, got 2");
    expect("[augment]\ndropout_ratio = 2\n", "dropout_ratio");
    expect("[data]\nheld_out = 0.1\nvalidation = \"val\"\n", "exclude each other");
    expect("task = \"translation\"\n", "task must be");
    Recipe recipe;
    EXPECT_ERROR(set_option(recipe, "batch", "3"), bad_config, "unknown key batch");
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
