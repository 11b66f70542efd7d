"""stipple.torch: values and gradients are those of torch's own formulation, in double."""
import numpy as np
import pytest
import stipple
from conftest import addresses_seen

torch = pytest.importorskip("torch")
import stipple.torch as st  # noqa: E402
from stipple import ops  # noqa: E402

HAS_CUDA = stipple.has_cuda and torch.cuda.is_available()
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_CUDA, reason="no GPU"))]


def rand(*shape, seed=0, device="cpu", scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) * scale).to(device).requires_grad_()


def doubles(*tensors):
    return [t.detach().double().requires_grad_() for t in tensors]


def distances_sq(a, b):
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2).sum(-1)  # cdist, whose gradient at 0 is none of its square's


def check(function, reference, *inputs, tolerance=1e-5, scale_seed=3):
    """Values and gradients of a weighted sum of all outputs, against those of the reference in double."""
    for tensor in inputs:
        tensor.grad = None
    outputs = function(*inputs)
    exact = doubles(*inputs)
    expected = reference(*exact)
    outputs, expected = ([o] if isinstance(o, torch.Tensor) else list(o) for o in (outputs, expected))
    loss = expected_loss = 0
    for i, (output, wanted) in enumerate(zip(outputs, expected)):
        assert output.shape == wanted.shape
        torch.testing.assert_close(output.double(), wanted, rtol=tolerance, atol=tolerance)
        factors = rand(*output.shape, seed=scale_seed + i, device=output.device).detach()
        loss = loss + (output * factors).sum()
        expected_loss = expected_loss + (wanted * factors.double()).sum()
    loss.backward()
    expected_loss.backward()
    for tensor, wanted in zip(inputs, exact):
        assert tensor.grad is not None and tensor.grad.dtype is tensor.dtype
        torch.testing.assert_close(tensor.grad.double(), wanted.grad, rtol=tolerance, atol=tolerance)


def rows_at(rows, indices):
    """rows [b, n, c] at indices [b, ...]."""
    flat = indices.reshape(indices.shape[0], -1).long()
    found = torch.gather(rows, 1, flat.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))
    return found.reshape(*indices.shape, rows.shape[-1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", ["squared", "euclidean"])
def test_chamfer(device, norm):
    def reference(a, b):
        d = distances_sq(a, b)
        found = d.min(2)[0], d.min(1)[0]
        means = [part.mean(1) if norm == "squared" else part.sqrt().mean(1) for part in found]
        return found[0], means[0], found[1], means[1]

    def function(a, b):
        found = st.chamfer(a, b, norm=norm)
        return found.a_to_b.distances_sq, found.a_to_b.mean, found.b_to_a.distances_sq, found.b_to_a.mean

    check(function, reference, rand(3, 40, 3, device=device), rand(3, 30, 3, seed=1, device=device))


def test_chamfer_of_one_cloud_one_side_and_ragged_batches():
    a, b = rand(40, 3), rand(30, 3, seed=1)
    check(lambda a, b: st.chamfer(a, b).a_to_b.mean, lambda a, b: distances_sq(a, b).min(1)[0].mean(), a, b)
    check(lambda a, b: st.chamfer(a, b).b_to_a.distances_sq, lambda a, b: distances_sq(a, b).min(0)[0], a, b)

    def ragged(a, b):
        found = st.chamfer(a, b, a_offsets=[0, 10, 40], b_offsets=[0, 25, 30])
        return found.a_to_b.mean, found.b_to_a.distances_sq

    def each(a, b):
        parts = [distances_sq(a[:10], b[:25]), distances_sq(a[10:], b[25:])]
        return torch.stack([p.min(1)[0].mean() for p in parts]), torch.cat([p.min(0)[0] for p in parts])
    check(ragged, each, a, b)
    assert torch.equal(st.chamfer_loss(a, b, reduction="none"), st.chamfer_loss(a, b))
    with pytest.raises(ValueError, match='reduction: "all"; wanted is'):
        st.chamfer_loss(a, b, reduction="all")


def test_results_are_those_of_the_ops():
    a, b = rand(2, 40, 3), rand(2, 40, 3, seed=1)
    for name, calls in {"chamfer": {"norm": "euclidean"}, "hausdorff": {"direction": "a_to_b"}, "emd": {"norm": "squared"},
                        "sinkhorn": {"epsilon": 0.05, "max_iterations": 20}, "nearest_pairs": {}}.items():
        found, wanted = getattr(st, name)(a, b, **calls), getattr(ops, name)(a.detach(), b.detach(), **calls)
        assert type(found) is type(wanted)
        if name == "chamfer":
            found, wanted = (*found.a_to_b, *found.b_to_a), (*wanted.a_to_b, *wanted.b_to_a)
        for part, other in zip(found, wanted):
            assert torch.equal(part, other)


@pytest.mark.parametrize("device", DEVICES)
def test_published_chamfer_runs_with_one_import_changed(device):
    from stipple.torch import chamfer3D, fscore

    chamLoss = chamfer3D.dist_chamfer_3D.chamfer_3DDist()
    points1 = rand(4, 100, 3, device=device).detach()
    points2 = rand(4, 200, 3, seed=1, device=device)
    dist1, dist2, idx1, idx2 = chamLoss(points1, points2)
    f_score, precision, recall = fscore.fscore(dist1, dist2, 0.01)
    d = distances_sq(points1, points2)
    assert dist1.shape == (4, 100) and idx2.shape == (4, 200) and not idx1.requires_grad
    torch.testing.assert_close(dist1, d.min(2)[0])
    assert torch.equal(idx2.long(), d.min(1)[1])
    torch.testing.assert_close(precision, (dist1 < 0.01).float().mean(1))
    torch.testing.assert_close(f_score, 2 * precision * recall / (precision + recall))
    check(lambda a, b: chamLoss(a, b)[:2], lambda a, b: (distances_sq(a, b).min(2)[0], distances_sq(a, b).min(1)[0]),
          rand(2, 20, 3, device=device), points2[:2].detach().requires_grad_())
    turned = rand(4, 3, 50, device=device).transpose(1, 2)  # the published one copies what is not contiguous
    assert torch.equal(chamLoss(turned, points2)[0], chamLoss(turned.contiguous(), points2)[0])
    assert fscore(dist1 + 1, dist2 + 1)[0].tolist() == [0] * 4


@pytest.mark.parametrize("device", DEVICES)
def test_hausdorff_and_emd(device):
    a, b = rand(3, 24, 3, device=device), rand(3, 24, 3, seed=1, device=device)

    def largest(a, b):
        d = distances_sq(a, b)
        return torch.maximum(d.min(2)[0].max(1)[0], d.min(1)[0].max(1)[0]).sqrt()
    check(lambda a, b: st.hausdorff(a, b).distance, largest, a, b)

    matching = ops.emd(a.detach(), b.detach(), relative=0.0).matching
    check(lambda a, b: st.emd(a, b, relative=0.0).cost,
          lambda a, b: (a - rows_at(b, matching)).norm(dim=2).mean(1), a, b)


def test_sinkhorn_by_the_envelope():
    """The gradient of the converged dual is that of torch through all iterations, in double."""
    epsilon, a, b = 0.1, rand(2, 12, 3), rand(2, 15, 3, seed=1)

    def reference(a, b):
        cost = distances_sq(a, b).clamp_min(1e-30).sqrt()
        log_a, log_b = -np.log(12), -np.log(15)
        g = torch.zeros(2, 15, dtype=torch.float64)
        for _ in range(300):
            f = -epsilon * torch.logsumexp((g.unsqueeze(1) - cost) / epsilon + log_b, 2)
            g = -epsilon * torch.logsumexp((f.unsqueeze(2) - cost) / epsilon + log_a, 1)
        return f.mean(1) + g.mean(1)
    check(lambda a, b: st.sinkhorn(a, b, epsilon=epsilon, tolerance=0, max_iterations=300).dual, reference, a, b,
          tolerance=2e-5)
    assert not st.sinkhorn(a, b).cost.requires_grad


@pytest.mark.parametrize("device", DEVICES)
def test_knn(device):
    points, queries = rand(2, 40, 3, device=device), rand(2, 10, 3, seed=1, device=device)
    check(lambda p, q: st.knn(p, 4, q).distances_sq, lambda p, q: distances_sq(q, p).topk(4, 2, largest=False)[0], points,
          queries)
    check(lambda p: st.knn(p, 4).distances_sq, lambda p: distances_sq(p, p).topk(4, 2, largest=False)[0], points)
    few = points.detach()[:, :3].contiguous()
    few[:, 1] = float("nan")  # so that one of three neighbours is missing
    found = st.knn(few, 3, queries)
    assert (found.indices < 0).sum() == 20
    finite = found.distances_sq[found.indices >= 0].sum()
    gradient, = torch.autograd.grad(finite, queries)
    assert torch.isfinite(gradient).all()
    index = ops.PointIndex(points.detach())
    assert torch.equal(st.knn(index, 4, queries).indices, st.knn(points, 4, queries).indices)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_by_index(device):
    rows, centres = rand(2, 40, 5, device=device), rand(2, 10, 5, seed=1, device=device)
    points = rand(2, 40, 3, device=device)
    neighbours = st.knn(points, 4, points[:, :10].contiguous()).indices
    check(lambda r: st.gather(r, neighbours[:, :, 0].contiguous()), lambda r: rows_at(r, neighbours[:, :, 0]), rows)
    check(lambda r, c: st.group(r, neighbours, c), lambda r, c: rows_at(r, neighbours) - c.unsqueeze(2), rows, centres)
    check(lambda r: st.group(r, neighbours), lambda r: rows_at(r, neighbours), rows)
    found = st.farthest_point_sample(points, 8)
    assert torch.equal(found.indices, ops.farthest_point_sample(points.detach(), 8).indices)
    check(lambda p: st.gather(p, found.indices), lambda p: rows_at(p, found.indices), points)


@pytest.mark.parametrize("device", DEVICES)
def test_interpolation(device):
    rows, weights = rand(2, 40, 5, device=device), rand(2, 10, 3, 4, seed=1, device=device)
    known, queries = rand(2, 40, 3, device=device), rand(2, 10, 3, seed=2, device=device)
    neighbours = st.knn(known, 4, queries).indices
    check(lambda r, w: st.interpolate(r, neighbours, w), lambda r, w: w @ rows_at(r, neighbours), rows, weights)

    def three(known, queries, features):
        d, near = distances_sq(queries, known).topk(3, 2, largest=False)
        inverse = 1 / (d + 1e-8)
        return ((inverse / inverse.sum(2, keepdim=True)).unsqueeze(3) * rows_at(features, near)).sum(2)
    check(lambda *a: st.three_interpolate(*a), three, known, queries, rows, tolerance=2e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_soft_projection(device):
    points, queries = rand(2, 40, 3, device=device).detach(), rand(2, 10, 3, seed=1, device=device)
    temperature = torch.tensor([0.3], device=device, requires_grad=True)
    neighbours = st.knn(points, 6, queries).indices

    def reference(queries, temperature):
        near = rows_at(points.double(), neighbours)
        weights = torch.softmax(-(near - queries.unsqueeze(2)).pow(2).sum(3) / temperature**2, 2)
        return weights, (weights.unsqueeze(3) * near).sum(2)
    check(lambda q, t: st.soft_project(points, q, neighbours, t), reference, queries, temperature)
    st.soft_project(points, queries, neighbours, temperature).projected.sum().backward()  # one output alone


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("device", DEVICES)
def test_the_pointnet_chain(device, training):
    rows, weight = rand(4, 50, 16, device=device), (rand(64, 16, seed=1) - 0.5).detach().to(device).requires_grad_()
    gamma = (rand(64, seed=2) - 0.3).detach().to(device).requires_grad_()  # of both signs
    beta, bias = rand(64, seed=3, device=device), rand(64, seed=4, device=device)
    tolerance = 1e-5 if device == "cpu" else 5e-3  # tf32
    check(lambda r, w: st.linear_max(r, w).largest, lambda r, w: (r @ w.t()).max(1)[0], rows, weight, tolerance=tolerance)

    running = [torch.zeros(64, device=device), torch.ones(64, device=device)]
    exact_running = [part.double() for part in running]

    def function(rows, weight, gamma, beta, *bias):
        return st.linear_norm_max(rows, weight, gamma, beta, *running, bias=bias[0] if bias else None, training=training,
                                  relu=True)

    def reference(rows, weight, gamma, beta, *bias):
        out = torch.nn.functional.linear(rows, weight, bias[0] if bias else None).reshape(200, 64)
        out = torch.nn.functional.batch_norm(out, *exact_running, gamma, beta, training)
        return out.relu().reshape(4, 50, 64).max(1)[0]
    inputs = (rows, weight, gamma, beta, bias)
    check(function, reference, *inputs, tolerance=2 * tolerance)
    for part, exact in zip(running, exact_running):
        torch.testing.assert_close(part.double(), exact, rtol=1e-4, atol=1e-5)


CALLS = {
    "chamfer": lambda x, y: st.chamfer(x, y).a_to_b.mean,
    "nearest_pairs": lambda x, y: st.nearest_pairs(x, y).sq_of_a,
    "hausdorff": lambda x, y: st.hausdorff(x, y).distance,
    "emd": lambda x, y: st.emd(x, y).cost,
    "sinkhorn": lambda x, y: st.sinkhorn(x, y, epsilon=0.1).dual,
    "knn": lambda x, y: st.knn(x, 3, y).distances_sq,
    "gather": lambda x, y: st.gather(x, st.farthest_point_sample(y, 4).indices),
    "group": lambda x, y: st.group(x, st.knn(x.detach(), 3, y.detach()).indices, y),
    "interpolate": lambda x, y: st.three_interpolate(x.detach(), y.detach(), x),
    "three_weights": lambda x, y: st.three_weights(x),
    "soft_project": lambda x, y: st.soft_project(y.detach(), x, st.knn(y.detach(), 3, x.detach()).indices, torch.ones(1)).projected,
    "linear_max": lambda x, y: st.linear_max(x, torch.ones(2, 3, dtype=x.dtype)).largest,
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_second_derivatives_are_refused_by_name(name):
    x, y = rand(20, 3), rand(20, 3, seed=1)
    gradient, = torch.autograd.grad(CALLS[name](x, y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=f"stipple.torch.{name} has no second derivative"):
        (gradient**2).sum().backward()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_autocast_takes_short_numbers(name):
    x, y = rand(20, 3), rand(20, 3, seed=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        short = x.bfloat16()
        out = CALLS[name](short, y)
    assert out.dtype is torch.float32
    out.sum().backward()
    assert x.grad.dtype is torch.float32 and torch.isfinite(x.grad).all()
    again = short.detach().float().requires_grad_()
    CALLS[name](again, y).sum().backward()
    torch.testing.assert_close(x.grad, again.grad, rtol=1e-2, atol=1e-3)  # which is rounded to 16 bits on its way


def test_what_cannot_be_taken_is_refused_by_name():
    a = rand(20, 3)
    for wrong in (a.double(), a.bfloat16()):
        with pytest.raises(TypeError, match="b: an array of|bfloat16"):
            st.chamfer(a, wrong)
    with pytest.raises(ValueError, match="a: "):
        st.chamfer(rand(3, 20).t(), a)
    with pytest.raises(TypeError, match="neighbours"):
        st.group(a, torch.zeros(4, 2, dtype=torch.int64))


def test_memory_is_the_tensors_own():
    a, b = rand(20, 3), rand(20, 3, seed=1)
    with addresses_seen() as seen:
        st.chamfer_loss(a, b).backward()
    given = [address for name, address in seen if name in ("a", "b")]
    assert given == [a.data_ptr(), b.data_ptr()] * 2


def test_directions_of_finite_differences():
    """A smooth function's gradient predicts its change along any direction, in double."""
    torch.manual_seed(0)
    points, queries, temperature = torch.rand(30, 3), rand(8, 3, seed=1), torch.tensor([0.5])
    neighbours = st.knn(points, 6, queries).indices

    def value(q):
        return float((st.soft_project(points, q, neighbours, temperature).projected.double() ** 2).sum())
    (st.soft_project(points, queries, neighbours, temperature).projected ** 2).sum().backward()
    for _ in range(5):
        direction = torch.randn(8, 3)
        step = 1e-2
        change = (value(queries.detach() + step * direction) - value(queries.detach() - step * direction)) / (2 * step)
        assert abs(change - float((queries.grad * direction).sum())) < 1e-3


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_loop_lowers_its_loss(device):
    torch.manual_seed(0)
    target = torch.nn.functional.normalize(torch.randn(1, 200, 3), dim=2).to(device)
    points = (0.1 * torch.randn(1, 100, 3)).to(device).requires_grad_()
    optimizer = torch.optim.Adam([points], 0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = st.chamfer_loss(points, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]
    assert abs(points.detach().norm(dim=2).mean().item() - 1) < 0.05


def test_state_dicts_are_files_of_weights(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    module[0].weight.data = torch.rand(4, 3).t()  # strided
    path = tmp_path / "w.safetensors"
    st.save_state_dict(path, module, metadata={"stipple.trained": "true"})
    with pytest.raises(stipple.OutputError, match="w.safetensors"):
        st.save_state_dict(path, module)
    tensors, metadata = st.load_state_dict(path, return_metadata=True)
    assert metadata["stipple.trained"] == "true"
    assert sorted(tensors) == sorted(module.state_dict())
    other = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    other.load_state_dict(tensors)
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]) and tensor.dtype is other.state_dict()[name].dtype
    short = {"half": torch.rand(5).bfloat16(), "none": torch.zeros(0, 3)}
    st.save_state_dict(path, short, overwrite=True)
    assert all(torch.equal(tensor, short[name]) for name, tensor in st.load_state_dict(path).items())
    with pytest.raises(TypeError, match="epoch: a int; wanted are tensors"):
        st.save_state_dict(path, {"epoch": 3}, overwrite=True)


def test_weights_of_stipple_are_state_dicts():
    import os
    root = os.path.join(os.path.dirname(__file__), "..", "..", "weights")
    tensors, metadata = st.load_state_dict(os.path.join(root, "upsampler.safetensors"), return_metadata=True)
    assert tensors and "stipple.model" in metadata
    assert all(isinstance(tensor, torch.Tensor) and "." in name for name, tensor in tensors.items())


def test_every_function_is_described():
    import os
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md"), encoding="utf-8") as file:
        page = file.read().split("\n## torch\n")[1].split("\n## ")[0]
    for name in st.__all__:
        assert len(getattr(st, name).__doc__) > 15, name
        assert name in page, name


def test_importing_stipple_does_not_import_torch():
    import subprocess
    import sys
    code = "import sys, stipple; print('torch' in sys.modules); stipple.torch.chamfer; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "False\nTrue\n"


@pytest.mark.skipif(not HAS_CUDA, reason="no GPU")
def test_a_training_step_in_a_cuda_graph():
    """Forward and backward passes, captured once and replayed on other numbers."""
    torch.manual_seed(0)
    points, target = torch.rand(4, 256, 3, device="cuda", requires_grad=True), torch.rand(4, 256, 3, device="cuda")

    def step():
        points.grad = None
        found = st.knn(points, 4)
        loss = st.chamfer_loss(points, target) + st.group(points, found.indices, points).square().mean()
        loss.backward()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    points.grad = None
    with torch.cuda.graph(graph):
        loss = step()
    captured = points.grad
    for seed in range(3):
        with torch.no_grad():
            points.copy_(torch.rand(4, 256, 3, generator=torch.Generator().manual_seed(seed)))
        graph.replay()
        found_loss, found_gradient = loss.item(), captured.clone()
        expected = step()
        assert found_loss == pytest.approx(expected.item(), rel=1e-5)
        torch.testing.assert_close(found_gradient, points.grad, rtol=1e-4, atol=1e-7)
