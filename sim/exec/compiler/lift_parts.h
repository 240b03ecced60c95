// What instruction groups use of each other: each function is in the file of its group.
#pragma once

#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

// lift_address.cpp
Space SpaceOf(Lifter& l, StateSpace space);
/// Fixes the frame of a function that has these instructions.
void PlaceParams(Lifter& l, llvm::ArrayRef<const Instruction*> instructions);
void ReceiveParams(Lifter& l);
/// Local offset where the frame of a callee starts.
Value* CalleeFrame(Lifter& l);
Value* VariableAddress(Lifter& l, const ptx::Variable& variable);
/// Where [address] lies for an access in `space`.
Place Locate(Lifter& l, const Operand& operand, StateSpace space);
/// i64 address of a memory operand; refuses scalar parameters.
Value* AddressOf(Lifter& l, const Operand& address, StateSpace space);

// lift_async.cpp
void LiftBulkStore(Lifter& l, const Instruction& inst);
void LiftAsyncTail(Lifter& l, const Instruction& inst, std::size_t values);

// lift_atomic.cpp
AtomicType AtomicTypeOf(ScalarType type);
AtomicOp AtomicOpOf(Lifter& l, const Instruction& inst, ScalarType type);
AtomicFlush AtomicFlushOf(const Instruction& inst, AtomicOp op, ScalarType type);

// lift_compare.cpp
llvm::CmpInst::Predicate ComparisonOf(Lifter& l, const Instruction& inst, bool is_signed);
Value* CombinePredicate(Lifter& l, const Instruction& inst, Value* compared, std::size_t operand);

// lift_convert.cpp
Value* HalfToFloat(Lifter& l, Value* half, ScalarType type);
Value* RoundToHalf(Lifter& l, Value* x, ScalarType type, Rounding rounding);
Value* SaturateHalf(Lifter& l, Value* half, ScalarType type);

// lift_convert_packed.cpp
void LiftCvtPacked(Lifter& l, const Instruction& inst);
bool IsFourNarrow(ScalarType type);
void LiftFourNarrow(Lifter& l, const Instruction& inst);

// lift_float.cpp
Value* Flush(Lifter& l, Value* x);
void LiftFloatArithmetic(Lifter& l, const Instruction& inst);
void LiftFloatDivide(Lifter& l, const Instruction& inst);
void LiftFloatMinMax(Lifter& l, const Instruction& inst);

// lift_function.cpp
void EmitReturn(Lifter& l);

// lift_int.cpp
Value* MinMax(Lifter& l, Value* a, Value* b, bool is_signed, bool max);

// lift_logic.cpp
Value* ShiftOrZero(Lifter& l, Value* a, Value* count, bool left);
Value* ShiftSigned(Lifter& l, Value* a, Value* count);

// lift_memory.cpp
void Fence(Lifter& l, std::uint64_t imm);

// lift_special.cpp
Value* RangedSpecial(Lifter& l, Special special, std::uint64_t low, std::uint64_t high);
Value* ReadSpecial(Lifter& l, std::string_view text);
Value* ReadSpecialComponent(Lifter& l, std::string_view text, std::size_t component);

// lift_tensor.cpp
void ReadFragment(Lifter& l, const Operand& operand, unsigned count, bool wide, llvm::SmallVectorImpl<Value*>& out,
                  unsigned repeats = 1);
void WriteFragment(Lifter& l, const Operand& operand, Value* result, unsigned count, bool wide, unsigned repeats = 1);
Value* HostAddress(Lifter& l, const Place& place);

// lift_video.cpp
Value* ClampTo(Lifter& l, Value* value, unsigned bits, bool is_signed);

}  // namespace gridloom::exec
