#include "stipple/metrics/protocol.h"

#include <fmt/format.h>

#include <string>

#include "stipple/core/error.h"

namespace stipple::metrics {
namespace {

template <class Value>
struct Named {
    Value value;
    std::string_view name;
};

constexpr Named<Protocol> kProtocols[] = {
    {Protocol::pu_gan, kProtocolWords[0]}, {Protocol::pudm, kProtocolWords[1]}, {Protocol::raw, kProtocolWords[2]}};
constexpr Named<Extra> kExtras[] = {{Extra::chamfer, "chamfer"}, {Extra::hausdorff, "hausdorff"},
                                    {Extra::f_score, "f_score"}, {Extra::jsd, "jsd"},
                                    {Extra::emd, "emd"},         {Extra::emd_exact, "emd_exact"},
                                    {Extra::surface, "surface"}, {Extra::normals, "normals"},
                                    {Extra::density, "density"}, {Extra::uniformity, "uniformity"},
                                    {Extra::nuc, "nuc"}};
constexpr Named<FloorSampling> kFloors[] = {{FloorSampling::farthest, "farthest"}, {FloorSampling::uniform, "uniform"}};

template <class Value, size_t N>
Value by_name(const Named<Value> (&table)[N], std::string_view name, std::string_view what) {
    std::string known;
    for (const auto& row : table) {
        if (row.name == name) return row.value;
        known += known.empty() ? "" : ", ";
        known += row.name;
    }
    throw Error(ErrorCode::bad_argument, fmt::format("{} {}: there are {}", what, name, known));
}

template <class Value, size_t N>
std::string_view name_in(const Named<Value> (&table)[N], Value value) {
    for (const auto& row : table)
        if (row.value == value) return row.name;
    return "";
}

}  // namespace

Protocol protocol_by_name(std::string_view name) {
    return by_name(kProtocols, name, "protocol");
}

std::string_view name_of(Protocol protocol) {
    return name_in(kProtocols, protocol);
}

std::span<const Extra> all_extras() {
    static constexpr Extra kAll[] = {Extra::chamfer, Extra::hausdorff,  Extra::f_score, Extra::jsd,
                                     Extra::emd,     Extra::emd_exact,  Extra::surface, Extra::normals,
                                     Extra::density, Extra::uniformity, Extra::nuc};
    return kAll;
}

Extra extra_by_name(std::string_view name) {
    return by_name(kExtras, name, "metric");
}

std::string_view name_of(Extra extra) {
    return name_in(kExtras, extra);
}

FloorSampling floor_sampling_by_name(std::string_view name) {
    return by_name(kFloors, name, "sampling of the floor");
}

std::string_view name_of(FloorSampling sampling) {
    return name_in(kFloors, sampling);
}

}  // namespace stipple::metrics
