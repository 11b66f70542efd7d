#include "stipple/learn/upsampling/virtual_scan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/geometry/cast_rays.h"
#include "stipple/learn/upsampling/patch_cut.h"

namespace stipple::learn {
namespace {

constexpr double kLongestEdge = 0.02;            // of a piece, in radii of the mesh
constexpr double kGrazing = 0.1;                 // cosine between normal and ray below which a surface is not seen
constexpr double kNearest = 1.6, kFarthest = 4;  // distances of stations, in radii
constexpr double kBeam = 0.01;                   // radians
constexpr double kJump = 0.08;                   // difference of ranges at which a beam meets two surfaces
constexpr float kStart = 1e-3f;                  // of a ray, so that it does not hit where it begins
constexpr double kPlane = 1.5;                   // half of the edge of the plane below the mesh
constexpr double kTwice = 0.2, kDark = 1.0 / 3;  // shares of scans
constexpr double kLeastApart = 0.03, kMostApart = 0.15;  // of two sheets
constexpr double kLeastDark = 0.03, kMostDark = 0.2;     // radii of dark places
constexpr int kMostDarkPlaces = 6;

struct Piece {
    Vec3d corners[3];
    int32_t face = 0;
};

/// Halves the longest edge until none is too long.
void cut(const Piece& piece, std::vector<Piece>& pieces) {
    int longest = 0;
    double square = 0;
    for (int edge = 0; edge < 3; ++edge) {
        const Vec3d along = piece.corners[(edge + 1) % 3] - piece.corners[edge];
        if (dot(along, along) > square) square = dot(along, along), longest = edge;
    }
    if (square <= kLongestEdge * kLongestEdge) {
        pieces.push_back(piece);
        return;
    }
    const Vec3d &a = piece.corners[longest], &b = piece.corners[(longest + 1) % 3],
                &c = piece.corners[(longest + 2) % 3], middle = 0.5 * (a + b);
    cut({{a, middle, c}, piece.face}, pieces);
    cut({{middle, b, c}, piece.face}, pieces);
}

Vec3d vertex(const Mesh& mesh, int32_t i) {
    const float* at = mesh.vertices.positions.data() + 3 * int64_t{i};
    return {at[0], at[1], at[2]};
}

Piece face_of(const Mesh& mesh, int32_t face) {
    const int32_t* corners = mesh.triangles.data() + 3 * int64_t{face};
    return {{vertex(mesh, corners[0]), vertex(mesh, corners[1]), vertex(mesh, corners[2])}, face};
}

/// A mesh and a square below it.
Mesh on_a_plane(const Mesh& mesh, const Vec3d& up) {
    double lowest = INFINITY;
    const int64_t n = mesh.vertices.size(), m = mesh.faces();
    for (int64_t i = 0; i < 3 * m; ++i) lowest = std::min(lowest, dot(vertex(mesh, mesh.triangles.data()[i]), up));
    const Vec3d u = unit(cross(up, std::abs(up.x) < 0.6 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0})), v = cross(up, u);
    Mesh both;
    both.vertices = PointCloud(n + 4);
    std::copy_n(mesh.vertices.positions.data(), 3 * n, both.vertices.positions.data());
    for (int corner = 0; corner < 4; ++corner) {
        const Vec3d at = lowest * up + (corner % 2 == 0 ? -kPlane : kPlane) * u + (corner < 2 ? -kPlane : kPlane) * v;
        for (int axis = 0; axis < 3; ++axis)
            both.vertices.positions.data()[3 * (n + corner) + axis] = static_cast<float>(at[axis]);
    }
    both.triangles = Array<int32_t, 2>({m + 2, 3});
    std::copy_n(mesh.triangles.data(), 3 * m, both.triangles.data());
    const auto first = static_cast<int32_t>(n);
    const int32_t square[6] = {first, first + 1, first + 2, first + 1, first + 3, first + 2};
    std::copy_n(square, 6, both.triangles.data() + 3 * m);
    return both;
}

/// A mesh and the same mesh beside it.
Mesh beside_itself(const Mesh& mesh, const Vec3d& offset) {
    const int64_t n = mesh.vertices.size(), m = mesh.faces();
    Mesh both;
    both.vertices = PointCloud(2 * n);
    both.triangles = Array<int32_t, 2>({2 * m, 3});
    for (int64_t i = 0; i < 3 * n; ++i) {
        const float at = mesh.vertices.positions.data()[i];
        both.vertices.positions.data()[i] = at;
        both.vertices.positions.data()[3 * n + i] = at + static_cast<float>(offset[static_cast<int>(i % 3)]);
    }
    for (int64_t i = 0; i < 3 * m; ++i) {
        const int32_t corner = mesh.triangles.data()[i];
        both.triangles.data()[i] = corner;
        both.triangles.data()[3 * m + i] = corner + static_cast<int32_t>(n);
    }
    return both;
}

/// A ball; what lies in it is not seen.
struct DarkPlace {
    Vec3d centre;
    double radius = 0;
};

/// Around corners of faces, as far as chance has it.
std::vector<DarkPlace> dark_places(const Mesh& mesh, const Rng& rng) {
    std::vector<DarkPlace> places;
    if (rng.uniform(600) >= kDark || mesh.faces() == 0) return places;
    const uint64_t count = 1 + rng.below(601, kMostDarkPlaces);
    for (uint64_t i = 0; i < count; ++i) {
        const uint32_t corner = rng.below(602 + 2 * i, static_cast<uint32_t>(3 * mesh.faces()));
        places.push_back({vertex(mesh, mesh.triangles.data()[corner]),
                          kLeastDark + (kMostDark - kLeastDark) * rng.uniform(603 + 2 * i)});
    }
    return places;
}

/// Where scanners stand and where they look; a view is a cone around the latter.
struct Stations {
    std::vector<Vec3d> places, targets;
    double view = -1;  // cosine of half its angle
};

Stations place_stations(const Vec3d& up, const Rng& rng) {
    Stations stations;
    const double kind = rng.uniform(0), away = kNearest + (kFarthest - kNearest) * rng.uniform(1);
    if (kind < 1.0 / 3) {  // a turntable
        const Vec3d u = unit(cross(up, std::abs(up.x) < 0.6 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0})), v = cross(up, u);
        const double elevation = 0.2 + 0.5 * rng.uniform(2), first = 2 * std::numbers::pi * rng.uniform(3);
        for (int i = 0; i < 3; ++i) {
            const double angle = first + 2 * std::numbers::pi * i / 3;
            stations.places.push_back(
                away * (std::cos(elevation) * (std::cos(angle) * u + std::sin(angle) * v) + std::sin(elevation) * up));
        }
    } else {
        const int count = kind < 2.0 / 3 ? 1 + static_cast<int>(rng.below(4, 2)) : 1;
        for (int i = 0; i < count; ++i) {
            Vec3d to = random_direction(rng, static_cast<uint64_t>(8 + 8 * i));
            if (dot(to, up) < 0) to = to - 2 * dot(to, up) * up;  // not from below the plane
            stations.places.push_back((away + 0.3 * i) * to);
        }
        if (kind >= 2.0 / 3) stations.view = std::cos(0.15 + 0.35 * rng.uniform(5));
    }
    for (size_t i = 0; i < stations.places.size(); ++i)
        stations.targets.push_back(0.5 * rng.uniform(32 + i) * random_direction(rng, 40 + 8 * i));
    return stations;
}

/// Finds the nearest station that sees each piece; -1: none does.
std::vector<int32_t> who_sees(const Mesh& scene, const std::vector<Piece>& pieces, const Stations& stations) {
    const geometry::MeshIndex index(scene);
    std::vector<int32_t> seen(pieces.size(), -1);
    std::vector<double> ranges(pieces.size(), INFINITY);
    const auto m = static_cast<int64_t>(pieces.size());
    Array<float, 2> origins({m, 3}), directions({m, 3});
    Array<uint8_t, 1> hit({m});
    for (size_t s = 0; s < stations.places.size(); ++s) {
        const Vec3d &station = stations.places[s], look = unit(stations.targets[s] - station);
        for (int64_t i = 0; i < m; ++i) {
            const Piece& piece = pieces[static_cast<size_t>(i)];
            const Vec3d middle = (1.0 / 3) * (piece.corners[0] + piece.corners[1] + piece.corners[2]),
                        to = station - middle;
            for (int axis = 0; axis < 3; ++axis) {
                origins.data()[3 * i + axis] = static_cast<float>(middle[axis]);
                directions.data()[3 * i + axis] = static_cast<float>(to[axis]);
            }
        }
        geometry::any_hit(index, {origins.view(), directions.view(), kStart, 1}, hit.view());
        for (int64_t i = 0; i < m; ++i) {
            const auto at = static_cast<size_t>(i);
            const Piece& piece = pieces[at];
            const Vec3d middle = (1.0 / 3) * (piece.corners[0] + piece.corners[1] + piece.corners[2]),
                        to = station - middle,
                        normal = cross(piece.corners[1] - piece.corners[0], piece.corners[2] - piece.corners[0]);
            const double range = length(to);
            const bool is_facing = std::abs(dot(normal, to)) > kGrazing * range * length(normal);
            if (hit.data()[i] || !is_facing || -dot(to, look) < stations.view * range || range >= ranges[at]) continue;
            seen[at] = static_cast<int32_t>(s);
            ranges[at] = range;
        }
    }
    return seen;
}

}  // namespace

VirtualScan scan_virtually(const Mesh& mesh, const Rng& rng) {
    const Vec3d up = random_direction(rng, 100);
    const double apart = kLeastApart + (kMostApart - kLeastApart) * rng.uniform(105);
    const Mesh twice =
        rng.uniform(106) < kTwice ? beside_itself(mesh, apart * random_direction(rng, 108)) : mesh.clone();
    Mesh standing = rng.uniform(104) < 0.5f ? on_a_plane(twice, up) : twice.clone();
    const Stations stations = place_stations(up, rng);
    std::vector<Piece> pieces;
    std::vector<size_t> first;  // piece of each face, and their number
    for (int32_t face = 0; face < standing.faces(); ++face) {
        first.push_back(pieces.size());
        cut(face_of(standing, face), pieces);
    }
    first.push_back(pieces.size());
    std::vector<int32_t> seen = who_sees(standing, pieces, stations);
    for (const DarkPlace& dark : dark_places(mesh, rng))
        for (size_t i = 0; i < pieces.size(); ++i)
            if (length(pieces[i].corners[0] - dark.centre) < dark.radius) seen[i] = -1;

    VirtualScan scan;
    scan.places = stations.places;
    std::vector<Piece> parts;
    const auto keep = [&](const Piece& piece, int32_t station) {
        parts.push_back(piece);
        scan.stations.push_back(station);
    };
    for (int32_t face = 0; face < standing.faces(); ++face) {
        const size_t begin = first[static_cast<size_t>(face)], end = first[static_cast<size_t>(face) + 1];
        if (std::all_of(seen.begin() + static_cast<int64_t>(begin), seen.begin() + static_cast<int64_t>(end),
                        [](int32_t station) { return station >= 0; })) {
            keep(face_of(standing, face), seen[begin]);
            continue;
        }
        for (size_t i = begin; i < end; ++i)
            if (seen[i] >= 0) keep(pieces[i], seen[i]);
    }
    scan.scene = std::move(standing);
    const auto faces = static_cast<int64_t>(parts.size());
    scan.surface.vertices = PointCloud(3 * faces);
    scan.surface.triangles = Array<int32_t, 2>({faces, 3});
    for (int64_t i = 0; i < 3 * faces; ++i) {
        scan.surface.triangles.data()[i] = static_cast<int32_t>(i);
        const Vec3d& corner = parts[static_cast<size_t>(i / 3)].corners[i % 3];
        for (int axis = 0; axis < 3; ++axis)
            scan.surface.vertices.positions.data()[3 * i + axis] = static_cast<float>(corner[axis]);
    }
    return scan;
}

ScanErrors scan_errors(const VirtualScan& scan, View<const float, 2> points, View<const int32_t, 1> faces,
                       const Rng& rng) {
    const int64_t n = points.size(0);
    ScanErrors errors{Array<float, 2>({n, 3}), Array<float, 2>({n, 3})};
    Array<float, 2> origins({n, 3}), directions({n, 3});
    Array<float, 1> t({n});
    std::vector<double> ranges(static_cast<size_t>(n));
    double sum = 0;
    const auto station_of = [&](int64_t i) {
        return scan.places[static_cast<size_t>(scan.stations[static_cast<size_t>(faces(i))])];
    };
    const auto point = [&](int64_t i) { return Vec3d{points(i, 0), points(i, 1), points(i, 2)}; };
    for (int64_t i = 0; i < n; ++i) {
        const Vec3d away = point(i) - station_of(i);
        ranges[static_cast<size_t>(i)] = length(away);
        sum += length(away);
        const Vec3d beam = unit(away) + kBeam * random_direction(rng, static_cast<uint64_t>(8 * i));
        for (int axis = 0; axis < 3; ++axis) {
            origins.data()[3 * i + axis] = static_cast<float>(station_of(i)[axis]);
            directions.data()[3 * i + axis] = static_cast<float>(beam[axis]);
        }
    }
    geometry::first_hit(geometry::MeshIndex(scan.scene), {origins.view(), directions.view()}, {t.view(), {}, {}});
    const double mean = sum / static_cast<double>(std::max<int64_t>(n, 1));
    for (int64_t i = 0; i < n; ++i) {
        const double range = ranges[static_cast<size_t>(i)];
        const Vec3d away = (1 / range) * (point(i) - station_of(i));
        const Piece face = face_of(scan.surface, faces(i));
        const Vec3d normal = unit(cross(face.corners[1] - face.corners[0], face.corners[2] - face.corners[0]));
        const double slope = 1 / std::clamp(std::abs(dot(normal, away)), 1.0 / 3, 1.0);
        const double jump = static_cast<double>(t.data()[i]) - range;  // infinite where the beam meets nothing else
        const bool is_mixed = std::isfinite(jump) && std::abs(jump) > kJump;
        const double part = is_mixed ? jump * rng.uniform(static_cast<uint64_t>(8 * i + 4)) : 0;
        for (int axis = 0; axis < 3; ++axis) {
            errors.noise.data()[3 * i + axis] = static_cast<float>(-slope * range / mean * away[axis]);
            errors.mixed.data()[3 * i + axis] = static_cast<float>(part * away[axis]);
        }
    }
    return errors;
}

}  // namespace stipple::learn
