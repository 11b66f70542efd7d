"""State dictionaries as the published programs save them, with random values, and what those programs compute with
them: the oracle of scripts/pth_to_safetensors.py. numpy alone."""
import numpy

EPS = 1e-5


class State(dict):
    """Tensors by name, added layer by layer."""

    def __init__(self, seed, dimensions=1):
        super().__init__()
        self.random = numpy.random.default_rng(seed)
        self.dimensions = dimensions  # of a convolution's window

    def linear(self, name, inputs, outputs, bias=True):
        self[f"{name}.weight"] = (self.random.standard_normal((outputs, inputs)) / inputs**0.5).astype("f4")
        if bias:
            self[f"{name}.bias"] = (0.1 * self.random.standard_normal(outputs)).astype("f4")

    def conv(self, name, inputs, outputs):
        self.linear(name, inputs, outputs)
        self[f"{name}.weight"] = self[f"{name}.weight"].reshape(outputs, inputs, *(1,) * self.dimensions)

    def norm(self, name, channels):
        self[f"{name}.weight"] = self.random.uniform(0.5, 1.5, channels).astype("f4")
        self[f"{name}.bias"] = (0.2 * self.random.standard_normal(channels)).astype("f4")
        self[f"{name}.running_mean"] = (0.2 * self.random.standard_normal(channels)).astype("f4")
        self[f"{name}.running_var"] = self.random.uniform(0.5, 1.5, channels).astype("f4")
        self[f"{name}.num_batches_tracked"] = numpy.array(1000, "i8")

    def transform_net(self, name, k):
        for i, (inputs, outputs) in enumerate([(k, 64), (64, 128), (128, 1024)], 1):
            self.conv(f"{name}.conv{i}", inputs, outputs)
            self.norm(f"{name}.bn{i}", outputs)
        for i, (inputs, outputs) in enumerate([(1024, 512), (512, 256)], 1):
            self.linear(f"{name}.fc{i}", inputs, outputs)
            self.norm(f"{name}.bn{i + 3}", outputs)
        self.linear(f"{name}.fc3", 256, k * k)

    # === What the programs compute, on one cloud [n, channels]

    def product(self, x, name):
        weight = self[f"{name}.weight"]
        return x @ weight.reshape(weight.shape[:2]).astype("f8").T + self[f"{name}.bias"]

    def hidden(self, x, name, norm, relu=True):
        y = (self.product(x, name) - self[f"{norm}.running_mean"]) / numpy.sqrt(self[f"{norm}.running_var"] + EPS)
        y = y * self[f"{norm}.weight"] + self[f"{norm}.bias"]
        return numpy.maximum(y, 0) if relu else y

    def matrix(self, x, name):
        k = x.shape[-1]
        for i in (1, 2, 3):
            x = self.hidden(x, f"{name}.conv{i}", f"{name}.bn{i}")
        x = x.max(0)
        for i in (1, 2):
            x = self.hidden(x, f"{name}.fc{i}", f"{name}.bn{i + 3}")
        return self.product(x, f"{name}.fc3").reshape(k, k) + numpy.eye(k)


def trunk_state(seed, feature_transform, channels=3):
    state = State(seed)
    state.transform_net("feat.stn", channels)
    if channels != 3:  # turns the coordinates alone
        state.linear("feat.stn.fc3", 256, 9)
    for i, (inputs, outputs) in enumerate([(channels, 64), (64, 128), (128, 1024)], 1):
        state.conv(f"feat.conv{i}", inputs, outputs)
        state.norm(f"feat.bn{i}", outputs)
    if feature_transform:
        state.transform_net("feat.fstn", 64)
    return state


def trunk(state, x):
    """Features of the points, and of the cloud."""
    x = x @ state.matrix(x, "feat.stn")
    x = state.hidden(x, "feat.conv1", "feat.bn1")
    if "feat.fstn.conv1.weight" in state:
        x = x @ state.matrix(x, "feat.fstn")
    points = x
    x = state.hidden(x, "feat.conv2", "feat.bn2")
    return points, state.hidden(x, "feat.conv3", "feat.bn3", relu=False).max(0)


def classifier(seed=1, feature_transform=True, classes=10, channels=3):
    state = trunk_state(seed, feature_transform, channels)
    for i, (inputs, outputs) in enumerate([(1024, 512), (512, 256)], 1):
        state.linear(f"fc{i}", inputs, outputs)
        state.norm(f"bn{i}", outputs)
    state.linear("fc3", 256, classes)
    return state


def run_classifier(state, x):
    x = trunk(state, x)[1]
    for i in (1, 2):
        x = state.hidden(x, f"fc{i}", f"bn{i}")
    return state.product(x, "fc3")


def segmenter(seed=2, feature_transform=True, classes=4):
    state = trunk_state(seed, feature_transform)
    for i, (inputs, outputs) in enumerate([(1088, 512), (512, 256), (256, 128)], 1):
        state.conv(f"conv{i}", inputs, outputs)
        state.norm(f"bn{i}", outputs)
    state.conv("conv4", 128, classes)
    return state


def run_segmenter(state, x):
    points, cloud = trunk(state, x)
    x = numpy.concatenate([numpy.tile(cloud, (len(x), 1)), points], 1)
    for i in (1, 2, 3):
        x = state.hidden(x, f"conv{i}", f"bn{i}")
    return state.product(x, "conv4")


def part_segmenter(seed=3, parts=50, categories=16):
    state = State(seed)
    state.transform_net("stn", 3)
    for i, (inputs, outputs) in enumerate([(3, 64), (64, 128), (128, 128), (128, 512), (512, 2048)], 1):
        state.conv(f"conv{i}", inputs, outputs)
        state.norm(f"bn{i}", outputs)
    state.transform_net("fstn", 128)
    for i, (inputs, outputs) in enumerate([(4928 + categories, 256), (256, 256), (256, 128)], 1):
        state.conv(f"convs{i}", inputs, outputs)
        state.norm(f"bns{i}", outputs)
    state.conv("convs4", 128, parts)
    return state


def run_part_segmenter(state, x, category):
    out = [x @ state.matrix(x, "stn")]
    for i in (1, 2, 3):
        out.append(state.hidden(out[-1], f"conv{i}", f"bn{i}"))
    moved = out[3] @ state.matrix(out[3], "fstn")
    out.append(state.hidden(moved, "conv4", "bn4"))
    out.append(state.hidden(out[4], "conv5", "bn5", relu=False))
    cloud = numpy.concatenate([out[5].max(0), category])
    x = numpy.concatenate([numpy.tile(cloud, (len(x), 1))] + out[1:], 1)
    for i in (1, 2, 3):
        x = state.hidden(x, f"convs{i}", f"bns{i}")
    return state.product(x, "convs4")


def puflow(seed=4):
    """Names and shapes of the discrete model; what it computes is compared with the published arrays elsewhere."""
    state = State(seed, dimensions=2)

    def edge_unit(name, inputs, outputs, growth):
        for i in range(outputs // growth):
            state.conv(f"{name}.convs.{i}.0", 3 * inputs + i * growth, growth)
            state.norm(f"{name}.convs.{i}.1", growth)
        state.conv(f"{name}.conv_out", 3 * inputs + outputs, outputs)

    def mlp(name, widths):
        for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
            state.conv(f"{name}.{3 * i}", inputs, outputs)
            if i + 2 < len(widths):
                state.norm(f"{name}.{3 * i + 1}", outputs)

    def net(name, inputs, outputs):
        state.linear(f"{name}.layers.0", inputs, 64, bias=False)
        state.linear(f"{name}.layers.2", 64, 64)
        state.linear(f"{name}.layers.4", 64, outputs)

    mlp("interp.knn_context.distance_encoder.mlp", [10, 64, 64, 128])
    edge_unit("interp.knn_context.feat_conv", 3, 128, 16)
    mlp("interp.weight_unit.mlp", [256, 128, 64, 32])
    widths = [3, 32, 64, 128, 128, 128, 128]
    for l, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        edge_unit(f"feat_convs.{l}", inputs, outputs, outputs // 4)
        state.linear(f"merge_convs.{l}.conv1", outputs, outputs // 2)
        state.linear(f"merge_convs.{l}.conv2", outputs // 2, outputs, bias=False)
        block = f"flow_blocks.{l}"
        for part in ("logs", "bias"):
            state[f"{block}.actnorm.{part}"] = state.random.standard_normal((1, 1, 3)).astype("f4")
        state[f"{block}.permutate1.permutater.W"] = state.random.standard_normal((3, 3)).astype("f4")
        state[f"{block}.permutate2.permutater.direct_idx"] = numpy.array([2, 1, 0], "i8")
        state[f"{block}.permutate2.permutater.inverse_idx"] = numpy.array([2, 1, 0], "i8")
        kept = 1 + l % 2
        net(f"{block}.coupling1.bias_net", kept + outputs, 3 - kept)
        net(f"{block}.coupling2.bias_net", outputs, 3)
        net(f"{block}.coupling2.scale_net", outputs, 3)
    return state
