"""Operations on points: docs/ops.md. Every function is the C++ function of its name, and its docstring that contract.

Clouds are [n, c], a dense batch [b, n, c], or the rows of a ragged batch [total, c] with offsets. Outputs of the
contract are returned, in the shape that the batch was given in: [b, n, ...] for a dense one, and without the dimension
of clouds for a single one. Several are a tuple whose parts have names.
"""
from . import _stipple

_public = [_name for _name in dir(_stipple.ops) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.ops, _name) for _name in _public})
__all__ = _public + ["knn_graph"]


def knn_graph(points, k, queries=None, *, mode="distance"):
    """The k nearest neighbours as a sparse matrix of scipy: row i holds the neighbours of query i.

    points, queries  one cloud each, [n, c] and [m, c], as knn takes them; without queries a point's first neighbour is
                     the point itself
    mode             "distance": Euclidean distances; "connectivity": ones

    Returns a scipy.sparse.csr_matrix [m, n]; missing neighbours have no entry. Indices are sorted by distance, not by
    column (`sort_indices()` does that). scipy is imported by this function alone.
    """
    import numpy
    from scipy.sparse import csr_matrix

    if mode not in ("distance", "connectivity"):
        raise _stipple.ArgumentError(f'mode: "{mode}"; wanted is "distance" or "connectivity"')
    found = _stipple.ops.knn(points, k, queries)
    indices, distances_sq = (_stipple.asarray(part).numpy() for part in found)
    if indices.ndim != 2:
        raise _stipple.ArgumentError("points: a graph is of one cloud, [n, c]")
    is_found = indices >= 0
    offsets = numpy.concatenate([[0], numpy.cumsum(is_found.sum(axis=1))])
    data = numpy.sqrt(distances_sq[is_found]) if mode == "distance" else numpy.ones(int(offsets[-1]), numpy.float32)
    columns = points.rows if isinstance(points, _stipple.ops.PointIndex) else points.shape[0]
    return csr_matrix((data, indices[is_found], offsets), shape=(indices.shape[0], columns))
