// What memcheck found in a kernel (docs/memcheck.md). The runtime fills reports, FormatMemcheck writes one as a person
// wants to read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/exec/contract/immediates.h"
#include "sim/exec/device_memory.h"
#include "sim/exec/dim3.h"

namespace gridloom::exec {

enum class MemcheckKind : std::uint8_t {
  kOutOfBounds,  ///< outside of every allocation, window or variable
  kUseAfterFree,
  kMisaligned,
  kReadOnly,           ///< a write to memory registered or mapped for reading
  kUninitialized,      ///< a value from shared memory that no thread of the CTA has written decides something
  kRace,               ///< two threads of a CTA touch shared memory, at least one writes, and nothing orders them
  kInvalidFree,        ///< free() in a kernel of what malloc() did not give, or gave and got back
  kUnfinishedCopy,     ///< an access to what an asynchronous copy writes that was not waited for
  kBarrierDivergence,  ///< threads wait at an aligned barrier that others of the warp or CTA have passed by
  kSyncMask,           ///< a .sync instruction by a thread that its member mask does not hold
  kSyncMissing,        ///< members of a mask that did not come to their .sync instruction
  kShuffleSource,      ///< a value from a lane that took no part in the shuffle decides something
  kStreamOrder,        ///< memory of cudaMallocAsync or of a graph, used in no order with its allocation or its free
  kMbarrier,           ///< an mbarrier that is none, or is begun anew, or gets a count that it cannot have
};

/// One thread's access: what it was and where in the code.
struct MemcheckAccess {
  AccessKind kind = AccessKind::kRead;
  std::uint64_t bytes = 0;
  Dim3 thread{0, 0, 0};
  bool several = false;  ///< by several threads of a warp, of which `thread` is the first one, whether it is among
                         ///< them or not
  std::uint32_t ptx_line = 0;  ///< 0: unknown
  std::string file;            ///< of the source, where .loc names one
  std::uint32_t source_line = 0;
};

struct MemcheckReport {
  MemcheckKind kind = MemcheckKind::kOutOfBounds;
  Space space = Space::kGlobal;
  std::string kernel;                   ///< as in the PTX
  std::string library;                  ///< LaunchParams::library
  MemcheckAccess access;                ///< of the first thread that was found
  std::optional<MemcheckAccess> other;  ///< a race: the earlier access; `use`: the read that the value comes from
  InvalidUse use = InvalidUse::kNone;   ///< what an uninitialised value decides; kNone: the access itself is it
  Dim3 cta{0, 0, 0};
  std::uint64_t address = 0;     ///< shared and local: the offset in the window
  std::string place;             ///< "68 bytes past the end of the 4,096-byte allocation …"
  std::uint64_t allocation = 0;  ///< id of the one that the place names, 0: none
  std::uint64_t times = 1;       ///< threads and repetitions at this line, the first one included
};

/// "kind" of a report in JSON: "out-of-bounds", "use-after-free" …
std::string_view NameOf(MemcheckKind kind);
/// Whether a finding is of an access, with a space and an address.
bool IsAccess(MemcheckKind kind);
/// "out-of-bounds write of 4 bytes to global memory".
std::string DescribeAccess(MemcheckKind kind, const MemcheckAccess& access, Space space);
/// A kernel's name for people, without the longest parts.
std::string KernelName(const std::string& symbol);
/// "variable `table` (40 bytes)".
std::string NameVariable(std::string_view symbol, std::uint64_t bytes);
/// Two or three lines, without a line end.
std::string FormatMemcheck(const MemcheckReport& report);
/// "the 4,096-byte allocation 0x… made by cudaMalloc (allocation 2)".
std::string NameAllocation(const Allocation& allocation);
/// How [address, address + bytes) misses [base, base + size), which is `what`: "68 bytes past the end of …".
std::string DescribeMiss(std::uint64_t address, std::uint64_t bytes, std::uint64_t base, std::uint64_t size,
                         const std::string& what);
/// Whether the distance of an address to [base, base + size) says anything of the mistake.
bool IsNear(std::uint64_t address, std::uint64_t base, std::uint64_t size);
/// Where the range lies among the allocations, live and freed.
std::string DescribePlace(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes);
std::string HexAddress(std::uint64_t value);

/// 1234567 -> "1,234,567".
std::string WithCommas(std::uint64_t value);

}  // namespace gridloom::exec
