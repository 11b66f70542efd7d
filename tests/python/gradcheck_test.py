"""torch.autograd.gradcheck of stipple.torch where a function is smooth: analytic gradients against finite differences.

The ops are float32: they are seen through a cast, with steps and tolerances that float32 can tell. Points are far enough
from each other that no step changes who is nearest to whom.
"""
import pytest

torch = pytest.importorskip("torch")
import stipple.torch as st  # noqa: E402


def points(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64).requires_grad_()


def single(function):
    return lambda *inputs: function(*(i.float() for i in inputs)).double()


def passes(function, *inputs):
    return torch.autograd.gradcheck(single(function), inputs, eps=1e-3, atol=2e-3, rtol=2e-3, nondet_tol=0)


def clouds_apart():
    """Two clouds whose four nearest neighbours, both ways, are told apart by far more than a step, and not too near."""
    for seed in range(1000):
        a, b = points(2, 7, 3, seed=2 * seed), points(2, 5, 3, seed=2 * seed + 1)
        distances = torch.cdist(a, b).detach()
        nearest = [distances.transpose(1, 2).sort(2).values[:, :, :5], distances.sort(2).values[:, :, :5]]
        if all(d.min() > 0.15 and (d[:, :, 1:] - d[:, :, :-1]).min() > 0.005 for d in nearest):
            return a, b
    raise AssertionError("no such clouds")


A, B = clouds_apart()


@pytest.mark.parametrize("norm", ["squared", "euclidean"])
def test_chamfer(norm):
    assert passes(lambda a, b: st.chamfer_loss(a, b, norm=norm), A, B)


def test_emd():
    assert passes(lambda a, b: st.emd(a, b, relative=0, absolute=1e-6).cost, points(1, 6, 3, seed=3), points(1, 6, 3, seed=4))


def test_sinkhorn():
    assert passes(lambda a, b: st.sinkhorn(a, b, epsilon=0.1).dual, A, B)


def test_neighbours():
    assert passes(lambda a, b: st.knn(a, 3, b).distances_sq, A, B)
    nearest = st.knn(A.detach().float(), 3, B.detach().float()).indices
    assert passes(lambda rows: st.gather(rows, nearest[:, :, 0].contiguous()), A)
    assert passes(lambda rows: st.group(rows, nearest), A)


def test_interpolation():
    features = points(2, 7, 4, seed=5)
    assert passes(lambda known, queries, f: st.three_interpolate(known, queries, f), A, B, features)


def test_soft_projection():
    nearest = st.knn(A.detach().float(), 4, B.detach().float()).indices
    temperature = torch.tensor([0.5], dtype=torch.float64).requires_grad_()
    assert passes(lambda q, t: st.soft_project(A.detach().float(), q, nearest, t).projected, B, temperature)


def test_largest_products():
    assert passes(lambda rows, weight: st.linear_max(rows, weight).largest, A, points(5, 3, seed=6))
