#include "stipple/io/las.h"

#include <algorithm>

#include "stipple/io/las/point_source.h"

namespace stipple::io {

using namespace las;

Mesh parse_las(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    constexpr int64_t kChunkBytes = int64_t{4} << 20;  // read at a time
    const Header header = read_header(reader, warnings);
    Records records = read_records(reader, header, warnings);
    const std::vector<Column> columns = file_columns(header, records, warnings);
    const size_t standard = columns.size() - records.extra.size();
    PointSource points(reader, header, records, warnings);

    Mesh mesh;
    PointCloud& cloud = mesh.vertices;
    IntBounds bounds;
    if (points.bounded()) {
        allocate(columns, header.count, cloud);
        const int64_t step = std::max<int64_t>(1, kChunkBytes / header.record);
        Buffer chunk(std::min(header.count, step) * header.record);
        for (int64_t done = 0; done < header.count; done += step) {
            const int64_t count = std::min(step, header.count - done);
            points.read(chunk.data(), count);
            bounds.add(unpack(chunk.data(), header.record, columns, done, count, cloud));
        }
    } else {
        // The points must have arrived before memory is given to their columns.
        const Buffer bytes = points.read_buffer(header.count);
        allocate(columns, header.count, cloud);
        bounds = unpack(bytes.data(), header.record, columns, 0, header.count, cloud);
    }
    cloud.origin = origin_of(header, records, cloud);
    place_positions(header, bounds, cloud);
    if (!(records.own_origin && cloud.origin == header.offset)) warn_coarse(header, bounds, cloud.origin, warnings);
    read_extended(reader, reader.offset(), header, records, warnings);
    scale_extra(records, standard, cloud);
    resolve_names(cloud, standard);
    if (records.own_origin) restore_own(cloud, records.own);
    cloud.facts = facts_of(header, records);
    return mesh;
}

}  // namespace stipple::io
