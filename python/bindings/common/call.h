#pragma once
// Call: the arguments and results of one function. The first array given to it decides what results are: its kind
// (numpy, torch, ...), device and stream; all others must be on that device.
//
//   [](const ArrayLike& points, const ArrayLike& weights) {
//       Call call;
//       const CloudsArgument p = call.clouds(points, "points", offsets);         // [n, c], [b, n, c], or ragged
//       const auto w = call.rows<float, 2>(weights, "weights", p.form);          // [rows, k], contiguous
//       auto out = call.make<float, 2>({p.form.rows(), 3});
//       call.run([&](Stream stream) { ops::some_op(p.clouds, w, out.view(), stream); });   // without the GIL
//       return call.give_rows(std::move(out), p.form);                           // [n, 3], [b, n, 3] or [total, 3]
//   }
//
// Nothing is copied or cast. What does not fit is refused by the argument's name: TypeError for element types,
// Error{bad_argument}, a ValueError, for shapes, strides and devices. Each message says how stipple.asarray helps.

#include <vector>

#include "python/bindings/common/foreign.h"
#include "stipple/core/array.h"
#include "stipple/ops/clouds.h"
#include "stipple/ops/matrix_view.h"
#include "stipple/ops/neighbours.h"

namespace stipple::python {

/// How a batch was given, and so how results of it look.
struct BatchForm {
    enum class Shape { single, dense, ragged };
    Shape shape = Shape::single;
    ops::Batch batch;
    int64_t size = 0;  // points of each cloud of a dense batch, which may hold none

    int64_t rows() const { return batch.rows(); }
    int64_t clouds() const { return batch.clouds(); }
    bool is_single() const { return shape == Shape::single; }
    /// [n] or [b, n] or [total]
    std::vector<int64_t> rows_shape() const;
    /// [] or [clouds]
    std::vector<int64_t> clouds_shape() const;
};

struct CloudsArgument {
    ops::Clouds clouds;
    BatchForm form;
};

struct NeighboursArgument {
    ops::Neighbours neighbours;
    BatchForm form;
};

class Call {
public:
    /// [n, c] one cloud; [b, n, c] a dense batch; [total, c] with offsets a ragged one. float32, the numbers of a row
    /// adjacent, rows any distance apart. c >= 0 when `columns` is -1, else exactly so many.
    CloudsArgument clouds(const py::object& object, const char* name, const py::object& offsets = py::none(),
                          int64_t columns = -1);
    /// int32, contiguous: [m, k], [b, m, k], or [total, k] with offsets. `k_given` false: one index a row, [m] or
    /// [b, m] or [total].
    NeighboursArgument neighbours(const py::object& object, const char* name, const py::object& offsets = py::none(),
                                  bool k_given = true);

    /// Exactly this rank, contiguous.
    template <class T, int Rank>
    View<const T, Rank> array(const py::object& object, const char* name) {
        return view<const T, Rank>(plain(take(object, name), name, dtype_of<T>, Rank));
    }
    /// Rows of a batch: [rows, ...], or [b, n, ...] as the batch was given; contiguous.
    template <class T, int Rank>
    View<const T, Rank> rows(const py::object& object, const char* name, const BatchForm& form) {
        return view<const T, Rank>(flat_rows(take(object, name), name, dtype_of<T>, Rank, form));
    }
    /// One row for each cloud: [clouds, ...]; of a single cloud also without that dimension.
    template <class T, int Rank>
    View<const T, Rank> per_cloud(const py::object& object, const char* name, const BatchForm& form) {
        return view<const T, Rank>(flat_clouds(take(object, name), name, dtype_of<T>, Rank, form));
    }
    /// The same with None for an empty view.
    template <class T, int Rank>
    View<const T, Rank> array_or_none(const py::object& object, const char* name) {
        return object.is_none() ? View<const T, Rank>() : array<T, Rank>(object, name);
    }
    template <class T, int Rank>
    View<const T, Rank> rows_or_none(const py::object& object, const char* name, const BatchForm& form) {
        return object.is_none() ? View<const T, Rank>() : rows<T, Rank>(object, name, form);
    }
    template <class T, int Rank>
    View<const T, Rank> per_cloud_or_none(const py::object& object, const char* name, const BatchForm& form) {
        return object.is_none() ? View<const T, Rank>() : per_cloud<T, Rank>(object, name, form);
    }
    /// All leading dimensions joined into the first of Rank; contiguous.
    template <class T, int Rank>
    View<const T, Rank> folded(const py::object& object, const char* name) {
        return view<const T, Rank>(fold(take(object, name), name, dtype_of<T>, Rank));
    }
    /// Written in place. Refuses what is read-only.
    template <class T, int Rank>
    View<T, Rank> writable(const py::object& object, const char* name) {
        return view<T, Rank>(plain(taken_to_write(object, name), name, dtype_of<T>, Rank));
    }
    /// [rows, columns] of float32, float16 or bfloat16, contiguous.
    ops::MatrixView matrix(const py::object& object, const char* name);
    ops::MutableMatrixView writable_matrix(const py::object& object, const char* name);
    /// The rows of a batch as a matrix: [n, k], [b, n, k], or [total, k] with offsets.
    std::pair<ops::MatrixView, BatchForm> batch_matrix(const py::object& object, const char* name,
                                                       const py::object& offsets);
    /// Any contiguous array.
    ArrayInfo any(const py::object& object, const char* name);
    ArrayInfo any_writable(const py::object& object, const char* name);

    /// A function whose arrays come later (an index): what results are like, unless an array says otherwise.
    void set_device(Device device, const char* name);

    Device device() const { return device_; }
    Kind kind() const { return kind_; }

    /// Memory for a result: of torch's allocator where results are tensors, so that a CUDA graph that torch captures
    /// may hold the call.
    template <class T, int Rank>
    Array<T, Rank> make(std::array<int64_t, Rank> shape) {
        return {allocate(dtype_of<T>, {shape.data(), shape.size()}), shape};
    }
    /// The same for a type that is known at run time.
    Buffer allocate(DType dtype, std::span<const int64_t> shape);

    /// Work that touches no Python object, with the GIL released, on the stream of the arguments.
    template <class Work>
    void run(Work&& work) {
        without_gil([&] { work(stream_); });
    }

    /// As it is.
    template <class T, int Rank>
    ArrayResult give(Array<T, Rank>&& array) const {
        const auto shape = array.shape();
        return give_shaped(shared(std::move(array)), dtype_of<T>, {}, {shape.data(), shape.size()});
    }
    /// The first dimension, rows of a batch, in the shape that the batch was given in.
    template <class T, int Rank>
    ArrayResult give_rows(Array<T, Rank>&& array, const BatchForm& form) const {
        const auto shape = array.shape();
        return give_shaped(shared(std::move(array)), dtype_of<T>, form.rows_shape(),
                           {shape.data() + 1, shape.size() - 1});
    }
    /// The first dimension, one for each cloud; a single cloud has no such dimension.
    template <class T, int Rank>
    ArrayResult give_clouds(Array<T, Rank>&& array, const BatchForm& form) const {
        const auto shape = array.shape();
        return give_shaped(shared(std::move(array)), dtype_of<T>, form.clouds_shape(),
                           {shape.data() + 1, shape.size() - 1});
    }
    /// As many numbers in the shape of another array.
    template <class T, int Rank>
    ArrayResult give_as_shape(Array<T, Rank>&& array, const ArrayInfo& like) const {
        return give_shaped(shared(std::move(array)), dtype_of<T>, {}, {like.shape, static_cast<size_t>(like.rank)});
    }
    /// Numbers of a type that is known at run time.
    ArrayResult give(Buffer&& buffer, DType dtype, std::span<const int64_t> shape) const;

private:
    /// Numbers, and what keeps them alive.
    struct Shared {
        std::shared_ptr<void> owner;
        void* data;
    };
    template <class T, int Rank>
    static Shared shared(Array<T, Rank>&& array) {
        auto owner = std::make_shared<Array<T, Rank>>(std::move(array));
        void* data = owner->data();
        return {std::move(owner), data};
    }
    ArrayResult give_shaped(Shared numbers, DType dtype, const std::vector<int64_t>& leading,
                            std::span<const int64_t> rest) const;

    ArrayInfo take(const py::object& object, const char* name);
    ArrayInfo taken_to_write(const py::object& object, const char* name);

    static ArrayInfo plain(ArrayInfo info, const char* name, DType dtype, int rank);
    static ArrayInfo fold(ArrayInfo info, const char* name, DType dtype, int rank);
    static ArrayInfo flat_rows(ArrayInfo info, const char* name, DType dtype, int rank, const BatchForm& form);
    static ArrayInfo flat_clouds(ArrayInfo info, const char* name, DType dtype, int rank, const BatchForm& form);

    template <class T, int Rank>
    static View<T, Rank> view(const ArrayInfo& info) {
        std::array<int64_t, Rank> shape, strides;
        for (int i = 0; i < Rank; ++i) shape[i] = info.shape[i], strides[i] = info.strides[i];
        return {static_cast<T*>(info.data), shape, strides, info.device};
    }

    bool has_first_ = false, has_kind_ = false;
    const char* first_name_ = "";
    Kind kind_ = Kind::numpy;
    py::handle like_;
    Device device_;
    Stream stream_;
    std::vector<std::shared_ptr<void>> owners_;          // of DLPack tensors, for the time of the call
    std::vector<std::pair<void*, py::object>> tensors_;  // torch's own that hold results, by address
};

/// For tests: while a list is set, every array that a Call takes or gives appends (name, address); results are named
/// "". None ends it.
void trace_addresses(py::object list);
/// Appends one, for memory that is made of what a Call took.
void trace_address(const char* name, const void* address);

/// clouds + 1 row numbers from an array or a list, as std::int64.
std::vector<int64_t> whole_numbers(py::handle object, const char* name);

/// How many of each cloud, as ops take it: a number for all, or a list of one for each cloud.
BatchForm sample_form(const py::object& samples, const char* name, const BatchForm& points);

/// One of a few words: choice(norm, "norm", {{"squared", DistanceNorm::squared}, ...}).
template <class Value>
struct Word {
    const char* text;
    Value value;
};
[[noreturn]] void refuse_word(std::string_view text, const char* name, std::vector<std::string_view> known);
template <class Value, size_t N>
Value choice(std::string_view text, const char* name, const Word<Value> (&words)[N]) {
    for (const Word<Value>& word : words)
        if (text == word.text) return word.value;
    std::vector<std::string_view> known;
    for (const Word<Value>& word : words) known.emplace_back(word.text);
    refuse_word(text, name, std::move(known));
}

}  // namespace stipple::python
