// Immediates of markers and runtime helpers: what the lifter writes, the vectoriser passes on and the runtime reads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gridloom::exec {

enum class Space : std::uint8_t { kGlobal, kShared, kLocal, kGeneric };

enum class AtomicOp : std::uint8_t {
  kAdd,
  kMin,
  kMax,
  kUMin,
  kUMax,
  kInc,
  kDec,
  kAnd,
  kOr,
  kXor,
  kExch,
  kCas,
  kFAdd,
  kFMin,
  kFMax
};
/// Element types of an atomic, by their size and meaning.
enum class AtomicType : std::uint8_t { kI16, kI32, kI64, kI128, kF16, kBF16, kF16x2, kBF16x2, kF32, kF64 };
/// Whether an addition of f32 takes subnormal inputs and results for zeros, with their signs, where its address is no
/// shared memory.
enum class AtomicFlush : std::uint8_t { kNever, kOutsideShared };
/// imm of kAtomic: op | type << 8 | (result unused) << 16 | flush << 17 | space << 24 | memcheck's number of the access
/// << 32.
constexpr std::uint64_t AtomicImm(AtomicOp op, AtomicType type, bool result_unused, Space space,
                                  AtomicFlush flush = AtomicFlush::kNever) {
  return static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(type) << 8 |
         static_cast<std::uint64_t>(result_unused) << 16 | static_cast<std::uint64_t>(flush) << 17 |
         static_cast<std::uint64_t>(space) << 24;
}
constexpr AtomicFlush FlushOfAtomic(std::uint64_t imm) { return static_cast<AtomicFlush>(imm >> 17 & 1); }

/// imm of kBarrier.
enum class BarrierOp : std::uint8_t {
  kSync,
  kArrive,
  kRedPopc,
  kRedAnd,
  kRedOr,
  kClusterArrive,
  kClusterWait,  ///< barrier.cluster: id, count and predicate are ignored
  kWarpGroup,    ///< the warps of a warp group (wgmma.wait_group): these are ignored, too
};

/// imm of kLoadSlow and kStoreSlow: bytes of a lane's value | space << 8 | strong << 15 | memcheck's number of the
/// access << 16.
constexpr std::uint64_t SlowAccessImm(unsigned bytes, Space space, bool strong, std::uint32_t site) {
  return bytes | static_cast<std::uint64_t>(space) << 8 | static_cast<std::uint64_t>(strong) << 15 |
         static_cast<std::uint64_t>(site) << 16;
}
constexpr Space SpaceOfSlowAccess(std::uint64_t imm) { return static_cast<Space>(imm >> 8 & 0x7f); }

/// imm of kCheckOrder: between the lanes of a warp, or between the threads of a CTA that do the same.
inline constexpr std::uint64_t kCheckOrderWarp = 0, kCheckOrderCta = 1;

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

/// imm of kCheckShared: what generated code knows of a warp's access to shared memory.
struct SharedAccessImm {
  enum Pattern : std::uint8_t { kAny, kUniform, kConsecutive };
  std::uint8_t bytes = 0;  ///< per lane
  AccessKind kind = AccessKind::kRead;
  /// The pattern of the addresses of a row of lanes. Not kAny: only the address of each row's first lane is given.
  Pattern pattern = kAny;
  std::uint8_t strong = 0;     ///< volatile, relaxed or stronger
  std::uint8_t row_lanes = 0;  ///< 8, 16 or 32; kAny: 0
  std::uint8_t zero[3] = {};
};

/// imm of kLoadedBits and kStoredBits: of the access before them.
struct ShadowImm {
  std::uint8_t bytes = 0;  ///< of an element
  std::uint8_t count = 1;  ///< elements
  Space space = Space::kShared;
  std::uint8_t zero[5] = {};
};
/// imm of kUseInvalid: what a value decides that comes from memory nobody has written.
enum class InvalidUse : std::uint8_t { kNone, kBranch, kAddress, kAtomic, kStore };

/// imm of kEnterSync (compiler/sync_checks.h). A region is a place that all threads come to behind a barrier or .sync
/// instruction, and also those that pass it by; 0: none.
struct SyncCheckImm {
  static constexpr std::size_t kMostRegions = 3;
  std::uint16_t regions[kMostRegions] = {};
  std::uint8_t flags = 0;
  std::uint8_t exchange = 0;  ///< of a .sync instruction: two that differ in it are not for the same lanes to meet in

  static constexpr std::uint8_t kBarrier = 1,  ///< of the CTA
      kAligned = 2,                            ///< whole warps come to it
      kCounted = 4;  ///< the first region is passed once by each thread, which has come to as many barriers as the
                     ///< others by then
  constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};
/// imm of kPassSync.
struct PassSyncImm {
  std::uint32_t region = 0;
  std::uint32_t counted = 0;
};

/// imm of kRange: what the CTA says of the pages it will touch, or has.
enum class RangeOp : std::uint8_t { kSet, kRelease };
struct RangeImm {
  RangeOp op = RangeOp::kSet;
  bool strided = false;
  std::uint8_t zero[6] = {};
};

/// imm of kFence: a full fence, or one that only keeps the accesses around it in order (no instruction on x86-64).
inline constexpr std::uint64_t kFenceFull = 0;
inline constexpr std::uint64_t kFenceOrder = 1;

/// imm of kF64Rounded: op | rounding << 8. One operation on f64 in a rounding mode other than to nearest.
enum class F64Op : std::uint8_t { kAdd, kMul, kFma, kDiv, kSqrt };
enum class F64Rounding : std::uint8_t { kNearest, kZero, kDown, kUp };
constexpr std::uint64_t F64Imm(F64Op op, F64Rounding rounding) {
  return static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(rounding) << 8;
}

/// Immediates with several fields are structs of eight bytes.
template <typename Imm>
constexpr std::uint64_t PackImm(const Imm& imm) {
  return std::bit_cast<std::uint64_t>(imm);
}
template <typename Imm>
constexpr Imm UnpackImm(std::uint64_t imm) {
  return std::bit_cast<Imm>(imm);
}

/// imm of kDeviceRuntime: the call, and a flag for what the device runtime library does around it: to translate a
/// status to a cudaError and to note that as the thread's last error.
inline constexpr std::uint64_t kDeviceCallByLibrary = 0x100;
enum class DeviceCall : std::uint8_t {
#define GL_DEVICE_CALL(name, bits, params) k##name,
#include "sim/exec/contract/device_calls.def"
#undef GL_DEVICE_CALL
};

/// imm of kRedux: op | type << 8 | flags.
enum class ReduxOp : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };
enum class ReduxType : std::uint8_t { kU32, kS32, kF32 };
inline constexpr std::uint64_t kReduxAbs = 1 << 16, kReduxNaN = 1 << 17;
constexpr std::uint64_t ReduxImm(ReduxOp op, ReduxType type) {
  return static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(type) << 8;
}

/// What the lanes of a member mask do together (sync_ops.def).
enum class SyncOp : std::uint8_t {
#define GL_SYNC_OP(name, inputs, first, result, calls) name,
#include "sim/exec/contract/sync_ops.def"
#undef GL_SYNC_OP
};
enum class SyncValue : std::uint8_t { kNone, kPredicate, kWord, kLong, kWordAndPredicate };
struct SyncOpInfo {
  std::uint8_t inputs;  ///< of a lane
  SyncValue first;      ///< sort of the first input
  SyncValue result;
  std::uint8_t calls;  ///< that SpmdBuilder::Exchange makes
};
constexpr SyncOpInfo Info(SyncOp op) {
  constexpr SyncOpInfo kInfo[] = {
#define GL_SYNC_OP(name, inputs, first, result, calls) {inputs, SyncValue::first, SyncValue::result, calls},
#include "sim/exec/contract/sync_ops.def"
#undef GL_SYNC_OP
  };
  return kInfo[static_cast<std::size_t>(op)];
}
enum class ShuffleMode : std::uint8_t { kUp, kDown, kBfly, kIdx };
enum class VoteMode : std::uint8_t { kAll, kAny, kUni, kBallot };
/// imm of kSync, kWarpSync, kMeet and the helper kMeet. Lanes meet in .sync instructions with the same one.
struct SyncImm {
  SyncOp op = SyncOp::kBarrier;
  /// The lanes have to be at the same instruction: targets below sm_70 (PTX ISA, 9.7.9.6 and 9.7.13.2).
  bool same_place = false;
  std::uint16_t qualifiers = 0;  ///< ShuffleMode, VoteMode, bits of match's type, or redux's, packed by ReduxQualifiers
  std::uint32_t shadow = 0;  ///< not 0: of bits that tell what is valid of the values of another one (invalid_values.h)
};
/// SyncCheckImm::exchange.
constexpr std::uint8_t ExchangeOf(const SyncImm& imm) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(imm.op) | imm.qualifiers % 31u << 3);
}
constexpr std::uint16_t ReduxQualifiers(std::uint64_t redux_imm) {
  return static_cast<std::uint16_t>((redux_imm & 0xf) | (redux_imm >> 8 & 0xf) << 4 | (redux_imm >> 16 & 3) << 8);
}
constexpr std::uint64_t ReduxImmOf(std::uint16_t qualifiers) {
  const std::uint64_t bits = qualifiers;
  return (bits & 0xf) | (bits >> 4 & 0xf) << 8 | (bits >> 8 & 3) << 16;
}

/// imm of kMbarrier.
enum class MbarrierOp : std::uint8_t {
  kInit,  ///< in: count, 1 in `second` for .layout::v1
  kInvalidate,
  kArrive,          ///< in: count; out: state before it
  kArriveDrop,      ///< in: count
  kExpectTx,        ///< in: bytes
  kCompleteTx,      ///< in: bytes
  kArriveExpectTx,  ///< in: 1, bytes in `second`
  kTestState,       ///< in: state; out: whether its phase is over
  kTestParity,      ///< in: parity
  kPendingCount,    ///< in: state
  kArriveDropExpectTx,
  kCheckLayout,  ///< in: 1 for .layout::v1; out: whether the object has that layout
};

}  // namespace gridloom::exec
