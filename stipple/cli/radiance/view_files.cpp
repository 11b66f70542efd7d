#include "stipple/cli/radiance/view_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <spawn.h>

#include "stipple/io/image_file.h"
#include "stipple/io/npy.h"
#include "stipple/picture/color_map.h"
#include "stipple/radiance/view_images.h"

namespace stipple::cli {
namespace {

/// Near is bright, nothing is black.
Image depth_image(const radiance::RenderedView& view) {
    const auto [least, most] = radiance::depth_range(view);
    Image image(view.depth.size(1), view.depth.size(0), 3);
    for (int64_t i = 0; i < view.depth.elements(); ++i) {
        const float depth = view.depth.data()[i];
        const double near = most > least ? (most - depth) / (most - least) : 1;
        const picture::Rgb colour =
            std::isfinite(depth) ? picture::map_color(picture::ColorMap::viridis, near) : picture::Rgb{};
        uint8_t* to = image.pixels.data() + 3 * i;
        to[0] = colour.r, to[1] = colour.g, to[2] = colour.b;
    }
    return image;
}

void save_depth(const std::string& path, const Array<float, 3>& depth) {
    io::NpyArray array;
    array.shape = {depth.size(0), depth.size(1)};
    array.data = Buffer(static_cast<int64_t>(depth.span().size_bytes()));
    copy_bytes(array.data.data(), {}, depth.data(), {}, array.data.bytes());
    AtomicFile file(path, Overwrite::refuse);
    io::write_npy_array(array, file);
    file.commit();
}

/// In a pattern of ffmpeg a % has a meaning.
std::string as_pattern(const std::string& text) {
    std::string pattern;
    for (char c : text) pattern += c == '%' ? "%%" : std::string(1, c);
    return pattern;
}

/// The exit status; -1 where it could not be started.
int run_quietly(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
    pid_t child = -1;
    const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed) return -1;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

void save_view(const std::string& folder, int64_t number, const radiance::RenderedView& view) {
    const std::string name = fmt::format("{}/{:04}", folder, number);
    io::save_png(name + ".png", radiance::colour_image(view), Overwrite::refuse);
    if (view.depth.elements() == 0) return;
    save_depth(name + "_depth.npy", view.depth);
    io::save_png(name + "_depth.png", depth_image(view), Overwrite::refuse);
    io::save_png(name + "_normal.png", radiance::normal_image(view), Overwrite::refuse);
    io::save_png(name + "_alpha.png", radiance::alpha_image(view), Overwrite::refuse);
}

std::string make_video(const std::string& folder, int frames_per_second) {
    const int status = run_quietly({"ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-framerate",
                                    std::to_string(frames_per_second), "-i", as_pattern(folder) + "/%04d.png", "-vf",
                                    "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", folder + "/video.mp4"});
    if (status == 0) return {};
    ::unlink((folder + "/video.mp4").c_str());
    if (status == -1 || status == 127) return "ffmpeg is not on the PATH";
    return fmt::format("ffmpeg ended with status {}", status);
}

}  // namespace stipple::cli
