# icp_bench: ICP beside Open3D and PCL, each left out where it is not installed. icp_study: ICP on scans of known poses.
find_package(PCL QUIET COMPONENTS common kdtree search registration)
add_executable(icp_study icp_study.cpp)
target_link_libraries(icp_study PRIVATE stipple::geometry stipple::io stipple_flags)
add_executable(icp_bench icp_bench.cpp)
target_link_libraries(icp_bench PRIVATE stipple_bench stipple::geometry stipple::io stipple_flags)
stipple_bench_peer(icp_bench icp_peer_open3d.cpp open3d "${Open3D_FOUND}" LINK Open3D::Open3D)
stipple_bench_peer(icp_bench icp_peer_pcl.cpp pcl "${PCL_FOUND}" LINK ${PCL_LIBRARIES})
