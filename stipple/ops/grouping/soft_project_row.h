#pragma once
// The soft projection of one query, for CPU and CUDA.

#include <cmath>
#include <cstdint>

#include "stipple/ops/soft_project.h"

namespace stipple::ops {

/// max(t^2, min_sigma), and its derivative.
struct SoftSigma {
    double value, slope;

    STIPPLE_HD SoftSigma(float t, float min_sigma) {
        const double square = static_cast<double>(t) * t;
        const bool clamped = square <= min_sigma;  // false for NaN, which is to be seen
        value = clamped ? min_sigma : square;
        slope = clamped ? 0 : 2.0 * t;
    }
};

struct SoftRow {
    const float* points;  // the first of the cloud
    int64_t stride, n;
    const float* query;
    const int32_t* indices;
    int64_t k;
    double sigma;

    double nearest_sq = INFINITY;
    int64_t nearest = -1;  // of the k
    double sum = 0;        // of factor(j)

    STIPPLE_HD SoftRow(const float* cloud, int64_t point_stride, int64_t cloud_size, const float* q,
                       const int32_t* neighbours, int64_t count, double sigma_of_call)
        : points(cloud),
          stride(point_stride),
          n(cloud_size),
          query(q),
          indices(neighbours),
          k(count),
          sigma(sigma_of_call) {
        for (int64_t j = 0; j < k; ++j) {
            const double d = distance_to(j);
            if (d < nearest_sq || (d == nearest_sq && nearest >= 0 && indices[j] < indices[nearest])) {
                nearest_sq = d;
                nearest = j;
            }
        }
        for (int64_t j = 0; j < k; ++j) sum += factor(j);
    }

    STIPPLE_HD double offset(int64_t j, int axis) const {
        return static_cast<double>(points[indices[j] * stride + axis]) - query[axis];
    }

    /// Squared; infinite for a missing neighbour.
    STIPPLE_HD double distance_to(int64_t j) const {
        if (!names_row(indices[j], n)) return INFINITY;
        const double x = offset(j, 0), y = offset(j, 1), z = offset(j, 2);
        const double d = x * x + y * y + z * z;
        return d < INFINITY ? d : INFINITY;  // NaN too
    }

    /// exp(-(d_j - d_nearest) / sigma): at most 1, and 1 for the nearest.
    STIPPLE_HD double factor(int64_t j) const {
        const double d = distance_to(j);
        if (!(d < INFINITY)) return 0;
        if (sigma == 0) return j == nearest ? 1 : 0;
        return ::exp(-(d - nearest_sq) / sigma);
    }

    STIPPLE_HD void forward(float* weights, float* projected) const {
        double r[3] = {};
        for (int64_t j = 0; j < k; ++j) {
            const double f = factor(j), w = nearest < 0 || f == 0 ? 0 : f / sum;
            weights[j] = static_cast<float>(w);
            for (int axis = 0; axis < 3 && f != 0; ++axis) r[axis] += w * points[indices[j] * stride + axis];
        }
        for (int axis = 0; axis < 3; ++axis) projected[axis] = static_cast<float>(r[axis]);
    }

    /// dL/dw_j, but for a number that is the same for all j: positions count from the query.
    STIPPLE_HD double weight_gradient(int64_t j, const float* dL_dprojected, const float* dL_dweights) const {
        double g = dL_dweights == nullptr ? 0 : dL_dweights[j];
        for (int axis = 0; axis < 3 && dL_dprojected != nullptr; ++axis) g += dL_dprojected[axis] * offset(j, axis);
        return g;
    }

    /// Writes dL/dq and returns dL/dsigma.
    STIPPLE_HD double backward(const float* dL_dprojected, const float* dL_dweights, float* dL_dquery) const {
        double dL_dq[3] = {}, dL_dsigma = 0;
        if (nearest >= 0 && sigma != 0) {
            double mean = 0;
            for (int64_t j = 0; j < k; ++j) {
                const double f = factor(j);
                if (f != 0) mean += f / sum * weight_gradient(j, dL_dprojected, dL_dweights);
            }
            for (int64_t j = 0; j < k; ++j) {
                const double f = factor(j);
                if (f == 0) continue;
                const double logit = f / sum * (weight_gradient(j, dL_dprojected, dL_dweights) - mean);
                for (int axis = 0; axis < 3; ++axis) dL_dq[axis] += 2 * logit / sigma * offset(j, axis);
                dL_dsigma += logit * (distance_to(j) - nearest_sq) / sigma / sigma;
            }
        }
        for (int axis = 0; axis < 3; ++axis) dL_dquery[axis] = static_cast<float>(dL_dq[axis]);
        return dL_dsigma;
    }
};

constexpr int kQueriesPerChunk = 256;  // of the sum over queries

}  // namespace stipple::ops
