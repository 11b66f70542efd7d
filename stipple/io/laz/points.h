#pragma once
// The points of one chunk, one after the other.

#include <memory>
#include <optional>

#include "stipple/io/laz/decoder.h"

namespace stipple::io::laz {

/// The parts that a point record is made of, by their numbers in the file.
enum class Part : uint16_t {
    bytes = 0,
    point10 = 6,
    time11 = 7,
    color12 = 8,
    point14 = 10,
    color14 = 11,
    color_nir14 = 12,
    bytes14 = 14
};

struct Item {
    Part part = Part::bytes;
    int64_t bytes = 0;
};

/// What the record "laszip encoded" 22204 says.
struct Description {
    bool layered = false;
    std::optional<int64_t> chunk_points;  // none: each chunk has its own number
    std::vector<Item> items;
};

class ChunkDecoder {
public:
    virtual ~ChunkDecoder() = default;
    /// The next record behind the first of its chunk.
    virtual void next(std::byte* record) = 0;
};

/// Old point formats: all parts of a point behind those of the last one, in one stream that starts with `feed`. `first`
/// is the first record of the chunk, which is not coded.
std::unique_ptr<ChunkDecoder> decode_pointwise(const std::vector<Item>& items, const std::byte* first, ByteFeed& feed);

/// Bytes of a part's fields, each coded in a stream of its own; none: the field is the same in all points of the chunk.
using Layers = std::vector<Buffer>;

/// How many layers a part has.
int64_t layers_of(const Item& item);

/// New point formats: `layers` of all items in their order; `at` is the place of the chunk in the file, for errors.
std::unique_ptr<ChunkDecoder> decode_layered(const std::vector<Item>& items, const std::byte* first, Layers layers,
                                             int64_t at);

}  // namespace stipple::io::laz
