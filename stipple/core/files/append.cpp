#include "stipple/core/append.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "stipple/core/error.h"

namespace stipple {

void append_whole(int fd, const std::string& path, std::string_view bytes) {
    const auto fail_writing = [&](int error) {
        throw Error(ErrorCode::cannot_write, Place{path}, fmt::format("cannot write: {}", std::strerror(error)));
    };
    struct stat status {};
    if (::fstat(fd, &status) != 0) fail_writing(errno);
    for (size_t done = 0; done < bytes.size();) {
        const ssize_t count = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const int error = errno;
            if (::ftruncate(fd, status.st_size) != 0) {  // its next reader repairs it
            }
            fail_writing(error);
        }
        done += static_cast<size_t>(count);
    }
}

}  // namespace stipple
