"""stipple.dask on a real cluster of two worker processes, one of which is killed in the middle."""
import os
import signal
import sys

import numpy as np
import pytest
from stipple import io, ops

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import stipple.dask as sd  # noqa: E402
import stipple  # noqa: E402

COUNT = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    random = np.random.default_rng(0)
    for i in range(COUNT):
        positions = random.random((12000 + i, 3), dtype=np.float32)
        cloud = io.PointCloud(positions, attributes={"intensity": positions[:, 0].copy()})
        io.save(folder / f"scan{i}.ply", cloud)
    (folder / "notes.txt.bak").write_text("no cloud")
    return folder


@pytest.fixture(scope="module")
def client():
    # Debian's package asks for the network at import: loopback and no dashboard.
    with dask.config.set({"distributed.scheduler.allowed-failures": 5, "distributed.comm.timeouts.connect": "60s"}):
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                      host="127.0.0.1", silence_logs=50) as cluster:
            with distributed.Client(cluster) as client:
                yield client


def positions(clouds):
    return [np.array(cloud.positions) for cloud in clouds]


def test_a_graph_is_made_without_running():
    with pytest.raises(stipple.ArgumentError, match="a folder without clouds"):
        sd.read(os.path.dirname(__file__))
    delayed = sd.read(["none.ply"])
    assert "stipple-read:none-" in delayed[0].key
    with pytest.raises(stipple.FileFormatError, match="none.ply"):
        dask.compute(*delayed, scheduler="synchronous")


def test_steps_follow_each_other(folder, tmp_path):
    few = sd.sample(sd.read(folder), count=50, method="fps")
    dense = sd.upsample(few, ratio=2, model="midpoints", output=tmp_path / "dense")
    paths = dask.compute(*dense, scheduler="synchronous")
    assert [os.path.basename(path) for path in paths] == [f"scan{i}.ply" for i in range(COUNT)]
    first = io.load_cloud(paths[0])
    assert len(first) == 100 and "intensity" in first.attributes
    with pytest.raises(stipple.OutputError, match="scan0.ply: exists; overwrite=True"):
        sd.sample(folder, count=50, output=tmp_path / "dense")
    sd.sample(folder, count=50, output=tmp_path / "dense", overwrite=True)  # refused or not, nothing has run
    with pytest.raises(stipple.ArgumentError, match="two clouds would both become"):
        sd.sample([folder / "scan0.ply", folder / "scan0.ply"], count=50, output=tmp_path / "twice")
    scores = dask.compute(*sd.metrics(few, folder), scheduler="synchronous")
    assert len(scores) == COUNT and all(score["cd"] > 0 for score in scores)
    with pytest.raises(stipple.ArgumentError, match="has no partner of its name"):
        sd.metrics(folder, [folder / "scan0.ply"])


def test_clouds_travel_with_their_arrays(folder):
    import pickle
    cloud = io.load_cloud(folder / "scan0.ply")
    cloud.origin = (1e6, 0, 0)
    again = pickle.loads(pickle.dumps(cloud))
    np.testing.assert_array_equal(again.positions, cloud.positions)
    np.testing.assert_array_equal(again.attributes["intensity"], cloud.attributes["intensity"])
    assert tuple(again.origin) == (1e6, 0, 0)


def test_a_killed_worker_changes_nothing(client, folder, tmp_path):
    delayed = sd.sample(folder, count=2500, method="fps", output=tmp_path / "few")
    kept = sd.sample(folder, count=2500, method="fps")  # in the workers' memory, and lost with it
    pids = list(client.run(os.getpid).values())
    assert len(set(pids)) == 2 and os.getpid() not in pids
    futures = client.compute([*delayed, *kept])
    distributed.wait(futures, return_when="FIRST_COMPLETED", timeout=60)
    assert any(future.status == "pending" for future in futures)
    os.kill(pids[0], signal.SIGKILL)
    found = client.gather(futures, errors="raise")
    paths, clouds = found[:COUNT], found[COUNT:]
    # A file has its name when it is whole. What the killed one was writing stays under a hidden name, which is no cloud.
    left = os.listdir(tmp_path / "few")
    assert sorted(name for name in left if name[0] != ".") == sorted(os.path.basename(path) for path in paths)
    assert all(name.endswith(".tmp") for name in left if name[0] == ".")
    assert len(sd.read(tmp_path / "few")) == COUNT
    for i, (path, cloud) in enumerate(zip(paths, clouds)):
        source = io.load_cloud(folder / f"scan{i}.ply")
        wanted = source.positions[ops.farthest_point_sample(np.array(source.positions), 2500).indices]
        np.testing.assert_array_equal(cloud.positions, wanted)
        np.testing.assert_array_equal(io.load_cloud(path).positions, wanted)
    assert pids[0] not in client.run(os.getpid).values()  # the nanny has started another


def test_classes_on_a_cluster(client, folder):
    answers = client.gather(client.compute(sd.classify([folder / "scan0.ply", folder / "scan1.ply"])))
    assert len(answers) == 2 and 0 < answers[0].guesses[0].probability <= 1


def test_dask_is_not_imported_for_others():
    import subprocess
    code = "import sys, stipple; print('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
