// Who hears of memory of the host's that the device may use: pinned by the program, or registered.
#pragma once

#include <cstdint>

#include "interpose/objects/context.h"

namespace gridloom::session {

struct HostMemoryFollower {
  void (*added)(Context& context, std::uint64_t address, const ContextMemory::Block& block) = nullptr;
  /// The program does not have the block any more.
  void (*gone)(Context& context, std::uint64_t address, const ContextMemory::Block& block) = nullptr;
};
/// Before there are contexts.
void SetHostMemoryFollower(const HostMemoryFollower& follower);

}  // namespace gridloom::session
