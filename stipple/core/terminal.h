#pragma once
// Standard output and error as people see them: whether they are terminals, how wide, in colour or not, and the one
// line at the bottom that progress owns. Everything that the library says to people goes through write_line().

#include <string>
#include <string_view>

namespace stipple {

enum class ColorMode { automatic, always, never };

/// For results, log and progress alike. `automatic`: colour on a terminal unless NO_COLOR is set (to anything but
/// nothing, see no-color.org) or TERM is "dumb". Global, as the streams are.
void set_color_mode(ColorMode mode);
/// On standard error.
bool use_color();
bool use_color_on_stdout();

/// Standard error is a terminal that understands cursor movement.
bool stderr_is_terminal();

/// Columns of that terminal; 80 when it does not say.
int terminal_width();

/// Standard output is a terminal, of whatever abilities.
bool stdout_is_terminal();
int stdout_width();

/// One line on standard error; the newline is added. Lines of several threads never mix, and a status line steps aside.
/// Errors of the stream are ignored: there is nobody left to tell.
void write_line(std::string_view line);

/// Shows `text` (no newline, narrower than the terminal) at the bottom of a terminal in place of the status before it;
/// empty text clears it. Does nothing where standard error is no terminal.
void show_status(std::string_view text);

/// The text on one line: control characters, C1 codes included, become '?'.
std::string printable(std::string_view text);

}  // namespace stipple
