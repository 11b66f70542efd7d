"""stipple.network, models and engine: what is built runs, and gives what numpy gives."""
import gc
import threading

import numpy as np
import pytest
import stipple
from network_calls import small_classifier
from stipple import engine, models, network, tasks

POINTS = np.random.default_rng(2).random((3, 40, 3), dtype=np.float32)


def by_numpy(weights, points):
    """small_classifier as it is written, in double."""
    def linear(name, x):
        return x @ weights[name + ".weight"].T.astype(float) + weights[name + ".bias"]

    x = linear("conv1", points.astype(float))
    x = (x - weights["conv1.norm.running_mean"]) / np.sqrt(weights["conv1.norm.running_var"] + 1e-5)
    x = np.maximum(x * weights["conv1.norm.weight"] + weights["conv1.norm.bias"], 0)
    x = linear("conv2", x)
    x = np.where(x > 0, x, 0.2 * x).max(-2)
    return linear("fc", x)


@pytest.fixture
def net():
    return small_classifier()


@pytest.fixture
def weights(net):
    made = network.initial_weights(net, 7)
    made["conv1.norm.running_mean"][:] = np.linspace(-1, 1, 16)
    made["conv1.norm.running_var"] = np.linspace(0.5, 2, 16, dtype=np.float32)
    return made


def test_an_engine_computes_what_the_network_says(net, weights):
    context = engine.Context(engine.compile(net, weights, max_batch=3, max_points=64))
    expected = by_numpy(weights, POINTS)
    dense = context.run({"points": POINTS})["logits"]
    np.testing.assert_allclose(dense, expected, atol=1e-5)
    np.testing.assert_array_equal(context.run(POINTS)["logits"], dense)
    ragged = context.run(POINTS.reshape(-1, 3), offsets=[0, 40, 80, 120], outputs=["logits"])["logits"]
    np.testing.assert_array_equal(ragged, dense)
    single = context.run(POINTS[1])["logits"]
    assert single.shape == (4,)
    np.testing.assert_allclose(single, expected[1], atol=1e-5)
    wide = np.zeros((40, 7), np.float32)
    wide[:, :3] = POINTS[1]
    np.testing.assert_array_equal(context.run(wide[:, :3])["logits"], single)  # rows apart, no copy


def test_wrong_inputs_are_named(net, weights):
    context = engine.Context(engine.compile(net, weights, max_batch=2, max_points=40))
    with pytest.raises(ValueError, match='inputs: "cloud"; wanted is "points"'):
        context.run({"cloud": POINTS[0]})
    with pytest.raises(ValueError, match='"points" is missing'):
        context.run({})
    with pytest.raises(ValueError, match='outputs: "nothing"'):
        context.run(POINTS[0], outputs=["nothing"])
    with pytest.raises(ValueError, match="points"):
        context.run(np.zeros((5, 4), np.float32))
    with pytest.raises(TypeError, match="float32"):
        context.run(POINTS.astype(float))
    with pytest.raises(ValueError):
        context.run(POINTS)  # three clouds, built for two
    with pytest.raises(ValueError, match="precision|fp4"):
        engine.compile(net, weights, precision="fp4")
    with pytest.raises(TypeError, match="Network"):
        engine.compile("pointnet", weights)


def test_results_outlive_everything(net, weights):
    context = engine.Context(engine.compile(net, weights, max_batch=3))
    result = context.run(POINTS)["logits"]
    expected = result.copy()
    view = weights["fc.weight"]
    del context, weights, net
    gc.collect()
    np.testing.assert_array_equal(result, expected)
    assert np.isfinite(view).all()


def test_threads_share_a_context(net, weights):
    context = engine.Context(engine.compile(net, weights, max_batch=3))
    expected = context.run(POINTS)["logits"]
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(context.run(POINTS)["logits"], expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_weights_are_views(weights, tmp_path):
    view = weights["fc.bias"]
    view[:] = 5
    assert (weights["fc.bias"] == 5).all() and weights["fc.bias"].ctypes.data == view.ctypes.data
    weights["fc.bias"] = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(view, np.arange(4))
    with pytest.raises(ValueError, match="fc.bias"):
        weights["fc.bias"] = np.zeros(5, np.float32)
    with pytest.raises(TypeError, match="float32"):
        weights["fc.bias"] = np.zeros(4)
    with pytest.raises(KeyError):
        weights["nothing"]
    path = tmp_path / "w.safetensors"
    network.save_weights(path, weights)
    with pytest.raises(OSError):
        network.save_weights(path, weights)
    again = network.load_weights(path)
    assert network.checksum(again) == network.checksum(weights) and again.keys() == list(weights)
    with pytest.raises(stipple.FileFormatError):
        network.parse_weights(b"nonsense")
    metadata = weights.metadata
    metadata["note"] = 3
    weights.metadata = metadata
    assert weights.metadata["note"] == "3"


def test_mistakes_of_builders_are_reported_by_their_line():
    build = network.Builder("wrong")
    x = build.input("points", network.points_of(3))
    with pytest.raises(ValueError, match="linear 'fc'"):
        build.linear("fc", x, 0)
    with pytest.raises(ValueError, match="activation"):
        build.linear("fc", x, 4, activation="softsign")
    with pytest.raises(ValueError, match="output"):
        build.finish()


def test_networks_show_themselves(net):
    assert net.inputs["points"] == network.points_of(3) and list(net.outputs) == ["logits"]
    assert [layer.name for layer in net.layers] == ["points", "conv1", "conv2", "pool", "fc"]
    assert "conv2" in str(net) and "<svg" in net._repr_svg_()
    assert network.count(net).trained == 3 * 16 + 16 * 3 + 16 * 32 + 32 + 32 * 4 + 4


def test_int8_needs_a_calibration_and_then_agrees(net, weights):
    if "int8" not in engine.precisions_of("cpu"):
        pytest.skip("no int8 on this CPU")
    with pytest.raises(ValueError, match="calibrat"):
        engine.compile(net, weights, precision="int8")
    calibration = engine.calibrate(net, weights, POINTS)
    compiled = engine.compile(net, weights, precision="int8", calibration=calibration)
    expected = by_numpy(weights, POINTS)
    assert np.abs(engine.Context(compiled).run(POINTS)["logits"] - expected).max() < 0.1 * np.abs(expected).max()


def test_engine_files_run_the_same(net, weights, tmp_path):
    compiled = engine.compile(net, weights, max_batch=3)
    engine.save_engine(tmp_path / "a.engine", engine.engine_file_of(compiled, weights))
    assert engine.is_engine_file(tmp_path / "a.engine")
    again = engine.compile(engine.load_engine(tmp_path / "a.engine"))
    np.testing.assert_array_equal(engine.Context(again).run(POINTS)["logits"],
                                  engine.Context(compiled).run(POINTS)["logits"])


def test_shipped_models_load_and_options_are_checked():
    model = models.load_model(tasks.find_weights("pointnet-cls"))
    logits = engine.Context(engine.compile(*model)).run(POINTS)["logits"]
    assert logits.shape == (3, 40) and np.isfinite(logits).all()
    assert network.card_of(model.weights)["recipe"]
    with pytest.raises(stipple.ConfigError, match="pointnet-clasifier") as caught:
        models.build_model("pointnet-clasifier")
    assert "pointnet-classifier" in caught.value.hint
    with pytest.raises(stipple.ConfigError):
        models.build_model("samplenet", {"counts": 3})
    with pytest.raises(stipple.FileFormatError, match="nowhere"):
        models.load_model("nowhere.safetensors")


def test_several_point_sets_and_made_ones():
    moved = models.build_model("pcrnet", {"features": 32, "hidden": 16})
    context = engine.Context(engine.compile(moved, network.initial_weights(moved, 1)))
    found = context.run({"source": POINTS, "template": POINTS[:, :20].copy()})
    assert found["rotation"].shape == (3, 9) and found["moved"].shape == (3, 40, 3)
    made = models.build_model("autoencoder", {"count": 64, "hidden": 32, "latent": 8})
    context = engine.Context(engine.compile(made, network.initial_weights(made, 1)))
    assert context.run(POINTS)["reconstructed"].shape == (3, 64, 3)
    assert context.run(POINTS[0])["reconstructed"].shape == (64, 3)
