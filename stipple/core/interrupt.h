#pragma once
// Interrupts: a signal sets a flag, long work asks for it, an exception unwinds and cleans up.

namespace stipple {

/// Throws Error{interrupted} or Error{terminated} when the process was asked to stop. Cheap: call it per chunk of work.
void check_interrupted();

/// What check_interrupted asks besides, where signals are somebody else's: a function that throws to stop the work.
/// It is called on any thread, also without any pause. nullptr: none. For hosts that embed the library, as Python does.
void set_interrupt_poll(void (*poll)());

/// Handlers for SIGINT, SIGTERM and SIGUSR1 (set the flag; a second SIGINT removes temporary files and ends the process
/// at once with status 130), SIGPIPE and SIGXFSZ (ignored: a closed pipe and a file above `ulimit -f` are errors of
/// write). For programs, not for libraries.
void install_signal_handlers();

/// The signal that was caught, or 0. SIGUSR1 counts as a request to save and stop, as SIGTERM does.
int caught_signal();

}  // namespace stipple
