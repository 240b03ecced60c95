#include "sim/exec/runtime/fork_guard.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace gridloom::exec {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<ForkAware*> objects;  // in order of registration: an object may use those registered before it
};

// Never destroyed: a fork may happen during static destruction.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

void Prepare() {
  Registry& registry = TheRegistry();
  registry.mutex.lock();
  for (auto it = registry.objects.rbegin(); it != registry.objects.rend(); ++it) (*it)->BeforeFork();
}

void Parent() {
  Registry& registry = TheRegistry();
  for (ForkAware* object : registry.objects) object->AfterForkInParent();
  registry.mutex.unlock();
}

void Child() {
  Registry& registry = TheRegistry();
  for (ForkAware* object : registry.objects) object->AfterForkInChild();
  registry.mutex.unlock();
}

}  // namespace

void InstallForkHandlers() {
  static const int installed = pthread_atfork(Prepare, Parent, Child);
  static_cast<void>(installed);  // fails only without memory; then a fork simply is not guarded
}

void RegisterForkAware(ForkAware* object) {
  InstallForkHandlers();
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.objects.push_back(object);
}

void UnregisterForkAware(ForkAware* object) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  std::erase(registry.objects, object);
}

}  // namespace gridloom::exec
