// Inside of the lifter. ModuleLifter owns what a whole lifting shares; a FunctionLifter goes through one function,
// instruction by instruction: the last column of the instruction table (rewriter/ptx/opcodes.def) says which function
// lifts it. These are free functions over a Lifter, which has the registers, the builder and the refusals. An
// instruction group is one lift_*.cpp file of them; what groups use of each other is in lift_parts.h.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/exec/compiler/float_emit.h"
#include "sim/exec/compiler/float_lanes.h"
#include "sim/exec/compiler/lift.h"
#include "sim/exec/compiler/spmd.h"
#include "sim/exec/contract/code_lines.h"
#include "sim/exec/contract/image_immediates.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/contract/tensor_copy_immediates.h"
#include "sim/exec/contract/tensor_immediates.h"

namespace gridloom::exec {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::ScalarType;
using ptx::StateSpace;

/// Thrown where something cannot be lifted; LiftKernel turns it into LiftedKernel::error. Never leaves the lifter.
struct Refusal {
  std::uint32_t line = 0;
  std::string what;
};

/// Whether the instruction has a modifier with this text.
inline bool HasText(const Instruction& inst, std::string_view text) {
  return std::ranges::any_of(inst.modifiers, [&](const ptx::Modifier& modifier) { return modifier.text == text; });
}

/// The rounding that an instruction's modifier asks for; to the nearest even value without one.
inline Rounding RoundingOf(const Instruction& inst) {
  if (inst.Has(Mod::kRz)) return Rounding::kRz;
  if (inst.Has(Mod::kRm)) return Rounding::kRm;
  if (inst.Has(Mod::kRp)) return Rounding::kRp;
  return Rounding::kRn;
}

/// A scalar travels in a register of LLVM; anything else lies in local memory and travels as its offset.
inline bool IsDirect(const ptx::Variable& variable) { return variable.dims.empty() && variable.vector == 1; }

/// The bit type of that many bits (8, 16, 32, 64, 128).
ScalarType BitsType(unsigned bits);

/// LLVM type of a PTX value: iN by its bits (f16 and packed types too), float and double for f32 and f64.
llvm::Type* IrType(llvm::LLVMContext& context, ScalarType type);

class ModuleLifter {
 public:
  ModuleLifter(const ptx::Module& module, const ptx::Function& kernel, const CompileOptions& options, SpmdModule& out);
  LiftedKernel Run();

  const ptx::Module& module() const { return module_; }
  const CompileOptions& options() const { return options_; }
  const SymbolTable& symbols() const { return symbols_; }
  const SharedLayout& shared() const { return shared_; }
  const CodeLines& lines() const { return lines_; }
  /// Number of a function's first instruction, for records.
  std::uint32_t first_number(const ptx::Function& function) const {
    const auto it = numbers_.first.find(&function);
    return it == numbers_.first.end() ? 0 : it->second;
  }
  SpmdModule& out() { return out_; }

  /// The LLVM function of a definition, lifted later on; null when there is only a prototype.
  llvm::Function* FunctionFor(const ptx::Function& function);
  /// Notes that a function's address is used and returns its number.
  std::uint32_t TakeAddress(const ptx::Function& function, std::uint32_t line);
  /// Every function whose address module initialisers hold can be called too.
  void NoteIndirectCall();
  llvm::FunctionType* Signature(const std::deque<ptx::Variable>& returns, const std::deque<ptx::Variable>& params);

  /// Call graph and frame sizes, filled by the function lifters.
  struct Frame {
    std::uint32_t bytes = 0;
    bool calls_indirectly = false;
    std::vector<const ptx::Function*> callees;
  };
  Frame& frame(const ptx::Function& function) { return frames_[&function]; }

  /// Local memory of a thread that holds a copy of the kernel's parameters, for those that ask for their addresses
  /// (cvta.param). The kernel's lifter fills it before it lifts an instruction; without a copy it is empty.
  struct ParamCopy {
    std::uint32_t offset = 0, bytes = 0;
  };
  ParamCopy& param_copy() { return param_copy_; }

 private:
  std::uint32_t StackBytes(const ptx::Function& function, std::unordered_set<const ptx::Function*>& path,
                           bool& recursive);

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  const CompileOptions& options_;
  SpmdModule& out_;
  SymbolTable symbols_;
  SharedLayout shared_;
  CodeLines lines_;
  InstructionNumbers numbers_;  ///< empty when nothing is recorded
  std::unordered_map<const ptx::Function*, llvm::Function*> functions_;
  std::vector<const ptx::Function*> pending_;
  std::map<std::uint32_t, const ptx::Function*> address_taken_;
  std::unordered_map<const ptx::Function*, Frame> frames_;
  ParamCopy param_copy_;
  bool initializers_noted_ = false;
};

/// A function's parameters, and its frame in local memory. Parameters of a kernel have an offset in the parameter
/// block; of others, scalars lie in an alloca and all the rest in local memory.
struct LocalFrame {
  std::unordered_map<const ptx::Variable*, std::uint32_t> kernel_params;
  std::unordered_map<const ptx::Variable*, llvm::AllocaInst*> scalar_params;
  std::unordered_map<const ptx::Variable*, Value*> memory_params;
  std::unordered_set<const ptx::Variable*> addressed_params;
  std::uint32_t kernel_param_copy = ~0u;  ///< offset of the copy that cvta.param needs
  LocalLayout local;
  std::uint32_t bytes = 0;
  Value* base = nullptr;                    ///< i64
  llvm::AllocaInst* dynamic_top = nullptr;  ///< end of the frame including alloca
};

/// Where [address] of an instruction lies.
struct Place {
  enum class Kind : std::uint8_t { kMemory, kKernelParam, kScalarParam } kind = Kind::kMemory;
  Space space = Space::kGeneric;
  Value* address = nullptr;          ///< kMemory, kKernelParam: i64
  llvm::AllocaInst* slot = nullptr;  ///< kScalarParam
  std::int64_t offset = 0;           ///< kScalarParam
};

/// What lifting an instruction needs: its operands as values, the function's registers, the builder, refusals.
class Lifter {
 public:
  Lifter(ModuleLifter& module, const ptx::Function& function, llvm::Function* ir)
      : module(module),
        function(function),
        ir(ir),
        b(module.out()),
        emit(b, module.options().cpu == "x86-64"),
        lanes(b, emit) {}
  Lifter(const Lifter&) = delete;
  Lifter& operator=(const Lifter&) = delete;

  llvm::BasicBlock* NewBlock(const char* name);
  /// The block that a label begins; it is lifted later on.
  llvm::BasicBlock* BlockOf(const ptx::Label& label);
  [[noreturn]] void Refuse(const std::string& what) const;
  /// Refuses the current instruction as a whole, by its full name.
  [[noreturn]] void RefuseInstruction(const std::string& why = "is not supported") const;

  const Operand& Op(std::size_t n) const;
  std::size_t OpCount() const { return inst->operands.size(); }
  llvm::Type* TypeOf(ScalarType type) { return IrType(b.getContext(), type); }
  /// Value of a source operand as an instruction of that type sees it: wider registers are cut, narrower ones extended.
  Value* Read(const Operand& operand, ScalarType type);
  Value* ReadPredicate(const Operand& operand) { return Read(operand, ScalarType::kPred); }
  /// Stores a result of that type; a wider register gets it sign- or zero-extended as the type says. Under a guard the
  /// register keeps its old value where the guard is off.
  void Write(const Operand& operand, Value* value, ScalarType type);
  Value* ReadRegister(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component);
  llvm::AllocaInst* RegisterSlot(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component);
  llvm::AllocaInst* EntryAlloca(llvm::Type* type, const llvm::Twine& name);
  Value* Resize(Value* value, llvm::Type* type, bool is_signed);
  Value* AsInt(Value* value);
  /// The single-component operands a vector operand stands for: {a, b} or a vector register.
  std::vector<Operand> Components(const Operand& operand) const;
  bool IsUnused(const Operand& operand) const { return operand.kind == OperandKind::kSink; }
  Value* GuardValue(const ptx::Guard& guard);

  /// Splits a packed value into lanes of `bits`, and back.
  std::vector<Value*> SplitLanes(Value* packed, unsigned count) { return lanes.Split(packed, count); }
  Value* JoinLanes(const std::vector<Value*>& parts, llvm::Type* type) { return lanes.Join(parts, type); }
  /// Applies a function of two lanes to packed operands.
  template <typename Combine>
  Value* MapLanes(Value* x, Value* y, unsigned count, Combine combine) {
    if (count == 1) return combine(x, y);
    const std::vector<Value*> xs = SplitLanes(x, count), ys = SplitLanes(y, count);
    std::vector<Value*> out;
    for (unsigned i = 0; i < count; ++i) out.push_back(combine(xs[i], ys[i]));
    return JoinLanes(out, x->getType());
  }
  /// Lanes of an operand as f32 (f16, bf16, f32) or f64; `ftz` flushes subnormal inputs.
  std::vector<Value*> ReadFloatLanes(const Operand& operand, ScalarType type, bool ftz) {
    return lanes.Unpack(Read(operand, type), type, ftz);
  }

  ModuleLifter& module;
  const ptx::Function& function;
  llvm::Function* ir;
  SpmdBuilder b;
  FloatEmitter emit;
  FloatLanes lanes;
  LocalFrame frame;
  const Instruction* inst = nullptr;       ///< being lifted
  Value* guard = nullptr;                  ///< i1 under which register writes happen, null: always
  bool terminated = false;                 ///< the current block has its terminator
  llvm::Instruction* entry_end = nullptr;  ///< allocas and their first stores go before it
  llvm::AllocaInst* carry = nullptr;       ///< the flag CC, null until an instruction has it
  std::vector<const ptx::Label*> pending_labels;

 private:
  Value* Immediate(const Operand& operand, ScalarType type);
  Value* ReadSymbol(const Operand& operand);
  void WriteRegister(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component, Value* value,
                     ScalarType type);
  /// A register that is a vector is no single value.
  void RefuseWholeVector(const Operand& operand) const;

  std::map<std::tuple<const ptx::Variable*, std::uint32_t, std::uint32_t>, llvm::AllocaInst*> registers_;
  std::unordered_map<const ptx::Label*, llvm::BasicBlock*> label_blocks_;
};

/// The last column of the instruction table, as tags for Lift.
namespace semantic {
struct None;
#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, meaning) struct meaning;
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE
}  // namespace semantic

/// Lifts the opcodes of one semantic; each is a function in the lift_*.cpp file of its group.
template <typename Semantic>
void Lift(Lifter& l, const Instruction& inst);

#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, meaning) \
  template <>                                                                  \
  void Lift<semantic::meaning>(Lifter & l, const Instruction& inst);
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE

/// The function that lifts an opcode, or refuses it.
using LiftHandler = void (*)(Lifter&, const Instruction&);
LiftHandler HandlerFor(Opcode opcode);

/// Goes through a function from its entry: blocks in the order in which they are reached, guards, dispatch.
class FunctionLifter {
 public:
  FunctionLifter(ModuleLifter& module, const ptx::Function& function, llvm::Function* ir) : l_(module, function, ir) {}
  void Run();

 private:
  struct Item {
    const Instruction* instruction = nullptr;  ///< null: a label
    const ptx::Label* label = nullptr;
    std::uint32_t number = 0;  ///< of the instruction, for records
  };
  void Flatten(const ptx::Block& block);
  void LiftFrom(std::size_t index);
  /// Lifts one instruction; true when it ends its block.
  bool LiftInstruction(const Instruction& inst);
  void LiftGuarded(const Instruction& inst, LiftHandler handler);
  /// Refuses an instruction that no table knows, or that has a word none knows: what it would change is unknown.
  void RefuseUnknown(const Instruction& inst) const;

  Lifter l_;
  std::vector<Item> items_;
  std::vector<const Instruction*> instructions_;  ///< those of items_
  std::uint32_t next_number_ = 0;
  std::unordered_map<const ptx::Label*, std::size_t> label_index_;
  std::unordered_set<const ptx::Label*> lifted_labels_;
};

}  // namespace gridloom::exec
