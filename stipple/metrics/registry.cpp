#include "stipple/metrics/registry.h"

#include <fmt/format.h>

#include "stipple/core/error.h"

namespace stipple::metrics {
namespace {

constexpr Better kLower = Better::lower, kHigher = Better::higher, kNeither = Better::neither;
constexpr Across kMean = Across::mean, kPooled = Across::pooled;

// clang-format off
constexpr MetricInfo kMetrics[] = {
    // name, group, formula, unit, better, across, used by, header, extra
    {"chamfer_squared_sum", "clouds", "mean_p d^2 + mean_t d^2", "length^2", kLower, kMean, "PU-GAN, PU-GCN, Grad-PU, PU-Flow, PyTorch3D; \"CD-T\", \"CD-L2\"", "cloud_distance.h", Extra::chamfer},
    {"chamfer_squared_half", "clouds", "(mean_p d^2 + mean_t d^2) / 2", "length^2", kLower, kMean, "PUDM, PDANS, PUFM, PUFM++", "cloud_distance.h", Extra::chamfer},
    {"chamfer_l1_sum", "clouds", "mean_p d + mean_t d", "length", kLower, kMean, "", "cloud_distance.h", Extra::chamfer},
    {"chamfer_l1_half", "clouds", "(mean_p d + mean_t d) / 2", "length", kLower, kMean, "Occupancy Networks, iPCRNet, PoinTr; \"CD-P\", \"CD-L1\"", "cloud_distance.h", Extra::chamfer},
    {"chamfer_l1_max", "clouds", "max(mean_p d, mean_t d)", "length", kLower, kMean, "", "cloud_distance.h", Extra::chamfer},
    {"chamfer_squared_to_truth", "clouds", "mean_p d^2", "length^2", kLower, kMean, "one direction: accuracy", "cloud_distance.h", Extra::chamfer},
    {"chamfer_squared_from_truth", "clouds", "mean_t d^2", "length^2", kLower, kMean, "one direction: completeness", "cloud_distance.h", Extra::chamfer},
    {"chamfer_l1_to_truth", "clouds", "mean_p d", "length", kLower, kMean, "one direction: accuracy", "cloud_distance.h", Extra::chamfer},
    {"chamfer_l1_from_truth", "clouds", "mean_t d", "length", kLower, kMean, "one direction: completeness", "cloud_distance.h", Extra::chamfer},
    {"hausdorff", "clouds", "max(max_p d, max_t d)", "length", kLower, kMean, "Hausdorff", "cloud_distance.h", Extra::hausdorff},
    {"hausdorff_to_truth", "clouds", "max_p d", "length", kLower, kMean, "one-sided", "cloud_distance.h", Extra::hausdorff},
    {"hausdorff_from_truth", "clouds", "max_t d", "length", kLower, kMean, "one-sided", "cloud_distance.h", Extra::hausdorff},
    {"hausdorff_squared_sum", "clouds", "max_p d^2 + max_t d^2", "length^2", kLower, kMean, "\"HD\" of PU-GAN, PU-GCN, Grad-PU, PU-Flow", "cloud_distance.h", Extra::hausdorff},
    {"hausdorff_squared_half", "clouds", "(max_p d^2 + max_t d^2) / 2", "length^2", kLower, kMean, "\"HD\" of PUDM, PDANS, PUFM, PUFM++", "cloud_distance.h", Extra::hausdorff},
    {"f_score", "clouds", "2 P R / (P + R)", "ratio", kHigher, kMean, "Tanks and Temples", "cloud_distance.h", Extra::f_score},
    {"precision", "clouds", "P = share of p with d <= r", "ratio", kHigher, kMean, "Tanks and Temples", "cloud_distance.h", Extra::f_score},
    {"recall", "clouds", "R = share of t with d <= r", "ratio", kHigher, kMean, "Tanks and Temples", "cloud_distance.h", Extra::f_score},
    {"emd_exact", "clouds", "mean |p - t| of the matching for which it is least", "length", kLower, kMean, "", "transport.h", Extra::emd_exact},
    {"emd_auction", "clouds", "mean |p - t| of a matching at most 1 % above the least", "length", kLower, kMean, "", "transport.h", Extra::emd},
    {"jsd", "clouds", "H((P + Q) / 2) - (H(P) + H(Q)) / 2 on a lattice, base 2", "bit", kLower, kMean, "latent_3d_points, PU-Flow, PUFM++", "jsd.h", Extra::jsd},
    {"normal_consistency", "clouds", "(mean_p |n . n'| + mean_t |n . n'|) / 2", "ratio", kHigher, kMean, "Occupancy Networks", "cloud_distance.h", Extra::normals},
    {"p2f_mean", "surface", "mean_p of the distance to the mesh", "length", kLower, kPooled, "\"P2F\" of PU-GAN and all since", "point_to_face.h", Extra::surface},
    {"p2f_deviation", "surface", "standard deviation_p of the distance to the mesh", "length", kLower, kPooled, "\"P2F std\" of PU-GAN", "point_to_face.h", Extra::surface},
    {"p2f_max", "surface", "max_p of the distance to the mesh", "length", kLower, kPooled, "", "point_to_face.h", Extra::surface},
    {"f2p_mean", "surface", "mean over samples of the mesh of the distance to p", "length", kLower, kPooled, "", "point_to_face.h", Extra::surface},
    {"f2p_deviation", "surface", "standard deviation over samples of the mesh of the distance to p", "length", kLower, kPooled, "", "point_to_face.h", Extra::surface},
    {"f2p_max", "surface", "max over samples of the mesh of the distance to p", "length", kLower, kPooled, "", "point_to_face.h", Extra::surface},
    {"uniformity", "spread", "mean over disks of (n - n^)^2 / n^ * mean (d - d^)^2 / d^", "length", kLower, kMean, "PU-GAN, by geodesic disks", "uniformity.h", Extra::uniformity},
    {"nuc", "spread", "standard deviation over disks of n / n^", "ratio", kLower, kMean, "PU-Net, by geodesic disks", "uniformity.h", Extra::nuc},
    {"spacing_mean", "spread", "mean_p of the distance to the nearest other point", "length", kNeither, kMean, "", "density.h", Extra::density},
    {"spacing_deviation", "spread", "standard deviation_p of the distance to the nearest other point", "length", kNeither, kMean, "", "density.h", Extra::density},
    {"spacing_min", "spread", "min_p of the distance to the nearest other point", "length", kNeither, kMean, "", "density.h", Extra::density},
    {"spacing_max", "spread", "max_p of the distance to the nearest other point", "length", kNeither, kMean, "", "density.h", Extra::density},
    {"spacing_variation", "spread", "spacing_deviation / spacing_mean", "ratio", kLower, kMean, "", "density.h", Extra::density},
    {"density_mean", "spread", "mean_p of k / (pi r_k^2)", "points / length^2", kNeither, kMean, "", "density.h", Extra::density},
    {"density_variation", "spread", "standard deviation / mean of k / (pi r_k^2)", "ratio", kLower, kMean, "", "density.h", Extra::density},
    {"nre", "reconstruction", "mean over clouds of CD(x, AE(sample)) / CD(x, AE(x))", "ratio", kLower, kMean, "S-NET, SampleNet, APSNet", "reconstruction.h", {}},
    {"rotation_error", "registration", "angle of R_estimate^T R_truth", "degree", kLower, kMean, "geodesic", "registration.h", {}},
    {"rotation_error_doubled", "registration", "2 acos(2 <q, q'>^2 - 1): twice the angle", "degree", kLower, kMean, "SampleNet", "registration.h", {}},
    {"translation_error", "registration", "|t_estimate - t_truth|", "length", kLower, kMean, "PCRNet, iPCRNet", "registration.h", {}},
    {"point_rmse", "registration", "sqrt(mean |T_estimate x - T_truth x|^2)", "length", kLower, kMean, "", "registration.h", {}},
    {"precision_auc", "registration", "area under share(error <= x), x = 0 to 180 by 0.5, over 180", "ratio", kHigher, kMean, "SampleNet, of doubled angles", "registration.h", {}},
    {"success_rate", "registration", "share within both thresholds", "ratio", kHigher, kMean, "PCRNet", "registration.h", {}},
    {"overall_accuracy", "recognition", "right / all", "ratio", kHigher, kMean, "\"OA\", \"instance accuracy\"", "classification.h", {}},
    {"mean_accuracy", "recognition", "mean over classes of right / all of the class", "ratio", kHigher, kMean, "\"mAcc\", \"class accuracy\"", "classification.h", {}},
    {"instance_miou", "recognition", "mean over shapes of mean over parts of IoU", "ratio", kHigher, kMean, "PointNet and all since, on ShapeNet part", "segmentation.h", {}},
    {"class_miou", "recognition", "mean over categories of mean over their shapes", "ratio", kHigher, kMean, "PointNet and all since, on ShapeNet part", "segmentation.h", {}},
    {"psnr", "images", "10 log10(range^2 / mean (a - b)^2)", "dB", kHigher, kMean, "NeRF and all since", "image_quality.h", {}},
    {"ssim", "images", "11 x 11 Gaussian of 1.5, K 0.01 and 0.03, valid windows, mean", "ratio", kHigher, kMean, "mip-NeRF, DVGO", "image_quality.h", {}},
};
// clang-format on

const char* arrow(Better better) {
    switch (better) {
        case Better::lower: return "lower";
        case Better::higher: return "higher";
        case Better::neither: return "-";
    }
    return "";
}

/// A formula in a table of Markdown: bars would end the cell.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '|') result += '\\';
        result += c;
    }
    return result;
}

}  // namespace

std::span<const MetricInfo> registry() {
    return kMetrics;
}

const MetricInfo& info_of(std::string_view metric) {
    for (const MetricInfo& info : kMetrics)
        if (info.name == metric) return info;
    throw Error(ErrorCode::bad_argument, fmt::format("no metric is called {}", metric));
}

std::string registry_markdown() {
    std::string text = "| metric | formula | unit | better | over shapes | used by |\n|---|---|---|---|---|---|\n";
    for (const MetricInfo& info : kMetrics)
        text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", info.name, escaped(info.formula), info.unit,
                            arrow(info.better), info.across == Across::mean ? "mean" : "pooled", info.used_by);
    return text;
}

const Fields& score_fields() {
    static const Fields fields = {field<&Score::name>("name", "What the protocol calls it"),
                                  field<&Score::metric>("metric", "Its name in the list of metrics"),
                                  field<&Score::value>("value", "The score, never multiplied by 1000"),
                                  field<&Score::unit>("unit", "Unit of the score"),
                                  field<&Score::convention>("convention", "Formula, with its parameters"),
                                  field<&Score::normalisation>("normalisation", "What was done to the clouds before"),
                                  field<&Score::better>("better", "Which scores are better ones").words(kBetterWords),
                                  field<&Score::shapes>("shapes", "Shapes that it is the mean of")};
    return fields;
}

Score make_score(std::string_view metric, double value, std::string_view normalisation, std::string_view name,
                 std::string_view parameters) {
    const MetricInfo& info = info_of(metric);
    Score score;
    score.name = name.empty() ? metric : name;
    score.metric = metric;
    score.value = value;
    score.unit = info.unit;
    score.convention = parameters.empty() ? info.formula : fmt::format("{}, {}", info.formula, parameters);
    score.normalisation = normalisation;
    score.better = info.better;
    return score;
}

const Score* find(std::span<const Score> scores, std::string_view name) {
    for (const Score& score : scores)
        if (score.name == name) return &score;
    return nullptr;
}

}  // namespace stipple::metrics
