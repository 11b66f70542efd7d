"""Tensors of torch go in and come out without a copy, on the CPU and, where there is one, on a GPU."""
import gc

import numpy as np
import pytest
import stipple
from conftest import address, addresses_seen, arrays_of, as_numpy
from ops_calls import CALLS
from stipple import ops

torch = pytest.importorskip("torch")

# Exact solvers and parts of a cloud are for the CPU; gram takes 16 bits on CUDA, linear_max rows of 16 k numbers.
CPU_ONLY = {"emd_exact", "emd_transport", "emd_transport_backward", "poisson_disk_of_part", "gram", "linear_max",
            "linear_max_backward_rows", "linear_max_backward_weight", "voxel_centroids", "voxel_representatives"}
NO_ARRAYS = {"registry", "can_gram_cuda", "can_linear_max_cuda", "poisson_disk_radius_of_area", "kernel_lattice",
             "knn_graph", "emd_transport", "emd_transport_auction"}
HAS_CUDA = stipple.has_cuda and torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not HAS_CUDA, reason="no GPU, or a build without CUDA")


def tensor(array, device="cpu"):
    return torch.from_numpy(np.array(array)).to(device)


@pytest.mark.parametrize("name", sorted(set(CALLS) - NO_ARRAYS))
def test_tensors_in_tensors_out(name):
    result = CALLS[name](tensor)
    for part in arrays_of(result):
        assert isinstance(part, torch.Tensor)
    for part, other in zip(as_numpy(CALLS[name](lambda a: a)), as_numpy(result), strict=True):
        np.testing.assert_array_equal(part, other)


def test_memory_is_shared_both_ways():
    points = torch.rand(50, 3)
    with addresses_seen() as seen:
        found = ops.knn(points, 3)
    assert [a for name, a in seen if name] == [points.data_ptr()]
    assert {a for name, a in seen if not name} == {part.data_ptr() for part in found}
    shared = stipple.from_dlpack(points)
    assert shared.data_ptr == points.data_ptr()
    back = torch.from_dlpack(shared)
    assert back.data_ptr() == points.data_ptr()
    del shared, points
    gc.collect()
    assert back.shape == (50, 3) and torch.isfinite(back).all()


def test_results_are_of_torchs_own_memory():
    found = ops.knn(torch.rand(2, 25, 3), 3)
    assert found.indices.shape == (2, 25, 3)
    for part in found:
        part.resize_(1000)  # which torch refuses for the memory of others
    with pytest.raises(RuntimeError, match="resiz"):
        torch.from_dlpack(ops.knn(stipple.asarray(np.zeros((25, 3), np.float32)), 3).indices).resize_(1000)


def test_tensors_that_cannot_be_taken_are_refused_by_name():
    points = torch.rand(50, 3)
    for wrong, kind, words in ((points.double(), TypeError, "float64"), (points.t(), ValueError, "points"),
                               (points.requires_grad_(), ValueError, "detach"), (points.detach().to_sparse(), Exception, "")):
        with pytest.raises(kind, match=words):
            ops.knn(wrong, 3)
    with pytest.raises(TypeError, match="bfloat16"):
        ops.knn(torch.zeros(4, 3, dtype=torch.bfloat16), 1)


def test_sixteen_bits():
    rows = torch.rand(64, 16)
    for dtype in (torch.float16, torch.bfloat16):
        found = ops.column_statistics(rows.to(dtype))
        expected = rows.to(dtype).float().mean(0)
        assert torch.allclose(found.mean, expected, atol=1e-3)
        assert ops.normalise_rows(rows.to(dtype), torch.ones(16), torch.zeros(16)).dtype is dtype


def test_torch_is_not_imported_for_others():
    import subprocess
    import sys
    code = ("import sys, numpy as np, stipple; stipple.ops.knn(np.zeros((4, 3), np.float32), 1);"
            "print('torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@needs_cuda
@pytest.mark.parametrize("name", sorted(set(CALLS) - NO_ARRAYS - CPU_ONLY))
def test_gpu_gives_what_the_cpu_gives(name):
    result = CALLS[name](lambda a: tensor(a, "cuda"))
    for part in arrays_of(result):
        assert isinstance(part, torch.Tensor) and part.is_cuda
    torch.cuda.synchronize()
    for part, other in zip(as_numpy(CALLS[name](lambda a: a)), as_numpy(result), strict=True):
        np.testing.assert_allclose(other, part, rtol=2e-4, atol=1e-5)


@needs_cuda
def test_work_is_ordered_on_the_stream_of_torch():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(20):
            big = torch.zeros(200_000, 3, device="cuda")
            for _ in range(20):
                big += 1  # must have been done before knn reads, and knn before what follows
            points = big[:1000] * 0 + torch.arange(1000, device="cuda", dtype=torch.float32)[:, None]
            found = ops.knn(points.contiguous(), 2)
            assert int((found.indices[:, 0] != torch.arange(1000, device="cuda")).sum()) == 0


@needs_cuda
def test_devices_may_not_be_mixed():
    with pytest.raises(stipple.ArgumentError, match="queries: on cpu, while points is on cuda:0"):
        ops.knn(torch.rand(50, 3, device="cuda"), 3, torch.rand(5, 3))


@needs_cuda
def test_arrays_of_a_gpu():
    points = torch.rand(50, 3, device="cuda")
    shared = stipple.from_dlpack(points)
    assert (shared.device, address(shared)) == ("cuda:0", points.data_ptr())
    assert shared.__cuda_array_interface__["data"][0] == points.data_ptr()
    assert not hasattr(shared, "__array_interface__")
    np.testing.assert_array_equal(shared.numpy(), points.cpu().numpy())
    there = stipple.asarray(points.cpu().numpy(), device="cuda")
    assert torch.equal(torch.from_dlpack(there), points)
    found = ops.knn(there, 3)
    assert isinstance(found.indices, stipple.Array) and found.indices.device == "cuda:0"
    np.testing.assert_array_equal(found.indices.to("cpu").numpy(), ops.knn(points.cpu().numpy(), 3).indices)
    assert stipple.asarray(points.double()).dtype == "float32"


# Those that read numbers back in the middle, to know how large their results are or when to stop.
ASKS_THE_GPU = {"radius_search", "radius_offsets", "radius_graph", "voxel_grid", "poisson_disk", "poisson_disk_radius", "inverse_density_sample",
                "sinkhorn", "sinkhorn_backward", "emd", "emd_backward", "emd_transport_auction"}


@needs_cuda
@pytest.mark.parametrize("name", sorted(set(CALLS) - NO_ARRAYS - CPU_ONLY - ASKS_THE_GPU))
def test_a_cuda_graph_holds_the_call(name):
    given, used = [], 0

    def give(array):  # the same tensors, in the order of the first call
        nonlocal used
        used += 1
        if used > len(given):
            given.append(tensor(array, "cuda"))
        return given[used - 1]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        expected = [t.clone() for t in arrays_of(CALLS[name](give))]
    torch.cuda.current_stream().wait_stream(side)
    used = 0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = arrays_of(CALLS[name](give))
    in_place = {t.data_ptr() for t in given}  # of an update, which a replay goes on with
    for result in results:
        if result.data_ptr() not in in_place:
            result.zero_()
    graph.replay()
    torch.cuda.synchronize()
    for result, wanted in zip(results, expected, strict=True):
        if result.data_ptr() not in in_place:
            torch.testing.assert_close(result, wanted, rtol=1e-5, atol=1e-6)
