// Functions of the toolkit's libraries that the shim answers in their place, and the way to the real ones. They are
// found by programs that are linked with those libraries (the shim comes first), and by those that look them up with
// dlsym, which the shim answers, too.
#pragma once

namespace gridloom::hooks {

/// The function `name` of the library loaded in this process whose path contains `library`; null when there is none.
void* LoadedFunction(const char* library, const char* name);

/// The C library's dlsym, which the shim's own stands before.
using Dlsym = void* (*)(void*, const char*);
Dlsym RealDlsym();

/// One function that the shim answers when it is looked up by name.
struct Answer {
  const char* name;
  void* function;
};

}  // namespace gridloom::hooks
