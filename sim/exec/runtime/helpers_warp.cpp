// match and redux: values of the lanes compared and combined. No state but their arguments.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sim/exec/abi.h"
#include "sim/exec/immediates.h"

namespace gridloom::exec {
namespace {

template <typename F>
void ForLanes(std::uint32_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

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

std::uint32_t Reduce(ReduxOp op, ReduxType type, std::uint32_t a, std::uint32_t b, bool propagate) {
  const bool is_signed = type == ReduxType::kS32;
  switch (op) {
    case ReduxOp::kAdd: return a + b;
    case ReduxOp::kAnd: return a & b;
    case ReduxOp::kOr: return a | b;
    case ReduxOp::kXor: return a ^ b;
    case ReduxOp::kMin:
    case ReduxOp::kMax: break;
  }
  if (type == ReduxType::kF32) return std::bit_cast<std::uint32_t>(Reduce(op, std::bit_cast<float>(a), std::bit_cast<float>(b), propagate));
  const bool less = is_signed ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
  return less == (op == ReduxOp::kMin) ? a : b;
}

}  // namespace

void Helper_kMatchAny(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint64_t*>(args[1]);
  const auto* const members = static_cast<const std::uint32_t*>(args[2]);
  ForLanes(mask, [&](std::uint32_t lane) {
    std::uint32_t same = 0;
    ForLanes(mask & members[lane], [&](std::uint32_t other) { same |= static_cast<std::uint32_t>(value[other] == value[lane]) << other; });
    out[lane] = same;
  });
}

void Helper_kMatchAll(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint64_t*>(args[2]);
  const auto* const members = static_cast<const std::uint32_t*>(args[3]);
  ForLanes(mask, [&](std::uint32_t lane) {
    bool all = true;
    ForLanes(mask & members[lane], [&](std::uint32_t other) { all &= value[other] == value[lane]; });
    out[lane] = all ? mask & members[lane] : 0;
    SetBit(args[1], lane, all);
  });
}

void Helper_kRedux(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint32_t*>(args[1]);
  const auto* const members = static_cast<const std::uint32_t*>(args[2]);
  const auto op = static_cast<ReduxOp>(imm & 0xff);
  const auto type = static_cast<ReduxType>(imm >> 8 & 0xff);
  const std::uint32_t keep = (imm & kReduxAbs) != 0 ? 0x7fffffff : ~0u;
  std::uint32_t results[kWarpSize];
  ForLanes(mask, [&](std::uint32_t lane) {
    bool first = true;
    std::uint32_t total = 0;
    ForLanes(mask & members[lane], [&](std::uint32_t other) {
      const std::uint32_t one = value[other] & keep;
      total = first ? one : Reduce(op, type, total, one, (imm & kReduxNaN) != 0);
      first = false;
    });
    results[lane] = total;
  });
  ForLanes(mask, [&](std::uint32_t lane) { out[lane] = results[lane]; });
}

}  // namespace gridloom::exec
