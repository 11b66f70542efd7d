"""Clouds in folders, each a task of Dask: read, sample, upsample, classify and score them on one machine or many.

    import dask, stipple.dask

    dense = stipple.dask.upsample("scans/", ratio=4, output="dense/")   # a list of delayed paths; nothing has run yet
    dask.compute(*dense)                                                # here, or on the cluster of a distributed.Client

Inputs are a folder (the files that stipple reads, by name; not those of folders in it), a path, or a list of paths and of
delayed clouds, so that steps follow each other without files between them. A step gives delayed clouds, or with `output`,
a folder that all workers see, the delayed paths of the files that it writes there: named after the inputs, and under these
names whole or not there at all (a worker that is killed while it writes leaves a hidden .tmp file). An output that
exists is refused before anything runs, unless `overwrite` allows it.

Every task is done alone and may be done again: when a worker dies, Dask gives what it had to others, and the result is
the same. A task uses one thread, for Dask runs as many tasks as there are threads; `threads` changes that.
"""
import functools as _functools
import os as _os

from dask import delayed as _delayed
from dask.delayed import Delayed as _Delayed

from . import _stipple, io

__all__ = ["classify", "metrics", "read", "sample", "upsample"]


def _extensions():
    return tuple("." + extension for format_ in io.formats() for extension in format_["extensions"])


def _list(inputs):
    """Paths and delayed clouds, folders replaced by their files in the order of names."""
    if isinstance(inputs, (str, _os.PathLike, _Delayed)):
        inputs = [inputs]
    found = []
    for each in inputs:
        if isinstance(each, _Delayed):
            found.append(each)
            continue
        path = _os.fspath(each)
        if not _os.path.isdir(path):
            found.append(path)
            continue
        files = sorted(name for name in _os.listdir(path) if name.lower().endswith(_extensions()))
        if not files:
            raise _stipple.ArgumentError(f"{path}: a folder without clouds")
        found += [_os.path.join(path, name) for name in files]
    return found


def _name(source):
    """For keys and files: of a file its name without extension, of a step's cloud that of the file it began with."""
    text = source.key.split(":", 1)[-1].rsplit("-", 1)[0] if isinstance(source, _Delayed) else _os.path.basename(source)
    return text if isinstance(source, _Delayed) else _os.path.splitext(text)[0]


def _targets(sources, output, format, overwrite):
    if output is None:
        return [None] * len(sources)
    folder = _os.fspath(output)
    _os.makedirs(folder, exist_ok=True)
    targets = [_os.path.join(folder, f"{_name(source)}.{format}") for source in sources]
    taken = set()
    for target in targets:
        if target in taken:
            raise _stipple.ArgumentError(f"two clouds would both become {target}")
        if not overwrite and _os.path.exists(target):
            raise _stipple.OutputError(f"{target}: exists; overwrite=True replaces it")
        taken.add(target)
    return targets


def _cloud(source):
    return io.load_cloud(source) if isinstance(source, str) else source


def _step(work, source, target, threads, options):
    """One task. It may run again after it has written its file, so that this is no reason to refuse."""
    _stipple.set_threads(threads)
    result = work(_cloud(source), **options)
    if target is None:
        return result
    io.save(target, result, overwrite=True)
    return target


def _steps(kind, work, inputs, output, format, overwrite, threads, options):
    sources = _list(inputs)
    run = _delayed(_step, pure=True)
    token = _functools.partial(_key, kind)
    return [run(work, source, target, threads, options, dask_key_name=token(source, target, options))
            for source, target in zip(sources, _targets(sources, output, format, overwrite))]


def _key(kind, source, *rest):
    from dask.base import tokenize

    stamp = None  # a file that was written anew is another input
    if isinstance(source, str) and _os.path.exists(source):
        stamp = _os.stat(source).st_mtime_ns
    return f"stipple-{kind}:{_name(source)}-{tokenize(kind, source, stamp, *rest)}"


def _same(cloud):
    return cloud


def read(inputs, *, threads=1):
    """Clouds as delayed io.PointCloud."""
    return _steps("read", _same, inputs, None, None, False, threads, {})


def _sample(cloud, **options):
    from . import tasks

    return tasks.sample_cloud(cloud, **options)


def sample(inputs, *, output=None, format="ply", overwrite=False, threads=1, **options):
    """Fewer points of each cloud, by tasks.sample_cloud and its options: method="fps", count=1024."""
    return _steps("sample", _sample, inputs, output, format, overwrite, threads, options)


@_functools.lru_cache(maxsize=4)
def _network(kind, model, options):
    """Loaded once by each process, not by each task."""
    from . import tasks

    words = dict(options)
    return getattr(tasks, kind)(**words) if model is None else getattr(tasks, kind)(model, **words)


def _upsample(cloud, model, network, **options):
    from . import tasks

    return tasks.upsample(_network("Upsampler", model, network), cloud, **options).cloud


def upsample(inputs, *, output=None, format="ply", overwrite=False, threads=1, model=None, device="auto", **options):
    """More points for each cloud, by tasks.upsample and its options: ratio=4; model as tasks.Upsampler takes it."""
    network = (("device", device),)
    return _steps("upsample", _upsample, inputs, output, format, overwrite, threads,
                  {"model": model, "network": network, **options})


def _classify(cloud, model, network, **options):
    from . import tasks

    return tasks.classify(_network("Classifier", model, network), [cloud], **options)[0]


def classify(inputs, *, threads=1, model=None, device="auto", points=1024, **options):
    """What each cloud shows, by tasks.classify and its options: delayed records of a cloud's guesses, likeliest first."""
    network = (("device", device), ("points", points))
    return _steps("classify", _classify, inputs, None, None, False, threads,
                  {"model": model, "network": network, "points": points, **options})


def _scores(prediction, truth, mesh, threads, options):
    from . import metrics as _metrics

    _stipple.set_threads(threads)
    surface = io.load_mesh(mesh) if mesh is not None else None
    found = _metrics.evaluate(_cloud(prediction), _cloud(truth), surface, **options)
    return {score.name: score.value for score in found.scores}


def metrics(predictions, truths, meshes=None, *, threads=1, **options):
    """Scores of each cloud against its truth, by metrics.evaluate and its options: delayed dicts of numbers by name.

    predictions, truths, meshes   as many each, paired in their order; files by their names without extension
    """
    sides = [_list(side) for side in (predictions, truths)] + ([_list(meshes)] if meshes is not None else [])
    names = [_name(source) for source in sides[0]]
    for i, side in enumerate(sides):
        if all(isinstance(source, str) for source in (*side, *sides[0])):
            by_name = {_name(source): source for source in side}
            missing = [name for name in names if name not in by_name]
            if missing:
                raise _stipple.ArgumentError(f"{missing[0]}: has no partner of its name")
            sides[i] = [by_name[name] for name in names]
        elif len(side) != len(sides[0]):
            raise _stipple.ArgumentError(f"{len(sides[0])} predictions, but {len(side)} to compare them with")
    pairs = zip(*sides) if meshes is not None else ((*pair, None) for pair in zip(*sides))
    run = _delayed(_scores, pure=True)
    return [run(prediction, truth, mesh, threads, options, dask_key_name=_key("metrics", prediction, truth, mesh, options))
            for prediction, truth, mesh in pairs]
