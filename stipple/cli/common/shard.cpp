#include "stipple/cli/common/shard.h"

#include "stipple/io/text.h"

namespace stipple::cli {

Shard parse_shard(const std::string& text) {
    Shard shard;
    if (text.empty()) return shard;
    const size_t slash = text.find('/');
    const bool is_pair = slash != std::string::npos && io::parse_number(text.substr(0, slash), shard.index) &&
                         io::parse_number(text.substr(slash + 1), shard.count);
    STIPPLE_REQUIRE(is_pair, "--shard must be I/N, as 0/8, got \"{}\"", text);
    STIPPLE_REQUIRE(shard.count >= 1, "--shard {}: the number of parts must be above 0", text);
    if (shard.index < 0 || shard.index >= shard.count)
        throw Error(ErrorCode::bad_argument,
                    fmt::format("--shard {}: parts are counted from 0, so of {} the last is {}", text, shard.count,
                                shard.count - 1),
                    fmt::format("with SLURM: sbatch --array=0-{}", shard.count - 1));
    return shard;
}

void add_shard(Arguments& app, std::string& text) {
    app.option("--shard", text, "Of many inputs only each N-th, from the I-th on, counted from 0: one job of an array")
        .text("I/N");
}

Result nothing_of_shard(const std::string& shard, size_t inputs) {
    Result result;
    result.text = fmt::format("nothing to do: of {} inputs none is in part {}\n", inputs, shard);
    return result;
}

}  // namespace stipple::cli
