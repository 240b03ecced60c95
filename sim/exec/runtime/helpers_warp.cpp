// match and redux: values of the lanes compared and combined. No state but their arguments.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"
#include "sim/exec/runtime/lane_operations.h"

namespace gridloom::exec {
namespace {

void SetBit(void* bits, std::uint32_t lane, bool value) {
  auto* const word = static_cast<std::uint32_t*>(bits);
  *word = (*word & ~(1u << lane)) | static_cast<std::uint32_t>(value) << lane;
}

float Reduce(ReduxOp op, float a, float b, bool propagate) {
  if (std::isnan(a) || std::isnan(b)) {
    if (propagate || (std::isnan(a) && std::isnan(b))) return std::bit_cast<float>(0x7fffffffu);
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) == (op == ReduxOp::kMin) ? a : b;
  return (a < b) == (op == ReduxOp::kMin) ? a : b;
}

}  // namespace

std::uint32_t Reduce(std::uint64_t redux_imm, std::uint32_t a, std::uint32_t b) {
  const auto op = static_cast<ReduxOp>(redux_imm & 0xff);
  const auto type = static_cast<ReduxType>(redux_imm >> 8 & 0xff);
  const bool propagate = (redux_imm & kReduxNaN) != 0;
  const bool is_signed = type == ReduxType::kS32;
  switch (op) {
    case ReduxOp::kAdd: return a + b;
    case ReduxOp::kAnd: return a & b;
    case ReduxOp::kOr: return a | b;
    case ReduxOp::kXor: return a ^ b;
    case ReduxOp::kMin:
    case ReduxOp::kMax: break;
  }
  if (type == ReduxType::kF32)
    return std::bit_cast<std::uint32_t>(Reduce(op, std::bit_cast<float>(a), std::bit_cast<float>(b), propagate));
  const bool less = is_signed ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
  return less == (op == ReduxOp::kMin) ? a : b;
}

namespace {

/// Calls visit(company, lanes) for each set of lanes that name the same members: `company` are those of the members
/// that run. Nearly always one call for all of `mask`.
template <typename F>
void ForCompanies(std::uint32_t mask, const std::uint32_t* members, F&& visit) {
  for (const std::uint32_t running = mask; mask != 0;) {
    const std::uint32_t named = members[std::countr_zero(mask)];
    std::uint32_t lanes = 0;
    ForLanes(mask, [&](std::uint32_t lane) { lanes |= static_cast<std::uint32_t>(members[lane] == named) << lane; });
    visit(running & named, lanes);
    mask &= ~lanes;
  }
}

/// For each lane of `company`, those that have its value: lanes are looked up by their values.
void MatchEach(std::uint32_t company, const std::uint64_t* value, std::uint32_t* same) {
  constexpr std::uint8_t kNone = 0xff;
  std::uint8_t first[64], next[32], leader[32];
  std::memset(first, kNone, sizeof first);
  ForLanes(company, [&](std::uint32_t lane) {
    std::uint8_t& chain = first[value[lane] * 0x9e37'79b9'7f4a'7c15u >> 58];
    std::uint8_t found = chain;
    while (found != kNone && value[found] != value[lane]) found = next[found];
    if (found == kNone) {
      found = static_cast<std::uint8_t>(lane);
      next[lane] = std::exchange(chain, found);
      same[lane] = 0;
    }
    same[found] |= 1u << lane;
    leader[lane] = found;
  });
  ForLanes(company, [&](std::uint32_t lane) { same[lane] = same[leader[lane]]; });
}

}  // namespace

void Helper_kMatchAny(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint64_t*>(args[1]);
  const auto* const members = static_cast<const std::uint32_t*>(args[2]);
  ForCompanies(mask, members, [&](std::uint32_t company, std::uint32_t lanes) {
    std::uint32_t same[kWarpSize];
    MatchEach(company, value, same);
    ForLanes(lanes, [&](std::uint32_t lane) {
      out[lane] = (company >> lane & 1) != 0 ? same[lane] : MatchAny(company, value, lane);
    });
  });
}

void Helper_kMatchAll(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint64_t*>(args[2]);
  const auto* const members = static_cast<const std::uint32_t*>(args[3]);
  ForCompanies(mask, members, [&](std::uint32_t company, std::uint32_t lanes) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(company != 0 ? company : lanes));
    const bool equal = MatchAny(company, value, first) == company;
    ForLanes(lanes, [&](std::uint32_t lane) {
      const bool all = equal && (company == 0 || value[lane] == value[first]);
      out[lane] = all ? company : 0;
      SetBit(args[1], lane, all);
    });
  });
}

void Helper_kRedux(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint32_t*>(args[1]);
  const auto* const members = static_cast<const std::uint32_t*>(args[2]);
  std::uint32_t values[kWarpSize];  // `out` may be where they are
  ForLanes(mask, [&](std::uint32_t lane) { values[lane] = value[lane]; });
  ForCompanies(mask, members, [&](std::uint32_t company, std::uint32_t lanes) {
    const std::uint32_t total = Redux(imm, company, [&](std::uint32_t other) { return values[other]; });
    ForLanes(lanes, [&](std::uint32_t lane) { out[lane] = total; });
  });
}

}  // namespace gridloom::exec
