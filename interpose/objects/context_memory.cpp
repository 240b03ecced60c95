#include <algorithm>

#include "interpose/objects/context.h"
#include "interpose/objects/host_memory.h"

namespace gridloom::session {
namespace {

using Kind = ContextMemory::Kind;

constinit HostMemoryFollower g_host_memory;

bool IsHosts(Kind kind) { return kind == Kind::kPinned || kind == Kind::kRegistered; }

}  // namespace

void SetHostMemoryFollower(const HostMemoryFollower& follower) { g_host_memory = follower; }

void ContextMemory::Leave(std::uint64_t address, const Block& block) {
  if (IsHosts(block.kind) && g_host_memory.gone != nullptr) g_host_memory.gone(context_, address, block);
}

void ContextMemory::Add(std::uint64_t address, Block block) {
  if (IsHosts(block.kind) && g_host_memory.added != nullptr) g_host_memory.added(context_, address, block);
  const std::lock_guard lock(mutex_);
  blocks_[address] = block;
}

std::optional<ContextMemory::Block> ContextMemory::Take(std::uint64_t address, std::initializer_list<Kind> kinds) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || std::find(kinds.begin(), kinds.end(), found->second.kind) == kinds.end())
    return std::nullopt;
  const Block block = found->second;
  blocks_.erase(found);
  Leave(address, block);
  return block;
}

std::optional<ContextMemory::Block> ContextMemory::Find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return std::nullopt;
  return found->second;
}

void ContextMemory::FreeAll(exec::DeviceMemory& memory) {
  decltype(blocks_) blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(blocks_);
  }
  for (const auto& [address, block] : blocks) {
    Leave(address, block);
    if (block.kind == Kind::kRegistered) memory.UnregisterHost(reinterpret_cast<void*>(address));
    else memory.Free(address);
  }
}

}  // namespace gridloom::session
