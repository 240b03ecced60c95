#include "sim/exec/compiler/deep_stack.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <exception>

namespace gridloom::exec {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30, kLeast = std::size_t{32} << 20, kGuardBytes = 64 << 10;

class DeepStack {
 public:
  DeepStack() {
    for (bytes_ = kMost; bytes_ >= kLeast; bytes_ /= 2) {
      memory_ =
          mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
      if (memory_ != MAP_FAILED) break;
    }
    if (memory_ == MAP_FAILED) return;
    mprotect(memory_, kGuardBytes, PROT_NONE);
    madvise(memory_, bytes_, MADV_NOHUGEPAGE);  // a few pages of it are used
  }
  ~DeepStack() {
    if (made()) munmap(memory_, bytes_);
  }
  DeepStack(const DeepStack&) = delete;
  DeepStack& operator=(const DeepStack&) = delete;

  bool made() const { return memory_ != MAP_FAILED; }
  void* low() const { return static_cast<std::byte*>(memory_) + kGuardBytes; }
  std::size_t bytes() const { return bytes_ - kGuardBytes; }

 private:
  void* memory_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

struct DeepCall {
  const std::function<void()>* function;
  std::exception_ptr thrown;
  ucontext_t caller, callee;
};

/// makecontext hands on integers only.
void Enter(unsigned low, unsigned high) {
  auto& call = *reinterpret_cast<DeepCall*>(std::uintptr_t{high} << 32 | low);
  try {
    (*call.function)();
  } catch (...) {
    call.thrown = std::current_exception();
  }
}  // goes on in `caller`

}  // namespace

void OnDeepStack(const std::function<void()>& function) {
  const DeepStack stack;
  DeepCall call{.function = &function, .thrown = nullptr, .caller = {}, .callee = {}};
  if (!stack.made() || getcontext(&call.callee) != 0) return function();
  call.callee.uc_stack.ss_sp = stack.low();
  call.callee.uc_stack.ss_size = stack.bytes();
  call.callee.uc_link = &call.caller;
  const auto place = reinterpret_cast<std::uintptr_t>(&call);
  makecontext(&call.callee, reinterpret_cast<void (*)()>(&Enter), 2, static_cast<unsigned>(place),
              static_cast<unsigned>(place >> 32));
  if (swapcontext(&call.caller, &call.callee) != 0) return function();
  if (call.thrown) std::rethrow_exception(call.thrown);
}

}  // namespace gridloom::exec
