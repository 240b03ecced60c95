#include "sim/exec/runtime/stack_area.h"

#include <sys/mman.h>

namespace gridloom::exec {
namespace {

// More than a frame of generated code, which may be some tens of KiB: it must not step over the guard.
constexpr std::size_t kGuardBytes = 64u << 10;

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
  stride_ = bytes + kGuardBytes;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* const memory = mmap(nullptr, count * stride_, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (memory == MAP_FAILED) return false;
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
  return index < count_ && address < reinterpret_cast<std::uintptr_t>(low(index));
}

void StackArea::ReturnMemory() {
  for (std::size_t i = 0; i < count_; ++i) madvise(low(i), bytes_, MADV_DONTNEED);
}

}  // namespace gridloom::exec
