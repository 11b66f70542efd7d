// Fuzzes the reader of engine files. Beyond not crashing, every input must keep to:
//   memory      at most 64 times the input and 1 MiB, counted over all allocations that live at one time
//   errors      Error{bad_file} or Error{out_of_memory} only, of one line
//   round trip  what was read, written and read again is the same, bit for bit
// A mutated file rarely keeps its checksum, which would hide everything that is checked after it: so the plan and the
// calibration are also read alone, from the same bytes.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/live_memory.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/engine_file.h"
#include "stipple/engine/file/plan_json.h"
#include "stipple/engine/program/validate_program.h"

namespace {

using namespace stipple;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "fuzz_engine_file: %s\n", what);
    std::abort();
}

engine::EngineFile parse(const uint8_t* data, size_t size) {
    io::MemorySource source({reinterpret_cast<const std::byte*>(data), size});
    io::ByteReader reader(source);
    return engine::parse_engine(reader);
}

/// Runs `work`, which may refuse its input as the contract allows.
template <class Work>
void guarded(size_t size, Work work) {
    fuzz::start_counting();
    try {
        work();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_file && error.code() != ErrorCode::out_of_memory &&
            error.code() != ErrorCode::bad_argument)
            fail(error.what());
        if (std::strchr(error.what(), '\n')) fail("an error of several lines");
    }
    fuzz::stop_counting();
    if (fuzz::took_too_much(size)) fail("too much memory");
}

void run_file(const uint8_t* data, size_t size) {
    const engine::EngineFile file = parse(data, size);
    fuzz::stop_counting();
    MemorySink first, second;
    engine::write_engine(file, first);
    engine::write_engine(parse(reinterpret_cast<const uint8_t*>(first.bytes().data()), first.bytes().size()), second);
    if (first.bytes() != second.bytes()) fail("round trip");
}

void run_plan(std::string_view text) {
    engine::Program program = engine::parse_plan(text);
    fuzz::stop_counting();  // writing is for programs of our own
    if (engine::plan_json(engine::parse_plan(engine::plan_json(program))) != engine::plan_json(program))
        fail("round trip of a plan");
    engine::validate(program);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    set_threads(1);
    fuzz::install_counters();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    guarded(size, [&] { run_file(data, size); });
    guarded(size, [&] { run_plan(text); });
    guarded(size, [&] { engine::parse_calibration(text); });
    return 0;
}
