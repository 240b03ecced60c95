#include "interpose/objects/graph_memory.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "interpose/objects/device.h"
#include "interpose/objects/pool.h"

namespace gridloom::session {

using namespace cuda;

namespace {

struct Registry {
  std::mutex mutex;  ///< guards the state of all graph memory, too
  std::unordered_map<std::uint64_t, std::weak_ptr<GraphMemory>> by_address;
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

std::shared_ptr<GraphMemory> GraphMemory::Make(Device& device, std::uint64_t bytes) {
  std::shared_ptr<MemoryPool> pool = device.graph_pool();
  const std::uint64_t address = pool->Allocate(bytes);
  if (address == 0) return nullptr;
  const std::shared_ptr<GraphMemory> made(new GraphMemory(std::move(pool), address));
  const std::lock_guard lock(TheRegistry().mutex);
  TheRegistry().by_address[address] = made;
  return made;
}

std::shared_ptr<GraphMemory> GraphMemory::Find(std::uint64_t address) {
  const std::lock_guard lock(TheRegistry().mutex);
  const auto found = TheRegistry().by_address.find(address);
  return found == TheRegistry().by_address.end() ? nullptr : found->second.lock();
}

GraphMemory::~GraphMemory() {
  {
    const std::lock_guard lock(TheRegistry().mutex);
    TheRegistry().by_address.erase(address_);
  }
  pool_->Free(address_);
}

bool GraphMemory::BeginFree() {
  std::shared_ptr<GraphMemory> allocated;  // goes after the lock
  const std::lock_guard lock(TheRegistry().mutex);
  allocated = std::move(allocated_);
  return allocated != nullptr;
}

void GraphMemory::CancelFree() {
  const auto self = Find(address_);
  const std::lock_guard lock(TheRegistry().mutex);
  allocated_ = self;
}

CUresult GraphMemoryUse::AddFree(GraphMemory& memory) {
  const std::lock_guard lock(TheRegistry().mutex);
  const bool own = Allocates(&memory);
  if (frees_.contains(&memory) || memory.freed_by_own_graph_ || (own && memory.freed_by_other_graph_))
    return CUDA_ERROR_INVALID_VALUE;
  (own ? memory.freed_by_own_graph_ : memory.freed_by_other_graph_) = true;
  frees_.insert(&memory);
  return CUDA_SUCCESS;
}

void GraphMemoryUse::Add(const GraphMemoryUse& part) {
  allocates_.insert(part.allocates_.begin(), part.allocates_.end());
  frees_.insert(part.frees_.begin(), part.frees_.end());
}

CUresult GraphMemoryUse::BeginLaunch(bool auto_free) const {
  if (!any()) return CUDA_SUCCESS;
  std::vector<std::shared_ptr<GraphMemory>> freed;  // go after the lock
  const std::lock_guard lock(TheRegistry().mutex);
  const auto left = [&](GraphMemory* memory) { return !frees_.contains(memory); };
  const auto taken = [&](GraphMemory* memory) { return left(memory) && memory->allocated_ != nullptr; };
  const auto missing = [&](GraphMemory* memory) { return !Allocates(memory) && memory->allocated_ == nullptr; };
  if (!auto_free && std::ranges::any_of(allocates_, taken)) return CUDA_ERROR_INVALID_VALUE;
  if (std::ranges::any_of(frees_, missing)) return CUDA_ERROR_INVALID_VALUE;
  for (GraphMemory* memory : frees_) {
    if (!Allocates(memory)) freed.push_back(std::move(memory->allocated_));
  }
  for (GraphMemory* memory : allocates_) {
    if (left(memory)) memory->allocated_ = TheRegistry().by_address.at(memory->address_).lock();
  }
  return CUDA_SUCCESS;
}

}  // namespace gridloom::session
