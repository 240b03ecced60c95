// What of a program cannot run here, by name, in one list (GRIDLOOM_REPORT_UNSUPPORTED): calls, kernels, device code.
// The log says each of them where it happens. The list says what is covered of a program as a whole.
#pragma once

#include <cstdint>
#include <string_view>

namespace gridloom::session {

enum class RefusedKind : std::uint8_t { kCall, kKernel, kModule };

/// From now on the process's end prints the list, also when nothing is in it, where a report is wanted.
void WatchRefusals();

/// `name` was asked for and refused; `why` is a sentence, or empty. `library`: the file whose code it is; empty where
/// nobody knows. The first time in a process, a line of JSON is appended to the report, so that a process which is
/// killed has told what it met. Does nothing where no report is wanted.
void NoteRefused(RefusedKind kind, std::string_view name, std::string_view why, std::string_view library = {});

}  // namespace gridloom::session
