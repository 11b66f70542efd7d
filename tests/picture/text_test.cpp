#include "stipple/picture/text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>

#include "tests/picture/scene.h"

namespace stipple::picture {
namespace {

using Pixels = std::vector<uint8_t>;

Image drawn_text(std::string_view text, double size = 24) {
    Image image(60, 48, 3);
    std::memset(image.pixels.data(), 255, static_cast<size_t>(image.pixels.elements()));
    draw_text(image, 12, 32, text, {size});
    return image;
}

Pixels pixels_of(std::string_view text) {
    const Image image = drawn_text(text);
    return {image.pixels.data(), image.pixels.data() + image.pixels.elements()};
}

std::string in_utf8(char32_t code) {
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
            static_cast<char>(0x80 | (code & 0x3f))};
}

const char* const kBox = "\xef\xbf\xbd";

TEST(Text, EveryPrintableCharacterHasItsOwnShape) {
    std::set<Pixels> shapes;
    for (char32_t c = 33; c < 127; ++c) {
        const Image image = drawn_text(in_utf8(c));
        EXPECT_GT(drawn_in(image, 0, 0, 60, 48), 3) << static_cast<char>(c);
        shapes.insert(pixels_of(in_utf8(c)));
    }
    EXPECT_EQ(shapes.size(), 94u);
}

// Latin-1 and Latin Extended-A: every letter and sign is drawn, inside the line, and as nothing else of them.
TEST(Text, LettersOfEuropeanLanguagesHaveTheirOwnShapes) {
    const Pixels box = pixels_of(kBox);
    std::set<Pixels> shapes;
    int64_t drawn = 0;
    for (char32_t c = 0xa1; c < 0x180; ++c) {
        if (c == 0xad) continue;  // the soft hyphen
        SCOPED_TRACE(in_utf8(c));
        const Image image = drawn_text(in_utf8(c));
        EXPECT_GT(drawn_in(image, 0, 0, 60, 48), 3);
        EXPECT_EQ(drawn_in(image, 0, 0, 60, 4) + drawn_in(image, 0, 44, 60, 4) + drawn_in(image, 0, 0, 9, 48), 0);
        EXPECT_NE(pixels_of(in_utf8(c)), box);
        shapes.insert(pixels_of(in_utf8(c)));
        ++drawn;
    }
    // Ð and Đ look the same.
    EXPECT_EQ(static_cast<int64_t>(shapes.size()), drawn - 1);
}

TEST(Text, GreekCyrillicAndSignsAreDrawn) {
    const Pixels box = pixels_of(kBox);
    const auto all_drawn = [&](char32_t first, char32_t last) {
        for (char32_t c = first; c <= last; ++c) {
            if (c == 0x3a2) continue;  // no letter
            EXPECT_NE(pixels_of(in_utf8(c)), box) << in_utf8(c);
        }
    };
    all_drawn(0x388, 0x38a);
    all_drawn(0x38e, 0x3ce);
    all_drawn(0x410, 0x44f);
    for (const char* letter : {"Ё", "ё", "Є", "є", "І", "і", "Ї", "ї", "Ґ", "ґ", "Ў", "ў", "Ђ", "ђ", "Ј", "ј", "Љ", "љ",
                               "Њ", "њ", "Ћ", "ћ", "Џ", "џ", "Ѓ", "ѓ", "Ќ", "ќ", "Ѕ", "ѕ", "Ș", "ș", "Ț", "ț", "ẞ", "€",
                               "–", "—", "‘", "’", "‚", "“", "”", "„", "…", "•", "←", "↑", "→", "↓", "↔", "≈", "≠", "≤",
                               "≥", "∞", "√", "∑", "∆", "∂", "∇", "−", "⁻", "⁴", "₀", "№", "‰", "′", "″", "Ω"})
        EXPECT_NE(pixels_of(letter), box) << letter;
    EXPECT_EQ(pixels_of("Α"), pixels_of("A"));  // Greek, Latin
    EXPECT_NE(pixels_of("Д"), pixels_of("Л"));
}

TEST(Text, ALetterAndItsMarkAreOneGlyph) {
    for (const auto& [joined, apart] : std::initializer_list<std::pair<const char*, const char*>>{{"é", "e\u0301"},
                                                                                                  {"ü", "u\u0308"},
                                                                                                  {"ï", "i\u0308"},
                                                                                                  {"Å", "A\u030a"},
                                                                                                  {"ç", "c\u0327"},
                                                                                                  {"ģ", "g\u0327"},
                                                                                                  {"Ķ", "K\u0327"},
                                                                                                  {"ș", "s\u0326"},
                                                                                                  {"ř", "r\u030c"},
                                                                                                  {"ď", "d\u030c"},
                                                                                                  {"ą", "a\u0328"},
                                                                                                  {"İ", "I\u0307"},
                                                                                                  {"й", "и\u0306"},
                                                                                                  {"ї", "і\u0308"},
                                                                                                  {"Ά", "Α\u0301"}}) {
        EXPECT_EQ(pixels_of(joined), pixels_of(apart)) << joined;
        EXPECT_EQ(text_width(joined, {20}), text_width(apart, {20})) << joined;
        EXPECT_NE(pixels_of(joined), pixels_of(kBox)) << joined;
    }
    EXPECT_EQ(pixels_of("z\u0336"), pixels_of(std::string("z") + kBox));
}

TEST(Text, WidthsCountCharacters) {
    const TextStyle style{20};
    EXPECT_EQ(text_width("Ä", style), text_width("A", style));
    EXPECT_GT(text_width("žluťoučký", style), text_width("zlutoucky", style));
    EXPECT_LT(text_width("žluťoučký", style), 1.15 * text_width("zlutoucky", style));
    EXPECT_EQ(text_width("co\u00adop\ufeff\u200b", style), text_width("coop", style));
    EXPECT_EQ(text_width("a\u00a0b", style), text_width("a b", style));
    const std::string whole = "Čtyři кривые e\u0301té";
    for (double width = 20; width < 200; width += 3) {
        const std::string cut = fit_text(whole, style, width);
        EXPECT_LE(text_width(cut, style), width) << cut;
        if (cut == whole) continue;
        ASSERT_TRUE(cut.ends_with("…")) << cut;
        const size_t kept = cut.size() - 3;
        EXPECT_EQ(whole.substr(0, kept), cut.substr(0, kept));
        EXPECT_NE(static_cast<unsigned char>(whole[kept]) & 0xc0, 0x80) << cut;  // not within a character
        EXPECT_NE(whole.substr(kept, 2), "\u0301") << cut;                       // nor before its mark
    }
}

TEST(Text, FitsWidthsAndSurvivesAnyBytes) {
    const TextStyle style{20};
    EXPECT_GT(text_width("wide words", style), text_width("words", style));
    EXPECT_EQ(fit_text("short", style, 500), "short");
    const std::string cut = fit_text("a rather long caption", style, 80);
    EXPECT_LE(text_width(cut, style), 80);
    EXPECT_NE(cut, "a rather long caption");
    const double box = text_width(kBox, style);
    const std::pair<std::string, int> cases[] = {{"\xff\xfe", 2},         {"\xc3", 1},         {"\xf0\x9f\x98\x80", 1},
                                                 {"\xe2\x80", 2},         {"\xc0\xaf", 2},     {"\xed\xa0\x80", 3},
                                                 {"\xf4\x90\x80\x80", 4}, {"\x80\x80\x80", 3}, {"点群", 2}};
    Image image(20, 20, 3);
    for (const auto& [text, boxes] : cases) {
        const auto bytes = std::make_unique<char[]>(text.size());  // without a zero at its end
        std::memcpy(bytes.get(), text.data(), text.size());
        const std::string_view view(bytes.get(), text.size());
        EXPECT_NEAR(text_width(view, style), boxes * box, 1e-9) << boxes;
        draw_text(image, -5, 5, view, style);
        fit_text(view, style, 12);
    }
    draw_text(image, -5, 5, "\n\t", style);
    draw_text(image, 1e30, -1e30, "far", style);
}

}  // namespace
}  // namespace stipple::picture
