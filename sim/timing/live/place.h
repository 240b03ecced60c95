// Where a work of a live timeline stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/timing/work.h"

namespace gridloom::timing {

using HostId = std::uint32_t;
/// A work that a host gave: host << 32, plus the number of the work, from 1 in the order of the host's calls. 0: none.
using NodeId = std::uint64_t;
constexpr NodeId NodeOf(HostId host, std::uint64_t number) { return NodeId{host} << 32 | number; }
constexpr HostId HostOf(NodeId node) { return static_cast<HostId>(node >> 32); }

/// An earlier copy that touches memory which a work writes to, as HostReuse says it of a work of the engine's.
struct NodeReuse {
  NodeId earlier = 0;
  std::int64_t begin = 0;
};

/// A work begins when the work before it in its stream and all of `after` have ended. Streams of one host are its own:
/// two hosts may use the same numbers.
struct Place {
  HostId host = 0;
  std::uint64_t stream = 0;
  std::vector<NodeId> after;
  NodeId group = 0;        ///< it belongs to that group, or to that kernel opened as one; its stream means nothing then
  std::uint64_t rank = 0;  ///< in a group: works of lower rank come first, whatever the order of the calls
  std::uint64_t number = 0;   ///< of a kernel that a kernel launches: as trace::EventKind::kDeviceLaunch has it; 0: it
                              ///< begins with its group
  std::uint64_t profile = 0;  ///< of a kernel: KernelWork::profile
  KernelOwner owner{};        ///< of a kernel
  MemoryUse use{};            ///< MemoryUse::partner is `partner`
  NodeId partner = 0;         ///< a work with `is_partner`
  bool is_partner = false;    ///< later works may name it as their partner
  std::vector<NodeReuse> reuses{};  ///< MemoryUse::reuses
  /// The work begins when all works of the group before it have ended.
  static constexpr std::uint64_t kLastRank = ~std::uint64_t{0};
};

}  // namespace gridloom::timing
