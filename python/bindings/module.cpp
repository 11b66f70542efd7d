// import stipple._stipple: everything that is bound, in the folders of the C++ library.

#include "python/bindings/module.h"

#include <string>

#include "python/bindings/common/call.h"
#include "python/bindings/common/errors.h"

namespace stipple::python {

py::module_ add_folder(py::module_& module, const char* name, const char* documentation) {
    py::module_ folder = module.def_submodule(name, documentation);
    folder.attr("__name__") = std::string("stipple.") + name;  // what functions take as their __module__
    return folder;
}

}  // namespace stipple::python

PYBIND11_MODULE(_stipple, module) {
    using namespace stipple::python;
    module.attr("__name__") = "stipple";  // what classes and functions take as their __module__
    bind_errors(module);
    bind_array(module);
    bind_process(module);
    module.def("_trace_addresses", &trace_addresses);
    module.attr("__name__") = "stipple._stipple";
    py::module_ io = add_folder(module, "io", "Files of clouds, meshes and arrays: docs/formats.md.");
    bind_clouds(io);
    bind_files(io);
    bind_streams(io);
    bind_arrays(io);
    py::module_ ops = add_folder(module, "ops", "Operations on points: docs/ops.md.");
    bind_search(ops);
    bind_sampling(ops);
    bind_grouping(ops);
    bind_weights(ops);
    bind_distance(ops);
    bind_emd(ops);
    bind_products(ops);
    bind_training(ops);
    py::module_ geometry = add_folder(module, "geometry", "Points, meshes and scans.");
    bind_transforms(geometry);
    bind_normals(geometry);
    bind_queries(geometry);
    bind_meshes(geometry);
    bind_surfaces(geometry);
    bind_registration(geometry);
    bind_scans(geometry);
    py::module_ picture = add_folder(module, "picture", "Pictures of clouds, meshes and numbers.");
    bind_figures(picture);
    bind_charts(picture);
    bind_cameras(io);
    py::module_ metrics = add_folder(module, "metrics", "Measures of clouds: docs/metrics.md.");
    bind_metrics_points(metrics);
    bind_metrics_surface(metrics);
    bind_metrics_recognition(metrics);
    bind_metrics_evaluate(metrics);
    py::module_ network = add_folder(module, "network", "Networks as data, and their weights.");
    bind_network(network);
    bind_builder(network);
    bind_network_weights(network);
    py::module_ models = add_folder(module, "models", "Networks by name.");
    bind_models(models);
    py::module_ engine = add_folder(module, "engine", "Networks compiled for a device: docs/engine.md.");
    bind_calibration(engine);
    bind_engine(engine);
    py::module_ radiance = add_folder(module, "radiance", "Voxel radiance fields: docs/radiance.md.");
    bind_radiance_field(radiance);
    bind_radiance_training(radiance);
    py::module_ tasks = add_folder(module, "tasks", "What the program's commands do.");
    bind_tasks_networks(tasks);
    bind_tasks_clouds(tasks);
    bind_tasks_registration(tasks);
    bind_tasks_evaluation(tasks);
}
