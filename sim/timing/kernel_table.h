// What the launches of a program took, by kernel.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/timing/counters.h"
#include "sim/timing/derived.h"
#include "sim/timing/work.h"
#include "sim/trace/byte_stream.h"

namespace gridloom::timing {

/// What the launches of one kernel took together.
struct KernelTimes {
  std::string name;
  std::uint64_t launches = 0, ctas = 0, warp_instructions = 0, thread_instructions = 0;
  std::uint64_t cycles = 0;  ///< from each launch's first CTA to its last one's end
  /// Counters of the whole device while the launches ran: kernels that run beside each other both have what both did.
  Counters during;

  Activity On(const sim::DeviceSpec& device) const { return {.device = device, .cycles = cycles, .counters = during}; }
};

/// Copies and fills of one kind.
struct CopyTimes {
  WorkKind kind = WorkKind::kCopyToDevice;
  std::uint64_t count = 0, bytes = 0, cycles = 0;
};

class KernelTable {
 public:
  void Add(const WorkResult& work, const Counters& during);
  /// What another table had.
  void Add(const KernelTimes& kernel);
  void Add(const CopyTimes& copies);
  std::vector<KernelTimes> Kernels() const;  ///< the slowest first
  std::vector<CopyTimes> Copies() const;     ///< kinds that there were

  /// The table as bytes, for another process of the same version; Get fails on anything else.
  void Put(trace::ByteWriter& out) const;
  static Result<KernelTable> Get(trace::ByteReader& in);

 private:
  std::map<std::string, KernelTimes, std::less<>> kernels_;
  std::map<WorkKind, CopyTimes> copies_;
};

/// "kernel", "copy to device", ...
std::string_view Name(WorkKind kind);

}  // namespace gridloom::timing
