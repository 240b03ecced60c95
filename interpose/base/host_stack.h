// Where the program was when it made a call: its stack, for memcheck's findings (GRIDLOOM_MEMCHECK_HOST_STACKS).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace gridloom::session {

class HostStack {
 public:
  /// The calling thread's stack, without the functions of this library.
  static std::shared_ptr<const HostStack> Here();
  /// A line for each function, the innermost first: "Run(int*) in app+0x12af". The name is there where the program
  /// exports it (-rdynamic); addr2line and debuggers take the offset.
  std::vector<std::string> Lines() const;
  /// "\n  launched at\n    Run(int*) in app+0x12af …", `what` in front; of no stack, empty.
  static std::string Text(const char* what, const std::shared_ptr<const HostStack>& stack);

 private:
  std::vector<void*> frames_;
};
using HostStackPtr = std::shared_ptr<const HostStack>;

}  // namespace gridloom::session
