#pragma once
// What the bindings of io share: options of reading and writing, bytes in memory.

#include <string>

#include "python/bindings/common/values.h"
#include "stipple/core/byte_sink.h"
#include "stipple/io/format.h"

namespace stipple::python {

/// From a dict of names of io::Limits, or None.
io::Limits limits_of(const py::object& limits);
/// `on_progress` is called with the GIL; what it raises ends the reading.
io::ReadOptions read_options(int64_t item, const py::object& limits, const py::object& on_progress);
io::WriteOptions write_options(bool ascii, bool compressed, bool keep_16_bit, const NumbersLike& scale,
                               const NumbersLike& offset);

inline py::bytes bytes_of(MemorySink& sink) {
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

}  // namespace stipple::python
