#include "interpose/objects/device.h"

#include <xxhash.h>

#include <cstring>

#include "interpose/base/log.h"

namespace gridloom::session {

using namespace cuda;

namespace {

std::mutex g_factory_mutex;
BackendFactory& Factory() {
  static BackendFactory* const factory = new BackendFactory;
  return *factory;
}

}  // namespace

void SetBackendFactory(BackendFactory factory) {
  const std::lock_guard lock(g_factory_mutex);
  Factory() = std::move(factory);
}

BackendFactory TheBackendFactory() {
  const std::lock_guard lock(g_factory_mutex);
  return Factory();
}

Device::Device(Process& process, int ordinal, sim::DeviceSpec spec, std::uint64_t memory_bytes)
    : process_(process), ordinal_(ordinal), spec_(std::move(spec)), memory_bytes_(memory_bytes) {
  primary_ = std::make_unique<Context>(*this, true);
}

CUuuid Device::UuidOf(const sim::DeviceSpec& spec, int ordinal) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(spec.name.data(), spec.name.size(), static_cast<XXH64_hash_t>(ordinal) + 1);
  CUuuid uuid;
  std::memcpy(uuid.bytes, &hash.low64, 8);
  std::memcpy(uuid.bytes + 8, &hash.high64, 8);
  return uuid;
}

void Device::SetDefaultLimits(Context& context) const {
  context.limits[CU_LIMIT_STACK_SIZE] = Context::kDefaultStackBytes;
  context.limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
  context.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
  context.limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context.limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  context.limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
}

Backend* Device::backend() {
  std::call_once(backend_once_, [this] {
    const BackendFactory factory = TheBackendFactory();
    if (!factory) {
      Log(LogLevel::kError, "this build has no executor: kernels cannot run");
      return;
    }
    auto made = factory(process_, spec_, memory_bytes_);
    if (made.ok()) backend_ = std::move(made).value();
    else Log(LogLevel::kError, "the virtual GPU cannot start: " + made.error().message);
  });
  return backend_.get();
}

std::shared_ptr<MemoryPool> Device::default_pool(exec::MemoryKind kind) {
  const std::lock_guard lock(pool_mutex_);
  std::shared_ptr<MemoryPool>& pool = default_pools_[kind];
  if (pool == nullptr) pool = std::make_shared<MemoryPool>(*this, kind);
  return pool;
}

std::shared_ptr<MemoryPool> Device::current_pool(exec::MemoryKind kind) {
  {
    const std::lock_guard lock(pool_mutex_);
    const auto chosen = current_pools_.find(kind);
    if (chosen != current_pools_.end()) return chosen->second;
  }
  return default_pool(kind);
}

void Device::set_current_pool(std::shared_ptr<MemoryPool> pool) {
  const std::lock_guard lock(pool_mutex_);
  const exec::MemoryKind kind = pool->kind();
  current_pools_[kind] = std::move(pool);
}

void Device::ForgetPool(const MemoryPool& pool) {
  const std::lock_guard lock(pool_mutex_);
  const auto chosen = current_pools_.find(pool.kind());
  if (chosen != current_pools_.end() && chosen->second.get() == &pool) current_pools_.erase(chosen);
}

std::shared_ptr<MemoryPool> Device::graph_pool() {
  const std::lock_guard lock(pool_mutex_);
  if (graph_pool_ == nullptr) graph_pool_ = std::make_shared<MemoryPool>(*this, exec::MemoryKind::kPool);
  return graph_pool_;
}

}  // namespace gridloom::session
