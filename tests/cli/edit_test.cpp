// crop, transform, merge, split.

#include <cmath>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliEdit : public CliTest {
protected:
    PointCloud read(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
    /// A hundred points about 500000 5000000 with labels 0 to 3, as LAS-like coordinates.
    std::string survey(const std::string& name) const {
        Mesh mesh = random_cloud(100, 7);
        mesh.vertices.origin = {500000, 5000000, 100};
        Attribute label("label", DType::u8, 100, 1);
        for (int i = 0; i < 100; ++i) label.as<uint8_t>().data()[i] = static_cast<uint8_t>(i % 4);
        mesh.vertices.attributes.push_back(std::move(label));
        return save_as(name, mesh);
    }
};

TEST_F(CliEdit, CropKeepsInsideAndOutsideTogetherAllPoints) {
    const std::string input = survey("a.ply");
    const PointCloud whole = read(input);
    for (const std::vector<std::string>& shape :
         {std::vector<std::string>{"--box", "500000", "5000000", "inf", "500000.125", "5000001", "inf"},
          {"--sphere", "500000.125", "5000000.125", "100.125", "0.2"},
          {"--polygon", "500000", "5000000", "500000.25", "5000000", "500000", "5000000.25"}}) {
        std::vector<std::string> inside = {"crop", input, "-o", folder / "in.ply", "--overwrite", "--json"};
        inside.insert(inside.end(), shape.begin(), shape.end());
        std::vector<std::string> outside = inside;
        outside[3] = folder / "out.ply";
        outside.emplace_back("--outside");
        const LaunchResult result = stipple(inside);
        expect_success(result);
        expect_success(stipple(outside));
        const PointCloud in = read(folder / "in.ply"), out = read(folder / "out.ply");
        EXPECT_GT(in.size(), 0) << shape[0];
        EXPECT_GT(out.size(), 0) << shape[0];
        EXPECT_EQ(in.size() + out.size(), 100) << shape[0];
        EXPECT_EQ(json_of(result)["kept"], in.size());
        EXPECT_EQ(json_of(result)["points"], 100);
        EXPECT_TRUE(find(in.attributes, "label"));
        for (int64_t i = 0; shape[0] == "--box" && i < in.size(); ++i) EXPECT_LE(in.world(i, 0), 500000.125);
    }
    const std::string corners = file("p.txt", "500000 5000000\n500000.25 5000000 # x y\n500000, 5000000.25\n");
    expect_success(stipple({"crop", input, "--polygon", corners, "-o", folder / "p.ply"}));
    EXPECT_EQ(read_file(folder / "p.ply"), read_file(folder / "in.ply"));
}

TEST_F(CliEdit, CropOfNothingAndOfPointsWithoutAPlace) {
    const std::string input = file("a.xyz", "0 0 0\nnan 0 0\n5 5 5\n");
    const LaunchResult one = stipple({"crop", input, "--box", "0", "0", "0", "1", "1", "1", "-o", folder / "b.ply"});
    EXPECT_EQ(one.out, "wrote " + (folder / "b.ply") + ": 1 of 3 points inside\n");
    EXPECT_EQ(one.err,
              "stipple: warning: " + input + ": 1 points are not finite, neither inside nor outside: left out\n");
    const LaunchResult none = stipple({"crop", input, "--sphere", "9", "9", "9", "1", "-o", folder / "c.ply", "-q"});
    expect_success(none);
    EXPECT_EQ(read(folder / "c.ply").size(), 0);
    expect_error(stipple({"crop", input, "--sphere", "9", "9", "9", "1", "-o", folder / "c.xyz"}), 2,
                 "is inside, and xyz cannot hold no points");
}

TEST_F(CliEdit, CropRefusesWhatMakesNoSense) {
    const std::string input = survey("a.ply"), out = folder / "b.ply";
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"crop", input, "-o", out});
        expect_error(stipple(arguments), exit_code, text);
    };
    fails({}, "crop to what?");
    fails({"--box", "1", "0", "0", "0", "1", "1"}, "box: x from 1 to 0 holds nothing");
    fails({"--sphere", "0", "0", "0", "-1"}, "sphere: the radius must be from 0, got -1");
    fails({"--polygon", "0", "0", "1"}, "got 3 numbers");
    fails({"--polygon", "0", "0", "1", "1", "1", "x"}, "\"x\" is not a number");
    fails({"--polygon", file("p.txt", "0 0\n1 two\n")}, "p.txt:2: expected a number of a corner, found \"two\"", 3);
    fails({"--polygon", folder / "none.txt"}, "none.txt", 3);
    fails({"--box", "1", "2"}, "--box");
    expect_entries({"a.ply", "p.txt"});
}

TEST_F(CliEdit, TransformGoesThereAndBack) {
    const std::string input = survey("a.ply");
    expect_success(stipple({"transform",
                            input,
                            "-o",
                            folder / "b.ply",
                            "--swap",
                            "x-zy",
                            "--scale",
                            "2",
                            "--rotate",
                            "1",
                            "1",
                            "0",
                            "30",
                            "--about",
                            "500000",
                            "5000000",
                            "100",
                            "--translate",
                            "-1",
                            "2",
                            "3",
                            "--transform-to",
                            folder / "T.txt"}));
    expect_success(
        stipple({"transform", folder / "b.ply", "--apply", folder / "T.txt", "--invert", "-o", folder / "c.ply"}));
    const PointCloud before = read(input), after = read(folder / "c.ply"), moved = read(folder / "b.ply");
    double most = 0;
    for (int64_t i = 0; i < 100; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            ASSERT_NEAR(after.world(i, axis), before.world(i, axis), 2e-6);
            most = std::max(most, std::abs(moved.world(i, axis) - before.world(i, axis)));
        }
    EXPECT_GT(most, 1);
}

TEST_F(CliEdit, TransformInTheOrderOfItsHelp) {
    const std::string input = file("a.xyz", "1 2 3\n3 2 3\n");
    const auto moved = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"transform", input, "-o", "-", "--format", "xyz"});
        return stipple(arguments).out;
    };
    EXPECT_EQ(moved({"--translate", "1", "0", "0"}), "2 2 3\n4 2 3\n");
    EXPECT_EQ(moved({"--centre"}), "-1 0 0\n1 0 0\n");
    EXPECT_EQ(moved({"--scale", "2", "3", "4"}), "2 6 12\n6 6 12\n");
    EXPECT_EQ(moved({"--swap", "zyx"}), "3 2 1\n3 2 3\n");
    EXPECT_EQ(moved({"--swap=-xyz"}), "-1 2 3\n-3 2 3\n");
    EXPECT_EQ(moved({"--translate", "1", "0", "0", "--scale", "2", "--centre"}), "-1 0 0\n3 0 0\n");
    EXPECT_EQ(moved({"--matrix", file("M.txt", "0 1 0 5\n1 0 0 0\n0 0 1 0\n0 0 0 1\n")}), "7 1 3\n7 3 3\n");
    EXPECT_EQ(moved({"--matrix",
                     file("M.npy", std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                       "{'descr': '|i1', 'fortran_order': False, 'shape': (3, 4), }" +
                                       std::string(58, ' ') + "\n" + std::string("\0\1\0\5\1\0\0\0\0\0\1\0", 12))}),
              "7 1 3\n7 3 3\n");
}

TEST_F(CliEdit, TransformKeepsFaces) {
    const std::string input = save_as("m.ply", random_mesh(30));
    expect_success(stipple({"transform", input, "--swap", "yxz", "-o", folder / "n.ply"}));
    const Json before = json_of(stipple({"info", input, "--json"})),
               after = json_of(stipple({"info", folder / "n.ply", "--json"}));
    EXPECT_EQ(before["files"][0]["faces"], after["files"][0]["faces"]);
}

TEST_F(CliEdit, TransformRefusesWhatMakesNoSense) {
    const std::string input = survey("a.ply"), out = folder / "b.ply";
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"transform", input, "-o", out});
        expect_error(stipple(arguments), exit_code, text);
    };
    fails({}, "transform how?");
    fails({"--rotate", "w", "3"}, "the axis must be x, y or z, got \"w\"");
    fails({"--rotate", "z", "x"}, "\"x\" is not a number of degrees");
    fails({"--rotate", "0", "0", "0", "3"}, "rotation");
    fails({"--scale", "0"}, "--scale must be finite and not 0, got 0");
    fails({"--scale", "1", "2"}, "--scale takes one number or three, got 2");
    fails({"--swap", "xxy"}, "axes must be x, y and z once each");
    fails({"--translate", "nan", "0", "0"}, "--translate must be a number, got nan");
    fails({"--translate", "1", "0", "0", "--about", "0", "0", "0"}, "--about is for");
    fails({"--matrix", file("M.txt", "1 2 3")}, "M.txt: a transform has 16 numbers (or 12), found 3", 3);
    fails({"--matrix", file("Z.txt", "1 0 0 0 0 1 0 0 0 0 0 0")}, "a matrix of determinant 0 flattens the points");
    fails({"--matrix", file("N.npy", "\x93NUMPY\x01")}, "N.npy", 3);
    expect_entries({"M.txt", "N.npy", "Z.txt", "a.ply"});
}

TEST_F(CliEdit, MergeKeepsPointsOriginsAndSources) {
    const std::string a = survey("a.ply"), b = save_as("b.ply", [] {
                                               Mesh mesh = random_cloud(50, 9);
                                               mesh.vertices.origin = {500100, 5000000, 100};
                                               Attribute label("label", DType::i16, 50, 1);
                                               std::fill_n(label.as<int16_t>().data(), 50, int16_t{-2});
                                               mesh.vertices.attributes.push_back(std::move(label));
                                               return mesh;
                                           }());
    const LaunchResult result = stipple({"merge", a, b, "-o", folder / "c.ply", "--source-id", "from", "--json"});
    expect_success(result);
    const PointCloud whole = read(folder / "c.ply"), first = read(a), second = read(b);
    ASSERT_EQ(whole.size(), 150);
    const Attribute *from = find(whole.attributes, "from"), *label = find(whole.attributes, "label");
    ASSERT_TRUE(from && label);
    for (int64_t i = 0; i < 150; ++i) {
        const PointCloud& part = i < 100 ? first : second;
        const int64_t row = i < 100 ? i : i - 100;
        EXPECT_EQ(from->value(i), i < 100 ? 0 : 1);
        EXPECT_EQ(label->value(i), find(part.attributes, "label")->value(row));
        for (int axis = 0; axis < 3; ++axis) ASSERT_NEAR(whole.world(i, axis), part.world(row, axis), 1e-5);
    }
    EXPECT_EQ(json_of(result)["files"][1]["points"], 50);
    const std::string plain = cloud("p.ply", 5);
    expect_error(stipple({"merge", a, plain, "-o", folder / "d.ply"}), 2, "has the attribute label");
    expect_success(stipple({"merge", a, plain, "-o", folder / "d.ply", "--missing", "fill", "-q"}));
    EXPECT_EQ(find(read(folder / "d.ply").attributes, "label")->value(104), 0);
    expect_success(stipple({"merge", a, plain, "-o", folder / "e.ply", "--missing", "drop", "-q"}));
    EXPECT_FALSE(find(read(folder / "e.ply").attributes, "label"));
    expect_error(stipple({"merge", a, b, "-o", folder / "f.ply", "--source-id", "label"}), 2,
                 "a.ply: has an attribute label already");
    expect_error(stipple({"merge", a, b, "-o", folder / "f.xyz", "--source-id", "from"}), 2, "f.xyz");
}

TEST_F(CliEdit, FilterKeepsWhatIsTrue) {
    const std::string input = survey("a.ply");
    const LaunchResult result =
        stipple({"filter", input, "label == 2 && x > 500000.1", "-o", folder / "b.ply", "--json"});
    expect_success(result);
    const PointCloud chosen = read(folder / "b.ply");
    EXPECT_EQ(json_of(result)["kept"], chosen.size());
    ASSERT_GT(chosen.size(), 0);
    for (int64_t i = 0; i < chosen.size(); ++i) {
        EXPECT_EQ(find(chosen.attributes, "label")->value(i), 2);
        EXPECT_GT(chosen.world(i, 0), 500000.1);
    }
    expect_success(
        stipple({"filter", input, "label == 2 && x > 500000.1", "--invert", "-o", folder / "c.ply", "--json"}));
    EXPECT_EQ(read(folder / "c.ply").size() + chosen.size(), 100);
    const LaunchResult wrong = stipple({"filter", input, "lable == 2", "-o", folder / "d.ply"});
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_EQ(wrong.err, "stipple: " + input +
                             ": column 1: no attribute \"lable\", did you mean label?; there are x, y, z, label\n"
                             "  hint: lable == 2\n        ^\n");
    expect_error(stipple({"filter", input, "-o", folder / "d.ply"}), 2, "an expression is missing");
}

TEST_F(CliEdit, SplitMakesFilesThatMergeAgain) {
    const std::string input = survey("a.ply");
    const LaunchResult by = stipple({"split", input, "--by", "label", "-o", folder / "parts/"});
    expect_success(by);
    EXPECT_EQ(lines_of(by.out)[1], "wrote " + (folder / "parts/a_label1.ply") + ": 25 points");
    const PointCloud two = read(folder / "parts/a_label2.ply");
    ASSERT_EQ(two.size(), 25);
    for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(find(two.attributes, "label")->value(i), 2);
    expect_success(stipple({"split", input, "--count", "40", "-o", folder / "counts/"}));
    expect_success(stipple({"merge", folder / "counts/a_0001.ply", folder / "counts/a_0002.ply",
                            folder / "counts/a_0003.ply", "-o", folder / "again.ply"}));
    const PointCloud before = read(input), again = read(folder / "again.ply");
    ASSERT_EQ(again.size(), 100);
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(again.world(i, 1), before.world(i, 1));
    const Json tiles = json_of(
        stipple({"split", input, "--tile", "0.125", "-o", folder / "tiles/", "--format", "las", "--json", "-q"}));
    int64_t points = 0;
    for (const Json& output : tiles["outputs"]) points += output["points"].get<int64_t>();
    EXPECT_EQ(points, 100);
    EXPECT_EQ(tiles["parts"], tiles["outputs"].size());
}

TEST_F(CliEdit, SplitRefusesWhatMakesNoSense) {
    const std::string input = survey("a.ply");
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"split", input});
        expect_error(stipple(arguments), exit_code, text);
    };
    fails({"-o", folder / "x/"}, "split how?");
    fails({"-o", folder / "x/", "--by", "label", "--count", "3"}, "split how?");
    fails({"-o", folder / "x/", "--by", "color"}, "a.ply: no attribute \"color\"");
    fails({"-o", folder / "x/", "--tile", "-1"}, "--tile must be above 0, got -1");
    fails({"-o", folder / "x/", "--count", "1", "--most", "99"}, "a.ply: more than 99 parts");
    fails({"-o", folder / "x", "--by", "label"}, "if it shall be made, end it with /");
    fails({"-o", folder / "y/z/", "--by", "label"}, "cannot make the folder", 4);
    const LaunchResult dry = stipple({"split", input, "--by", "label", "-o", folder / "x/", "--dry-run"});
    expect_success(dry);
    EXPECT_TRUE(contains(dry.out, "would write 4 files"));
    expect_entries({"a.ply"});
}

TEST_F(CliEdit, LasGoesInChunksAndItsRecordsStayAsTheyAre) {
    // More points than a chunk has, and a grid of its own.
    Mesh mesh = random_cloud(150'000);
    mesh.vertices.origin = {640'000, 485'000, 100};
    save_as("first.las", mesh);
    const std::string input = folder / "in.las";
    expect_success(stipple({"convert", folder / "first.las", "-o", input, "--scale", "0.001", "-q"}));
    const auto run = [&](std::vector<std::string> arguments) {
        arguments.push_back("-q");
        expect_success(stipple(arguments));
    };
    run({"convert", input, "-o", folder / "same.las"});
    const std::string same = read_file(folder / "same.las");
    run({"filter", input, "x > 0", "-o", folder / "all.las"});
    EXPECT_TRUE(read_file(folder / "all.las") == same);
    run({"crop", input, "--box", "0", "0", "inf", "1e9", "1e9", "inf", "-o", folder / "boxed.las"});
    EXPECT_TRUE(read_file(folder / "boxed.las") == same);
    run({"split", input, "--count", "70000", "-o", folder / "parts/"});
    run({"merge", folder / "parts/in_0001.las", folder / "parts/in_0002.las", folder / "parts/in_0003.las", "-o",
         folder / "merged.las"});
    EXPECT_TRUE(read_file(folder / "merged.las") == same);
    // There and back, on a grid of the same scale.
    run({"transform", input, "--rotate", "z", "90", "-o", folder / "turned.las"});
    run({"transform", folder / "turned.las", "--rotate", "z", "-90", "-o", folder / "back.las"});
    io::Warnings warnings;
    const Mesh before = io::load(input, {}, warnings), after = io::load(folder / "back.las", {}, warnings);
    ASSERT_EQ(after.vertices.size(), before.vertices.size());
    double worst = 0;
    for (int64_t i = 0; i < before.vertices.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            worst = std::max(worst, std::abs(before.vertices.world(i, axis) - after.vertices.world(i, axis)));
    EXPECT_LT(worst, 0.0021);  // half a unit for each of two ways, on two axes, and float32 about the origin
}

TEST_F(CliEdit, LasFilesOfDifferentLayoutsAreMergedByTheirAttributes) {
    Mesh plain = random_cloud(2000), coloured = random_cloud(3000);
    plain.vertices.attributes.clear();
    coloured.vertices.attributes.clear();
    Attribute color("color", DType::u16, 3000, 3);
    for (int64_t i = 0; i < 9000; ++i) color.as<uint16_t>().data()[i] = static_cast<uint16_t>(7 * i);
    coloured.vertices.attributes.push_back(std::move(color));
    coloured.vertices.origin = {1000, 0, 0};
    save_as("plain.las", plain);
    save_as("coloured.las", coloured);
    expect_success(stipple({"merge", folder / "plain.las", folder / "coloured.las", "--missing", "fill", "--source-id",
                            "file", "-o", folder / "both.las", "-q"}));
    io::Warnings warnings;
    const Mesh both = io::load(folder / "both.las", {}, warnings);
    ASSERT_EQ(both.vertices.size(), 5000);
    const Attribute &source = *find(both.vertices.attributes, "file"),
                    &colours = *find(both.vertices.attributes, "color");
    EXPECT_EQ(source.value(1999), 0);
    EXPECT_EQ(source.value(2000), 1);
    EXPECT_EQ(colours.value(0, 2), 0);
    EXPECT_EQ(colours.value(2000 + 100, 1), 7 * 301);
    EXPECT_NEAR(both.vertices.world(2000, 0), coloured.vertices.world(0, 0), 1e-3);
}

TEST_F(CliEdit, LasFromAPipeIsReadOnce) {
    survey("a.las");
    const Launch here{.arguments = {}, .folder = folder.path()};
    for (const std::string step : {"filter", "transform --centre"}) {
        const std::string rest = step == "filter" ? " 'label == 2' -o " : " -o ";
        expect_success(shell("$S " + step + " a.las" + rest + "b.ply --overwrite -q", here));
        for (const char* from : {"", " --from las"}) {
            expect_success(shell("cat a.las | $S " + step + " -" + rest + "c.ply --overwrite -q" + from, here));
            EXPECT_TRUE(read_file(folder / "b.ply") == read_file(folder / "c.ply")) << step << from;
        }
    }
}

}  // namespace
}  // namespace stipple::test
