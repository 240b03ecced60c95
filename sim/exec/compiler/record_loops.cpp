#include "sim/exec/compiler/record_loops.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>

#include "sim/exec/compiler/loop_pass.h"

namespace gridloom::exec {
namespace {

using llvm::CallInst;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

struct Slot {
  const SCEV *start, *step;
  Value* value;  ///< of start, where there is one; else it is computed
  std::uint64_t header;
};

class LoopRecords : LoopPass {
 public:
  LoopRecords(SpmdModule& spmd, llvm::Function& function) : LoopPass(spmd, function, "record") {}

  void Run() {
    for (Loop* loop : loops_.getLoopsInPreorder()) Place(*loop);
  }
  void AddConstants(llvm::Function& function);

 private:
  void Place(Loop& loop);
  std::vector<CallInst*> RecordsOf(const Loop& loop) const;
  bool FindSlot(const Loop& loop, CallInst& record, std::vector<Slot>& slots, RecordInLoop& place);
  Value* StartOf(const Loop& loop, Value* root) const;
  bool CanExpand(const SCEV* expression, const llvm::Instruction* at) const;
};

bool IsRecordOfAccess(const MarkerInfo* info) {
  return info && info->kind == MarkerKind::kRecord && RecordHeader::Unpack(info->imm).kind != RecordKind::kBlock;
}

/// The records in the loop's own blocks, not in those of loops in it.
std::vector<CallInst*> LoopRecords::RecordsOf(const Loop& loop) const {
  std::vector<CallInst*> records;
  for (llvm::BasicBlock* block : loop.blocks()) {
    if (loops_.getLoopFor(block) != &loop) continue;
    for (llvm::Instruction& instruction : *block) {
      if (IsRecordOfAccess(MarkerOf(instruction))) records.push_back(llvm::cast<CallInst>(&instruction));
    }
  }
  return records;
}

/// An address as a value and a constant that is added to it.
std::pair<Value*, llvm::APInt> SplitAddress(Value* address) {
  llvm::APInt add(64, 0);
  for (;;) {
    Value* more = nullptr;
    const llvm::APInt* constant = nullptr;
    const bool adds =
        llvm::isa<llvm::Instruction>(address) &&
        llvm::PatternMatch::match(address, llvm::PatternMatch::m_AddLike(llvm::PatternMatch::m_Value(more),
                                                                         llvm::PatternMatch::m_APInt(constant)));
    if (!adds || llvm::isa<llvm::Constant>(more)) return {address, add};
    add += *constant;
    address = more;
  }
}

/// The value of `root` in the first round, if there is one before the loop.
Value* LoopRecords::StartOf(const Loop& loop, Value* root) const {
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(root); phi && phi->getParent() == loop.getHeader())
    return phi->getIncomingValueForBlock(loop.getLoopPreheader());
  const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(root);
  return !instruction || dominators_.dominates(instruction, loop.getLoopPreheader()->getTerminator()) ? root : nullptr;
}

/// What takes part in a loop around would become a phi more there.
bool LoopRecords::CanExpand(const SCEV* expression, const llvm::Instruction* at) const {
  const auto goes_round = [](const SCEV* part) { return llvm::isa<llvm::SCEVAddRecExpr>(part); };
  return expression->getExpressionSize() <= kMostTerms && !llvm::SCEVExprContains(expression, goes_round) &&
         expander_.isSafeToExpandAt(expression, at);
}

/// False when the address does not go on by one step a round.
bool LoopRecords::FindSlot(const Loop& loop, CallInst& record, std::vector<Slot>& slots, RecordInLoop& place) {
  const auto [root, add] = SplitAddress(record.getArgOperand(0));
  const SCEV* const address = evolution_.getSCEV(root);
  const SCEV *start = address, *step = evolution_.getZero(address->getType());
  if (!evolution_.isLoopInvariant(address, &loop)) {
    const auto* const going_on = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
    if (!going_on || going_on->getLoop() != &loop || !going_on->isAffine()) return false;
    start = going_on->getStart();
    step = going_on->getStepRecurrence(evolution_);
  }
  const std::uint64_t header = MarkerOf(record)->imm;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (slot.step != step || RecordHeader::Unpack(slot.header).space != RecordHeader::Unpack(header).space) continue;
    const auto* const distance = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(start, slot.start));
    if (!distance) continue;
    place.slot = static_cast<std::uint32_t>(i);
    place.add = (distance->getAPInt() + add).getZExtValue();
    return true;
  }
  const llvm::Instruction* const at = loop.getLoopPreheader()->getTerminator();
  Value* const value = StartOf(loop, root);
  if ((!value && !CanExpand(start, at)) || !CanExpand(step, at)) return false;
  place.slot = static_cast<std::uint32_t>(slots.size());
  place.add = add.getZExtValue();
  slots.push_back({start, step, value, header});
  return true;
}

void LoopRecords::Place(Loop& loop) {
  if (!loop.getLoopPreheader() || !loop.getLoopLatch()) return;
  RecordLoopTable& table = spmd_.record_loops;
  const auto number = static_cast<std::uint32_t>(table.loops.size());
  std::vector<Slot> slots;
  for (CallInst* record : RecordsOf(loop)) {
    RecordInLoop place{.loop = number};
    if (FindSlot(loop, *record, slots, place)) table.accesses[record] = place;
  }
  llvm::Instruction* const at = loop.getLoopPreheader()->getTerminator();
  RecordLoop made;
  made.header = loop.getHeader();
  llvm::SmallVector<Value*, 8> operands;
  llvm::SmallVector<llvm::Type*, 8> types;
  for (const Slot& slot : slots) {
    operands.push_back(slot.value ? slot.value : expander_.expandCodeFor(slot.start, slot.start->getType(), at));
    operands.push_back(expander_.expandCodeFor(slot.step, slot.step->getType(), at));
    types.append(2, operands.back()->getType());
    made.slots.push_back(slot.header);
  }
  llvm::IRBuilder<> b(at);
  made.marker =
      b.CreateCall(spmd_.Marker({.kind = MarkerKind::kRecordLoop, .imm = number}, b.getVoidTy(), types), operands);
  table.by_header[made.header] = number;
  table.loops.push_back(std::move(made));
}

/// The address of each record as a value and a constant that is added where the record is.
void LoopRecords::AddConstants(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (!IsRecordOfAccess(MarkerOf(instruction))) continue;
    auto& record = llvm::cast<CallInst>(instruction);
    const auto [root, add] = SplitAddress(record.getArgOperand(0));
    if (root == record.getArgOperand(0)) continue;
    record.setArgOperand(0, llvm::BinaryOperator::CreateAdd(root, llvm::ConstantInt::get(root->getType(), add), "",
                                                            record.getIterator()));
  }
}

}  // namespace

void PlaceRecordLoops(SpmdModule& spmd) {
  for (llvm::Function& function : spmd.ir()) {
    if (function.isDeclaration()) continue;
    LoopRecords records(spmd, function);
    records.Run();
    records.AddConstants(function);
  }
}

}  // namespace gridloom::exec
