# mesh_bench: mesh queries and surface samples beside bare Embree, Open3D and CGAL, each left out where it is not installed.
add_executable(mesh_bench mesh_bench.cpp)
target_link_libraries(mesh_bench PRIVATE stipple_bench stipple::geometry stipple::io stipple_flags)
stipple_bench_peer(mesh_bench mesh_peer_embree.cpp embree "${STIPPLE_WITH_EMBREE}" LINK embree)
stipple_bench_peer(mesh_bench mesh_peer_open3d.cpp open3d "${Open3D_FOUND}" LINK Open3D::Open3D TBB::tbb)
stipple_bench_peer(mesh_bench mesh_peer_cgal.cpp cgal "${CGAL_FOUND}" OPTIONS -march=native -Wno-psabi LINK CGAL::CGAL)
