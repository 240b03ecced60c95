// Findings as text.
#include "sim/exec/memcheck.h"

#include <cstdio>

#include "rewriter/support/demangle.h"

namespace gridloom::exec {
namespace {

std::string Triple(const Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

std::string Bytes(std::uint64_t count) { return count == 1 ? "1 byte" : WithCommas(count) + " bytes"; }

template <typename Enum>
struct Named {
  Enum value;
  const char* name;
};

template <typename Enum, std::size_t count>
const char* Find(const Named<Enum> (&names)[count], Enum value, const char* otherwise) {
  for (const Named<Enum>& row : names) {
    if (row.value == value) return row.name;
  }
  return otherwise;
}

constexpr Named<AccessKind> kAccessNames[] = {
    {AccessKind::kRead, "read"}, {AccessKind::kWrite, "write"}, {AccessKind::kAtomic, "atomic operation"}};
std::string_view NameOf(AccessKind kind) { return Find(kAccessNames, kind, "access"); }

constexpr Named<Space> kSpaceNames[] = {{Space::kGlobal, "global memory"},
                                        {Space::kShared, "shared memory"},
                                        {Space::kLocal, "local memory"},
                                        {Space::kGeneric, "memory"}};
std::string_view NameOf(Space space) { return Find(kSpaceNames, space, "memory"); }

constexpr Named<InvalidUse> kUseNames[] = {{InvalidUse::kBranch, "decides a branch"},
                                           {InvalidUse::kAddress, "is an address"},
                                           {InvalidUse::kAtomic, "goes into an atomic operation"},
                                           {InvalidUse::kStore, "is stored to global memory"}};
std::string_view NameOf(InvalidUse use) { return Find(kUseNames, use, "is used"); }

/// " at app.cu:12 (PTX line 43)", as much as is known.
std::string At(const MemcheckAccess& access) {
  const std::string ptx = access.ptx_line == 0 ? "" : "PTX line " + std::to_string(access.ptx_line);
  if (access.file.empty()) return ptx.empty() ? "" : " at " + ptx;
  return " at " + access.file + ":" + std::to_string(access.source_line) + (ptx.empty() ? "" : " (" + ptx + ")");
}

constexpr Named<MemoryKind> kOrigins[] = {
    {MemoryKind::kDevice, "cudaMalloc"},
    {MemoryKind::kPool, "cudaMallocAsync"},
    {MemoryKind::kManaged, "cudaMallocManaged"},
    {MemoryKind::kPinned, "cudaMallocHost"},
    {MemoryKind::kRegistered, "cudaHostRegister"},
    {MemoryKind::kReserved, "cuMemAddressReserve"},
    {MemoryKind::kModule, "a module"},
    {MemoryKind::kInternal, "Gridloom"},
};
const char* OriginOf(const Allocation& allocation) { return Find(kOrigins, allocation.kind, "nobody"); }

/// `text` with what stands in brackets of one kind, outside of all others of that kind, as an ellipsis.
std::string WithoutInsides(const std::string& text, char open, char close) {
  std::string rest;
  int depth = 0;
  for (const char c : text) {
    if (c == close && depth > 0 && --depth == 0) rest += "…";
    if (depth == 0) rest += c;
    if (c == open) ++depth;
  }
  return depth == 0 ? rest : text;  // as of `operator<`
}

std::string Headline(const MemcheckReport& report) {
  const std::string what = DescribeAccess(report.kind, report.access, report.space);
  const std::string where = " in kernel `" + KernelName(report.kernel) + "`" + At(report.access);
  if (report.kind == MemcheckKind::kUninitialized && report.use != InvalidUse::kNone)
    return "uninitialised value from " + std::string(NameOf(report.space)) + " " + std::string(NameOf(report.use)) +
           where;
  if (report.kind == MemcheckKind::kShuffleSource) return what + " " + std::string(NameOf(report.use)) + where;
  if (report.kind == MemcheckKind::kRace)
    return what + " after a " + std::string(report.other ? NameOf(report.other->kind) : "access") +
           " by another thread" + where;
  return what + where;
}

/// Who made an access.
std::string Threads(const MemcheckAccess& access) {
  return (access.several ? "several threads of the warp of thread " : "thread ") + Triple(access.thread);
}

/// How often it happened besides, as a further line.
std::string More(const MemcheckReport& report) {
  if (report.times == 1) return {};
  const char* const what = IsAccess(report.kind) ? (report.times == 2 ? " more access" : " more accesses") : " more";
  return "\n  and " + WithCommas(report.times - 1) + what + " of this kind at this place";
}

}  // namespace

std::string DescribeAccess(MemcheckKind kind, const MemcheckAccess& access, Space space) {
  const std::string what = std::string(NameOf(access.kind)) + " of " + Bytes(access.bytes);
  const std::string of_space = (access.kind == AccessKind::kWrite  ? " to "
                                : access.kind == AccessKind::kRead ? " from "
                                                                   : " on ") +
                               std::string(NameOf(space));
  switch (kind) {
    case MemcheckKind::kOutOfBounds: return "out-of-bounds " + what + of_space;
    case MemcheckKind::kUseAfterFree: return "use after free: " + what + of_space;
    case MemcheckKind::kMisaligned: return "misaligned " + what + of_space;
    case MemcheckKind::kReadOnly: return "write to read-only memory: " + what;
    case MemcheckKind::kUninitialized: return "uninitialised " + what + of_space;
    case MemcheckKind::kRace: return "race on shared memory: " + what;
    case MemcheckKind::kInvalidFree: return "invalid free()";
    case MemcheckKind::kUnfinishedCopy: return what + of_space + " before the end of an asynchronous copy to it";
    case MemcheckKind::kBarrierDivergence: return "barrier that not all threads come to";
    case MemcheckKind::kSyncMask: return ".sync instruction with a mask that does not hold the thread itself";
    case MemcheckKind::kSyncMissing: return ".sync instruction with a mask of lanes that do not come";
    case MemcheckKind::kShuffleSource: return "value of a lane that took no part in a shuffle";
    case MemcheckKind::kStreamOrder: return what + of_space + " in no order with its allocation or free";
    case MemcheckKind::kMbarrier: return "wrong use of an mbarrier";
  }
  return what;
}

/// For people. Names of templates' instances take whole pages; the JSON has them whole.
std::string KernelName(const std::string& symbol) {
  constexpr std::size_t kLongest = 120;
  std::string name = DemangledName(symbol);
  if (name.size() > kLongest) name = WithoutInsides(name, '<', '>');
  if (name.size() > kLongest) name = WithoutInsides(name, '(', ')');
  return name;
}

std::string NameVariable(std::string_view symbol, std::uint64_t bytes) {
  return "variable `" + DemangledName(std::string(symbol)) + "` (" + Bytes(bytes) + ")";
}

std::string_view NameOf(MemcheckKind kind) {
  switch (kind) {
    case MemcheckKind::kOutOfBounds: return "out-of-bounds";
    case MemcheckKind::kUseAfterFree: return "use-after-free";
    case MemcheckKind::kMisaligned: return "misaligned";
    case MemcheckKind::kReadOnly: return "read-only";
    case MemcheckKind::kUninitialized: return "uninitialised";
    case MemcheckKind::kRace: return "race";
    case MemcheckKind::kInvalidFree: return "invalid-free";
    case MemcheckKind::kUnfinishedCopy: return "unfinished-copy";
    case MemcheckKind::kBarrierDivergence: return "barrier-divergence";
    case MemcheckKind::kSyncMask: return "sync-mask";
    case MemcheckKind::kSyncMissing: return "sync-missing";
    case MemcheckKind::kShuffleSource: return "shuffle-source";
    case MemcheckKind::kStreamOrder: return "stream-order";
    case MemcheckKind::kMbarrier: return "mbarrier";
  }
  return "unknown";
}

std::string WithCommas(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string HexAddress(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string NameAllocation(const Allocation& allocation) {
  return "the " + WithCommas(allocation.bytes) + "-byte allocation " + HexAddress(allocation.base) + " made by " +
         OriginOf(allocation) + " (allocation " + std::to_string(allocation.id) + ")";
}

std::string DescribeMiss(std::uint64_t address, std::uint64_t bytes, std::uint64_t base, std::uint64_t size,
                         const std::string& what) {
  const std::uint64_t end = base + size;
  if (address == end) return "right at the end of " + what;
  if (address > end) return Bytes(address - end) + " past the end of " + what;
  if (address < base) return Bytes(base - address) + " before " + what;
  const std::uint64_t inside = end - address;
  if (bytes > inside)
    return "its last " + Bytes(bytes - inside) + (bytes - inside == 1 ? " lies" : " lie") + " past the end of " + what;
  return Bytes(address - base) + " into " + what;
}

bool IsNear(std::uint64_t address, std::uint64_t base, std::uint64_t size) {
  constexpr std::uint64_t kFar = std::uint64_t{64} << 30;
  const std::uint64_t end = base + size;
  return address < base ? base - address <= kFar : address <= end || address - end <= kFar;
}

std::string DescribePlace(const DeviceMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kNullPage = 4096;
  if (address == 0) return "a null pointer";
  if (address < kNullPage) return "a null pointer plus " + Bytes(address);
  if (const auto freed = memory.FindFreed(address))
    return Bytes(address - freed->base) + " into " + NameAllocation(*freed) + ", which has been freed";
  const auto nearest = memory.FindNearest(address);
  if (!nearest) return "nothing is allocated";
  if (!IsNear(address, nearest->allocation.base, nearest->allocation.bytes)) return "not near any allocation";
  return DescribeMiss(address, bytes, nearest->allocation.base, nearest->allocation.bytes,
                      NameAllocation(nearest->allocation));
}

bool IsAccess(MemcheckKind kind) {
  return kind != MemcheckKind::kBarrierDivergence && kind != MemcheckKind::kSyncMask &&
         kind != MemcheckKind::kSyncMissing && kind != MemcheckKind::kShuffleSource && kind != MemcheckKind::kMbarrier;
}

std::string FormatMemcheck(const MemcheckReport& report) {
  std::string text = Headline(report);
  text += "\n  CTA " + Triple(report.cta) + ", thread " + Triple(report.access.thread);
  if (!IsAccess(report.kind)) {
    if (!report.place.empty()) text += ": " + report.place;
    if (report.other) text += "\n  that thread, " + Triple(report.other->thread) + ", waits" + At(*report.other);
    return text + More(report);
  }
  text += ", " +
          (report.space == Space::kShared || report.space == Space::kLocal ? std::string(NameOf(report.space)) + " at "
                                                                           : "address ") +
          HexAddress(report.address);
  if (!report.place.empty()) text += ": " + report.place;
  if (report.other && report.use != InvalidUse::kNone) {
    text += "\n  read" + At(*report.other) + ", where nobody had written";
  } else if (report.other && report.kind == MemcheckKind::kUnfinishedCopy) {
    text += "\n  the copy: " + Threads(*report.other) + At(*report.other) + ", which has not been waited for";
  } else if (report.other) {
    text += "\n  the " + std::string(NameOf(report.other->kind)) + " before it: " + Threads(*report.other) +
            At(*report.other) + "; no barrier orders the two";
  }
  return text + More(report);
}

}  // namespace gridloom::exec
