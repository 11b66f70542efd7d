#pragma once
// Where trained weights are found by name.

#include <string>
#include <vector>

namespace stipple::tasks {

/// What is used where no model is named.
inline constexpr const char* kClassifierWeights = "pointnet-cls";
inline constexpr const char* kPartsWeights = "pointnet-parts";
inline constexpr const char* kUpsamplerWeights = "upsampler";
inline constexpr const char* kAutoencoderWeights = "autoencoder";
inline constexpr const char* kPoseWeights = "pcrnet";

/// The folders that are searched, first to last: $STIPPLE_WEIGHTS (several, with ':' between them),
/// share/stipple/weights of the prefix that the running program is installed in, and, for a program that lies in a
/// build folder of a checkout, the checkout's weights/.
std::vector<std::string> weights_folders();

/// Paths of existing files stay as they are; a name without a folder ("pointnet-cls", with or without
/// .safetensors) is searched in weights_folders(). What is not found comes back unchanged, for its reader to say so.
std::string find_weights(const std::string& path_or_name);

/// The path of weights that should be installed, by name. Throws Error{bad_file} that says where they were looked for.
std::string shipped_weights(const std::string& name);

/// Names that find_weights() finds, without extension, sorted.
std::vector<std::string> list_weights();

}  // namespace stipple::tasks
