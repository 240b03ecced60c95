// wgmma.mma_async: a warp's part in the product of its warp group. What is computed is in sim/exec/tensor.
#include <cstring>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/tensor/group_multiply.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kChunkBytes = 16, kRowsOfCore = 8;  // a core matrix is eight rows of 16 bytes
constexpr std::uint32_t kDescribedBytes = 1 << 18;          // descriptors have addresses of 18 bits
constexpr std::uint32_t kAllLanes = 0xffffffffu;

/// The shared memory of the warp's own CTA, as descriptors address it.
class DescribedMemory {
 public:
  DescribedMemory(Warp& warp, std::uint32_t mask, std::uint32_t line)
      : warp_(warp), lane_(static_cast<std::uint32_t>(std::countr_zero(mask))), line_(line), checks_(ServicesOf(warp).memcheck != nullptr) {
    const CtaCtx& cta = warp.cta->ctx;
    window_ = cta.shared_offset;
    base_ = cta.shared_base + window_;
    bytes_ = LaunchOf(warp).ctas_per_unit == 1 ? cta.shared_bytes : LaunchOf(warp).ctx.shared_stride;
  }

  /// Offset in the window of an address, of which a descriptor has the lower 18 bits.
  std::uint32_t OffsetOf(std::uint32_t address) const { return (address - window_) % kDescribedBytes; }
  const std::uint8_t* Chunk(std::uint32_t offset) const {
    const std::uint64_t address = base_ + offset;
    if (checks_) return CheckedAddress(warp_, lane_, line_, Space::kShared, address, kChunkBytes, AccessKind::kRead);
    if (std::uint64_t{offset} + kChunkBytes > bytes_)
      RaiseFault(warp_, FaultKind::kIllegalAddress, lane_, address, line_, "matrix descriptor beyond shared memory:", Space::kShared);
    return reinterpret_cast<const std::uint8_t*>(address);
  }

 private:
  Warp& warp_;
  std::uint32_t lane_, line_;
  bool checks_;
  std::uint32_t window_;
  std::uint64_t base_, bytes_;
};

/// Chunks of 16 bytes change places within their span, by the row of 128 bytes that they lie in.
std::uint32_t Swizzled(const MatrixDescriptor& descriptor, std::uint32_t offset) {
  return offset ^ (((offset >> 7) - descriptor.base_offset()) & (descriptor.swizzle_chunks() - 1)) << 4;
}

// Canonical layouts (PTX ISA, 9.7.15.5.1, "Strides"), in units of chunks: `span` of them are swizzled together.

/// Rows along k, two chunks each: core matrices one below the other `stride` apart, side by side within a span, without one `leading`
/// apart.
void ReadAlongDepth(const DescribedMemory& memory, const MatrixDescriptor& descriptor, unsigned first, unsigned rows,
                    std::uint8_t (*to)[kGroupDepthBytes]) {
  const std::uint32_t start = memory.OffsetOf(descriptor.address()), span = descriptor.swizzle_chunks();
  const std::uint32_t next = span == 1 ? descriptor.leading_bytes() : kChunkBytes;
  for (unsigned row = first; row < first + rows; ++row, ++to) {
    const std::uint32_t at = start + row % kRowsOfCore * span * kChunkBytes + row / kRowsOfCore * descriptor.stride_bytes();
    std::memcpy(*to, memory.Chunk(Swizzled(descriptor, at)), kChunkBytes);
    std::memcpy(*to + kChunkBytes, memory.Chunk(Swizzled(descriptor, at + next)), kChunkBytes);
  }
}

/// Halfwords with k from row to row: a chunk has eight rows (of A) or columns (of B) of one k.
void ReadAcrossDepth(const DescribedMemory& memory, const MatrixDescriptor& descriptor, unsigned first, unsigned rows,
                     std::uint8_t (*to)[kGroupDepthBytes]) {
  constexpr unsigned kDepthBlocks = 2;
  const std::uint32_t start = memory.OffsetOf(descriptor.address()), span = descriptor.swizzle_chunks();
  const std::uint32_t between_spans = span == 1 ? descriptor.stride_bytes() : descriptor.leading_bytes();
  const std::uint32_t between_blocks = span == 1 ? descriptor.leading_bytes() : descriptor.stride_bytes();
  for (unsigned row = first; row < first + rows; row += kRowsOfCore, to += kRowsOfCore) {
    const unsigned chunk = row / kRowsOfCore;
    for (unsigned block = 0; block < kDepthBlocks; ++block) {
      const std::uint32_t at = start + chunk % span * kChunkBytes + chunk / span * between_spans + block * between_blocks;
      std::uint8_t core[kRowsOfCore][kChunkBytes];
      for (unsigned k = 0; k < kRowsOfCore; ++k)
        std::memcpy(core[k], memory.Chunk(Swizzled(descriptor, at + k * span * kChunkBytes)), kChunkBytes);
      TransposeHalfwords(core[0], kChunkBytes, to[0] + block * kChunkBytes, kGroupDepthBytes);
    }
  }
}

void ReadMatrix(const DescribedMemory& memory, std::uint64_t descriptor, bool across, unsigned first, unsigned rows,
                std::uint8_t (*to)[kGroupDepthBytes]) {
  if (across) return ReadAcrossDepth(memory, {descriptor}, first, rows, to);
  ReadAlongDepth(memory, {descriptor}, first, rows, to);
}

/// Fragments are those of mma: blocks of eight rows of 16 bytes, down the rows first.
void ReadRegisters(void* const* registers, std::uint8_t (*to)[kGroupDepthBytes]) {
  for (unsigned r = 0; r < 4; ++r) {
    const auto* const from = static_cast<const std::uint8_t*>(registers[r]);
    for (unsigned row = 0; row < 8; ++row) std::memcpy(to[r % 2 * 8 + row] + r / 2 * kChunkBytes, from + row * kChunkBytes, kChunkBytes);
  }
}

/// Lanes that are off keep what they have.
void MultiplyUnderMask(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, std::uint32_t mask, void* const* d) {
  constexpr unsigned kMostRegisters = kMostGroupColumns / 2;
  alignas(64) std::uint32_t kept[kMostRegisters][kWarpSize];
  const unsigned count = imm.accumulator_registers();
  for (unsigned i = 0; i < count; ++i) std::memcpy(kept[i], d[i], sizeof kept[i]);
  MultiplyGroup(imm, operands, accumulates, d);
  for (unsigned i = 0; i < count; ++i)
    ForEachLane(~mask, [&](std::uint32_t lane) { static_cast<std::uint32_t*>(d[i])[lane] = kept[i][lane]; });
}

}  // namespace

void Helper_kGroupMma(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  if (mask == 0) return;
  Warp& warp = WarpOf(ctx);
  const auto mma = UnpackImm<GroupMmaImm>(imm);
  const DescribedMemory memory(warp, mask, line);
  const auto lane = std::countr_zero(mask);  // descriptors are the same in all lanes
  void* const* next = args + mma.accumulator_registers();
  const auto descriptor = [&] { return static_cast<const std::uint64_t*>(*next++)[lane]; };
  GroupOperands operands;
  OrderLanes(warp);
  if (mma.has(GroupMmaImm::kRegistersA)) {
    ReadRegisters(next, operands.a);
    next += 4;
  } else {
    ReadMatrix(memory, descriptor(), mma.has(GroupMmaImm::kColumnA), warp.ctx.warp_id % kWarpsOfGroup * kGroupRows, kGroupRows, operands.a);
  }
  ReadMatrix(memory, descriptor(), mma.has(GroupMmaImm::kRowB), 0, mma.columns(), operands.b);
  OrderLanes(warp);
  EndOfAccesses(warp, mask);
  const bool accumulates = static_cast<const std::uint32_t*>(*next)[lane] != 0;
  if (mask == kAllLanes) return MultiplyGroup(mma, operands, accumulates, args);
  MultiplyUnderMask(mma, operands, accumulates, mask, args);
}

}  // namespace gridloom::exec
