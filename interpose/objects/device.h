// One virtual GPU: its facts, its memory and engine (made when first needed), its primary context.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/allocation_notes.h"
#include "interpose/objects/backend.h"
#include "interpose/objects/context.h"
#include "interpose/objects/pool.h"
#include "sim/device/device_spec.h"

namespace gridloom::session {

class Process;

class Device {
 public:
  /// `process`: the one that it is a device of.
  Device(Process& process, int ordinal, sim::DeviceSpec spec, std::uint64_t memory_bytes);

  Process& process() const { return process_; }

  int ordinal() const { return ordinal_; }
  const sim::DeviceSpec& spec() const { return spec_; }
  ComputeCapability compute_capability() const { return spec_.compute_capability; }
  std::uint64_t memory_bytes() const { return memory_bytes_; }
  cuda::CUuuid uuid() const { return UuidOf(spec_, ordinal_); }
  /// Stable across runs, as a real GPU's is: a function of what the device is and where it sits.
  static cuda::CUuuid UuidOf(const sim::DeviceSpec& spec, int ordinal);
  static constexpr int kPciDomain = 0;
  int pci_bus() const { return PciBus(ordinal_); }
  static constexpr int PciBus(int ordinal) { return ordinal + 1; }
  static constexpr int kPciDevice = 0;

  /// The answer to cuDeviceGetAttribute; 0 for attributes nobody knows.
  int Attribute(cuda::CUdevice_attribute attribute) const;
  void SetDefaultLimits(Context& context) const;

  Context& primary() { return *primary_; }
  std::mutex& primary_mutex() { return primary_mutex_; }

  /// Makes the backend if there is none yet; null when that failed (the reason was logged).
  Backend* backend();
  bool has_backend() const { return backend_ != nullptr; }
  exec::DeviceMemory& memory() { return backend_->memory(); }
  exec::Engine& engine() { return backend_->engine(); }
  /// What programs have said of allocations in memory().
  AllocationNotes& notes() { return notes_; }

  /// The pools that allocations of that kind come from unless they name another. Where managed memory prefers to be
  /// does not matter here, so there is one of it for all locations.
  std::shared_ptr<MemoryPool> default_pool(exec::MemoryKind kind = exec::MemoryKind::kPool);
  std::shared_ptr<MemoryPool> current_pool(exec::MemoryKind kind = exec::MemoryKind::kPool);
  void set_current_pool(std::shared_ptr<MemoryPool> pool);
  /// Allocations come from the default pool again if they came from this one.
  void ForgetPool(const MemoryPool& pool);
  std::shared_ptr<MemoryPool> graph_pool();

 private:
  Process& process_;
  const int ordinal_;
  const sim::DeviceSpec spec_;
  const std::uint64_t memory_bytes_;
  std::unique_ptr<Context> primary_;
  std::mutex primary_mutex_;
  std::once_flag backend_once_;
  std::unique_ptr<Backend> backend_;
  AllocationNotes notes_;
  std::mutex pool_mutex_;
  std::map<exec::MemoryKind, std::shared_ptr<MemoryPool>> default_pools_, current_pools_;
  std::shared_ptr<MemoryPool> graph_pool_;
};

}  // namespace gridloom::session
