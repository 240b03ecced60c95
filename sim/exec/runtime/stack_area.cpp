#include "sim/exec/runtime/stack_area.h"

#include <sys/mman.h>

namespace gridloom::exec {
namespace {

// More than a frame of generated code, which may be some tens of KiB: it must not step over the guard.
constexpr std::size_t kGuardBytes = 64u << 10;
// What a thread has by default. Signals of the program's arrive on the stack that the thread is on, and their handlers
// count on that much.
constexpr std::size_t kHandlerBytes = std::size_t{8} << 20;

}  // namespace

StackArea::~StackArea() { Unmap(); }

void StackArea::Unmap() {
  if (base_) munmap(base_, count_ * stride_);
  base_ = nullptr;
  count_ = 0;
}

bool StackArea::Require(std::size_t count, std::size_t bytes) {
  if (count <= count_ && bytes <= bytes_) return true;
  Unmap();
  bytes_ = bytes;
  stride_ = kGuardBytes + kHandlerBytes + bytes;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* const memory = mmap(nullptr, count * stride_, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (memory == MAP_FAILED) return false;
  madvise(memory, count * stride_, MADV_NOHUGEPAGE);  // of each stack a few pages are used
  base_ = static_cast<std::byte*>(memory);
  count_ = count;
  // A process may have some 65,000 mappings. When they run out the stacks still work, only unguarded.
  for (std::size_t i = 0; i < count; ++i)
    if (mprotect(base_ + i * stride_, kGuardBytes, PROT_NONE) != 0) break;
  return true;
}

std::size_t StackArea::IndexOf(std::uintptr_t address) const {
  const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(base_);
  return base_ && offset < count_ * stride_ ? offset / stride_ : count_;
}

bool StackArea::InGuard(std::uintptr_t address) const {
  const std::size_t index = IndexOf(address);
  return index < count_ && address < reinterpret_cast<std::uintptr_t>(base_ + index * stride_ + kGuardBytes);
}

void StackArea::ReturnMemory() {
  for (std::size_t i = 0; i < count_; ++i) madvise(low(i) - kHandlerBytes, kHandlerBytes + bytes_, MADV_DONTNEED);
}

}  // namespace gridloom::exec
