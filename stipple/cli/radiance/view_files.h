#pragma once
// The files of rendered views: a folder of numbered pictures, and a video of them.

#include "stipple/core/atomic_folder.h"
#include "stipple/radiance/render.h"

namespace stipple::cli {

/// "0007": numbers of views in the names of files.
inline constexpr int kMostViews = 9999;

/// NNNN.png; with geometry also NNNN_depth.npy (float32 [height, width], infinity where nothing is), NNNN_depth.png
/// (near is bright), NNNN_normal.png and NNNN_alpha.png.
void save_view(const std::string& folder, int64_t number, const radiance::RenderedView& view);

/// The pictures NNNN.png of a folder as video.mp4 beside them, by ffmpeg. Returns why there is none; empty: it is
/// there.
std::string make_video(const std::string& folder, int frames_per_second);

}  // namespace stipple::cli
