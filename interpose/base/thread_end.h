// The end of the program's threads: what the shim keeps for a thread goes with it. No C++ thread-local does that: to
// register its destructor takes the loader's lock.
#pragma once

namespace gridloom::session {

/// Has the end of the calling thread noticed; cheap when that was said before.
void WatchThreadEnd();

/// What is done then, on the thread, beside giving back its large stack (base/large_stack.h). Said once, before any
/// thread has a context.
void SetThreadEnd(void (*function)());

}  // namespace gridloom::session
