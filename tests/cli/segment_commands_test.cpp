// planes, clusters and ground.

#include "stipple/core/rng.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliFind : public CliTest {
protected:
    PointCloud read(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
    /// Two level sheets of 200 points, 5 above each other, at 1000 2000, and two strays.
    std::string sheets(const std::string& name) const {
        std::string text = "1050 2050 50\n";
        const Rng rng(1);
        for (uint64_t i = 0; i < 400; ++i)
            text += std::to_string(1000 + rng.uniform(2 * i)) + " " + std::to_string(2000 + rng.uniform(2 * i + 1)) +
                    (i < 200 ? " 3\n" : " 8\n");
        return file(name, text + "950 1950 -50\nnan 0 0\n");
    }
};

TEST_F(CliFind, PlanesAreLabelledAndTold) {
    const LaunchResult result = stipple({"planes", sheets("a.xyz"), "--distance", "0.01", "-o", folder / "b.ply",
                                         "--picture", folder / "b.png", "--count", "2", "--json"});
    expect_success(result);
    const Json json = json_of(result);
    ASSERT_EQ(json["planes"].size(), 2u);
    for (const Json& plane : json["planes"]) {
        EXPECT_EQ(plane["points"], 200);
        EXPECT_NEAR(plane["normal"][2].get<double>(), 1, 1e-9);
        const double height = -plane["offset"].get<double>();
        EXPECT_NEAR(std::min(std::abs(height - 3), std::abs(height - 8)), 0, 1e-3);
    }
    const PointCloud labelled = read(folder / "b.ply");
    const Attribute* plane = find(labelled.attributes, "plane");
    ASSERT_TRUE(plane && labelled.size() == 403);
    EXPECT_EQ(plane->value(0), -1);
    EXPECT_EQ(plane->value(402), -1);
    EXPECT_NE(plane->value(1), plane->value(300));
    const LaunchResult text = stipple({"planes", folder / "a.xyz", "--distance", "0.01", "--count", "1"});
    expect_success(text);
    EXPECT_TRUE(contains(text.out, "plane 0: ")) << text.out;
    EXPECT_TRUE(contains(text.out, "200 points")) << text.out;
    EXPECT_EQ(lines_of(stipple({"planes", folder / "a.xyz", "--distance", "0.01", "--table", "csv"}).out)[0],
              "plane,points,a,b,c,d,rms");
}

TEST_F(CliFind, PlanesRefuse) {
    const std::string input = sheets("a.xyz");
    expect_error(stipple({"planes", input}), 2, "Give --distance D");
    expect_error(stipple({"planes", input, "--distance", "-1"}), 2, "--distance must be above 0, got -1");
    expect_error(stipple({"planes", input, "--distance", "1", "--min-points", "2"}), 2, "--min-points");
    expect_error(stipple({"planes", input, "--distance", "1", "-o", folder / "b.xyz"}), 2, "b.xyz");
    const LaunchResult none = stipple({"planes", input, "--distance", "1e-9", "--min-points", "400"});
    EXPECT_EQ(none.exit_code, 0);
    EXPECT_TRUE(contains(none.err, "no plane has 400 points within 1e-09")) << none.err;
    expect_entries({"a.xyz"});
}

TEST_F(CliFind, ClustersAreLabelledAndTold) {
    const std::string input = sheets("a.xyz");
    const LaunchResult result = stipple({"clusters", input, "--radius", "0.3", "--min-points", "5", "-o",
                                         folder / "b.ply", "--picture", folder / "b.png", "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["clusters"], 2);
    EXPECT_EQ(json["noise"], 3);
    EXPECT_EQ(json["sizes"], Json::array({200, 200}));
    const PointCloud labelled = read(folder / "b.ply");
    const Attribute* cluster = find(labelled.attributes, "cluster");
    ASSERT_TRUE(cluster);
    EXPECT_EQ(cluster->value(0), -1);
    EXPECT_EQ(cluster->value(1), 0);
    EXPECT_EQ(cluster->value(300), 1);
    EXPECT_EQ(stipple({"clusters", input, "--radius", "0.3", "--min-points", "5", "--table", "csv"}).out,
              "cluster,points\n0,200\n1,200\n");
    expect_error(stipple({"clusters", input}), 2, "Give --radius R");
    expect_error(stipple({"clusters", input, "--radius", "nan"}), 2, "--radius must be above 0");
    expect_error(stipple({"clusters", input, "--radius", "1", "--min-points", "0"}), 2, "--min-points");
    expect_error(stipple({"clusters", input, "--radius", "1e-30"}), 2, "too small for coordinates");
}

TEST_F(CliFind, GroundIsLabelledAndHeightsAreTold) {
    Mesh mesh;
    mesh.vertices = PointCloud(3600);
    Attribute label("label", DType::u16, 3600, 1);
    for (int i = 0; i < 3600; ++i) {
        const int x = i % 60, y = i / 60;
        const bool is_house = x > 20 && x < 40 && y > 15 && y < 45;
        float* p = mesh.vertices.positions.data() + 3 * i;
        p[0] = static_cast<float>(x), p[1] = static_cast<float>(y);
        p[2] = 0.1f * p[0] + (is_house ? 6.0f : 0.0f);
        label.as<uint16_t>().data()[i] = is_house ? (y < 30 ? 6 : 2) : 9;
    }
    const std::string plain = save_as("plain.ply", mesh);
    mesh.vertices.attributes.push_back(std::move(label));
    const std::string labelled = save_as("a.ply", mesh);
    const LaunchResult result =
        stipple({"ground", labelled, "-o", folder / "b.ply", "--picture", folder / "b.png", "--json"});
    expect_success(result);
    EXPECT_EQ(json_of(result)["ground"], 3600 - 19 * 29);
    EXPECT_EQ(json_of(result)["labels_before"]["only_before"], 19 * 15);
    const PointCloud found = read(folder / "b.ply");
    const Attribute *labels = find(found.attributes, "label"), *height = find(found.attributes, "height_above_ground");
    ASSERT_TRUE(labels && height);
    EXPECT_EQ(labels->dtype(), DType::u16);
    EXPECT_EQ(labels->value(0), 2);
    EXPECT_EQ(labels->value(20 * 60 + 30), 6);  // was something else than ground: stays
    EXPECT_EQ(labels->value(40 * 60 + 30), 1);  // was ground and is not
    EXPECT_NEAR(height->value(20 * 60 + 30), 6, 0.3);
    expect_success(stipple({"ground", plain, "-o", folder / "c.ply", "--only"}));
    const PointCloud only = read(folder / "c.ply");
    EXPECT_EQ(only.size(), 3600 - 19 * 29);
    EXPECT_EQ(find(only.attributes, "label")->value(0), 2);
    expect_error(stipple({"ground", plain, "-o", folder / "d.ply", "--cell", "0"}), 2, "--cell must be above 0, got 0");
    expect_error(stipple({"ground", plain, "-o", folder / "d.ply", "--slope", "-1"}), 2, "--slope must be from 0");
    expect_error(stipple({"ground", plain, "-o", folder / "d.xyz"}), 2, "d.xyz");
    expect_error(stipple({"ground", plain, "-o", folder / "d.ply", "--cell", "1e-6"}), 2, "plain.ply: the plan of");
}

}  // namespace
}  // namespace stipple::test
