#pragma once
// README.md, CONTRIBUTING.md and docs/*.md as tests see them: fenced blocks with their marks, inline commands, links.
//
// A mark is an HTML comment, which no page shows, on the line before a fence:
//   <!-- run -->                 the block is run by bash; every command must succeed
//   <!-- run: exit 3 -->         ... must end with that status
//   <!-- not run: REASON -->     it cannot be run here
//   <!-- output -->              what the block before it prints, standard error too

#include <string>
#include <vector>

namespace stipple::test {

struct Block {
    std::string language;  // "sh"; "" for a bare fence
    std::string mark;      // "run", "run: exit 3", "not run: needs a GPU", "output"; "" without one
    std::string text;      // the lines between the fences, each with its line break
    int line = 0;          // of the opening fence, from 1

    bool runs() const { return mark == "run" || mark.rfind("run:", 0) == 0; }
    int exit_status() const;  // that a block that runs must end with
};

struct Page {
    std::string path;  // "docs/cli.md"
    std::vector<Block> blocks;
    std::vector<std::string> commands;  // inline code that begins with "stipple "
    std::vector<std::string> links;     // targets of links and pictures
    std::vector<std::string> anchors;   // of its headings, as they stand in links

    /// The blocks of commands: those in `sh`, and bare ones that begin with the program's name.
    std::vector<const Block*> command_blocks() const;
};

/// All pages, in the order of their paths.
const std::vector<Page>& pages();
Page parse_page(const std::string& path, const std::string& text);

/// Whether a program printed what a page shows. Words are compared, not the spaces between them. In the page, `...`
/// stands for anything within a line, and as a line of its own for any lines. Numbers with a decimal point agree when
/// they differ by at most 1 % or two units of the last digit shown. The first line that differs is put into
/// `difference`.
bool shows(const std::string& page, const std::string& printed, std::string& difference);

}  // namespace stipple::test
