// What lanes of a warp find out about each other: match and redux, for those that run together and for those that meet.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

template <typename F>
void ForLanes(std::uint32_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

/// The lanes of `company` that have the value of `lane`.
inline std::uint32_t MatchAny(std::uint32_t company, const std::uint64_t* value, std::uint32_t lane) {
  std::uint32_t same = 0;
  ForLanes(company,
           [&](std::uint32_t other) { same |= static_cast<std::uint32_t>(value[other] == value[lane]) << other; });
  return same;
}

/// One step of redux, as `redux_imm` says.
std::uint32_t Reduce(std::uint64_t redux_imm, std::uint32_t a, std::uint32_t b);

/// redux over the values of `company`, the lowest lane first.
template <typename ValueOf>
std::uint32_t Redux(std::uint64_t redux_imm, std::uint32_t company, ValueOf value_of) {
  const std::uint32_t keep = (redux_imm & kReduxAbs) != 0 ? 0x7fffffff : ~0u;
  bool first = true;
  std::uint32_t total = 0;
  ForLanes(company, [&](std::uint32_t lane) {
    const std::uint32_t one = value_of(lane) & keep;
    total = first ? one : Reduce(redux_imm, total, one);
    first = false;
  });
  return total;
}

}  // namespace gridloom::exec
