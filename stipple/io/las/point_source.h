#pragma once
// Point records of a file, compressed (LAZ) or not.

#include "stipple/io/las/unpack.h"
#include "stipple/io/laz/reader.h"

namespace stipple::io::las {

class PointSource {
public:
    /// `reader` stands behind the records. All must live as long as this.
    PointSource(ByteReader& reader, const Header& header, const Records& records, Warnings& warnings);

    /// Whether so many points may be in the file that memory for all of them can be asked for at once.
    bool bounded() const { return bounded_; }

    void read(std::byte* to, int64_t count);

    /// Memory grows with what has arrived.
    Buffer read_buffer(int64_t count);

private:
    ByteReader& reader_;
    int64_t record_;
    bool bounded_;
    std::optional<laz::Reader> compressed_;
};

}  // namespace stipple::io::las
