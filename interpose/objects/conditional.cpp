#include "interpose/objects/conditional.h"

#include <mutex>
#include <unordered_map>

namespace gridloom::session {

using namespace cuda;

namespace {

/// Kernels name conditions by number, so a stale number must be told from a live one.
struct Registry {
  std::mutex mutex;
  std::unordered_map<CUgraphConditionalHandle, std::weak_ptr<Conditional>> live;
};
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

std::shared_ptr<Conditional> Conditional::Make(unsigned default_value, bool assign_default) {
  const std::shared_ptr<Conditional> made(new Conditional(default_value, assign_default));
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.live[made->handle()] = made;
  return made;
}

std::shared_ptr<Conditional> Conditional::Find(CUgraphConditionalHandle handle) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.live.find(handle);
  return found == registry.live.end() ? nullptr : found->second.lock();
}

Conditional::~Conditional() {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.live.erase(handle());
}

}  // namespace gridloom::session
