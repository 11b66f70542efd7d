#include "stipple/engine/lower/form.h"

#include <algorithm>
#include <numeric>

namespace stipple::engine::lowering {

Map identity(int64_t n) {
    std::vector<int64_t> columns(static_cast<size_t>(n));
    std::iota(columns.begin(), columns.end(), int64_t{0});
    return selection(n, std::move(columns));
}

Map dense_map(int64_t rows, int64_t cols, std::vector<double> values) {
    STIPPLE_ASSERT(static_cast<int64_t>(values.size()) == rows * cols);
    return {rows, cols, false, {}, std::move(values)};
}

Map selection(int64_t cols, std::vector<int64_t> columns) {
    const int64_t rows = static_cast<int64_t>(columns.size());
    std::vector<double> factors(columns.size(), 1.0);
    return {rows, cols, true, std::move(columns), std::move(factors)};
}

bool is_identity(const Map& map) {
    if (!map.is_selection || map.rows != map.cols) return false;
    for (int64_t i = 0; i < map.rows; ++i)
        if (map.columns[static_cast<size_t>(i)] != i || map.values[static_cast<size_t>(i)] != 1) return false;
    return true;
}

bool is_zero(const Map& map) {
    return map.is_selection && std::all_of(map.columns.begin(), map.columns.end(), [](int64_t c) { return c < 0; });
}

std::vector<double> dense_values(const Map& map) {
    if (!map.is_selection) return map.values;
    std::vector<double> values(static_cast<size_t>(map.rows * map.cols), 0.0);
    for (int64_t i = 0; i < map.rows; ++i) {
        const int64_t column = map.columns[static_cast<size_t>(i)];
        if (column >= 0) values[static_cast<size_t>(i * map.cols + column)] = map.values[static_cast<size_t>(i)];
    }
    return values;
}

Map product(const Map& a, const Map& b) {
    STIPPLE_ASSERT(a.cols == b.rows);
    const auto row_of = [](const auto& values, int64_t row, int64_t cols) { return values.data() + row * cols; };
    if (a.is_selection && b.is_selection) {
        Map out = a;
        out.cols = b.cols;
        for (size_t i = 0; i < out.columns.size(); ++i) {
            if (out.columns[i] < 0) continue;
            const auto at = static_cast<size_t>(out.columns[i]);
            out.columns[i] = b.columns[at];
            out.values[i] *= b.values[at];
        }
        return out;
    }
    std::vector<double> values(static_cast<size_t>(a.rows * b.cols), 0.0);
    for (int64_t i = 0; i < a.rows; ++i) {
        double* out = values.data() + i * b.cols;
        if (a.is_selection) {
            const int64_t k = a.columns[static_cast<size_t>(i)];
            if (k < 0) continue;
            const double factor = a.values[static_cast<size_t>(i)];
            const double* from = row_of(b.values, k, b.cols);
            for (int64_t j = 0; j < b.cols; ++j) out[j] = factor * from[j];
            continue;
        }
        const double* left = row_of(a.values, i, a.cols);
        for (int64_t k = 0; k < a.cols; ++k) {
            if (b.is_selection) {
                const int64_t j = b.columns[static_cast<size_t>(k)];
                if (j >= 0) out[j] += left[k] * b.values[static_cast<size_t>(k)];
                continue;
            }
            const double* from = row_of(b.values, k, b.cols);
            for (int64_t j = 0; j < b.cols; ++j) out[j] += left[k] * from[j];
        }
    }
    return dense_map(a.rows, b.cols, std::move(values));
}

Map sum(const Map& a, const Map& b) {
    STIPPLE_ASSERT(a.rows == b.rows && a.cols == b.cols);
    if (a.is_selection && b.is_selection) {
        Map out = a;
        bool fits = true;
        for (size_t i = 0; i < out.columns.size() && fits; ++i) {
            if (b.columns[i] < 0) continue;
            fits = out.columns[i] < 0 || out.columns[i] == b.columns[i];
            out.values[i] = out.columns[i] < 0 ? b.values[i] : out.values[i] + b.values[i];
            out.columns[i] = b.columns[i];
        }
        if (fits) return out;
    }
    std::vector<double> values = dense_values(a);
    const std::vector<double> more = dense_values(b);
    for (size_t i = 0; i < values.size(); ++i) values[i] += more[i];
    return dense_map(a.rows, a.cols, std::move(values));
}

Map scaled(Map map, double factor) {
    for (double& value : map.values) value *= factor;
    return map;
}

bool has_bias(const Form& form) {
    return std::any_of(form.bias.begin(), form.bias.end(), [](double b) { return b != 0; });
}

bool is_pure(const Form& form) {
    return form.terms.size() == 1 && is_identity(form.terms[0].map) && !has_bias(form);
}

void add_term(Form& form, Term term) {
    if (is_zero(term.map)) return;
    for (Term& old : form.terms) {
        if (old.link != term.link) continue;
        old.map = sum(old.map, term.map);
        return;
    }
    form.terms.push_back(std::move(term));
}

Form apply(const Map& map, const Form& form) {
    Form out{form.type, {}, std::vector<double>(static_cast<size_t>(map.rows), 0.0)};
    out.type.channels = map.rows;
    for (const Term& term : form.terms) add_term(out, {term.link, product(map, term.map)});
    if (has_bias(form)) out.bias = product(map, dense_map(map.cols, 1, form.bias)).values;
    return out;
}

Form sum(Form a, const Form& b) {
    STIPPLE_ASSERT(a.type == b.type);
    for (const Term& term : b.terms) add_term(a, term);
    for (size_t i = 0; i < a.bias.size(); ++i) a.bias[i] += b.bias[i];
    return a;
}

Form placed(const Form& form, int64_t at, int64_t channels) {
    std::vector<int64_t> columns(static_cast<size_t>(channels), -1);
    std::iota(columns.begin() + at, columns.begin() + at + form.type.channels, int64_t{0});
    return apply(selection(form.type.channels, std::move(columns)), form);
}

Form selected(const Form& form, const std::vector<int64_t>& channels) {
    return apply(selection(form.type.channels, channels), form);
}

bool compose(const Link& outer, const Link& inner, Link& out) {
    out = inner;
    if (outer.access == Access::row) return true;
    if (inner.access == Access::cloud) return true;  // every row of a cloud sees the same
    if (inner.access != Access::row) return false;
    out.access = outer.access;
    out.indices = outer.indices;
    return true;
}

}  // namespace stipple::engine::lowering
