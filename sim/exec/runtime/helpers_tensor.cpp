// mma, wmma.mma and movmatrix: fragments of a warp. What is computed is in sim/exec/tensor.
#include <cstring>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kAllLanes = 0xffffffffu;
constexpr unsigned kMostAccumulators = 8;

/// Lanes of the mask get their value of `bytes` bytes; the others keep what they have.
void Merge(std::uint32_t mask, std::size_t bytes, const void* from, void* to) {
  ForEachLane(mask, [&](std::uint32_t lane) {
    std::memcpy(static_cast<std::byte*>(to) + lane * bytes, static_cast<const std::byte*>(from) + lane * bytes, bytes);
  });
}

}  // namespace

void Helper_kMma(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  const auto mma = UnpackImm<MmaImm>(imm);
  const unsigned count_d = AccumulatorRegisters(mma, mma.d());
  void* const* const a = args + count_d;
  void* const* const b = a + RegistersOfA(mma);
  void* const* const c = b + RegistersOfB(mma);
  const void* const metadata = mma.has(MmaImm::kSparse) ? c[AccumulatorRegisters(mma, mma.c())] : nullptr;
  if (mask == kAllLanes) return MultiplyFragments(mma, a, b, c, metadata, args);
  alignas(64) std::uint64_t buffer[kMostAccumulators][kWarpSize];
  void* d[kMostAccumulators] = {};
  for (unsigned i = 0; i < count_d; ++i) d[i] = buffer[i];
  MultiplyFragments(mma, a, b, c, metadata, d);
  for (unsigned i = 0; i < count_d; ++i) Merge(mask, mma.d() == MatrixType::kF64 ? 8 : 4, d[i], args[i]);
}

void Helper_kScaledMma(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  const auto mma = UnpackImm<ScaledMmaImm>(imm);
  alignas(64) std::uint32_t buffer[kScaledMmaOutputs][kWarpSize];
  void* d[kScaledMmaOutputs] = {};
  for (unsigned i = 0; i < kScaledMmaOutputs; ++i) d[i] = buffer[i];
  MultiplyScaled(mma, args + kScaledMmaOutputs, d);
  for (unsigned i = 0; i < kScaledMmaOutputs; ++i) Merge(mask, sizeof buffer[i][0], d[i], args[i]);
}

// movmatrix.m8n8.trans.b16: out: register, in: register.
void Helper_kTransposeMatrix(WarpCtx*, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  const auto* const from = static_cast<const std::uint16_t*>(args[1]);
  std::uint16_t transposed[8][8] = {};
  for (unsigned i = 0; i < 8; ++i) {
    for (unsigned j = 0; j < 8; ++j) transposed[i][j] = from[j * 8 + i];
  }
  Merge(mask, 4, transposed, args[0]);
}

}  // namespace gridloom::exec
