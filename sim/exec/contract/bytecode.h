// Bytecode: a kernel in the form that the interpreter runs (runtime/interpreter), made from the SPMD form
// (compiler/bytecode.h) where machine code is not there yet. It means the same as the warp form: one step acts on the
// 32 lanes of a warp.
//
// A function has registers in a frame, at byte offsets. A register holds a value per lane, lane 0 first, each in its
// type's bytes; an i1 is one 32-bit word with a bit per lane, as helpers want it (abi.h). Operands with
// kConstantOperand set are offsets in the function's constants instead. Values that live across blocks are written with
// kMerge, so that lanes that are elsewhere keep theirs; all others are written for all lanes.
//
// Blocks are in the order that reconvergence needs (compiler/block_order.h): the earliest block with lanes always runs
// next.
#pragma once

#include <cstdint>
#include <vector>

namespace gridloom::exec {

enum class ByteCode : std::uint8_t {
#define GL_BYTE_OP(name) name,
#include "sim/exec/contract/bytecode.def"
#undef GL_BYTE_OP
  kCount
};

enum class ByteType : std::uint8_t { kI1, kI8, kI16, kI32, kI64, kI128, kF16, kF32, kF64, kCount };

/// Bytes of a lane's value; an i1 has none of its own.
constexpr std::uint32_t BytesOf(ByteType type) {
  constexpr std::uint32_t kBytes[] = {0, 1, 2, 4, 8, 16, 2, 4, 8};
  return kBytes[static_cast<std::size_t>(type)];
}
/// Bytes of a register.
constexpr std::uint32_t RegisterBytes(ByteType type) { return type == ByteType::kI1 ? 4 : BytesOf(type) * 32; }

inline constexpr std::uint32_t kConstantOperand = 0x80000000;
inline constexpr std::uint32_t kNoRegister = 0x7fffffff;

struct ByteStep {
  ByteCode code = ByteCode::kMove;
  ByteType type = ByteType::kI32, from = ByteType::kI32;
  std::uint8_t extra = 0;
  std::uint32_t line = 0;  ///< of the PTX text
  std::uint32_t dst = kNoRegister, a = kNoRegister, b = kNoRegister, c = kNoRegister;
  std::uint64_t imm = 0;
};

/// What kSpecial reads: fields of the contexts of abi.h.
enum class ByteSpecial : std::uint8_t { kTid, kLane, kWarpWord, kCtaWord, kLaunchWord, kLaunchLong };
/// imm of kSpecial: what | (the axis of kTid, or the field's offset) << 8.
constexpr std::uint64_t SpecialImm(ByteSpecial what, std::uint64_t where) {
  return static_cast<std::uint64_t>(what) | where << 8;
}

/// Steps that copy what flows along an edge, under the mask of the lanes that take it.
struct ByteEdge {
  std::uint32_t block = 0, first = 0, last = 0;
};

struct ByteBlock {
  static constexpr std::uint32_t kMostMeetInputs = 5;
  enum class End : std::uint8_t {
    kJump,
    kBranch,  ///< by the bits of `condition`
    kMeet,  ///< a meeting (compiler/meetings.h), then a jump; `list`: members and inputs, `count` of them; imm: SyncImm
    kBarrier,    ///< then a jump; `list`: out, id, threads, predicate; imm: BarrierOp
    kDropEnded,  ///< lanes that have ended in a call stay behind, then a jump
    kReturn,
    kEnded,  ///< nothing is left of the lanes
  };
  std::uint32_t first = 0, last = 0;              ///< steps
  std::uint32_t after_first = 0, after_last = 0;  ///< of kBarrier: steps between it and the jump
  End end = End::kEnded;
  bool waits = false;  ///< the jump goes back in a loop that can wait for another thread
  std::uint32_t condition = 0, list = 0, count = 0, line = 0;
  std::uint64_t imm = 0;
  ByteEdge edges[2];
};

struct ByteFunction {
  std::uint32_t frame_bytes = 0;
  bool has_meetings = false;
  std::vector<std::uint32_t> parameters, results;  ///< registers; types of results in result_types
  std::vector<ByteType> parameter_types, result_types;
  std::vector<ByteBlock> blocks;
  std::vector<ByteStep> steps;
  std::vector<std::uint32_t> lists;     ///< operands of steps that have many
  std::vector<std::uint8_t> constants;  ///< registers that never change; to be placed at a multiple of 64
};

/// A kernel as bytecode. functions[0] is the kernel.
struct Bytecode {
  std::vector<ByteFunction> functions;
  struct Pointer {
    std::uint64_t value;  ///< what a pointer to the function holds
    std::uint32_t function;
    std::uint32_t signature;  ///< equal numbers: the same types
  };
  std::vector<Pointer> pointers;
};

}  // namespace gridloom::exec
