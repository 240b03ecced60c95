// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor in tile mode (PTX ISA, 9.7.9.27): boxes of a tensor between
// global and shared memory, row by row. Every byte goes through the checks of any other access, whatever the map says.
#include <cstring>
#include <string>
#include <utility>

#include "sim/exec/contract/tensor_copy_immediates.h"
#include "sim/exec/contract/tensor_map.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kChunkBytes = 16;
constexpr std::int64_t kRowAlign = 16;            // of the place in a row of the tensor that a box begins at
constexpr std::uint32_t kSwizzleLineBytes = 128;  // chunks stay within lines of that many bytes

/// One lane's copy.
struct Copy {
  Warp& warp;
  std::uint32_t lane, line;
  TensorMap map = {};
  std::int32_t at[kMostTensorAxes] = {};
  std::uint64_t shared = 0;    ///< host address of the box in shared memory
  bool checks_shared = false;  ///< every chunk on its own
  bool memcheck = false;

  std::uint8_t* Checked(Space space, std::uint64_t address, std::uint32_t bytes, AccessKind kind) const {
    return CheckedAddress(warp, lane, line, space, address, bytes, kind);
  }
};

/// Nothing here is destroyed by leaving the warp, so the text is handed on.
[[noreturn]] void RaiseBadMap(const Copy& copy, std::string problem) {
  problem.insert(0, "tensor map ");
  RecordFault(LaunchOf(copy.warp), &copy.warp, FaultKind::kIllegalInstruction, copy.lane, 0, copy.line,
              std::move(problem));
  LeaveStopped(copy.warp);
}

/// The map as it is now: a copy, which nobody changes while it is checked and used.
void ReadMap(Copy& copy, std::uint64_t address, unsigned rank) {
  std::uint64_t words[sizeof(TensorMap) / 8];
  for (std::size_t i = 0; i < std::size(words); ++i)
    std::memcpy(&words[i], copy.Checked(Space::kGeneric, address + i * 8, 8, AccessKind::kRead), 8);
  std::memcpy(&copy.map, words, sizeof copy.map);
  if (const char* const problem = copy.map.Problem()) RaiseBadMap(copy, problem);
  if (copy.map.rank != rank) RaiseBadMap(copy, "has another rank than the instruction");
}

/// No manual says so, but the hardware takes it for an illegal instruction: seen on an H200
/// (tests/data/gpu/apps-native.txt, tensor_copies at its box that begins 40 bytes before a row) and told by users
/// (github.com/triton-lang/triton, issue 7385).
void CheckPlaceInRow(const Copy& copy) {
  const std::int64_t place = std::int64_t{copy.at[0]} * BytesOf(copy.map.element);
  if (place % kRowAlign == 0) return;
  RaiseBadMap(copy, "with a box that begins at byte " + std::to_string(place) + " of a row, no multiple of 16");
}

/// What is read may begin before the tensor, what is written may not: no manual says so, an H100 takes it for an
/// illegal instruction along either axis, also where the box lies outside altogether (tests/data/gpu/tensor-boxes.txt).
void CheckBegin(const Copy& copy) {
  for (unsigned axis = 0; axis < copy.map.rank; ++axis) {
    if (copy.at[axis] < 0) RaiseBadMap(copy, "with a box to write that begins at " + std::to_string(copy.at[axis]));
  }
}

/// Whole lines around the box lie in the window, so that its chunks need no checks of their own.
bool LiesInShared(const Copy& copy) {
  const CtaCtx& cta = copy.warp.cta->ctx;
  const std::uint64_t offset = copy.shared - cta.shared_base;
  const std::uint64_t bytes = (copy.map.box_bytes() + kSwizzleLineBytes - 1) / kSwizzleLineBytes * kSwizzleLineBytes;
  return offset < cta.shared_bytes && bytes <= cta.shared_bytes - offset;
}

/// Calls visit(place in shared memory, bytes in the row, count) for the pieces of a row that lie together.
template <typename Visit>
void ForEachPiece(const Copy& copy, std::uint32_t row, AccessKind kind, Visit&& visit) {
  const std::uint64_t base = copy.warp.cta->ctx.shared_base;
  const std::uint32_t row_bytes = copy.map.row_bytes();
  const std::uint64_t first = copy.shared + std::uint64_t{row} * row_bytes;
  if (copy.map.swizzle == TensorSwizzle::kNone && !copy.checks_shared)
    return visit(reinterpret_cast<std::uint8_t*>(first), 0u, row_bytes);
  for (std::uint32_t at = 0; at < row_bytes; at += kChunkBytes) {
    std::uint64_t place = base + Swizzled(copy.map.swizzle, static_cast<std::uint32_t>(first + at - base));
    if (copy.checks_shared)
      place = reinterpret_cast<std::uint64_t>(copy.Checked(Space::kShared, place, kChunkBytes, kind));
    visit(reinterpret_cast<std::uint8_t*>(place), at, kChunkBytes);
  }
}

/// Calls visit(place in global memory, bytes in what is read or written, count) for the part of a row inside of the
/// tensor.
template <typename Visit>
void ForEachInside(const Copy& copy, const TensorRow& row, AccessKind kind, Visit&& visit) {
  const std::uint32_t element = BytesOf(copy.map.element), bytes = row.inside * element;
  if (bytes == 0) return;
  if (!copy.memcheck) {
    std::uint8_t* const first = copy.Checked(Space::kGlobal, row.address, element, kind);
    copy.Checked(Space::kGlobal, row.address + bytes - element, element, kind);
    return visit(first, 0u, bytes);
  }
  for (std::uint32_t at = 0; at < bytes; at += element)
    visit(copy.Checked(Space::kGlobal, row.address + at, element, kind), at, element);
}

/// The first row's address, of a box that lies in the tensor altogether and in the range that device memory is in,
/// where what is not there faults by itself; else none. Such a box needs no look at each of its rows.
const std::uint8_t* WholeBox(const Copy& copy) {
#if defined(__SANITIZE_THREAD__)  // as in CheckedAddress
  return nullptr;
#endif
  const TensorMap& map = copy.map;
  if (copy.memcheck || copy.checks_shared) return nullptr;
  std::uint64_t span = map.row_bytes();  // at most 4 x 256 x 8 x 2^40
  for (unsigned axis = 0; axis < map.rank; ++axis) {
    const std::uint64_t steps = axis == 0 ? map.box[0] - 1 : (map.count(axis) - 1) * std::uint64_t{map.step[axis]};
    if (copy.at[axis] < 0 || static_cast<std::uint64_t>(copy.at[axis]) + steps >= map.extent(axis)) return nullptr;
    if (axis != 0) span += steps * map.stride[axis - 1];
  }
  const DeviceMemory& memory = *ServicesOf(copy.warp).memory;
  const std::uint64_t first = RowOf(map, copy.at, 0).address, offset = first - memory.range_base(),
                      bytes = memory.range_bytes();
  return offset < bytes && span <= bytes - offset ? reinterpret_cast<const std::uint8_t*>(first) : nullptr;
}

/// Calls visit(row) with each row's address, axis 1 fastest.
template <typename Visit>
void ForEachRow(const TensorMap& map, const std::uint8_t* first, Visit&& visit) {
  std::uint32_t at[kMostTensorAxes] = {};
  for (std::uint32_t left = map.rows(); left != 0; --left) {
    visit(first);
    for (unsigned axis = 1; axis < map.rank; ++axis) {
      const std::uint64_t step = map.step[axis] * map.stride[axis - 1];
      first += step;
      if (++at[axis] != map.count(axis)) break;
      first -= at[axis] * step;
      at[axis] = 0;
    }
  }
}

void LoadWhole(const Copy& copy, const std::uint8_t* first) {
  alignas(64) std::uint8_t bytes[kMostTensorRowBytes];
  const TensorMap& map = copy.map;
  const std::uint32_t row_bytes = map.row_bytes();
  const bool converts = ConvertsElements(map.element), swizzles = map.swizzle != TensorSwizzle::kNone;
  auto* const shared = reinterpret_cast<std::uint8_t*>(copy.warp.cta->ctx.shared_base);
  auto to = static_cast<std::uint32_t>(copy.shared - copy.warp.cta->ctx.shared_base);
  ForEachRow(map, first, [&](const std::uint8_t* row) {
    if (converts) {
      std::memcpy(bytes, row, row_bytes);
      ConvertElements(map.element, bytes, map.box[0]);
      row = bytes;
    }
    if (!swizzles) std::memcpy(shared + to, row, row_bytes);
    for (std::uint32_t at = 0; swizzles && at < row_bytes; at += kChunkBytes)
      std::memcpy(shared + Swizzled(map.swizzle, to + at), row + at, kChunkBytes);
    to += row_bytes;
  });
}

void LoadByRows(const Copy& copy) {
  alignas(64) std::uint8_t bytes[kMostTensorRowBytes];
  const std::uint32_t element = BytesOf(copy.map.element), row_bytes = copy.map.row_bytes();
  const std::uint64_t fill = FillBits(copy.map);
  for (std::uint32_t r = 0; r < copy.map.rows(); ++r) {
    const TensorRow row = RowOf(copy.map, copy.at, r);
    if (row.inside != copy.map.box[0]) {
      for (std::uint32_t at = 0; at < row_bytes; at += element) std::memcpy(bytes + at, &fill, element);
    }
    std::uint8_t* const inside = bytes + std::size_t{row.before} * element;
    ForEachInside(copy, row, AccessKind::kRead, [&](const std::uint8_t* from, std::uint32_t at, std::uint32_t count) {
      std::memcpy(inside + at, from, count);
    });
    if (ConvertsElements(copy.map.element)) ConvertElements(copy.map.element, inside, row.inside);
    ForEachPiece(copy, r, AccessKind::kWrite,
                 [&](std::uint8_t* to, std::uint32_t at, std::uint32_t count) { std::memcpy(to, bytes + at, count); });
  }
}

void Load(const Copy& copy) {
  if (const std::uint8_t* const first = WholeBox(copy)) LoadWhole(copy, first);
  else LoadByRows(copy);
}

void ReadShared(const Copy& copy, std::uint32_t row, std::uint8_t* bytes) {
  ForEachPiece(copy, row, AccessKind::kRead, [&](const std::uint8_t* from, std::uint32_t at, std::uint32_t count) {
    std::memcpy(bytes + at, from, count);
  });
}

void Store(const Copy& copy) {
  CheckBegin(copy);
  alignas(64) std::uint8_t bytes[kMostTensorRowBytes];
  for (std::uint32_t r = 0; r < copy.map.rows(); ++r) {
    const TensorRow row = RowOf(copy.map, copy.at, r);
    if (row.inside == 0) continue;
    ReadShared(copy, r, bytes);
    const std::uint8_t* const inside = bytes + std::size_t{row.before} * BytesOf(copy.map.element);
    ForEachInside(copy, row, AccessKind::kWrite, [&](std::uint8_t* to, std::uint32_t at, std::uint32_t count) {
      std::memcpy(to, inside + at, count);
    });
  }
}

struct ReductionRow {
  TensorElement element;
  AtomicType type;
  bool is_signed;
};
constexpr ReductionRow kReductionRows[] = {
    {TensorElement::kU32, AtomicType::kI32, false}, {TensorElement::kS32, AtomicType::kI32, true},
    {TensorElement::kU64, AtomicType::kI64, false}, {TensorElement::kS64, AtomicType::kI64, true},
    {TensorElement::kF16, AtomicType::kF16, false}, {TensorElement::kBF16, AtomicType::kBF16, false},
    {TensorElement::kF32, AtomicType::kF32, false}, {TensorElement::kF32Ftz, AtomicType::kF32, false},
    {TensorElement::kF64, AtomicType::kF64, false},
};

/// The atomic that a reduction does to each element; kAtomic refuses what does not exist.
std::uint64_t ReductionImm(const Copy& copy, TensorReduction reduction) {
  for (const ReductionRow& row : kReductionRows) {
    if (row.element != copy.map.element) continue;
    const bool is_float = IsFloat(row.element);
    const auto pick = [&](AtomicOp of_floats, AtomicOp of_signed, AtomicOp of_unsigned) {
      return is_float ? of_floats : row.is_signed ? of_signed : of_unsigned;
    };
    AtomicOp op = AtomicOp::kXor;
    switch (reduction) {
      case TensorReduction::kAdd: op = pick(AtomicOp::kFAdd, AtomicOp::kAdd, AtomicOp::kAdd); break;
      case TensorReduction::kMin: op = pick(AtomicOp::kFMin, AtomicOp::kMin, AtomicOp::kUMin); break;
      case TensorReduction::kMax: op = pick(AtomicOp::kFMax, AtomicOp::kMax, AtomicOp::kUMax); break;
      case TensorReduction::kInc: op = AtomicOp::kInc; break;
      case TensorReduction::kDec: op = AtomicOp::kDec; break;
      case TensorReduction::kAnd: op = AtomicOp::kAnd; break;
      case TensorReduction::kOr: op = AtomicOp::kOr; break;
      case TensorReduction::kXor: break;
    }
    const bool flushes = op == AtomicOp::kFAdd && row.type == AtomicType::kF32;
    return AtomicImm(op, row.type, true, Space::kGlobal, flushes ? AtomicFlush::kOutsideShared : AtomicFlush::kNever);
  }
  RaiseBadMap(copy, "has elements that no reduction exists for");
}

void Reduce(const Copy& copy, TensorReduction reduction) {
  const std::uint64_t imm = ReductionImm(copy, reduction);
  const std::uint32_t element = BytesOf(copy.map.element);
  alignas(64) std::uint8_t bytes[kMostTensorRowBytes];
  alignas(64) std::uint64_t addresses[kWarpSize] = {}, values[kWarpSize] = {};
  void* args[] = {nullptr, addresses, values, values};
  for (std::uint32_t r = 0; r < copy.map.rows(); ++r) {
    const TensorRow row = RowOf(copy.map, copy.at, r);
    if (row.inside == 0) continue;
    ReadShared(copy, r, bytes);
    for (std::uint32_t i = 0; i < row.inside; ++i) {
      addresses[copy.lane] = row.address + std::uint64_t{i} * element;
      std::memcpy(reinterpret_cast<std::uint8_t*>(values) + std::size_t{copy.lane} * element,
                  bytes + std::size_t{row.before + i} * element, element);
      Helper_kAtomic(&copy.warp.ctx, 1u << copy.lane, copy.line, imm, args);
    }
  }
}

/// Map and coordinates of a lane.
Copy CopyOf(Warp& warp, std::uint32_t lane, std::uint32_t line, unsigned rank, void* const* args) {
  Copy copy{.warp = warp, .lane = lane, .line = line, .memcheck = ServicesOf(warp).memcheck != nullptr};
  for (unsigned axis = 0; axis < rank; ++axis) copy.at[axis] = static_cast<const std::int32_t*>(args[3 + axis])[lane];
  ReadMap(copy, static_cast<const std::uint64_t*>(args[1])[lane], rank);
  return copy;
}

}  // namespace

void Helper_kTensorCopy(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const auto tensor = UnpackImm<TensorCopyImm>(imm);
  const auto* const shared = static_cast<const std::uint64_t*>(args[2]);
  auto* const out = static_cast<std::uint64_t*>(args[0]);
  LaneAccess access(warp, line);
  ForEachLane(mask, [&](std::uint32_t lane) {
    access.At(lane);
    Copy copy = CopyOf(warp, lane, line, tensor.rank, args);
    copy.shared = shared[lane];
    if (copy.shared % kTensorSharedAlign != 0)
      RaiseFault(warp, FaultKind::kMisalignedAddress, lane, copy.shared, line,
                 "tensor copy with a box in shared memory at", Space::kShared);
    CheckPlaceInRow(copy);
    copy.checks_shared = copy.memcheck || !LiesInShared(copy);
    switch (tensor.op) {
      case TensorCopyOp::kLoad: Load(copy); break;
      case TensorCopyOp::kStore: Store(copy); break;
      case TensorCopyOp::kReduce: Reduce(copy, tensor.reduction); break;
    }
    out[lane] = copy.map.box_bytes();
  });
  EndOfAccesses(warp, mask);
}

void Helper_kTensorPlace(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const unsigned rank = UnpackImm<TensorCopyImm>(imm).rank;
  auto* const out = static_cast<std::uint64_t*>(args[0]);
  LaneAccess access(warp, line);
  ForEachLane(mask, [&](std::uint32_t lane) {
    access.At(lane);
    const Copy copy = CopyOf(warp, lane, line, rank, args);
    const std::uint64_t offset = static_cast<const std::uint64_t*>(args[2])[lane];
    const std::uint32_t element = BytesOf(copy.map.element), row_bytes = copy.map.row_bytes();
    const TensorRow row = RowOf(copy.map, copy.at, static_cast<std::uint32_t>(offset / row_bytes));
    const auto first = static_cast<std::int64_t>(offset % row_bytes / element) - row.before;
    const bool inside = first >= 0 && first < row.inside;
    out[lane] = inside ? row.address + static_cast<std::uint64_t>(first) * element : 0;
  });
}

}  // namespace gridloom::exec
