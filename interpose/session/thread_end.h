// The end of the program's threads: what the shim keeps for a thread goes with it. No C++ thread-local does that: to
// register its destructor takes the loader's lock.
#pragma once

namespace gridloom::session {

/// Has the end of the calling thread noticed; cheap when that was said before. Then its default streams are streams no
/// more, and the contexts on its stack are no longer held by it.
void WatchThreadEnd();

}  // namespace gridloom::session
