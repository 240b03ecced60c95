// What is to happen when the process ends, after all of the program's own: exit handlers, static destructors, and
// kernels they launch.
#pragma once

#include <functional>

namespace gridloom::session {

/// Calls `function` at the end of the process; the last one that was given comes first. Not after _exit, quick_exit or
/// a signal.
void AtEnd(std::function<void()> function);
/// Calls them now; those that have been called are not called again.
void RunAtEnd();

}  // namespace gridloom::session
