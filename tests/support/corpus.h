#pragma once
// tests/corpus: files that are malformed, with the message that each must give.

#include <functional>
#include <string>

#include "stipple/io/byte_source.h"

namespace stipple::test {

/// By the parser that the name of its folder in tests/corpus tells.
using ReadCorpus = std::function<void(const std::string& folder, io::ByteReader& reader)>;

/// What reading a file says: "ok" or an Error's message.
std::string corpus_message(const std::string& folder, std::string_view content, const ReadCorpus& read);

/// Expects of every file of expected.tsv whose folder is wanted that it gives its message ("ok": that it is read) in
/// one line, within a second. Returns how many there were.
int64_t expect_corpus(const std::function<bool(const std::string& folder)>& wants, const ReadCorpus& read);

}  // namespace stipple::test
