#include "stipple/radiance/train/constants.h"

namespace stipple::radiance {

void unpack_network(const std::vector<float>& numbers, ColourNetwork& to) {
    to = {};
    for (int unit = 0; unit < kHidden; ++unit) {
        const auto row = numbers.begin() + unit * kNetworkInputs;
        to.weight1.insert(to.weight1.end(), row, row + kNetworkInputs - 1);
        to.bias1.push_back(row[kNetworkInputs - 1]);
    }
    const auto at = [&](int i) { return numbers.begin() + i; };
    to.weight2.assign(at(kWeight2), at(kBias2));
    to.bias2.assign(at(kBias2), at(kWeight3));
    to.weight3.assign(at(kWeight3), at(kBias3));
    to.bias3.assign(at(kBias3), at(kNetworkNumbers));
}

std::vector<float> pack_network(const ColourNetwork& network) {
    std::vector<float> numbers;
    numbers.reserve(kNetworkNumbers);
    for (int unit = 0; unit < kHidden; ++unit) {
        const auto row = network.weight1.begin() + unit * (kNetworkInputs - 1);
        numbers.insert(numbers.end(), row, row + kNetworkInputs - 1);
        numbers.push_back(network.bias1[static_cast<size_t>(unit)]);
    }
    for (const std::vector<float>* part : {&network.weight2, &network.bias2, &network.weight3, &network.bias3}) {
        numbers.insert(numbers.end(), part->begin(), part->end());
    }
    return numbers;
}

}  // namespace stipple::radiance
