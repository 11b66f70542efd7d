#pragma once
// Growing a file by whole records.

#include <string>
#include <string_view>

namespace stipple {

/// Writes all of `bytes` to a file that was opened with O_APPEND. Where that fails the file is cut back to what it was
/// (a process that is killed leaves a part, which a reader of the format must expect) and Error{cannot_write} thrown.
void append_whole(int fd, const std::string& path, std::string_view bytes);

}  // namespace stipple
