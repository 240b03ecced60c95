// NaN results as a GPU has them. What it computes in f32 and is not a number is 0x7fffffff, whatever the operands were;
// a processor passes on an operand's bits or gives 0xffc00000, as its vector and scalar instructions, and LLVM, please.
// That can be seen only where the bits of a result are: where it is stored, exchanged between lanes, or taken for an
// integer. There, not where it is computed, a NaN gets its bits: a comparison and a blend for what is stored, and
// nothing for what goes on being computed with.
//
// What was not computed keeps its bits: loads, moves, selections between them, f64 as f32. Results in f16 and bf16 have
// the right ones where they are rounded (float_emit.h). An f64 passes on an operand's NaN, as on a GPU; of two, a
// minimum or maximum the second one (float_emit.h), and all else the one that the processor takes.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/Module.h>

namespace gridloom::exec {

/// Says of a cast between an f32 and its bits that the program made it, as an access to a register of the other type.
void MarkRegisterCast(llvm::Value* cast);
/// Says of a conversion from f32 to f64 that the program made it: the f64 has what the f32's bits say. The lifter's
/// own, for results that are rounded again, need no right NaN.
void MarkConversion(llvm::Value* extended);

/// Gives all NaN results of a module their bits. Before marks of float operations are expanded: what they become looks
/// at bits, too.
///   before:  %s = call float @gl.float.2.f32(i32 add.f32, float %a, float %b);  call void @gl.store(float %s, …)
///   after:   %n = select (fcmp uno %s, %s), 0x7fffffff, bits of %s;  call void @gl.store(float %n as float, …)
void CanonicalizeNans(llvm::Module& module);

}  // namespace gridloom::exec
