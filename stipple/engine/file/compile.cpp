// Between engine files and engines. Apart from engine_file.cpp, which reads files without the rest of the engine.

#include "stipple/engine/engine_file.h"

namespace stipple::engine {

EngineFile engine_file_of(const Engine& engine, const network::Weights& weights) {
    EngineFile file;
    file.program = engine.program();
    file.options = engine.options();
    const bool scaled = file.options.precision == Precision::int8 || file.options.precision == Precision::fp8;
    if (scaled && !file.options.calibration) file.options.calibration = calibration_of(weights);
    file.source = network::checksum(weights);
    file.metadata = weights.metadata;
    file.metadata.erase("stipple.storage");  // of the model's file
    return file;
}

Engine compile(EngineFile file, int index) {
    file.options.device.index = index;
    return compile(std::move(file.program), file.options);
}

}  // namespace stipple::engine
