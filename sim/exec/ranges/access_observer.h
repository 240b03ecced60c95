// What a kernel touches in global memory, told access by access: the reference for passes that predict it
// (docs/ranges.md).
#pragma once

#include <cstdint>

#include "sim/exec/contract/immediates.h"
#include "sim/exec/dim3.h"

namespace gridloom::exec {

/// One instruction of a warp that accesses global memory.
struct ObservedAccess {
  Dim3 cta;
  std::uint64_t cta_index = 0;  ///< linear, x fastest
  std::uint32_t warp = 0;       ///< in the CTA
  std::uint32_t mask = 0;       ///< lanes that access global memory; never 0
  std::uint32_t line = 0;       ///< of the PTX
  AccessKind kind = AccessKind::kRead;
  std::uint32_t bytes = 0;                   ///< per lane
  const std::uint64_t* addresses = nullptr;  ///< of 32 lanes; those not in the mask mean nothing
};

class AccessObserver {
 public:
  virtual ~AccessObserver() = default;
  /// Some time after the access, in the warp's order; before the launch ends. Called from several host threads at once,
  /// for one CTA from one at a time. Accesses through .const and to textures, surfaces, shared and local memory are not
  /// told.
  virtual void OnAccess(const ObservedAccess& access) = 0;
};

}  // namespace gridloom::exec
