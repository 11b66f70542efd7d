# stipple_torch: LibTorch as Debian packages it (libtorch-dev), or as a Python wheel brings it (STIPPLE_TORCH: the folder
# of its `torch` package). Its own CMake files ask for packages that are not installed, so the few paths are found here.
set(STIPPLE_TORCH "" CACHE PATH "Folder of a wheel's torch package; empty: what the system has")
find_path(STIPPLE_TORCH_HEADERS torch/csrc/api/include/torch/torch.h HINTS ${STIPPLE_TORCH}/include)
if(NOT STIPPLE_TORCH_HEADERS)
    message(FATAL_ERROR "stipple: LibTorch is missing. Install it with: apt-get install libtorch-dev (or scripts/bootstrap.sh learn), or set STIPPLE_TORCH to the folder of a wheel")
endif()
add_library(stipple_torch INTERFACE)
if(STIPPLE_TORCH AND EXISTS ${STIPPLE_TORCH_HEADERS}/fmt)
    # A wheel brings headers of another fmt than the one that is linked, and its folder is searched before the system's.
    find_path(STIPPLE_FMT_HEADERS fmt/core.h PATHS /usr/include /usr/local/include NO_DEFAULT_PATH REQUIRED)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fmt_before_torch)
    file(CREATE_LINK ${STIPPLE_FMT_HEADERS}/fmt ${CMAKE_BINARY_DIR}/fmt_before_torch/fmt SYMBOLIC)
    target_include_directories(stipple_torch SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/fmt_before_torch)
endif()
target_include_directories(stipple_torch SYSTEM INTERFACE ${STIPPLE_TORCH_HEADERS} ${STIPPLE_TORCH_HEADERS}/torch/csrc/api/include)
if(STIPPLE_TORCH)
    # A wheel's libraries export std::filesystem functions of the compiler that built them, whose classes are laid out
    # otherwise: the system's library must be searched first.
    target_link_libraries(stipple_torch INTERFACE stdc++)
endif()
foreach(name torch torch_cpu c10 torch_cuda c10_cuda)
    find_library(STIPPLE_TORCH_${name} ${name} HINTS ${STIPPLE_TORCH}/lib)
    if(STIPPLE_TORCH_${name})
        target_link_libraries(stipple_torch INTERFACE ${STIPPLE_TORCH_${name}})
    elseif(NOT name MATCHES "cuda")
        message(FATAL_ERROR "stipple: LibTorch's library ${name} is missing")
    endif()
endforeach()
# The libraries register their kernels when they are loaded: none may be dropped because no symbol of it is named.
target_link_options(stipple_torch INTERFACE LINKER:--no-as-needed)
if(STIPPLE_WITH_CUDA)
    target_include_directories(stipple_torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})  # for c10/cuda
endif()
