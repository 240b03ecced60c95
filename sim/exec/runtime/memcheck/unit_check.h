// What memcheck keeps of a unit: of the CTA that it runs, for the thread that runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/engine.h"
#include "sim/exec/runtime/memcheck/async_copies.h"
#include "sim/exec/runtime/memcheck/shared_shadow.h"
#include "sim/exec/runtime/memcheck/sync_check.h"

namespace gridloom::exec {

/// Memory that one access may lie in.
struct CheckedRegion {
  std::uint64_t base = 0, bytes = 0;
  bool writable = true;
  bool lasting = false;  ///< stays as it is until the grid ends: generated code may remember it
  bool of_host = false;  ///< the host can access it, too
  std::shared_ptr<WrittenBytes> written = nullptr;  ///< what of it has been written; null: not looked at
  bool Holds(std::uint64_t address, std::uint64_t count) const {
    return address - base < bytes && count <= bytes - (address - base);
  }
};

/// memcheck's part of a unit. Touched by its worker's thread alone.
struct UnitCheck {
  SharedShadow shadow;
  std::vector<std::uint64_t> sites;       ///< WarpCtx::check_sites: two words per access in the code
  CheckedRegion last;                     ///< of the last global access that the runtime looked up
  std::uint64_t offsets[kWarpSize] = {};  ///< of the access being checked
  /// What each thread of the unit read last of memory that nobody had written.
  struct InvalidRead {
    std::uint32_t line = 0, offset = 0, bytes = 0;
  };
  std::vector<InvalidRead> invalid_reads;
  SyncCheck sync;
  AsyncCopies copies;
  /// What each mbarrier of the unit held after its last operation; nothing: it has been invalidated.
  std::unordered_map<const void*, std::optional<std::uint64_t>> mbarriers;

  void BeginCta() {
    shadow.BeginCta();
    sync.BeginCta();
    copies.BeginCta();
    mbarriers.clear();
  }
};

}  // namespace gridloom::exec
