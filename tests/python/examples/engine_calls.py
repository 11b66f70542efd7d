"""One call of every function of stipple.engine, as ops_calls.py has them for ops."""
import os

import numpy as np
import stipple
from network_calls import FOLDER, NET, WEIGHTS, _path
from stipple import engine

_random = np.random.default_rng(5)
POINTS = _random.random((4, 50, 3), dtype=np.float32)
ENGINE = engine.compile(NET, WEIGHTS, max_batch=4, max_points=64)
CONTEXT = engine.Context(ENGINE)
CALIBRATION = engine.calibrate(NET, WEIGHTS, POINTS)
FILE = os.path.join(FOLDER, "calls.engine")
engine.save_engine(FILE, engine.engine_file_of(ENGINE, WEIGHTS), overwrite=True)


def _set_calibration():
    from stipple import network

    weights = network.initial_weights(NET, 3)
    engine.set_calibration(weights, CALIBRATION)
    return engine.has_calibration(weights), engine.calibration_of(weights).clouds


def _gemm_peak():
    try:
        return engine.gemm_peak("cpu", "fp32")
    except stipple.Error as error:
        return str(error.code)


CALLS = {
    "compile": lambda c: engine.compile(engine.load_engine(FILE)).name,
    "run": lambda c: CONTEXT.run({"points": c(POINTS)})["logits"],
    "precisions_of": lambda c: engine.precisions_of("cpu"),
    "bytes_of": lambda c: engine.bytes_of("bf16"),
    "calibrate": lambda c: engine.calibrate(NET, WEIGHTS, c(POINTS), method="max").layers["conv2"].range,
    "calibration_json": lambda c: engine.calibration_json(CALIBRATION),
    "parse_calibration": lambda c: engine.parse_calibration(engine.calibration_json(CALIBRATION)).clouds,
    "set_calibration": lambda c: _set_calibration(),
    "has_calibration": lambda c: engine.has_calibration(WEIGHTS),
    "calibration_of": lambda c: _set_calibration()[1],
    "engine_file_of": lambda c: engine.engine_file_of(ENGINE, WEIGHTS).name,
    "write_engine": lambda c: len(engine.write_engine(engine.load_engine(FILE))),
    "save_engine": lambda c: engine.save_engine(_path("e.engine"), engine.load_engine(FILE)),
    "parse_engine": lambda c: engine.parse_engine(engine.write_engine(engine.load_engine(FILE))).name,
    "load_engine": lambda c: engine.load_engine(FILE).precision,
    "is_engine_file": lambda c: engine.is_engine_file(FILE),
    "time_engine": lambda c: engine.time_engine(
        ENGINE, c(POINTS), warm_up_seconds=0, repeat=2, seconds=0).runs >= 2,
    "statistics_of": lambda c: engine.statistics_of([1, 2, 4]).median,
    "gemm_peak": lambda c: _gemm_peak(),
    "to_text": lambda c: engine.to_text(ENGINE),
}
