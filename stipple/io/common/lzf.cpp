#include "stipple/io/common/lzf.h"

#include <algorithm>
#include <cstring>

namespace stipple::io {

bool lzf_decompress(std::span<const std::byte> input, std::span<std::byte> output) {
    size_t in = 0, out = 0;
    while (in < input.size()) {
        const auto control = static_cast<size_t>(input[in++]);
        if (control < 32) {  // a run of literals
            const size_t length = control + 1;
            if (length > input.size() - in || length > output.size() - out) return false;
            std::memcpy(output.data() + out, input.data() + in, length);
            in += length;
            out += length;
            continue;
        }
        size_t length = control >> 5;
        if (length == 7) {
            if (in == input.size()) return false;
            length += static_cast<size_t>(input[in++]);
        }
        length += 2;
        if (in == input.size()) return false;
        const size_t distance = ((control & 31) << 8 | static_cast<size_t>(input[in++])) + 1;
        if (distance > out || length > output.size() - out) return false;
        for (size_t i = 0; i < length; ++i, ++out) output[out] = output[out - distance];  // may overlap itself
    }
    return out == output.size();
}

std::vector<std::byte> lzf_compress(std::span<const std::byte> input) {
    constexpr size_t kMaxDistance = 8192, kMaxLength = 264, kTable = size_t{1} << 14;
    std::vector<std::byte> output;
    output.reserve(input.size() / 2 + 16);
    std::vector<int64_t> last(kTable, -1);
    size_t literals = 0;  // where the pending run begins
    const auto flush = [&](size_t end) {
        while (literals < end) {
            const size_t length = std::min<size_t>(32, end - literals);
            output.push_back(static_cast<std::byte>(length - 1));
            output.insert(output.end(), input.begin() + static_cast<ptrdiff_t>(literals),
                          input.begin() + static_cast<ptrdiff_t>(literals + length));
            literals += length;
        }
    };
    const auto hash_at = [&](size_t i) {
        const uint32_t three = static_cast<uint32_t>(input[i]) | static_cast<uint32_t>(input[i + 1]) << 8 |
                               static_cast<uint32_t>(input[i + 2]) << 16;
        return (three * 2654435761u) >> 18;
    };
    for (size_t i = 0; i + 3 <= input.size();) {
        int64_t& slot = last[hash_at(i)];
        const int64_t candidate = slot;
        slot = static_cast<int64_t>(i);
        const size_t distance = i - static_cast<size_t>(candidate);
        if (candidate < 0 || distance > kMaxDistance ||
            std::memcmp(input.data() + candidate, input.data() + i, 3) != 0) {
            ++i;
            continue;
        }
        size_t length = 3;
        const size_t most = std::min(kMaxLength, input.size() - i);
        while (length < most && input[static_cast<size_t>(candidate) + length] == input[i + length]) ++length;
        flush(i);
        const size_t code = length - 2, back = distance - 1;
        output.push_back(static_cast<std::byte>(std::min<size_t>(code, 7) << 5 | back >> 8));
        if (code >= 7) output.push_back(static_cast<std::byte>(code - 7));
        output.push_back(static_cast<std::byte>(back & 255));
        i += length;
        literals = i;
    }
    flush(input.size());
    return output;
}

}  // namespace stipple::io
