#include "sim/trace/classify.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace gridloom::trace {
namespace {

using ptx::Mod;
using ptx::OperandKind;
using ptx::ScalarType;
using ptx::StateSpace;
using ptx::Trait;

constexpr std::uint32_t kMaxWidth = 16;
constexpr std::uint32_t kMatrixRow = 16;  // bytes of a row of ldmatrix and stmatrix

/// Generic accesses are global ones with kGeneric: which they are is known only when they run.
Space SpaceOf(StateSpace space) {
  switch (space) {
    case StateSpace::kShared:
    case StateSpace::kSharedCta:
    case StateSpace::kSharedCluster: return Space::kShared;
    case StateSpace::kLocal: return Space::kLocal;
    case StateSpace::kConst: return Space::kConstant;
    case StateSpace::kParam:
    case StateSpace::kParamEntry:
    case StateSpace::kParamFunc: return Space::kParameter;
    default: return Space::kGlobal;
  }
}

std::uint8_t FlagsOf(const ptx::Instruction& inst) {
  std::uint8_t flags = 0;
  for (const Mod mod : {Mod::kVolatile, Mod::kRelaxed, Mod::kAcquire, Mod::kRelease, Mod::kMmio, Mod::kCv, Mod::kWt}) {
    if (inst.Has(mod)) flags |= kVolatile;
  }
  if (inst.Has(Mod::kCg)) flags |= kCacheGlobal;
  if (inst.Has(Mod::kNc)) flags |= kReadOnly;
  if (inst.space() == StateSpace::kNone || inst.space() == StateSpace::kGeneric) flags |= kGeneric;
  return flags;
}

/// An atomic that returns what was there is no store: the warp waits for it.
std::uint8_t DirectionOf(const ptx::Instruction& inst) {
  const bool stores = inst.Has(Trait::kWrites) && !inst.Has(Trait::kReads);
  return static_cast<std::uint8_t>((stores ? kStore : 0) | (inst.Has(Trait::kAtomic) ? kAtomic : 0));
}

/// One access of `bytes` a lane, as entries no wider than kMaxWidth.
void AddAccess(std::vector<Instruction>& out, Space space, std::uint32_t bytes, std::uint8_t flags) {
  if (space == Space::kParameter) bytes = std::min(bytes, kMaxWidth);
  for (std::uint32_t at = 0; at < std::max(bytes, 1u); at += kMaxWidth) {
    Instruction entry;
    entry.op = OpClass::kMemory;
    entry.space = space;
    entry.flags = flags;
    entry.width = static_cast<std::uint8_t>(std::min(std::max(bytes, 1u) - at, kMaxWidth));
    out.push_back(entry);
  }
}

/// What a lane accesses, vectors included.
std::uint32_t AccessBytes(const ptx::Instruction& inst) {
  return std::max(ptx::BytesOf(inst.type()), 1u) * inst.vector_width();
}

/// Texel fetches and surface accesses. Texels lie within a sector, so that where each begins is enough; what surface
/// instructions access is counted in bytes.
void AddImage(std::vector<Instruction>& out, const ptx::Instruction& inst) {
  if (inst.Has(Trait::kQueries)) return out.push_back({});
  if (inst.Has(Trait::kReadOnly)) return AddAccess(out, Space::kTexture, 1, kReadOnly);
  const std::uint8_t direction = DirectionOf(inst);
  AddAccess(out, Space::kGlobal, direction == kStore && inst.Has(Mod::kP) ? 1 : AccessBytes(inst), direction);
}

struct MatrixShape {
  unsigned m = 0, n = 0, k = 0;
};

MatrixShape MatrixShapeOf(const ptx::Instruction& inst) {
  MatrixShape shape;
  for (const ptx::Modifier& modifier : inst.modifiers) {
    if (std::sscanf(std::string(modifier.text).c_str(), "m%un%uk%u", &shape.m, &shape.n, &shape.k) == 3) break;
  }
  return shape;
}

/// Bytes of a lane in wmma.load and wmma.store: an equal piece of the matrix.
std::uint32_t FragmentBytes(const ptx::Instruction& inst) {
  const auto [m, n, k] = MatrixShapeOf(inst);
  const auto has = [&](std::string_view text) {
    return inst.Has(Mod::kLoad) &&
           std::ranges::any_of(inst.modifiers, [&](const ptx::Modifier& modifier) { return modifier.text == text; });
  };
  const unsigned elements = has("a") ? m * k : has("b") ? k * n : m * n;
  return std::clamp(elements * ptx::BitsOf(inst.type()) / 8 / kWarpSize, 1u, 32u);
}

void AddMemory(std::vector<Instruction>& out, const ptx::Instruction& inst) {
  const Space space = SpaceOf(inst.space());
  const std::uint8_t flags = FlagsOf(inst);
  if (inst.Has(Trait::kTyped)) return AddAccess(out, space, AccessBytes(inst), flags | DirectionOf(inst));
  if (inst.Has(Trait::kRows)) return AddAccess(out, space, kMatrixRow, flags | DirectionOf(inst));
  if (inst.Has(Trait::kPrefetches)) return AddAccess(out, Space::kGlobal, 1, kPrefetch);
  // cp.async and its bulk forms: out of global into shared memory, past the registers.
  if (inst.Has(Trait::kCopies) && inst.Has(Mod::kAsync) && !inst.operands.empty() &&
      inst.operands[0].kind == OperandKind::kAddress) {
    const std::uint32_t bytes = inst.operands.size() > 2 && inst.operands[2].kind == OperandKind::kInt
                                    ? static_cast<std::uint32_t>(inst.operands[2].int_literal.value)
                                    : kMaxWidth;
    AddAccess(out, Space::kGlobal, std::min(bytes, kMaxWidth), flags & ~unsigned{kGeneric});
    AddAccess(out, Space::kShared, std::min(bytes, kMaxWidth), kStore);
    return;
  }
  out.push_back({});
}

OpClass ArithmeticClass(const ptx::Instruction& inst, OpClass integer) {
  switch (inst.type()) {
    case ScalarType::kF32:
    case ScalarType::kF32x2:
    case ScalarType::kTF32: return OpClass::kFp32;
    case ScalarType::kF64: return OpClass::kFp64;
    case ScalarType::kF16:
    case ScalarType::kF16x2:
    case ScalarType::kBF16:
    case ScalarType::kBF16x2:
    // Four numbers in a register; how fast they are has not been measured.
    case ScalarType::kE4M3x4:
    case ScalarType::kE5M2x4: return OpClass::kFp16;
    default: return integer;
  }
}

/// sqrt, rcp and div round correctly or approximate.
OpClass RootClass(const ptx::Instruction& inst, OpClass integer) {
  const OpClass arithmetic = ArithmeticClass(inst, integer);
  if (arithmetic == OpClass::kFp64) return inst.Has(Mod::kApprox) ? OpClass::kSfu : OpClass::kFp64Div;
  if (arithmetic == integer) return integer;
  return inst.Has(Mod::kApprox) || inst.Has(Mod::kFull) ? OpClass::kSfu : OpClass::kFp32Div;
}

Instruction BarrierOf(const ptx::Instruction& inst, const ConstantOf& constant) {
  Instruction entry;
  if (inst.Has(Mod::kWarp)) return entry;  // among lanes only
  // Who arrives at a cluster's barrier waits for it later: that is the barrier, of the CTA alone.
  if (inst.Has(Mod::kCluster) && !inst.Has(Mod::kWait)) return entry;
  entry.op = OpClass::kBarrier;
  if (inst.Has(Mod::kArrive)) entry.flags = kArrive;
  // Reductions have their destination first.
  const std::size_t id = inst.Has(Mod::kRed) ? 1 : 0;
  const auto number = [&](std::size_t n) -> std::uint64_t {
    return n < inst.operands.size() ? constant(inst.operands[n]).value_or(0) : 0;
  };
  entry.barrier = static_cast<std::uint8_t>(number(id) % 16);
  entry.barrier_warps = static_cast<std::uint8_t>(std::min<std::uint64_t>(number(id + 1) / kWarpSize, 32));
  return entry;
}

/// Multiply-adds of a warp, in halves that take tensor cores as long: time goes with the bits of an element. What does
/// not are bits, 16 times as fast as halves, and doubles, 16 times as slow (NVIDIA A100 Tensor Core GPU Architecture,
/// table 1: dense TFLOPS and TOPS of 312 for halves, 156 for tf32, 624, 1248 and 4992 for 8, 4 and 1 bits, 19.5 for
/// doubles; H100's table 2 has the same ratios but 67 for doubles where its halves have 989).
std::uint64_t TensorWork(const ptx::Instruction& inst) {
  const MatrixShape shape = MatrixShapeOf(inst);
  std::uint64_t work = std::uint64_t{shape.m} * shape.n * shape.k;
  // wmma of halves names the types of c and d only; else those of d, a, b and c follow each other.
  const std::uint32_t bits = inst.type(2) == ptx::ScalarType::kNone ? 16 : ptx::BitsOf(inst.type(1));
  if (inst.Has(Trait::kWarpGroup)) work /= 4;                              // of four warps
  if (inst.Has(Mod::kSp) || inst.Has(Mod::kSpOrderedMetadata)) work /= 2;  // half of the elements are 0
  if (shape.m * shape.n * shape.k == 8 * 8 * 4 && bits == 16) work *= 4;   // by each eight lanes
  return bits == 1 ? work / 16 : bits == 64 ? work * 16 : work * bits / 16;
}

Instruction Tensor(const ptx::Instruction& inst) {
  Instruction entry;
  entry.op = OpClass::kTensor;
  constexpr std::uint64_t kMost = 255;
  entry.width = static_cast<std::uint8_t>(
      std::min(kMost, (TensorWork(inst) + Instruction::kTensorUnit - 1) / Instruction::kTensorUnit));
  return entry;
}

Instruction Simple(OpClass op) {
  Instruction entry;
  entry.op = op;
  return entry;
}

}  // namespace

std::vector<Instruction> Classify(const ptx::Instruction& inst, const ConstantOf& constant) {
  std::vector<Instruction> out;
  switch (inst.info().cls) {
    case ptx::OpClass::kLoad:
    case ptx::OpClass::kStore:
    case ptx::OpClass::kAtomic:
    case ptx::OpClass::kMem: AddMemory(out, inst); break;
    case ptx::OpClass::kTensor:
      if (inst.Has(Mod::kLoad) || inst.Has(Mod::kStore)) {
        AddAccess(out, SpaceOf(inst.space()), FragmentBytes(inst),
                  FlagsOf(inst) | (inst.Has(Mod::kStore) ? kStore : 0));
      } else if (inst.Has(Trait::kWarpGroup) && !inst.Has(Mod::kMmaAsync)) {
        out.push_back({});  // its groups are not modelled
      } else {
        out.push_back(Tensor(inst));
      }
      break;
    case ptx::OpClass::kBarrier: out.push_back(BarrierOf(inst, constant)); break;
    case ptx::OpClass::kFence: out.push_back(Simple(OpClass::kFence)); break;
    case ptx::OpClass::kWarp: out.push_back(Simple(OpClass::kShuffle)); break;
    case ptx::OpClass::kBranch:
    case ptx::OpClass::kCall: out.push_back(Simple(OpClass::kBranch)); break;
    case ptx::OpClass::kConvert: out.push_back(Simple(OpClass::kConvert)); break;
    case ptx::OpClass::kFma: out.push_back(Simple(ArithmeticClass(inst, OpClass::kIntMul))); break;
    case ptx::OpClass::kDiv: out.push_back(Simple(RootClass(inst, OpClass::kIntDiv))); break;
    case ptx::OpClass::kSfu: out.push_back(Simple(RootClass(inst, OpClass::kSfu))); break;
    case ptx::OpClass::kVideo: out.push_back(Simple(OpClass::kInt)); break;
    case ptx::OpClass::kMove: out.push_back(Simple(OpClass::kInt)); break;
    case ptx::OpClass::kAlu:
      out.push_back(Simple(inst.Has(Trait::kMovesBits) ? OpClass::kInt : ArithmeticClass(inst, OpClass::kInt)));
      break;
    case ptx::OpClass::kControl:
      out.push_back(Simple(inst.Has(Trait::kReturns) ? OpClass::kBranch : OpClass::kControl));
      break;
    case ptx::OpClass::kTexture: AddImage(out, inst); break;
    case ptx::OpClass::kMbarrier:  // their phases are not modelled
    case ptx::OpClass::kUnknown: out.push_back({}); break;
  }
  for (Instruction& entry : out) entry.line = inst.loc.line;
  return out;
}

}  // namespace gridloom::trace
