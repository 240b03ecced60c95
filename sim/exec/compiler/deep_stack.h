// Room for recursion. LLVM follows values from use to definition by calls of itself: a kernel with 10^5 instructions in
// a chain, which is valid, takes more than a thread's 8 MiB.
#pragma once

#include <functional>

namespace gridloom::exec {

/// Calls `function` on the calling thread, with 1 GiB of stack of which pages that nothing touches take no memory;
/// where the address space has no such room, with less, at last with the thread's own stack. What `function` throws
/// arrives here.
void OnDeepStack(const std::function<void()>& function);

}  // namespace gridloom::exec
