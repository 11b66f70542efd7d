#include "tests/support/corpus.h"

#include <gtest/gtest.h>

#include <chrono>

#include "stipple/core/error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

std::string corpus_message(const std::string& folder, std::string_view content, const ReadCorpus& read) {
    io::MemorySource source({reinterpret_cast<const std::byte*>(content.data()), content.size()});
    io::ByteReader reader(source);
    try {
        read(folder, reader);
    } catch (const Error& error) {
        return error.what();
    }
    return "ok";
}

int64_t expect_corpus(const std::function<bool(const std::string& folder)>& wants, const ReadCorpus& read) {
    const std::string corpus = STIPPLE_SOURCE_DIR "/tests/corpus/";
    const std::string expected = read_file(corpus + "expected.tsv");
    int64_t files = 0;
    for (size_t begin = 0; begin < expected.size();) {
        const size_t tab = expected.find('\t', begin), end = expected.find('\n', begin);
        const std::string name = expected.substr(begin, tab - begin), message = expected.substr(tab + 1, end - tab - 1);
        begin = end + 1;
        const std::string folder = name.substr(0, name.find('/'));
        if (!wants(folder)) continue;
        ++files;
        const auto start = std::chrono::steady_clock::now();
        const std::string found = corpus_message(folder, read_file(corpus + name), read);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        EXPECT_NE(found.find(message), std::string::npos)
            << name << "\n  expected: " << message << "\n  found:    " << found;
        EXPECT_EQ(found == "ok", message == "ok") << name << ": " << found;
        EXPECT_EQ(found.find('\n'), std::string::npos) << name;
        EXPECT_LT(seconds.count(), 1.0) << name;
    }
    return files;
}

}  // namespace stipple::test
