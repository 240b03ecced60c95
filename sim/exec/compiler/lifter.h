// Inside of the lifter. ModuleLifter owns what a whole lifting shares; a FunctionLifter lifts one function, instruction
// by instruction: the last column of the instruction table (rewriter/ptx/opcodes.def) says by which function. An
// instruction group is one lift_*.cpp file of them.
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

/// The last column of the instruction table, as tags for FunctionLifter::Lift.
namespace semantic {
struct None;
#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, meaning) struct meaning;
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE
}  // namespace semantic

class FunctionLifter {
 public:
  FunctionLifter(ModuleLifter& module, const ptx::Function& function, llvm::Function* ir);
  void Run();

  /// The member function that lifts an opcode, or refuses it.
  using Handler = void (FunctionLifter::*)(const Instruction&);
  static Handler HandlerFor(Opcode opcode);

  /// Lifts the opcodes of one semantic; each is a function in the lift_*.cpp file of its group.
  template <typename Semantic>
  void Lift(const Instruction& inst);

 private:
  // ------------------------------------------------------------------------------------------------------
  // lift_function.cpp
  struct Item {
    const Instruction* instruction = nullptr;  ///< null: a label
    const ptx::Label* label = nullptr;
    std::uint32_t number = 0;  ///< of the instruction, for records
  };
  void Flatten(const ptx::Block& block);
  void LiftFrom(std::size_t index);
  /// Lifts one instruction; true when it ends its block.
  bool LiftInstruction(const Instruction& inst);
  void LiftGuarded(const Instruction& inst, Handler handler);
  void EmitReturn();
  llvm::BasicBlock* BlockOf(const ptx::Label& label);
  llvm::BasicBlock* NewBlock(const char* name);
  [[noreturn]] void Refuse(const std::string& what) const;
  /// Refuses the current instruction as a whole, by its full name.
  [[noreturn]] void RefuseInstruction(const std::string& why = "is not supported") const;
  /// Refuses an instruction that no table knows, or that has a word none knows: what it would change is unknown.
  void RefuseUnknown(const Instruction& inst) const;

  // -------------------------------------------------------------------------------------------------------
  // lift_operand.cpp
  llvm::Type* TypeOf(ScalarType type) { return IrType(b_.getContext(), type); }
  /// Value of a source operand as an instruction of that type sees it: wider registers are cut, narrower ones extended.
  Value* Read(const Operand& operand, ScalarType type);
  Value* ReadPredicate(const Operand& operand) { return Read(operand, ScalarType::kPred); }
  Value* Immediate(const Operand& operand, ScalarType type);
  Value* ReadSymbol(const Operand& operand);
  /// Stores a result of that type; a wider register gets it sign- or zero-extended as the type says. Under a guard the
  /// register keeps its old value where the guard is off.
  void Write(const Operand& operand, Value* value, ScalarType type);
  void WriteRegister(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component, Value* value,
                     ScalarType type);
  Value* ReadRegister(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component);
  llvm::AllocaInst* RegisterSlot(const ptx::Variable& variable, std::uint32_t index, std::uint32_t component);
  llvm::AllocaInst* EntryAlloca(llvm::Type* type, const llvm::Twine& name);
  Value* Resize(Value* value, llvm::Type* type, bool is_signed);
  Value* AsInt(Value* value);
  /// The single-component operands a vector operand stands for: {a, b} or a vector register.
  std::vector<Operand> Components(const Operand& operand) const;
  /// A register that is a vector is no single value.
  void RefuseWholeVector(const Operand& operand) const;
  bool IsUnused(const Operand& operand) const { return operand.kind == OperandKind::kSink; }
  Value* GuardValue(const ptx::Guard& guard);

  // --------------------------------------------------------------------------------------------------------
  // lift_address.cpp
  struct Place {
    enum class Kind : std::uint8_t { kMemory, kKernelParam, kScalarParam } kind = Kind::kMemory;
    Space space = Space::kGeneric;
    Value* address = nullptr;          ///< kMemory, kKernelParam: i64
    llvm::AllocaInst* slot = nullptr;  ///< kScalarParam
    std::int64_t offset = 0;           ///< kScalarParam
  };
  /// Where [address] lies for an access in `space`.
  Place Locate(const Operand& address, StateSpace space);
  /// i64 address of a memory operand; refuses scalar parameters.
  Value* AddressOf(const Operand& address, StateSpace space);
  Value* VariableAddress(const ptx::Variable& variable);
  Space SpaceOf(StateSpace space) const;
  void PlaceParams();
  void ReceiveParams();
  void FindAddressedParams();
  Value* LocalAddress(std::uint32_t offset);
  /// Local offset where the frame of a callee starts.
  Value* CalleeFrame();

  /// Whether a generic address lies in a state space, as isspacep asks.
  Value* IsIn(StateSpace space, Value* address);
  Value* IsInConstants(Value* address);
  Value* IsInParams(Value* address);
  Value* IsInOwnShared(Value* address);
  Value* IsBelow(Value* offset, Value* bytes);

  void Fence(std::uint64_t imm);

  // ---------------------------------------------------------------------------------------------------------
  // lift_special.cpp
  Value* ReadSpecial(std::string_view text);
  Value* OwnSharedBytes();
  std::uint64_t LeastDimension(unsigned axis);
  Value* Dimension(unsigned axis);
  Value* RangedSpecial(Special special, std::uint64_t low, std::uint64_t high);

  // ------------------------------------------------------------------------------------------------------------ shared
  // parts
  Value* MulHigh(Value* a, Value* b, bool is_signed);
  Value* MinMax(Value* a, Value* b, bool is_signed, bool max);
  void LiftCarry(const Instruction& inst, Value* a, Value* b, bool subtract);
  llvm::AllocaInst* CarrySlot();
  /// Splits a packed value into lanes of `bits`, and back.
  std::vector<Value*> SplitLanes(Value* packed, unsigned lanes) { return lanes_.Split(packed, lanes); }
  Value* JoinLanes(const std::vector<Value*>& lanes, llvm::Type* type) { return lanes_.Join(lanes, type); }
  /// Applies a function of two lanes to packed operands.
  template <typename Combine>
  Value* MapLanes(Value* a, Value* b, unsigned lanes, Combine combine) {
    if (lanes == 1) return combine(a, b);
    const std::vector<Value*> x = SplitLanes(a, lanes), y = SplitLanes(b, lanes);
    std::vector<Value*> out;
    for (unsigned i = 0; i < lanes; ++i) out.push_back(combine(x[i], y[i]));
    return JoinLanes(out, a->getType());
  }
  Value* Product(const Instruction& inst, ScalarType& type);
  Value* ShiftOrZero(Value* a, Value* count, bool left);
  Value* ShiftSigned(Value* a, Value* count);
  Value* Ctlz(Value* a);
  Value* LowMask(llvm::Type* type, Value* length);
  std::vector<Value*> Compare(const Instruction& inst, ScalarType type);
  Value* Combine(const Instruction& inst, Value* compared, std::size_t operand);
  Value* Lut3(Value* a, Value* b, Value* c, unsigned table);

  // ----------------------------------------------------------------------------------------- lift_float.cpp,
  // lift_convert.cpp
  /// Lanes of an operand as f32 (f16, bf16, f32) or f64; `ftz` flushes subnormal inputs.
  std::vector<Value*> ReadFloatLanes(const Operand& operand, ScalarType type, bool ftz) {
    return lanes_.Unpack(Read(operand, type), type, ftz);
  }
  void WriteFloatLanes(const Instruction& inst, std::vector<Value*> lanes, ScalarType type);
  Value* Flush(Value* x);
  Value* RoundedF64(F64Op op, Rounding rounding, Value* a, Value* b, Value* c);
  void LiftFloatArithmetic(const Instruction& inst);
  void LiftFloatDivide(const Instruction& inst);
  void LiftFloatMinMax(const Instruction& inst);
  void LiftSign(const Instruction& inst);
  Value* UnaryF32(const Instruction& inst, Value* x);
  Value* UnaryF64(const Instruction& inst, Value* x);
  Value* IntToInt(const Instruction& inst, Value* source, ScalarType from, ScalarType to);
  Value* IntToFloat(const Instruction& inst, Value* source, ScalarType from, ScalarType to);
  Value* FloatToInt(const Instruction& inst, Value* x, ScalarType from, ScalarType to);
  Value* FloatToFloat(const Instruction& inst, Value* x, ScalarType from, ScalarType to);
  Exact ExactInt(Value* source, ScalarType from);
  Value* HalfToFloat(Value* half, ScalarType type);
  Value* RoundToHalf(Value* x, ScalarType type, Rounding rounding);
  Value* SaturateHalf(Value* half, ScalarType type);
  void LiftCvtPacked(const Instruction& inst);
  void LiftCvtTf32(const Instruction& inst);
  void LiftCvtScale(const Instruction& inst);
  void LiftCvtPack(const Instruction& inst);
  Value* ClampTo(Value* value, unsigned bits, bool is_signed);
  Value* VideoPart(const Operand& operand, ScalarType type);
  Value* VideoValue(const Instruction& inst, Value* a, Value* b);
  llvm::CmpInst::Predicate ComparisonOf(const Instruction& inst, bool is_signed) const;

  // ------------------------------------------------------------------------------------------------- lift_warp,
  // lift_atomic …
  Value* SyncMembers(const Instruction& inst);
  Value* Sync(SyncOp op, std::uint16_t qualifiers, Value* members, llvm::ArrayRef<Value*> inputs);
  static AtomicType AtomicTypeOf(ScalarType type);
  AtomicOp AtomicOpOf(const Instruction& inst, ScalarType type) const;
  static AtomicFlush AtomicFlushOf(const Instruction& inst, AtomicOp op, ScalarType type);
  Value* Mbarrier(MbarrierOp op, Value* address, Value* operand, Value* second);
  Value* MbarrierAddress(const Operand& operand, StateSpace space);
  void LiftSmallCopy(const Instruction& inst);
  void LiftBulkCopy(const Instruction& inst);
  void LiftBulkStore(const Instruction& inst);
  void ReduceBytes(const Instruction& inst, Space to_space, Value* to, Space from_space, Value* from, Value* bytes);
  void MulticastCopy(Value* to, Space from_space, Value* from, Value* bytes, Value* barrier, Value* mask);
  template <typename Body>
  void ForOffsets(Value* end, std::uint64_t step, Body body);
  /// Calls body(place) for each CTA of the cluster that the mask names, where place(offset) is the same place in its
  /// shared window.
  template <typename Body>
  void ForMembers(Value* mask, Body body);
  void CompleteBytes(Value* barrier, Value* bytes);
  void LiftTryCancel(const Instruction& inst);
  std::vector<StateSpace> CopySpaces(const Instruction& inst) const;
  void LiftAsyncTail(const Instruction& inst, std::size_t values);
  void CopyMasked(Value* to, Value* from, Value* bytes, Value* mask);
  void CopyWithin(Value* to, Value* from, Value* bytes, Value* left, Value* right);
  void CopyBytes(Space to_space, Value* to, Space from_space, Value* from, Value* bytes, unsigned step);
  void LiftTensorCopy(const Instruction& inst);
  Value* TensorCopy(const TensorCopyImm& imm, llvm::ArrayRef<Value*> coordinates, Value* map, Value* shared);
  void RecordTensorCopy(const TensorCopyImm& imm, llvm::ArrayRef<Value*> coordinates, Value* map, Value* shared,
                        Value* bytes);
  void LiftClusterBarrier(const Instruction& inst);
  Value* ReadSpecialComponent(std::string_view text, std::size_t component);

  // --------------------------------------------------------------------------------------------------------
  // lift_texture.cpp
  Value* ImageHandle(const Operand& operand);
  void ReadCoordinates(const Operand& operand, bool layered, unsigned count, ScalarType type,
                       llvm::SmallVectorImpl<Value*>& out);
  void ReadTextureOperands(TextureImm& imm, ScalarType type, std::size_t& next, llvm::SmallVectorImpl<Value*>& inputs);
  void WriteTexels(const Operand& destination, Value* texels, ScalarType type);
  void RecordImage(Helper locate, AccessKind kind, std::size_t bytes, llvm::ArrayRef<Value*> inputs, std::uint64_t imm);
  SurfaceImm SurfaceImmOf(const Instruction& inst, ScalarType type, std::size_t count) const;
  void ReadSurfaceOperands(const Operand& operand, const SurfaceImm& imm, llvm::SmallVectorImpl<Value*>& inputs);

  // ---------------------------------------------------------------------------------------------------------
  // lift_tensor.cpp
  MmaImm MmaImmOf(const Instruction& inst) const;
  GroupMmaImm GroupMmaImmOf(const Instruction& inst) const;
  MatrixRowsImm MatrixRowsImmOf(const Instruction& inst, Space space) const;
  void ReadFragment(const Operand& operand, unsigned count, bool wide, llvm::SmallVectorImpl<Value*>& out);
  void WriteFragment(const Operand& operand, Value* result, unsigned count, bool wide);
  Value* HostAddress(const Place& place);
  void RecordMatrix(const MatrixMemoryImm& imm, const Place& place, Value* stride, AccessKind kind);
  void RecordRows(const MatrixRowsImm& imm, const Place& place, AccessKind kind);

  struct Call {
    const Operand* callee = nullptr;
    const std::vector<Operand>* returns = nullptr;
    const std::vector<Operand>* args = nullptr;
    const ptx::LabelDirective* prototype = nullptr;
  };
  Call ParseCall(const Instruction& inst) const;
  void EmitCall(const Call& call, const std::deque<ptx::Variable>& returns, const std::deque<ptx::Variable>& params,
                llvm::Function* direct, Value* indirect);
  bool LiftSystemCall(const Call& call, std::string_view name);
  void LiftDeviceCall(const Call& call, std::uint64_t imm, unsigned bits, std::string_view params);
  Value* ReadArgument(const Operand& operand, const ptx::Variable& formal);
  void WriteReturn(const Operand& operand, Value* value, ScalarType type);

  const Operand& Op(std::size_t n) const;
  std::size_t OpCount() const { return inst_->operands.size(); }

  ModuleLifter& module_;
  const ptx::Function& function_;
  llvm::Function* ir_;
  SpmdBuilder b_;
  FloatEmitter emit_;
  FloatLanes lanes_;
  const Instruction* inst_ = nullptr;  ///< being lifted
  Value* guard_ = nullptr;             ///< i1 under which register writes happen, null: always
  bool terminated_ = false;            ///< the current block has its terminator

  std::vector<Item> items_;
  std::uint32_t next_number_ = 0;
  std::unordered_map<const ptx::Label*, std::size_t> label_index_;
  std::unordered_map<const ptx::Label*, llvm::BasicBlock*> label_blocks_;
  std::unordered_set<const ptx::Label*> lifted_labels_;
  std::vector<const ptx::Label*> pending_labels_;

  llvm::Instruction* entry_end_ = nullptr;  ///< allocas and their first stores go before it
  std::map<std::tuple<const ptx::Variable*, std::uint32_t, std::uint32_t>, llvm::AllocaInst*> registers_;
  llvm::AllocaInst* carry_ = nullptr;

  // Parameters: of the kernel (offset in the parameter block), scalars in an alloca, all others in local memory.
  std::unordered_map<const ptx::Variable*, std::uint32_t> kernel_params_;
  std::unordered_map<const ptx::Variable*, llvm::AllocaInst*> scalar_params_;
  std::unordered_map<const ptx::Variable*, Value*> memory_params_;
  std::unordered_set<const ptx::Variable*> addressed_params_;
  std::uint32_t kernel_param_copy_ = ~0u;  ///< frame offset of the copy that cvta.param needs

  LocalLayout local_;
  std::uint32_t frame_bytes_ = 0;
  Value* frame_base_ = nullptr;              ///< i64
  llvm::AllocaInst* dynamic_top_ = nullptr;  ///< end of the frame including alloca
};

#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, meaning) \
  template <>                                                                  \
  void FunctionLifter::Lift<semantic::meaning>(const Instruction& inst);
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE

}  // namespace gridloom::exec
