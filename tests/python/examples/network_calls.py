"""One call of every function of stipple.network and stipple.models, as ops_calls.py has them for ops."""
import os
import tempfile

from stipple import models, network

FOLDER = tempfile.mkdtemp(prefix="stipple-network-")


def small_classifier():
    build = network.Builder("small-classifier")
    x = build.input("points", network.points_of(3))
    x = build.linear("conv1", x, 16, norm=True, activation="relu")
    x = build.linear("conv2", x, 32, activation=network.leaky_relu(0.2))
    x = build.max_points("pool", x)
    build.output("logits", build.linear("fc", x, 4))
    return build.finish()


def _path(name):
    path = os.path.join(FOLDER, name)
    if os.path.exists(path):
        os.remove(path)
    return path


NET = small_classifier()
WEIGHTS = network.initial_weights(NET, 3)
CARD = {"recipe": "none", "seed": 3, "metrics": {"accuracy": 0.5}}
MODEL_FILE = os.path.join(FOLDER, "model.safetensors")
network.save_weights(MODEL_FILE, network.initial_weights(models.build_model("pointnet-classifier", {
    "classes": 4, "input_transform": False, "feature_transform": False}), 1), overwrite=True)


def _set_card():
    network.set_card(WEIGHTS, CARD)
    return network.card_of(WEIGHTS)


CALLS = {
    "clouds_of": lambda c: str(network.clouds_of(8)),
    "points_of": lambda c: str(network.points_of(3, set=1)),
    "rows_of": lambda c: str(network.rows_of(16, 64)),
    "relu": lambda c: network.relu().kind,
    "leaky_relu": lambda c: network.leaky_relu(0.2).slope,
    "tanh": lambda c: network.tanh().kind,
    "sigmoid": lambda c: network.sigmoid().kind,
    "elu": lambda c: network.elu(0.5).slope,
    "gelu": lambda c: network.gelu().kind,
    "swish": lambda c: network.swish().kind,
    "softplus": lambda c: network.softplus().kind,
    "log": lambda c: network.log(1e-3).slope,
    "flow_condition_channels": lambda c: network.flow_condition_channels(3, 64),
    "parameters_of": lambda c: network.parameters_of(NET)[0].name,
    "count": lambda c: network.count(NET),
    "validate": lambda c: network.validate(NET),
    "to_text": lambda c: network.to_text(NET),
    "totals_text": lambda c: network.totals_text(NET),
    "to_svg": lambda c: network.to_svg(NET),
    "multiply_adds": lambda c: network.multiply_adds(NET, 100),
    "subgraph": lambda c: len(network.subgraph(NET, "head", lambda layer: layer.name in ("pool", "fc"))),
    "initial_weights": lambda c: network.initial_weights(NET, 3)["conv1.weight"],
    "check_weights": lambda c: network.check_weights(NET, WEIGHTS),
    "parse_weights": lambda c: network.parse_weights(network.write_weights(WEIGHTS))["fc.bias"],
    "write_weights": lambda c: len(network.write_weights(WEIGHTS, "f16")),
    "save_weights": lambda c: network.save_weights(_path("w.safetensors"), WEIGHTS, "bf16"),
    "load_weights": lambda c: network.load_weights(MODEL_FILE)["conv1.weight"],
    "checksum": lambda c: network.checksum(WEIGHTS),
    "config_of": lambda c: network.config_of(WEIGHTS),
    "set_config": lambda c: network.set_config(WEIGHTS, NET),
    "card_of": lambda c: network.card_of(WEIGHTS),
    "set_card": lambda c: _set_card(),
    "to_json": lambda c: network.to_json(CARD),
    "parse_card": lambda c: network.parse_card(network.to_json(CARD)),
    "ranges_for_onnx": lambda c: network.ranges_for_onnx(NET, {"fc": 2.0, "unknown": 1.0}),
    "to_onnx": lambda c: len(network.to_onnx(NET, WEIGHTS, convolutions=True)),
    "save_onnx": lambda c: network.save_onnx(_path("n.onnx"), NET, WEIGHTS),
}

MODEL_CALLS = {
    "model_table": lambda c: models.model_table(),
    "build_model": lambda c: str(models.build_model("samplenet", {"count": 16})),
    "load_model": lambda c: models.load_model(MODEL_FILE).weights["conv1.weight"],
}
