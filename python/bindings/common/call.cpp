#include "python/bindings/common/call.h"

#include <fmt/format.h>

#include "stipple/core/synchronize.h"

namespace stipple::python {
namespace {

void require_dtype(const ArrayInfo& info, const char* name, DType wanted) {
    if (info.dtype == wanted) [[likely]]
        return;
    throw py::type_error(fmt::format("{}: an array of {}; wanted is {}: stipple.asarray({}, \"{}\") converts it", name,
                                     name_of(info.dtype), name_of(wanted), name, name_of(wanted)));
}

void require_contiguous(const ArrayInfo& info, const char* name) {
    STIPPLE_REQUIRE(info.is_contiguous(),
                    "{}: its numbers are not adjacent, row after row (shape {}, strides {}): stipple.asarray({}) "
                    "copies them",
                    name, shape_of(info), shape_text(info.strides, info.rank), name);
}

/// Those of a contiguous array: a dimension of one element, and all of an empty one, may come with any.
void settle_strides(ArrayInfo& info) {
    const std::vector<int64_t> shape(info.shape, info.shape + info.rank);
    info.set_shape(shape);
}

[[noreturn]] void refuse_shape(const ArrayInfo& info, const char* name, const std::string& wanted) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("{}: an array of shape {}; wanted is {} (stipple.asarray({}) makes "
                            "an array of lists and of other types)",
                            name, shape_of(info), wanted, name));
}

/// Joins the first two dimensions.
ArrayInfo joined(ArrayInfo info) {
    info.shape[0] = checked_mul(info.shape[0], info.shape[1]);
    info.strides[0] = info.strides[1];
    for (int i = 1; i + 1 < info.rank; ++i) info.shape[i] = info.shape[i + 1], info.strides[i] = info.strides[i + 1];
    --info.rank;
    return info;
}

std::string any_rank(int trailing) {
    static const char* const kNames[] = {"", ", c", ", q, k"};
    const char* rest = kNames[trailing];
    return fmt::format("[n{}], [b, n{}], or [total{}] with offsets", rest, rest, rest);
}

ops::Batch ragged(std::vector<int64_t> offsets, const char* name) {
    try {
        return ops::Batch::ragged(std::move(offsets));
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", name, error.message()));
    }
}

/// A whole number by its __index__; false, and no error, for what has none.
bool whole_number(py::handle object, const char* name, int64_t& number) {
    const auto found = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!found) {
        PyErr_Clear();
        return false;
    }
    int overflow = 0;
    number = PyLong_AsLongLongAndOverflow(found.ptr(), &overflow);
    STIPPLE_REQUIRE(overflow == 0, "{}: a number beyond 64 bits", name);
    return true;
}

BatchForm form_of(const ArrayInfo& info, const char* name, const py::object& offsets, int trailing) {
    BatchForm form;
    if (!offsets.is_none()) {
        if (info.rank != 1 + trailing) refuse_shape(info, name, any_rank(trailing) + ": offsets were given");
        form.shape = BatchForm::Shape::ragged;
        form.batch = ragged(whole_numbers(offsets, fmt::format("offsets of {}", name).c_str()), name);
        STIPPLE_REQUIRE(form.rows() == info.shape[0], "{}: {} rows, but its offsets end with {}", name, info.shape[0],
                        form.rows());
    } else if (info.rank == 1 + trailing) {
        form.batch = ops::Batch::single(info.shape[0]);
    } else if (info.rank == 2 + trailing) {
        form.shape = BatchForm::Shape::dense;
        form.batch = ops::Batch::dense(info.shape[0], info.shape[1]);
        form.size = info.shape[1];
    } else {
        refuse_shape(info, name, any_rank(trailing));
    }
    return form;
}

PyObject* g_trace = nullptr;

}  // namespace

void trace_address(const char* name, const void* address) {
    if (g_trace) [[unlikely]]
        py::handle(g_trace).attr("append")(py::make_tuple(name, reinterpret_cast<uintptr_t>(address)));
}

void trace_addresses(py::object list) {
    Py_XDECREF(g_trace);
    g_trace = list.is_none() ? nullptr : list.release().ptr();
}

std::vector<int64_t> BatchForm::rows_shape() const {
    if (shape == Shape::dense) return {clouds(), size};
    return {rows()};
}

std::vector<int64_t> BatchForm::clouds_shape() const {
    if (is_single()) return {};
    return {clouds()};
}

ArrayInfo Call::take(const py::object& object, const char* name) {
    Foreign found = describe(object, name);
    trace_address(name, found.info.data);
    if (!has_first_) {
        has_first_ = true;
        first_name_ = name;
        device_ = found.info.device;
        stream_ = found.stream;
    } else {
        STIPPLE_REQUIRE(found.info.device == device_,
                        "{}: on {}, while {} is on {}: stipple.asarray({}, device=\"{}\") copies it", name,
                        found.info.device, first_name_, device_, name, device_);
    }
    if (!has_kind_) {
        has_kind_ = true;
        kind_ = found.kind;
        like_ = object;
        stream_ = found.stream;
    } else if (found.stream.handle != stream_.handle) {  // of another library: its work must be done before ours
        without_gil([&] { synchronize(device_, found.stream); });
    }
    if (found.owner) owners_.push_back(std::move(found.owner));
    return found.info;
}

ArrayInfo Call::taken_to_write(const py::object& object, const char* name) {
    const ArrayInfo info = take(object, name);
    STIPPLE_REQUIRE(info.is_writable, "{}: is written, but the array is read-only; a copy of it would be lost", name);
    return info;
}

void Call::set_device(Device device, const char* name) {
    has_first_ = true;
    first_name_ = name;
    device_ = device;
}

CloudsArgument Call::clouds(const py::object& object, const char* name, const py::object& offsets, int64_t columns) {
    ArrayInfo info = take(object, name);
    require_dtype(info, name, DType::f32);
    BatchForm form = form_of(info, name, offsets, 1);
    const int last = info.rank - 1;
    STIPPLE_REQUIRE(columns < 0 || info.shape[last] == columns, "{}: an array of shape {}; wanted are {} numbers a row",
                    name, shape_of(info), columns);
    const bool is_empty = info.elements() == 0;
    STIPPLE_REQUIRE(is_empty || ((info.shape[last] <= 1 || info.strides[last] == 1) &&
                                 (info.shape[last - 1] <= 1 || info.strides[last - 1] >= 0)),
                    "{}: the {} numbers of a row must be adjacent, and rows ascend (shape {}, strides {}): "
                    "stipple.asarray({}) copies them",
                    name, info.shape[last], shape_of(info), shape_text(info.strides, info.rank), name);
    if (info.rank == 3) {
        if (info.shape[1] == 1 && info.strides[0] >= 0) info.strides[1] = info.strides[0];  // of one point: any
        STIPPLE_REQUIRE(is_empty || info.shape[0] <= 1 || info.strides[0] == info.shape[1] * info.strides[1],
                        "{}: the clouds of a dense batch must follow each other (shape {}, strides {}): "
                        "stipple.asarray({}) copies them",
                        name, shape_of(info), shape_text(info.strides, info.rank), name);
        info = joined(info);
    }
    if (is_empty || info.shape[1] <= 1) info.strides[1] = 1;
    if (is_empty || info.shape[0] <= 1) info.strides[0] = info.shape[1];
    return {ops::Clouds(view<const float, 2>(info), form.batch), std::move(form)};
}

NeighboursArgument Call::neighbours(const py::object& object, const char* name, const py::object& offsets,
                                    bool k_given) {
    ArrayInfo info = take(object, name);
    require_dtype(info, name, DType::i32);
    BatchForm form = form_of(info, name, offsets, k_given ? 1 : 0);
    require_contiguous(info, name);
    const int64_t k = k_given ? info.shape[info.rank - 1] : 1;
    const View<const int32_t, 2> indices(static_cast<const int32_t*>(info.data), {form.rows(), k}, info.device);
    return {ops::Neighbours(indices, form.batch), std::move(form)};
}

ArrayInfo Call::plain(ArrayInfo info, const char* name, DType dtype, int rank) {
    require_dtype(info, name, dtype);
    STIPPLE_REQUIRE(info.rank == rank, "{}: an array of shape {}; wanted are {} dimensions", name, shape_of(info),
                    rank);
    require_contiguous(info, name);
    settle_strides(info);
    return info;
}

ArrayInfo Call::fold(ArrayInfo info, const char* name, DType dtype, int rank) {
    require_dtype(info, name, dtype);
    STIPPLE_REQUIRE(info.rank >= rank, "{}: an array of shape {}; wanted are at least {} dimensions", name,
                    shape_of(info), rank);
    require_contiguous(info, name);
    settle_strides(info);
    while (info.rank > rank) info = joined(info);
    return plain(info, name, dtype, rank);
}

ArrayInfo Call::flat_rows(ArrayInfo info, const char* name, DType dtype, int rank, const BatchForm& form) {
    require_dtype(info, name, dtype);
    const std::vector<int64_t> wanted = form.rows_shape();
    const bool is_batched =
        info.rank == rank + 1 && wanted.size() == 2 && info.shape[0] == wanted[0] && info.shape[1] == wanted[1];
    if (!is_batched && !(info.rank == rank && info.shape[0] == form.rows()))
        refuse_shape(info, name,
                     fmt::format("{} rows, {} dimensions in all", shape_text(wanted.data(), int(wanted.size())),
                                 rank - 1 + int(wanted.size())));
    require_contiguous(info, name);
    settle_strides(info);
    return plain(is_batched ? joined(info) : info, name, dtype, rank);
}

ArrayInfo Call::flat_clouds(ArrayInfo info, const char* name, DType dtype, int rank, const BatchForm& form) {
    require_dtype(info, name, dtype);
    require_contiguous(info, name);
    if (form.is_single() && info.rank == rank - 1) {
        for (int i = info.rank; i > 0; --i) info.shape[i] = info.shape[i - 1];
        info.shape[0] = 1;
        ++info.rank;
        const std::vector<int64_t> shape(info.shape, info.shape + info.rank);
        info.set_shape(shape);
    }
    if (info.rank != rank || info.shape[0] != form.clouds())
        refuse_shape(info, name, fmt::format("one row for each of {} clouds, {} dimensions", form.clouds(), rank));
    return plain(info, name, dtype, rank);
}

ArrayInfo Call::any(const py::object& object, const char* name) {
    const ArrayInfo info = take(object, name);
    require_contiguous(info, name);
    return info;
}

ArrayInfo Call::any_writable(const py::object& object, const char* name) {
    const ArrayInfo info = taken_to_write(object, name);
    require_contiguous(info, name);
    return info;
}

namespace {
void require_matrix(const ArrayInfo& info, const char* name) {
    if (info.dtype != DType::f32 && info.dtype != DType::f16 && info.dtype != DType::bf16)
        require_dtype(info, name, DType::f32);
    if (info.rank != 2) refuse_shape(info, name, "[rows, columns]");
}
}  // namespace

ops::MatrixView Call::matrix(const py::object& object, const char* name) {
    const ArrayInfo info = any(object, name);
    require_matrix(info, name);
    return {info.data, info.dtype, info.shape[0], info.shape[1], info.device};
}

std::pair<ops::MatrixView, BatchForm> Call::batch_matrix(const py::object& object, const char* name,
                                                         const py::object& offsets) {
    ArrayInfo info = any(object, name);
    BatchForm form = form_of(info, name, offsets, 1);
    if (info.rank == 3) info = joined(info);
    require_matrix(info, name);
    return {{info.data, info.dtype, info.shape[0], info.shape[1], info.device}, std::move(form)};
}

ops::MutableMatrixView Call::writable_matrix(const py::object& object, const char* name) {
    const ArrayInfo info = any_writable(object, name);
    require_matrix(info, name);
    return {info.data, info.dtype, info.shape[0], info.shape[1], info.device};
}

Buffer Call::allocate(DType dtype, std::span<const int64_t> shape) {
    int64_t bytes = size_of(dtype);
    for (int64_t extent : shape) bytes = checked_mul(bytes, extent);
    if (kind_ != Kind::torch || bytes == 0) return Buffer(bytes, device_);
    const py::gil_scoped_acquire held;  // a search knows only in its middle how much it found
    py::object tensor = empty_tensor(dtype, shape, device_);
    if (tensor.is_none()) return Buffer(bytes, device_);
    void* data = tensor_data(tensor);
    tensors_.emplace_back(data, tensor);
    return Buffer::borrowed(data, bytes, device_, keep(std::move(tensor)));
}

ArrayResult Call::give_shaped(Shared numbers, DType dtype, const std::vector<int64_t>& leading,
                              std::span<const int64_t> rest) const {
    ArrayObject array;
    int64_t shape[kMostDimensions];
    size_t rank = 0;
    for (int64_t extent : leading) shape[rank++] = extent;
    for (int64_t extent : rest) shape[rank++] = extent;
    trace_address("", numbers.data);
    for (const auto& [address, tensor] : tensors_)
        if (address == numbers.data)
            return py::reinterpret_steal<ArrayResult>(tensor_as(tensor, dtype, {shape, rank}).release());
    array.info.set_shape({shape, rank});
    array.info.data = numbers.data;
    array.info.dtype = dtype;
    array.info.device = device_;
    array.owner = std::move(numbers.owner);
    array.stream = stream_;
    return py::reinterpret_steal<ArrayResult>(give_as(std::move(array), kind_, like_).release());
}

ArrayResult Call::give(Buffer&& buffer, DType dtype, std::span<const int64_t> shape) const {
    auto owner = std::make_shared<Buffer>(std::move(buffer));
    void* data = owner->data();
    return give_shaped({std::move(owner), data}, dtype, {}, shape);
}

std::vector<int64_t> whole_numbers(py::handle object, const char* name) {
    std::vector<int64_t> numbers;
    if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) {
        const Foreign found = describe(object, name);
        const ArrayInfo& info = found.info;
        if (info.dtype != DType::i64 && info.dtype != DType::i32) require_dtype(info, name, DType::i64);
        STIPPLE_REQUIRE(info.rank == 1, "{}: an array of shape {}; wanted is one dimension", name, shape_of(info));
        STIPPLE_REQUIRE(info.device == Device{}, "{}: on {}; they are read on the CPU", name, info.device);
        numbers.resize(static_cast<size_t>(info.shape[0]));
        for (size_t i = 0; i < numbers.size(); ++i) {
            const int64_t at = static_cast<int64_t>(i) * info.strides[0];
            numbers[i] = info.dtype == DType::i64 ? static_cast<const int64_t*>(info.data)[at]
                                                  : static_cast<const int32_t*>(info.data)[at];
        }
        return numbers;
    }
    for (py::handle item : object) {
        int64_t number = 0;
        if (!whole_number(item, name, number))
            throw py::type_error(fmt::format("{}: {} is no whole number", name, type_name(item)));
        numbers.push_back(number);
    }
    return numbers;
}

BatchForm sample_form(const py::object& samples, const char* name, const BatchForm& points) {
    BatchForm form;
    int64_t count = 0;
    if (PyIndex_Check(samples.ptr()) && whole_number(samples, name, count)) {
        STIPPLE_REQUIRE(count >= 0, "{}: {} of each cloud", name, count);
        form.shape = points.is_single() ? BatchForm::Shape::single : BatchForm::Shape::dense;
        form.batch = ops::Batch::dense(points.clouds(), count);
        form.size = count;
        return form;
    }
    if (samples.is_none() || PyFloat_Check(samples.ptr()) || PyUnicode_Check(samples.ptr()))
        throw py::type_error(
            fmt::format("{}: {}; wanted is a whole number, or one for each cloud", name, type_name(samples)));
    const std::vector<int64_t> counts = whole_numbers(samples, name);
    STIPPLE_REQUIRE(static_cast<int64_t>(counts.size()) == points.clouds(), "{}: {} numbers for {} clouds", name,
                    counts.size(), points.clouds());
    std::vector<int64_t> offsets{0};
    for (int64_t each : counts) {
        STIPPLE_REQUIRE(each >= 0, "{}: {} of a cloud", name, each);
        offsets.push_back(checked_add(offsets.back(), each));
    }
    form.shape = BatchForm::Shape::ragged;
    form.batch = ops::Batch::ragged(std::move(offsets));
    return form;
}

void refuse_word(std::string_view text, const char* name, std::vector<std::string_view> known) {
    std::string list;
    for (size_t i = 0; i < known.size(); ++i)
        list += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == known.size() ? " or " : ", ", known[i]);
    throw Error(ErrorCode::bad_argument, fmt::format("{}: \"{}\"; wanted is {}", name, text, list));
}

}  // namespace stipple::python
