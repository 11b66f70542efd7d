// Arrays as the inputs of networks.

#include <algorithm>

#include "python/bindings/engine/objects.h"

namespace stipple::python {
namespace {

py::object offsets_for(const py::object& offsets, const std::string& name, int32_t set) {
    if (PyDict_Check(offsets.ptr())) {
        const auto key = str_of(name);
        return PyDict_Contains(offsets.ptr(), key.ptr()) == 1 ? py::object(offsets[key]) : py::none();
    }
    return set == 0 ? offsets : py::none();
}

/// [.., w, c] as rows of c numbers, and the form of the points that have w of them.
std::pair<View<const float, 2>, BatchForm> wide_rows(Call& call, const py::object& object, const char* name,
                                                     const network::TensorType& type, const py::object& offsets) {
    const ArrayInfo info = call.any(object, name);
    if (info.dtype != DType::f32)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is float32", name, name_of(info.dtype)));
    const int last = info.rank - 1;
    const bool is_right = (info.rank == 3 || info.rank == 4) && info.shape[last] == type.channels &&
                          info.shape[last - 1] == type.width && (offsets.is_none() || info.rank == 3);
    STIPPLE_REQUIRE(is_right, "{}: an array of shape {}; wanted is {}, or [N, {}, {}] for one cloud", name,
                    shape_of(info), network::to_string(type), type.width, type.channels);
    BatchForm form;
    if (!offsets.is_none()) {
        form.shape = BatchForm::Shape::ragged;
        form.batch = ops::Batch::ragged(whole_numbers(offsets, "offsets"));
        STIPPLE_REQUIRE(form.rows() == info.shape[0], "{}: {} points, but its offsets end with {}", name, info.shape[0],
                        form.rows());
    } else if (info.rank == 3) {
        form.batch = ops::Batch::single(info.shape[0]);
    } else {
        form.shape = BatchForm::Shape::dense;
        form.batch = ops::Batch::dense(info.shape[0], info.shape[1]);
        form.size = info.shape[1];
    }
    return {View<const float, 2>(static_cast<const float*>(info.data), {form.rows() * type.width, type.channels},
                                 info.device),
            form};
}

/// [b, c], or [c] of a single cloud.
View<const float, 2> cloud_rows(Call& call, const py::object& object, const char* name, const network::TensorType& type,
                                RowsByName& rows) {
    const ArrayInfo info = call.any(object, name);
    if (info.dtype != DType::f32)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is float32", name, name_of(info.dtype)));
    STIPPLE_REQUIRE((info.rank == 1 || info.rank == 2) && info.shape[info.rank - 1] == type.channels,
                    "{}: an array of shape {}; wanted is {}, or [{}] for one cloud", name, shape_of(info),
                    network::to_string(type), type.channels);
    const int64_t clouds = info.rank == 1 ? 1 : info.shape[0];
    if (rows.sets.empty() && rows.clouds == 0) rows.clouds = clouds, rows.is_single = info.rank == 1;
    return {static_cast<const float*>(info.data), {clouds, type.channels}, info.device};
}

}  // namespace

const BatchForm* RowsByName::form_of(int32_t set) const {
    for (const auto& [number, form] : sets)
        if (number == set) return &form;
    return nullptr;
}

std::vector<ops::Batch> RowsByName::batches() const {
    std::vector<ops::Batch> made;
    for (const auto& [number, form] : sets) made.push_back(form.batch);
    if (made.empty()) made.push_back(ops::Batch::dense(clouds, 1));
    return made;
}

RowsByName rows_by_name(Call& call, const std::vector<NamedType>& types, const py::object& inputs,
                        const py::object& offsets) {
    py::dict given;
    if (PyDict_Check(inputs.ptr())) {
        given = py::reinterpret_borrow<py::dict>(inputs);
    } else {
        STIPPLE_REQUIRE(types.size() == 1, "inputs: the network has {} of them: give a dict by name", types.size());
        given[str_of(types[0].name)] = inputs;
    }
    for (const auto& item : given) {
        const std::string name = text_of(item.first, "inputs");
        const auto is_it = [&](const NamedType& type) { return type.name == name; };
        if (std::any_of(types.begin(), types.end(), is_it)) continue;
        std::vector<std::string_view> known;
        for (const NamedType& type : types) known.emplace_back(type.name);
        refuse_word(name, "inputs", std::move(known));
    }
    RowsByName rows;
    const auto read = [&](network::Level level) {
        for (const NamedType& each : types) {
            if (each.type.level != level) continue;
            const auto key = str_of(each.name);
            STIPPLE_REQUIRE(PyDict_Contains(given.ptr(), key.ptr()) == 1, "inputs: \"{}\" is missing, {}", each.name,
                            network::to_string(each.type));
            const py::object array = given[key];
            if (level == network::Level::cloud) {
                rows.inputs.push_back({each.name, cloud_rows(call, array, each.name.c_str(), each.type, rows)});
                continue;
            }
            const py::object ends = offsets_for(offsets, each.name, each.type.set);
            BatchForm form;
            if (each.type.width == 1) {
                const CloudsArgument clouds = call.clouds(array, each.name.c_str(), ends, each.type.channels);
                rows.inputs.push_back({each.name, clouds.clouds.rows});
                form = clouds.form;
            } else {
                const auto [view, wide_form] = wide_rows(call, array, each.name.c_str(), each.type, ends);
                rows.inputs.push_back({each.name, view});
                form = wide_form;
            }
            if (!rows.form_of(each.type.set)) rows.sets.emplace_back(each.type.set, form);
        }
    };
    read(network::Level::point);
    std::sort(rows.sets.begin(), rows.sets.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!rows.sets.empty())
        rows.clouds = rows.sets[0].second.clouds(), rows.is_single = rows.sets[0].second.is_single();
    read(network::Level::cloud);
    return rows;
}

}  // namespace stipple::python
