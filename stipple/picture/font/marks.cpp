#include "stipple/picture/font/tables.h"

namespace stipple::picture {
namespace {

constexpr std::u32string_view kCopies =
    U"\u00a0 \u2002 \u2003 \u2004 \u2005 \u2006 \u2007 \u2008 \u2009 \u200a \u202f "  // spaces
    U"\u2010-\u2011-\u2012–\u2015—⋅·∙·‚,"
    U"μµΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXνvοoϕφϑθϵε"
    U"∆Δ∏Π∑Σ\u2126Ω\u212aK∅Ø"
    U"АAВBГΓЕEЗ3КKМMНHОOПΠРPСCТTФΦХXаaеeкκоoрpсcуyфφхxЅSѕsІIіiЈJјjĸκ";

constexpr Mark kMarks[] = {
    {0x300, MarkPlace::above, "M-1.9 4.8L.7 2.2", U"ÀAÈEÌIÒOÙUàaèeìıòoùuǸNǹnẀWẁwỲYỳy"},
    {0x301, MarkPlace::above, "M1.9 4.8L-.7 2.2",
     U"ÁAÉEÍIÓOÚUÝYáaéeíıóoúuýyĆCćcĹLĺlŃNńnŔRŕrŚSśsŹZźzǴGǵgẂWẃwǼÆǽæǾØǿøЃГѓгЌКќкάαέεήηίιόούυώω"},
    {0x302, MarkPlace::above, "M-2.5 2.2L0 4.8L2.5 2.2", U"ÂAÊEÎIÔOÛUâaêeîıôoûuĈCĉcĜGĝgĤHĥhĴJĵȷŜSŝsŴWŵwŶYŷy"},
    {0x303, MarkPlace::above, "M-2.8 2.4C-2 4.6 -.8 4.3 0 3.5C.8 2.7 2 2.4 2.8 4.6", U"ÃAÑNÕOãañnõoĨIĩıŨUũu"},
    {0x304, MarkPlace::above, "M-2.6 3.4L2.6 3.4", U"ĀAāaĒEēeĪIīıŌOōoŪUūuȲYȳy"},
    {0x306, MarkPlace::above, "M-2.5 4.8C-2.2 1.6 2.2 1.6 2.5 4.8", U"ĂAăaĔEĕeĞGğgĬIĭıŎOŏoŬUŭuЙИйиЎУўу"},
    {0x307, MarkPlace::above, "M0 3.5L0 3.6", U"ĊCċcĖEėeĠGġgİIŻZżz"},
    {0x308, MarkPlace::above, "M-2 3.5L-2 3.6M2 3.5L2 3.6", U"ÄAËEÏIÖOÜUŸYäaëeïıöoüuÿyΪΙΫΥϊιϋυЁЕёеЇІїı"},
    {0x30a, MarkPlace::above, "O0 3.9 1.7 1.7", U"ÅAåaŮUůu\u212bA"},
    {0x30b, MarkPlace::above, "M-.6 4.8L-2.2 2.2M2.6 4.8L1 2.2", U"ŐOőoŰUűu"},
    {0x30c, MarkPlace::above, "M-2.5 4.8L0 2.2L2.5 4.8", U"ČCčcĎDĚEěeŇNňnŘRřrŠSšsŤTŽZžzǍAǎaǦGǧg"},
    {0x326, MarkPlace::below, "M.5 -2.2C.5 -3.6 .2 -4.4 -.5 -5.2", U"ȘSșsȚTțt"},
    {0x327, MarkPlace::below, "M.5 -2.2C.5 -3.6 .2 -4.4 -.5 -5.2", U"ĢGĶKķkĻLļlŅNņnŖRŗr"},
    {0x327, MarkPlace::below, "M.2 0L-.2 -1.6C1.4 -1.5 2 -2.2 1.8 -3C1.6 -4 .2 -4.4 -1.4 -3.9", U"ÇCçcŞSşsŢTţt"},
    {0x328, MarkPlace::right_foot, "M0 0C-2 -1.2 -2.6 -4 .6 -3.8", U"ĄAąaĘEęeĮIįiŲUųuǪOǫo"},
};

// The caron of d, l, L and t is an apostrophe; the accent of Greek capitals stands before them.
constexpr Overlay kOverlays[] = {
    {U'ď', 'd', "M11.4 14C11.4 12.6 11.1 11.7 10.6 10.8", 0x30c},
    {U'ľ', 'l', "M3 14C3 12.6 2.7 11.7 2.2 10.8", 0x30c},
    {U'Ľ', 'L', "M4.6 14C4.6 12.6 4.3 11.7 3.8 10.8", 0x30c},
    {U'ť', 't', "M5.4 15.2C5.4 13.8 5.1 12.9 4.6 12", 0x30c},
    {U'ģ', 'g', "M4.9 14.8C4.2 14 3.9 13.2 3.9 12.2", 0x327},
    {U'Ð', 'D', "M-1.8 7.2L4.4 7.2"},
    {U'Đ', 'D', "M-1.8 7.2L4.4 7.2"},
    {U'đ', 'd', "M4.8 12L10.4 12"},
    {U'Ħ', 'H', "M-1.6 10.8L11.6 10.8"},
    {U'ħ', 'h', "M-1.8 12L4 12"},
    {U'ћ', 'h', "M-1.8 12L4 12"},
    {U'Ł', 'L', "M-1.8 5L4.6 8.8"},
    {U'ł', 'l', "M-2 5.4L2.2 8.2"},
    {U'Ŧ', 'T', "M1.8 7L8.2 7"},
    {U'ŧ', 't', "M0 5.4L4.4 5.4"},
    {U'Ŀ', 'L', "M5 7.2L5 7.3"},
    {U'ŀ', 'l', "M3.4 7L3.4 7.1"},
    {U'ŉ', 'n', "M-2.4 14C-2.4 12.6 -2.7 11.7 -3.2 10.8"},
    {U'¢', 'c', "M4.5 12L4.5 -2"},
    {U'¥', 'Y', "M1.4 6.2L8.6 6.2M1.4 3L8.6 3"},
    {U'Ά', U'Α', "M-.4 14.4L-1.6 11.2", 0x301},
    {U'Έ', U'Ε', "M-2.4 14.4L-3.6 11.2", 0x301},
    {U'Ή', U'Η', "M-2.4 14.4L-3.6 11.2", 0x301},
    {U'Ί', U'Ι', "M-2.4 14.4L-3.6 11.2", 0x301},
    {U'Ό', U'Ο', "M-.4 14.4L-1.6 11.2", 0x301},
    {U'Ύ', U'Υ', "M-2.4 14.4L-3.6 11.2", 0x301},
    {U'Ώ', U'Ω', "M-.4 14.4L-1.6 11.2", 0x301},
    {U'ΐ', U'ι', "M-2.4 13.5L-2.4 13.6M3 13.5L3 13.6M.9 15.4L0 12.6"},
    {U'ΰ', U'υ', "M1.3 13.5L1.3 13.6M6.7 13.5L6.7 13.6M4.6 15.4L3.7 12.6"},
};

}  // namespace

std::u32string_view copies() {
    return kCopies;
}

std::span<const Mark> marks() {
    return kMarks;
}

std::span<const Overlay> overlays() {
    return kOverlays;
}

}  // namespace stipple::picture
