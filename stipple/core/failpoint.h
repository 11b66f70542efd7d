#pragma once
// Failpoints: named places where a test, or an operator who tries a recovery, makes the program fail on purpose.
//
// STIPPLE_FAILPOINT=name:action[:n][,name:action[:n]...] with the actions
//   kill    the process gets SIGKILL, as from the kernel's out-of-memory killer
//   error   throws Error{internal}
//   enospc  throws Error{cannot_write} with the message of a full disk
// `n` restricts it to the n-th time the place is passed, counted from 1; without it every pass fails.
// The names are listed in the header of whatever passes them (checkpoint.h).

#include <string_view>

namespace stipple {

/// Does nothing unless the variable names this place. One predictable branch once the variable has been read.
/// A variable that cannot be read is Error{bad_argument}: a failpoint that never fires would prove nothing.
void failpoint(std::string_view name);

/// Replaces what the environment said; empty switches all off. For tests. Throws Error{bad_argument}.
void set_failpoints(std::string_view specification);

}  // namespace stipple
