// wgmma.mma_async: a warp's part in the product of its warp group. What is computed is in sim/exec/tensor.
#include <cstring>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/tensor/group_multiply.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kDescribedBytes = 1 << 18;  // descriptors have addresses of 18 bits
constexpr std::uint32_t kAllLanes = 0xffffffffu;

/// The shared memory of the warp's own CTA, as descriptors address it.
class DescribedMemory {
 public:
  DescribedMemory(Warp& warp, std::uint32_t mask, std::uint32_t line)
      : warp_(warp),
        lane_(static_cast<std::uint32_t>(std::countr_zero(mask))),
        line_(line),
        checks_(ServicesOf(warp).memcheck != nullptr) {
    const CtaCtx& cta = warp.cta->ctx;
    window_ = cta.shared_offset;
    base_ = cta.shared_base + window_;
    bytes_ = LaunchOf(warp).ctas_per_unit == 1 ? cta.shared_bytes : LaunchOf(warp).ctx.shared_stride;
  }

  /// Offset in the window of an address, of which a descriptor has the lower 18 bits.
  std::uint32_t OffsetOf(std::uint32_t address) const { return (address - window_) % kDescribedBytes; }
  /// So many bytes, if nothing about them has to be looked at in detail; else none.
  const std::uint8_t* Whole(std::uint32_t offset, std::uint64_t bytes) const {
    return !checks_ && offset + bytes <= bytes_ ? reinterpret_cast<const std::uint8_t*>(base_ + offset) : nullptr;
  }
  /// 16 bytes.
  const std::uint8_t* Chunk(std::uint32_t offset) const {
    const std::uint64_t address = base_ + offset;
    if (checks_) return CheckedAddress(warp_, lane_, line_, Space::kShared, address, kChunkBytes, AccessKind::kRead);
    if (std::uint64_t{offset} + kChunkBytes > bytes_)
      RaiseFault(warp_, FaultKind::kIllegalAddress, lane_, address, line_,
                 "matrix descriptor beyond shared memory:", Space::kShared);
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
class Swizzle {
 public:
  explicit Swizzle(const MatrixDescriptor& descriptor)
      : chunks_((descriptor.swizzle_chunks() - 1) * kChunkBytes), rows_(descriptor.base_offset() * kChunkBytes) {}
  std::uint32_t PlaceOf(std::uint32_t offset) const { return offset ^ ((offset / kRowsByChunk - rows_) & chunks_); }

 private:
  static constexpr std::uint32_t kRowsByChunk = 128 / kChunkBytes;  // what makes a row's number one in units of a chunk
  std::uint32_t chunks_, rows_;
};

/// Eight lines of 16 bytes: what products take as a chunk.
struct CoreMatrix {
  std::uint8_t line[kLinesOfChunk][kChunkBytes];
};

/// What a descriptor says, taken apart once for all core matrices.
struct Layout {
  Layout(const DescribedMemory& memory, const MatrixDescriptor& descriptor)
      : start(memory.OffsetOf(descriptor.address())),
        stride(descriptor.stride_bytes()),
        leading(descriptor.leading_bytes()),
        span(descriptor.swizzle_chunks()),
        swizzle(descriptor) {}
  std::uint32_t start, stride, leading;
  std::uint32_t span;  ///< chunks that are swizzled together
  Swizzle swizzle;
};

/// Eight lines of 16 bytes that lie `pitch` apart, each swizzled for itself.
inline void ReadCore(const DescribedMemory& memory, const Swizzle& swizzle, std::uint32_t at, std::uint32_t pitch,
                     CoreMatrix& to) {
  constexpr std::uint32_t kSpanBytes = 128;  // swizzling stays within
  const std::uint32_t first = at & ~(kSpanBytes - 1);
  const std::uint8_t* const whole = memory.Whole(first, at - first + (kLinesOfChunk - 1) * pitch + kSpanBytes);
  if (whole != nullptr) {
    for (unsigned i = 0; i < kLinesOfChunk; ++i)
      std::memcpy(to.line[i], whole + (swizzle.PlaceOf(at + i * pitch) - first), kChunkBytes);
    return;
  }
  for (unsigned i = 0; i < kLinesOfChunk; ++i)
    std::memcpy(to.line[i], memory.Chunk(swizzle.PlaceOf(at + i * pitch)), kChunkBytes);
}

/// What was read for one warp.
template <unsigned kLines>
struct Lines {
  alignas(64) CoreMatrix core[kLines / kLinesOfChunk][kMostChunks];
};

// Canonical layouts (PTX ISA, 9.7.15.5.1, "Strides"), in units of chunks.

/// Rows along k, two chunks each: core matrices one below the other `stride` apart, side by side within a span, without
/// one `leading` apart.
void ReadAlongDepth(const DescribedMemory& memory, const Layout& layout, unsigned group,
                    CoreMatrix (&to)[kMostChunks]) {
  const std::uint32_t start = layout.start + group * layout.stride,
                      next = layout.span == 1 ? layout.leading : kChunkBytes;
  for (unsigned chunk = 0; chunk < kMostChunks; ++chunk)
    ReadCore(memory, layout.swizzle, start + chunk * next, layout.span * kChunkBytes, to[chunk]);
}

/// Halfwords with k from row to row: a chunk has eight rows (of A) or columns (of B) of one k.
void ReadAcrossDepth(const DescribedMemory& memory, const Layout& layout, unsigned group,
                     CoreMatrix (&to)[kMostChunks]) {
  const std::uint32_t span = layout.span;
  const std::uint32_t between_spans = span == 1 ? layout.stride : layout.leading;
  const std::uint32_t between_blocks = span == 1 ? layout.leading : layout.stride;
  for (unsigned block = 0; block < kMostChunks; ++block) {
    CoreMatrix core;
    ReadCore(memory, layout.swizzle,
             layout.start + group % span * kChunkBytes + group / span * between_spans + block * between_blocks,
             span * kChunkBytes, core);
    TransposeHalfwords(core.line[0], to[block].line[0]);
  }
}

/// `groups` times eight lines from the group `first` on.
template <unsigned kLines>
void ReadMatrix(const DescribedMemory& memory, std::uint64_t bits, bool across, unsigned first, unsigned groups,
                Lines<kLines>& storage, EightLines* lines) {
  const Layout layout(memory, MatrixDescriptor{bits});
  for (unsigned group = 0; group < groups; ++group) {
    auto& to = storage.core[group];
    if (across) ReadAcrossDepth(memory, layout, first + group, to);
    else ReadAlongDepth(memory, layout, first + group, to);
    for (unsigned chunk = 0; chunk < kMostChunks; ++chunk) lines[group].chunk[chunk] = to[chunk].line[0];
  }
}

/// Fragments are those of mma: down the rows first.
void ReadRegisters(void* const* registers, EightLines* lines) {
  for (unsigned r = 0; r < 4; ++r) lines[r % 2].chunk[r / 2] = static_cast<const std::uint8_t*>(registers[r]);
}

/// Lanes that are off keep what they have.
void MultiplyUnderMask(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, std::uint32_t mask,
                       void* const* d) {
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
  Lines<kGroupRows> rows;
  Lines<kMostGroupColumns> columns;
  constexpr unsigned kRowGroups = kGroupRows / kLinesOfChunk;
  OrderLanes(warp);
  if (mma.has(GroupMmaImm::kRegistersA)) {
    ReadRegisters(next, operands.a);
    next += 4;
  } else {
    ReadMatrix(memory, descriptor(), mma.has(GroupMmaImm::kColumnA), warp.ctx.warp_id % kWarpsOfGroup * kRowGroups,
               kRowGroups, rows, operands.a);
  }
  ReadMatrix(memory, descriptor(), mma.has(GroupMmaImm::kRowB), 0, mma.columns8, columns, operands.b);
  OrderLanes(warp);
  EndOfAccesses(warp, mask);
  const bool accumulates = static_cast<const std::uint32_t*>(*next)[lane] != 0;
  if (mask == kAllLanes) return MultiplyGroup(mma, operands, accumulates, args);
  MultiplyUnderMask(mma, operands, accumulates, mask, args);
}

}  // namespace gridloom::exec
