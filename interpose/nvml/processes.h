// NVML's lists of a device's processes, in the layouts of nvml.h. Where a list has less room than there is to tell,
// nothing is written but how much it takes, and the answer is kInsufficientSize; a list of no room asks for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interpose/nvml/broker_view.h"
#include "interpose/nvml/nvml.h"
#include "interpose/objects/process.h"

namespace gridloom::nvml {

/// Who uses how much of the device's memory.
struct DeviceUse {
  std::uint64_t memory_bytes = 0, used_bytes = 0;
  std::vector<BrokerView::Process> processes;
  std::uint64_t free_bytes() const { return memory_bytes - std::min(used_bytes, memory_bytes); }
};
/// `shared`: what the broker tells. Without it: what this process knows, which is itself.
DeviceUse UseOf(const session::VisibleDevice& facts, const std::optional<BrokerView::State>& shared);

struct ProcessInfoV1 {
  unsigned pid;
  std::uint64_t memory_bytes;
};
struct ProcessInfo {  // of versions 2 and 3
  unsigned pid;
  std::uint64_t memory_bytes;
  unsigned gpu_instance, compute_instance;
};
struct ProcessDetail {
  unsigned pid;
  std::uint64_t memory_bytes;
  unsigned gpu_instance, compute_instance;
  std::uint64_t protected_bytes;
};
struct ProcessDetailList {
  unsigned version;
  unsigned mode;  ///< 0: compute, 1: graphics, 2: MPS
  unsigned count;
  ProcessDetail* processes;
};
struct ProcessSample {
  unsigned pid;
  std::uint64_t timestamp_us;
  unsigned sm, memory, encoder, decoder;  ///< percent
};
struct ProcessWork {
  std::uint64_t timestamp_us;
  unsigned pid, sm, memory, encoder, decoder, jpeg, optical_flow;  ///< percent
};
struct ProcessWorkList {
  unsigned version;
  unsigned count;
  std::uint64_t last_seen_us;
  ProcessWork* processes;
};
inline constexpr unsigned kProcessDetailList = 0x01000000 | sizeof(ProcessDetailList);
inline constexpr unsigned kProcessWorkList = 0x01000000 | sizeof(ProcessWorkList);

Return List(const DeviceUse& use, unsigned* count, ProcessInfoV1* processes);
Return List(const DeviceUse& use, unsigned* count, ProcessInfo* processes);
Return List(const DeviceUse& use, unsigned* count, ProcessDetail* processes);
/// kNotFound where nobody has had anything of the device, or nothing later than `last_seen_us`.
Return List(const BrokerView::Work& work, std::uint64_t last_seen_us, unsigned* count, ProcessSample* processes);
Return List(const BrokerView::Work& work, std::uint64_t last_seen_us, unsigned* count, ProcessWork* processes);

/// 0 to 100.
unsigned Percent(double share);

/// The first word of the process's command line, or its name where it has none; empty: there is no such process here.
std::string NameOf(pid_t pid);

}  // namespace gridloom::nvml
