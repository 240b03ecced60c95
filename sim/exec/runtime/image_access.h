// What the helpers of texture and surface instructions share: handles and reading of arguments.
#pragma once

#include <cstdint>

#include "sim/exec/contract/image_immediates.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/texture.h"

namespace gridloom::exec {

/// A handle as an instruction gives it: the number itself, or the address of a .texref, .surfref or .samplerref
/// variable that holds it. May fault while it reads the variable.
std::uint64_t ResolveHandle(const Warp& warp, std::uint64_t handle);

/// Ends the launch: `handle` is no live object of that kind.
[[noreturn]] void RaiseBadHandle(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t handle,
                                 const char* kind);

const TextureObject& TextureOf(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t handle);
const SurfaceObject& SurfaceOf(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t handle);

/// Calls visit(first lane, lanes) for every set of lanes of `mask` that hold the same value.
template <typename F>
void ForEachValue(std::uint32_t mask, const std::uint64_t* values, F&& visit) {
  while (mask != 0) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
    std::uint32_t same = 0;
    ForEachLane(mask, [&](std::uint32_t lane) { same |= values[lane] == values[first] ? 1u << lane : 0; });
    visit(first, same);
    mask &= ~same;
  }
}

/// The arguments of a helper, one after the other.
class Arguments {
 public:
  explicit Arguments(void* const* args) : next_(args) {}
  template <typename T>
  T* Take() {
    return static_cast<T*>(*next_++);
  }

 private:
  void* const* next_;
};

}  // namespace gridloom::exec
