#include "stipple/metrics/score_choice.h"

#include <algorithm>

#include "stipple/core/nearest_name.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/text.h"

namespace stipple::metrics {
namespace {

/// What the protocols call their own scores, with the metric that each is in pu-gan.
constexpr std::pair<const char*, const char*> kProtocolScores[] = {{"cd", "chamfer_squared_sum"},
                                                                   {"hd", "hausdorff_squared_sum"},
                                                                   {"p2f", "p2f_mean"},
                                                                   {"cd_raw", "chamfer_squared_sum"},
                                                                   {"hd_raw", "hausdorff_squared_sum"}};

std::optional<Extra> group_by_name(std::string_view word) {
    for (const Extra extra : all_extras())
        if (name_of(extra) == word) return extra;
    return {};
}

const MetricInfo* metric_by_name(std::string_view word) {
    for (const MetricInfo& info : registry())
        if (info.name == word && info.extra) return &info;
    return nullptr;
}

/// The metric of one of the protocols' own names.
const MetricInfo* protocol_score(std::string_view word) {
    for (const auto& [name, metric] : kProtocolScores)
        if (name == word) return &info_of(metric);
    return nullptr;
}

std::vector<std::string> all_words() {
    std::vector<std::string> words;
    for (const auto& [name, metric] : kProtocolScores) words.push_back(name);
    for (const Extra extra : all_extras()) words.emplace_back(name_of(extra));
    for (const MetricInfo& info : registry())
        if (info.extra && std::find(words.begin(), words.end(), info.name) == words.end())
            words.emplace_back(info.name);
    return words;
}

void require_word(const std::string& option, const std::string& word, Protocol protocol) {
    if (protocol == Protocol::raw && protocol_score(word) && word != "p2f")
        throw Error(
            ErrorCode::bad_argument,
            fmt::format("{} {}: --protocol raw has no {}, it names every convention in full", option, word, word),
            fmt::format("the {} of pu-gan is {}", word, protocol_score(word)->name));
    if (protocol == Protocol::pudm && (word == "cd_raw" || word == "hd_raw"))
        throw Error(ErrorCode::bad_argument, fmt::format("{} {}: a score of --protocol pu-gan alone", option, word),
                    "pudm's own cd and hd are without normalisation");
    if (protocol_score(word) || group_by_name(word) || metric_by_name(word)) return;
    const std::vector<std::string> words = all_words();
    const std::string near = nearest_name(word, words);
    std::string list;
    for (const std::string& known : words) list += (list.empty() ? "" : ", ") + known;
    throw Error(ErrorCode::bad_argument, fmt::format("{}: no metric is called {}", option, io::in_quotes(word)),
                (near.empty() ? "" : fmt::format("did you mean {}? ", near)) + "Metrics: " + list);
}

/// "a,b" -> {"a", "b"}
std::vector<std::string> split(const std::string& option, const std::string& text) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view part = io::trimmed(std::string_view(text).substr(begin, end - begin));
        STIPPLE_REQUIRE(!part.empty(), "{} {}: a name is missing between commas", option, io::in_quotes(text));
        parts.emplace_back(part);
        begin = end + 1;
    }
    return parts;
}

/// A word means one metric where it can (hausdorff), else a group (chamfer).
bool names(std::string_view word, const Score& score) {
    if (score.name == word || score.metric == word) return true;
    if (word == "p2f") return score.metric == "p2f_mean";
    const std::optional<Extra> group = group_by_name(word);
    return group && !metric_by_name(word) && !protocol_score(score.name) && info_of(score.metric).extra == group;
}

}  // namespace

bool ScoreChoice::has(const Score& score) const {
    return words.empty() ||
           std::any_of(words.begin(), words.end(), [&](const std::string& word) { return names(word, score); });
}

ScoreChoice parse_choice(const std::string& option, const std::string& text, Protocol protocol) {
    ScoreChoice choice;
    if (text.empty()) return choice;
    choice.words = split(option, text);
    for (const std::string& word : choice.words) require_word(option, word, protocol);
    return choice;
}

std::vector<ScoreLimit> parse_limits(const std::string& option, const std::string& text, bool below,
                                     Protocol protocol) {
    std::vector<ScoreLimit> limits;
    if (text.empty()) return limits;
    for (const std::string& part : split(option, text)) {
        const size_t equals = part.find('=');
        ScoreLimit limit{part.substr(0, equals), 0, below};
        const bool valid = equals != std::string::npos && io::parse_number(part.substr(equals + 1), limit.limit) &&
                           limit.limit == limit.limit;
        STIPPLE_REQUIRE(valid, "{} {}: expected METRIC=NUMBER", option, io::in_quotes(part));
        require_word(option, limit.word, protocol);
        const MetricInfo* metric = protocol_score(limit.word);
        if (!metric) metric = metric_by_name(limit.word == "emd" ? "emd_auction" : limit.word);
        STIPPLE_REQUIRE(metric, "{} {}: a group of metrics, name one of them (stipple metrics --list)", option,
                        limit.word);
        if (metric->better == (below ? Better::lower : Better::higher))
            throw Error(
                ErrorCode::bad_argument,
                fmt::format("{} {}: {} is better the {} it is", option, part, limit.word, below ? "lower" : "higher"),
                fmt::format("use --fail-{} {}", below ? "above" : "below", part));
        limits.push_back(std::move(limit));
    }
    return limits;
}

std::vector<Extra> extras_for(const ScoreChoice& choice, const std::vector<ScoreLimit>& limits, Protocol protocol) {
    std::vector<Extra> extras;
    const auto want = [&](const std::string& word) {
        const MetricInfo* metric = protocol_score(word);
        if (metric && protocol != Protocol::raw) return;
        if (!metric) metric = metric_by_name(word);
        const std::optional<Extra> extra = metric ? metric->extra : group_by_name(word);
        if (extra && std::find(extras.begin(), extras.end(), *extra) == extras.end()) extras.push_back(*extra);
    };
    for (const std::string& word : choice.words) want(word);
    for (const ScoreLimit& limit : limits) want(limit.word);
    return extras;
}

std::optional<Error> check_limits(const std::vector<ScoreLimit>& limits, const std::vector<Score>& scores) {
    for (const ScoreLimit& limit : limits) {
        bool found = false;
        for (const Score& score : scores) {
            if (!names(limit.word, score)) continue;
            found = true;
            const bool holds = limit.below ? score.value >= limit.limit : score.value <= limit.limit;
            if (holds) continue;
            std::string message = fmt::format("{} is {:.6g}, {} the limit {:.6g}", score.name, score.value,
                                              limit.below ? "below" : "above", limit.limit);
            if (score.value != score.value) message = fmt::format("{} is not a number", score.name);
            return Error(ErrorCode::check_failed, std::move(message));
        }
        STIPPLE_REQUIRE(found, "there is no {} to compare with {:.6g}: it needs a mesh (--mesh)", limit.word,
                        limit.limit);
    }
    return {};
}

}  // namespace stipple::metrics
