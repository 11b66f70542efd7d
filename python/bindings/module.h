#pragma once
// One function for each source of the bindings. module.cpp calls them in order.

#include "python/bindings/common/bind.h"

namespace stipple::python {

void bind_array(py::module_& module);    // core/array.cpp
void bind_process(py::module_& module);  // core/process.cpp: threads, devices, fork, interrupts

void bind_search(py::module_& ops);  // ops/
void bind_sampling(py::module_& ops);
void bind_grouping(py::module_& ops);
void bind_weights(py::module_& ops);
void bind_distance(py::module_& ops);
void bind_emd(py::module_& ops);
void bind_products(py::module_& ops);
void bind_training(py::module_& ops);

void bind_clouds(py::module_& io);  // io/
void bind_files(py::module_& io);
void bind_streams(py::module_& io);
void bind_arrays(py::module_& io);
void bind_cameras(py::module_& io);

void bind_transforms(py::module_& geometry);  // geometry/
void bind_normals(py::module_& geometry);
void bind_queries(py::module_& geometry);
void bind_meshes(py::module_& geometry);
void bind_surfaces(py::module_& geometry);
void bind_registration(py::module_& geometry);
void bind_scans(py::module_& geometry);

void bind_figures(py::module_& picture);  // picture/
void bind_charts(py::module_& picture);

void bind_metrics_points(py::module_& metrics);  // metrics/
void bind_metrics_surface(py::module_& metrics);
void bind_metrics_recognition(py::module_& metrics);
void bind_metrics_evaluate(py::module_& metrics);

void bind_network(py::module_& network);  // network/
void bind_builder(py::module_& network);
void bind_network_weights(py::module_& network);
void bind_models(py::module_& models);

void bind_calibration(py::module_& engine);  // engine/
void bind_engine(py::module_& engine);

void bind_radiance_field(py::module_& radiance);  // radiance/
void bind_radiance_training(py::module_& radiance);

void bind_tasks_networks(py::module_& tasks);  // tasks/
void bind_tasks_clouds(py::module_& tasks);
void bind_tasks_registration(py::module_& tasks);
void bind_tasks_evaluation(py::module_& tasks);

/// stipple.NAME as a module of its own within the library; functions bound in it say that they are stipple.NAME's.
py::module_ add_folder(py::module_& module, const char* name, const char* documentation);

}  // namespace stipple::python
