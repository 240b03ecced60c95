// The end of a process whose main thread has ended by pthread_exit. POSIX has it end with its last thread, and the C
// library counts Gridloom's threads, too, which stay. So a thread of Gridloom's ends it when none but those are left.
#pragma once

namespace gridloom::session {

/// Said once: whether works of the program's are unfinished, which may call functions of it. The process waits for
/// them.
void SetWorkLeft(bool (*function)());

/// The calling thread uses the driver, and will call ThreadEnds when it ends.
void NoteThread();
/// The calling thread ends, by return or pthread_exit.
void ThreadEnds();

/// In a child of fork. `noted`: its only thread has called NoteThread in the parent.
void ForgetLastThread(bool noted);

}  // namespace gridloom::session
