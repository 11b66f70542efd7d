# confidence_study: what tells right poses from wrong ones, on simulated scans.
add_executable(confidence_study confidence_study.cpp ${PROJECT_SOURCE_DIR}/tests/geometry/simulated_scans.cpp)
target_include_directories(confidence_study PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(confidence_study PRIVATE stipple::tasks stipple::io stipple_flags)
# scan_study: real scans from any pose.
add_executable(scan_study scan_study.cpp)
target_include_directories(scan_study PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(scan_study PRIVATE stipple::tasks stipple::io stipple_flags)
# odometry_bench: drift and rate on a simulated drive.
add_executable(odometry_bench odometry_bench.cpp)
target_include_directories(odometry_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(odometry_bench PRIVATE stipple::tasks stipple::io stipple_flags)
