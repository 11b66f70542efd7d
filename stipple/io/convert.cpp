#include "stipple/io/convert.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "stipple/core/parallel.h"

namespace stipple::io {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;
constexpr double kExact = 9007199254740992.0;  // from 2^53 on a double does not tell one integer from the next

template <class T>
bool convert(const Attribute& from, Attribute& to) {
    Attribute result(from.name(), to.dtype(), from.rows(), from.components());
    T* out = reinterpret_cast<T*>(result.data());
    const int64_t size = size_of(from.dtype());
    std::atomic<bool> exact{true};
    parallel_for(from.rows() * from.components(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double value = load_as_double(from.dtype(), from.data() + i * size);
            bool fits = size < 8 || is_float(from.dtype()) || std::abs(value) < kExact;
            if constexpr (std::is_integral_v<T>)
                fits = fits && value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                       value <= static_cast<double>(std::numeric_limits<T>::max()) && std::abs(value) < kExact &&
                       value == std::floor(value);
            else
                fits = fits && (static_cast<double>(static_cast<T>(value)) == value || std::isnan(value));
            if (!fits) {
                exact.store(false, std::memory_order_relaxed);
                return;
            }
            out[i] = static_cast<T>(value);
        }
    });
    if (exact) to = std::move(result);
    return exact;
}

}  // namespace

bool convert_exactly(const Attribute& from, DType dtype, Attribute& to) {
    Attribute result(from.name(), dtype, 0, from.components());
    bool exact = false;
    switch (dtype) {
        case DType::u8: exact = convert<uint8_t>(from, result); break;
        case DType::i8: exact = convert<int8_t>(from, result); break;
        case DType::u16: exact = convert<uint16_t>(from, result); break;
        case DType::i16: exact = convert<int16_t>(from, result); break;
        case DType::u32: exact = convert<uint32_t>(from, result); break;
        case DType::i32: exact = convert<int32_t>(from, result); break;
        case DType::u64: exact = convert<uint64_t>(from, result); break;
        case DType::i64: exact = convert<int64_t>(from, result); break;
        case DType::f32: exact = convert<float>(from, result); break;
        case DType::f64: exact = convert<double>(from, result); break;
        case DType::boolean: exact = convert<bool>(from, result); break;
        case DType::f16:
        case DType::bf16: break;
    }
    if (exact) to = std::move(result);
    return exact;
}

}  // namespace stipple::io
