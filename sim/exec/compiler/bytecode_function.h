// One function on its way from SPMD form to bytecode. bytecode.cpp: blocks, edges, functions; bytecode_plain.cpp: plain
// computation; bytecode_markers.cpp: what touches the machine.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/exec/compiler/block_order.h"
#include "sim/exec/compiler/bytecode.h"
#include "sim/exec/compiler/bytecode_registers.h"
#include "sim/exec/compiler/shape.h"
#include "sim/exec/compiler/thread_ends.h"

namespace gridloom::exec {

/// What the functions of a kernel share.
struct ByteModule {
  SpmdModule& spmd;
  const ThreadEnds& thread_ends;
  const bool memcheck;
  std::uint32_t check_sites = 1;  ///< memcheck: the next number of a global access
  llvm::DenseMap<const llvm::Function*, std::uint32_t> numbers{};
  std::map<std::string, std::uint32_t> signatures{};
  std::unordered_map<llvm::Type*, ByteTypes> types{};  ///< of TypesOf: references stay
  std::string error{};

  const MarkerInfo* MarkerOf(const llvm::Instruction& instruction) const;
  const ByteTypes& TypesOf(llvm::Type* type);
  std::uint32_t LineOf(const llvm::CallInst& call);
  /// The number of an access that memcheck looks at by its bounds; 0: it is none.
  std::uint32_t CheckSite(Space space) {
    const bool global = space == Space::kGlobal || space == Space::kGeneric;
    return memcheck && global ? check_sites++ : 0;
  }
  std::uint32_t Signature(const ByteTypes& results, const ByteTypes& parameters);
  void Refuse(const std::string& what) {
    if (error.empty()) error = what;
  }
};

class ByteFunctionMaker {
 public:
  ByteFunctionMaker(ByteModule& module, llvm::Function& source, const CompileOptions& options, ByteFunction& out);
  bool has_waiting_loops() const { return shapes_->has_waiting_loops(); }
  void Make();

 private:
  using Value = llvm::Value;

  // --- bytecode.cpp ---
  std::optional<unsigned> LastBlockOf(const llvm::Instruction& value, unsigned home);
  void PlaceKept();
  void MakeBlock(unsigned index);
  void MakeTerminator(ByteBlock& block, llvm::Instruction& terminator);
  ByteEdge Edge(const llvm::BasicBlock& from, const llvm::BasicBlock& to);
  void GiveBackAfter(const llvm::Instruction& instruction);

  // --- registers ---
  /// The registers that hold `value`, constants among them.
  Registers Read(const Value* value);
  std::uint32_t ReadOne(const Value* value) { return Read(value)[0]; }
  /// Registers to write the results of `instruction` to. Finish copies them to where other blocks find them.
  Registers& Define(const llvm::Instruction& instruction);
  void Finish(const llvm::Instruction& instruction);
  std::uint32_t List(llvm::ArrayRef<std::uint32_t> registers);
  ByteStep& Add(ByteStep step);

  // --- bytecode_plain.cpp ---
  void MakePlain(llvm::Instruction& instruction);
  void MakeCompare(llvm::CmpInst& compare);
  void MakeCast(llvm::CastInst& cast);
  void MakeBitCast(llvm::CastInst& cast);
  void MakeIntrinsic(llvm::IntrinsicInst& call);
  void MakeElement(llvm::Instruction& instruction);
  void Elementwise(const llvm::Instruction& instruction, ByteCode code, llvm::ArrayRef<const Value*> operands,
                   std::uint64_t imm = 0);

  // --- bytecode_markers.cpp ---
  void MakeMarker(llvm::CallInst& call, const MarkerInfo& info);
  void MakeSpecial(llvm::CallInst& call, Special special);
  void MakeAccess(llvm::CallInst& call, const MarkerInfo& info);
  void MakeHelper(llvm::CallInst& call, const MarkerInfo& info);
  void MakeCall(llvm::CallInst& call);
  void MakeIndirectCall(llvm::CallInst& call);
  void MakeMet(llvm::CallInst& call, const MarkerInfo& info);
  void MakeAtomic(llvm::CallInst& call, const MarkerInfo& info);
  // memcheck: machine code does the same in warp_window.cpp, warp_memory.cpp, warp_atomics.cpp and warp_markers.cpp.
  void CheckOrder(std::uint64_t among);

  ByteModule& module_;
  llvm::Function& source_;
  ByteFunction& out_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  BlockOrder order_;
  std::unique_ptr<ShapeAnalysis> shapes_;
  FrameLayout frame_;
  ConstantPool constants_;
  llvm::DenseMap<const Value*, Registers> registers_;  // where values are found
  llvm::DenseMap<const Value*, Registers> written_;    // of the current instruction, before Finish
  llvm::DenseSet<const llvm::Instruction*> across_;
  llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<const llvm::Instruction*, 2>> ends_;
  std::vector<llvm::SmallVector<unsigned, 2>> before_;  // by number of a block: those that go on there
  std::vector<unsigned> visited_;                       // by number of a block: the last visit_ that came by
  unsigned visit_ = 0;
  llvm::DenseSet<const llvm::BasicBlock*> met_blocks_;
  bool met_ended_ = false;
};

}  // namespace gridloom::exec
