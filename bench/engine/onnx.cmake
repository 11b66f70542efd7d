# PointNet as an ONNX file, for peers that read one.
add_executable(export_onnx ${CMAKE_CURRENT_LIST_DIR}/export_onnx.cpp)
target_link_libraries(export_onnx PRIVATE stipple::models stipple_flags)
