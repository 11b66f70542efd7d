#include "tests/support/reference_flow_step.h"

#include <algorithm>
#include <cmath>

namespace stipple::test {
namespace {

using Vector = std::vector<double>;

double sigmoid_of(double x) {
    return 1 / (1 + std::exp(-x));
}

struct Evaluated {
    Vector g;         // [c]
    Vector jacobian;  // [c, c]
};

/// g(x, t) layer by layer, and the product of the layers' Jacobians.
Evaluated evaluate(const ReferenceFlowStep& step, const Vector& x, const double* condition, double t) {
    const int64_t c = step.channels, h = step.options.channels, sizes[3] = {h, h, c}, begins[3] = {0, h, 2 * h};
    const auto part = [&](int64_t i) { return condition[i] + (step.time.empty() ? 0 : t * step.time[i]); };
    Vector v = x, jacobian(c * c);
    for (int64_t i = 0; i < c; ++i) jacobian[i * c + i] = 1;
    for (int layer = 0; layer < 3; ++layer) {
        const int64_t outs = sizes[layer], ins = static_cast<int64_t>(v.size());
        Vector next(outs), next_jacobian(outs * c);
        for (int64_t o = 0; o < outs; ++o) {
            const double shift = part(begins[layer] + o), gate = sigmoid_of(part(2 * h + c + begins[layer] + o));
            double sum = 0;
            for (int64_t i = 0; i < ins; ++i) sum += step.weights[layer][o * ins + i] * v[i];
            double y = sum * gate + shift, slope = gate;
            if (layer < 2 && step.options.activation.kind == network::ActivationKind::tanh) {
                slope *= 1 - std::tanh(y) * std::tanh(y);
                y = std::tanh(y);
            } else if (layer < 2) {
                slope *= sigmoid_of(y) * (1 + y * (1 - sigmoid_of(y)));
                y *= sigmoid_of(y);
            }
            next[o] = y;
            for (int64_t i = 0; i < ins; ++i)
                for (int64_t j = 0; j < c; ++j)
                    next_jacobian[o * c + j] += slope * step.weights[layer][o * ins + i] * jacobian[i * c + j];
        }
        v = next;
        jacobian = next_jacobian;
    }
    return {v, jacobian};
}

/// ln |det| by Gaussian elimination.
double log_determinant(Vector a, int64_t n) {
    double log = 0;
    for (int64_t k = 0; k < n; ++k) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; ++i)
            if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
        for (int64_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
        log += std::log(std::abs(a[k * n + k]));
        for (int64_t i = k + 1; i < n; ++i)
            for (int64_t j = n - 1; j >= k; --j) a[i * n + j] -= a[i * n + k] / a[k * n + k] * a[k * n + j];
    }
    return log;
}

double log_det_of_residual(const ReferenceFlowStep& step, const Vector& x, const double* condition) {
    Vector jacobian = evaluate(step, x, condition, 0).jacobian;
    for (int64_t i = 0; i < step.channels; ++i) jacobian[i * step.channels + i] += 1;
    return log_determinant(jacobian, step.channels);
}

/// x and the integral of the trace, as one state of c + 1 numbers.
Vector slope_of(const ReferenceFlowStep& step, const Vector& state, const double* condition, double t) {
    const int64_t c = step.channels;
    Evaluated at = evaluate(step, Vector(state.begin(), state.begin() + c), condition, t);
    double trace = 0;
    for (int64_t i = 0; i < c; ++i) trace += at.jacobian[i * c + i];
    at.g.push_back(trace);
    return at.g;
}

Vector ahead(Vector state, const Vector& slope, double factor) {
    for (size_t i = 0; i < state.size(); ++i) state[i] += factor * slope[i];
    return state;
}

}  // namespace

void ReferenceFlowStep::run(const double* x, const double* condition, double* out) const {
    const int64_t c = channels;
    Vector state(x, x + c);
    double log_det = 0;
    if (options.steps > 0) {
        state.push_back(0);
        const double h = (options.inverse ? -1.0 : 1.0) / static_cast<double>(options.steps);
        for (int64_t i = 0; i < options.steps; ++i) {
            const double t = (options.inverse ? 1 : 0) + static_cast<double>(i) * h;
            const Vector k1 = slope_of(*this, state, condition, t);
            const Vector k2 = slope_of(*this, ahead(state, k1, h / 2), condition, t + h / 2);
            const Vector k3 = slope_of(*this, ahead(state, k2, h / 2), condition, t + h / 2);
            const Vector k4 = slope_of(*this, ahead(state, k3, h), condition, t + h);
            state = ahead(ahead(ahead(ahead(state, k1, h / 6), k2, h / 3), k3, h / 3), k4, h / 6);
        }
        log_det = state.back();
    } else if (options.inverse) {
        for (int i = 0; i < 10000; ++i) {
            const Vector g = evaluate(*this, state, condition, 0).g;
            double step = 0;
            for (int64_t k = 0; k < c; ++k) {
                const double next = x[k] - g[k];
                step = std::max(step, std::abs(next - state[k]));
                state[k] = next;
            }
            if (step < 1e-15) break;
        }
        log_det = -log_det_of_residual(*this, state, condition);
    } else {
        log_det = log_det_of_residual(*this, state, condition);
        state = ahead(state, evaluate(*this, state, condition, 0).g, 1);
    }
    std::copy_n(state.begin(), c, out);
    if (options.log_det) out[c] = log_det;
}

}  // namespace stipple::test
