// match and redux: values of the lanes compared and combined. No state but their arguments.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

void Helper_kMatchAny(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint64_t*>(args[1]);
  const auto* const members = static_cast<const std::uint32_t*>(args[2]);
  ForLanes(mask, [&](std::uint32_t lane) { out[lane] = MatchAny(mask & members[lane], value, lane); });
}

void Helper_kMatchAll(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint64_t*>(args[2]);
  const auto* const members = static_cast<const std::uint32_t*>(args[3]);
  ForLanes(mask, [&](std::uint32_t lane) {
    const std::uint32_t company = mask & members[lane];
    const bool all = MatchAny(company, value, lane) == company;
    out[lane] = all ? company : 0;
    SetBit(args[1], lane, all);
  });
}

void Helper_kRedux(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto* const value = static_cast<const std::uint32_t*>(args[1]);
  const auto* const members = static_cast<const std::uint32_t*>(args[2]);
  std::uint32_t results[kWarpSize];
  ForLanes(mask, [&](std::uint32_t lane) {
    results[lane] = Redux(imm, mask & members[lane], [&](std::uint32_t other) { return value[other]; });
  });
  ForLanes(mask, [&](std::uint32_t lane) { out[lane] = results[lane]; });
}

}  // namespace gridloom::exec
