#include "stipple/picture/training_chart.h"

#include <cmath>

namespace stipple::picture {
namespace {

Series series_from(const TrainingCurve& curve) {
    Series series;
    series.name = curve.name;
    series.x = curve.epochs;
    series.y = curve.values;
    return series;
}

bool are_positive(const std::vector<TrainingCurve>& curves) {
    bool any = false;
    for (const TrainingCurve& curve : curves)
        for (double value : curve.values) {
            if (!std::isfinite(value)) continue;
            if (value <= 0) return false;
            any = true;
        }
    return any;
}

}  // namespace

Chart training_chart(const TrainingCurves& curves, const ChartStyle& style) {
    LineChart chart;
    chart.title = curves.title;
    chart.x.label = "epoch";
    chart.y.label = "loss";
    chart.y.logarithmic = are_positive(curves.losses);
    chart.right.label = curves.score_label;
    chart.right.unit = "%";
    for (const TrainingCurve& curve : curves.losses) chart.series.push_back(series_from(curve));
    for (const TrainingCurve& curve : curves.scores) {
        Series series = series_from(curve);
        for (double& value : series.y) value *= 100;
        series.right = true;
        chart.series.push_back(std::move(series));
    }
    return draw_chart(chart, style);
}

}  // namespace stipple::picture
