# normals_bench: normals, orientation and outliers beside Open3D and PCL, each left out where it is not installed.
find_package(PCL QUIET COMPONENTS common kdtree search filters features)
add_executable(normals_bench normals_bench.cpp)
target_link_libraries(normals_bench PRIVATE stipple_bench stipple::geometry stipple::io stipple_flags)
stipple_bench_peer(normals_bench normals_peer_open3d.cpp open3d "${Open3D_FOUND}" LINK Open3D::Open3D)
stipple_bench_peer(normals_bench normals_peer_pcl.cpp pcl "${PCL_FOUND}" LINK ${PCL_LIBRARIES})
