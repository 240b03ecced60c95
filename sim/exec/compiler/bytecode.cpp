#include "sim/exec/compiler/bytecode.h"

#include <llvm/IR/CFG.h>
#include <llvm/IR/InstIterator.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "sim/exec/compiler/bytecode_function.h"
#include "sim/exec/compiler/give_way.h"
#include "sim/exec/compiler/meetings.h"
#include "sim/exec/compiler/vectorizer.h"

namespace gridloom::exec {

const MarkerInfo* ByteModule::MarkerOf(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
}

std::uint32_t ByteModule::Signature(const ByteTypes& results, const ByteTypes& parameters) {
  std::string key;
  for (const ByteType type : results) key += static_cast<char>('a' + static_cast<int>(type));
  key += '(';
  for (const ByteType type : parameters) key += static_cast<char>('a' + static_cast<int>(type));
  return signatures.try_emplace(key, static_cast<std::uint32_t>(signatures.size())).first->second;
}

ByteFunctionMaker::ByteFunctionMaker(ByteModule& module, llvm::Function& source, const CompileOptions& options,
                                     ByteFunction& out)
    : module_(module),
      source_(source),
      out_(out),
      dominators_(source),
      loops_(dominators_),
      order_(ComputeBlockOrder(source, loops_)),
      shapes_(std::make_unique<ShapeAnalysis>(source, module.spmd, loops_, order_, options)),
      constants_(out.constants) {}

// ---------------------------------------------------------------------------------------------------------------------
// Registers
// ---------------------------------------------------------------------------------------------------------------------

const ByteTypes& ByteModule::TypesOf(llvm::Type* type) {
  auto [it, inserted] = types.try_emplace(type);
  if (inserted && !AppendByteTypes(type, it->second)) {
    std::string name;
    llvm::raw_string_ostream(name) << *type;
    Refuse("values of type " + name);
    it->second.assign(1, ByteType::kI32);
  }
  return it->second;
}

Registers ByteFunctionMaker::Read(const Value* value) {
  if (const auto it = registers_.find(value); it != registers_.end()) return it->second;
  const ByteTypes types = module_.TypesOf(value->getType());
  Registers found;
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (!constant) {
    module_.Refuse("a value that nothing defines");
    return Registers(std::max<std::size_t>(types.size(), 1), constants_.Place(ByteType::kI32, llvm::APInt(32, 0)));
  }
  if (types.size() > 1 || constant->getType()->isAggregateType() || constant->getType()->isVectorTy()) {
    for (unsigned i = 0; const llvm::Constant* element = constant->getAggregateElement(i); ++i) {
      const Registers part = Read(element);
      found.append(part.begin(), part.end());
      if (found.size() >= types.size()) break;
    }
    if (found.size() != types.size()) module_.Refuse("a constant of an unknown form");
    return found;
  }
  if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(constant))
    return {constants_.Place(types[0], number->getValue())};
  if (const auto* number = llvm::dyn_cast<llvm::ConstantFP>(constant))
    return {constants_.Place(types[0], number->getValueAPF().bitcastToAPInt())};
  if (!llvm::isa<llvm::UndefValue>(constant) && !constant->isNullValue()) module_.Refuse("a constant expression");
  return {constants_.Place(types[0], llvm::APInt(64, 0))};
}

Registers& ByteFunctionMaker::Define(const llvm::Instruction& instruction) {
  Registers& written = written_[&instruction];
  written.clear();
  for (const ByteType type : module_.TypesOf(instruction.getType())) written.push_back(frame_.Take(type));
  return written;
}

void ByteFunctionMaker::Finish(const llvm::Instruction& instruction) {
  const auto it = written_.find(&instruction);
  if (it == written_.end()) return;
  const Registers written = it->second;
  written_.erase(it);
  if (!across_.contains(&instruction)) {
    registers_[&instruction] = written;
    return;
  }
  const ByteTypes& types = module_.TypesOf(instruction.getType());
  const Registers kept = registers_[&instruction];
  for (std::size_t i = 0; i < types.size(); ++i) {
    Add({.code = ByteCode::kMerge, .type = types[i], .dst = kept[i], .a = written[i]});
    frame_.GiveBack(written[i], types[i]);
  }
}

std::uint32_t ByteFunctionMaker::List(llvm::ArrayRef<std::uint32_t> registers) {
  const auto first = static_cast<std::uint32_t>(out_.lists.size());
  out_.lists.insert(out_.lists.end(), registers.begin(), registers.end());
  return first;
}

ByteStep& ByteFunctionMaker::Add(ByteStep step) {
  out_.steps.push_back(step);
  return out_.steps.back();
}

/// Values whose last use in this block `instruction` is.
void ByteFunctionMaker::GiveBackAfter(const llvm::Instruction& instruction) {
  const auto it = ends_.find(&instruction);
  if (it == ends_.end()) return;
  for (const llvm::Instruction* value : it->second) {
    const auto found = registers_.find(value);
    if (found == registers_.end()) continue;
    const ByteTypes& types = module_.TypesOf(value->getType());
    for (std::size_t i = 0; i < types.size(); ++i) frame_.GiveBack(found->second[i], types[i]);
    registers_.erase(found);
  }
}

/// The last block, in their order, that `value` of block `home` lives in; none if it is used in its own block only. A
/// block stands after those that dominate it, so none is before `home`.
std::optional<unsigned> ByteFunctionMaker::LastBlockOf(const llvm::Instruction& value, unsigned home) {
  std::vector<unsigned> reading;
  for (const llvm::Use& use : value.uses()) {
    const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
    const auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
    const llvm::BasicBlock* const block = phi ? phi->getIncomingBlock(use) : user->getParent();
    if (block != value.getParent() && dominators_.isReachableFromEntry(block)) reading.push_back(order_.IndexOf(block));
  }
  if (reading.empty() && !llvm::isa<llvm::PHINode>(value)) return std::nullopt;
  unsigned last = home;
  ++visit_;
  while (!reading.empty()) {
    const unsigned block = reading.back();
    reading.pop_back();
    if (std::exchange(visited_[block], visit_) == visit_) continue;
    last = std::max(last, block);
    for (const unsigned before : before_[block])
      if (before != home) reading.push_back(before);
  }
  return last;
}

/// Gives what lives across blocks its registers. Values share one where no thread needs both: lanes that are elsewhere
/// keep theirs, as kMerge writes for the lanes that are here only. What lives in one block is written for all lanes,
/// and has registers of its own.
void ByteFunctionMaker::PlaceKept() {
  before_.resize(order_.blocks.size());
  visited_.resize(order_.blocks.size());
  for (unsigned index = 0; index < order_.blocks.size(); ++index)
    for (const llvm::BasicBlock* after : llvm::successors(order_.blocks[index]))
      before_[order_.IndexOf(after)].push_back(index);
  using End = std::pair<unsigned, std::size_t>;  // a block, and the number of a value: the same registers in each run
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<const llvm::Instruction*> values;
  for (unsigned index = 0; index < order_.blocks.size(); ++index) {
    for (; !ends.empty() && ends.top().first < index; ends.pop()) {
      const llvm::Instruction* const value = values[ends.top().second];
      const ByteTypes& types = module_.TypesOf(value->getType());
      const Registers& kept = registers_[value];
      for (std::size_t i = 0; i < types.size(); ++i) frame_.GiveBack(kept[i], types[i]);
    }
    for (const llvm::Instruction& instruction : *order_.blocks[index]) {
      if (instruction.getType()->isVoidTy()) continue;
      const std::optional<unsigned> last = LastBlockOf(instruction, index);
      if (!last) continue;
      across_.insert(&instruction);
      Registers& kept = registers_[&instruction];
      for (const ByteType type : module_.TypesOf(instruction.getType())) kept.push_back(frame_.Take(type));
      ends.emplace(*last, values.size());
      values.push_back(&instruction);
    }
  }
  frame_.Close();
}

// ---------------------------------------------------------------------------------------------------------------------
// Blocks and edges
// ---------------------------------------------------------------------------------------------------------------------

void ByteFunctionMaker::Make() {
  PlaceKept();
  for (const llvm::Argument& argument : source_.args()) {
    for (const ByteType type : module_.TypesOf(argument.getType())) {
      registers_[&argument].push_back(frame_.Take(type));
      out_.parameter_types.push_back(type);
    }
    out_.parameters.insert(out_.parameters.end(), registers_[&argument].begin(), registers_[&argument].end());
  }
  for (const ByteType type : module_.TypesOf(source_.getReturnType())) {
    out_.results.push_back(frame_.Take(type));
    out_.result_types.push_back(type);
  }
  for (const llvm::BasicBlock* block : order_.blocks) {
    const auto* last = llvm::dyn_cast_or_null<llvm::CallInst>(block->getTerminator()->getPrevNode());
    const MarkerInfo* info = last ? module_.MarkerOf(*last) : nullptr;
    if (info && info->kind == MarkerKind::kMeet) {
      met_blocks_.insert(block->getSingleSuccessor());
      out_.has_meetings = true;
    }
  }
  out_.blocks.resize(order_.blocks.size());
  for (unsigned index = 0; index < order_.blocks.size() && module_.error.empty(); ++index) MakeBlock(index);
  out_.frame_bytes = frame_.bytes();
}

void ByteFunctionMaker::MakeBlock(unsigned index) {
  llvm::BasicBlock& source = *order_.blocks[index];
  ends_.clear();
  for (const llvm::Instruction& instruction : source) {
    if (instruction.getType()->isVoidTy() || across_.contains(&instruction)) continue;
    const llvm::Instruction* last = &instruction;
    for (const llvm::User* user : instruction.users()) {
      const auto* use = llvm::cast<llvm::Instruction>(user);
      if (llvm::isa<llvm::PHINode>(use)) use = source.getTerminator();
      if (last->comesBefore(use)) last = use;
    }
    ends_[last].push_back(&instruction);
  }
  ByteBlock block;
  block.first = static_cast<std::uint32_t>(out_.steps.size());
  met_ended_ = true;
  if (met_blocks_.contains(&source)) {
    met_ended_ = llvm::none_of(source, [&](const llvm::Instruction& instruction) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      return info && info->kind == MarkerKind::kMet;
    });
    Add({.code = ByteCode::kBeginMet, .imm = met_ended_ ? 0u : 1u});
  }
  llvm::Instruction* const terminator = source.getTerminator();
  for (llvm::Instruction& instruction : source) {
    if (!module_.error.empty()) return;
    if (llvm::isa<llvm::PHINode>(instruction) || &instruction == terminator) continue;
    const MarkerInfo* info = module_.MarkerOf(instruction);
    if (info && info->kind == MarkerKind::kMeet) CheckOrder(kCheckOrderWarp);
    if (info && (info->kind == MarkerKind::kMeet || info->kind == MarkerKind::kBarrier)) continue;  // of the terminator
    if (info) MakeMarker(llvm::cast<llvm::CallInst>(instruction), *info);
    else MakePlain(instruction);
    Finish(instruction);
    GiveBackAfter(instruction);
  }
  MakeTerminator(block, *terminator);
  GiveBackAfter(*terminator);
  out_.blocks[index] = block;
}

void ByteFunctionMaker::MakeTerminator(ByteBlock& block, llvm::Instruction& terminator) {
  llvm::BasicBlock& source = *terminator.getParent();
  block.last = block.after_first = block.after_last = static_cast<std::uint32_t>(out_.steps.size());
  if (auto* ret = llvm::dyn_cast<llvm::ReturnInst>(&terminator)) {
    if (Value* value = ret->getReturnValue()) {
      const Registers from = Read(value);
      for (std::size_t i = 0; i < from.size(); ++i)
        Add({.code = ByteCode::kMerge, .type = out_.result_types[i], .dst = out_.results[i], .a = from[i]});
      block.last = static_cast<std::uint32_t>(out_.steps.size());
    }
    block.end = ByteBlock::End::kReturn;
    return;
  }
  if (llvm::isa<llvm::UnreachableInst>(terminator)) {
    block.end = ByteBlock::End::kEnded;
    return;
  }
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(&terminator);
  if (!branch) return module_.Refuse(std::string("control flow by ") + terminator.getOpcodeName());
  if (branch->isConditional() && branch->getSuccessor(0) != branch->getSuccessor(1)) {
    block.end = ByteBlock::End::kBranch;
    block.condition = ReadOne(branch->getCondition());
    for (unsigned i = 0; i < 2; ++i) block.edges[i] = Edge(source, *branch->getSuccessor(i));
    return;
  }
  block.end = ByteBlock::End::kJump;
  llvm::BasicBlock& to = *branch->getSuccessor(0);
  auto* call = llvm::dyn_cast_or_null<llvm::CallInst>(branch->getPrevNode());
  const MarkerInfo* info = call ? module_.MarkerOf(*call) : nullptr;
  if (info && info->kind == MarkerKind::kMeet) {
    block.end = ByteBlock::End::kMeet;
    block.imm = info->imm;
    Registers inputs;
    for (const llvm::Use& input : call->args()) inputs.push_back(ReadOne(input.get()));
    if (inputs.size() > ByteBlock::kMostMeetInputs) return module_.Refuse("a meeting of many inputs");
    block.list = List(inputs);
    block.count = static_cast<std::uint32_t>(inputs.size());
  } else if (info && info->kind == MarkerKind::kBarrier) {
    block.end = ByteBlock::End::kBarrier;
    block.imm = info->imm;
    block.line = module_.LineOf(*call);
    const std::uint32_t out = Define(*call)[0];
    block.list =
        List({out, ReadOne(call->getArgOperand(0)), ReadOne(call->getArgOperand(1)), ReadOne(call->getArgOperand(2))});
    block.after_first = static_cast<std::uint32_t>(out_.steps.size());
    Finish(*call);
    block.after_last = static_cast<std::uint32_t>(out_.steps.size());
    GiveBackAfter(*call);
  } else if (call && module_.thread_ends.MayEndIn(*call)) {
    block.end = ByteBlock::End::kDropEnded;
  }
  block.edges[0] = Edge(source, to);
  if (block.end == ByteBlock::End::kMeet) GiveBackAfter(*call);
  const unsigned here = order_.IndexOf(&source);
  block.waits = order_.IndexOf(&to) <= here && shapes_->Waits(loops_.getLoopFor(&to));
}

/// The parallel copy of what flows into the phis of `to`. Where a phi is read by another one, all go through registers
/// of their own.
ByteEdge ByteFunctionMaker::Edge(const llvm::BasicBlock& from, const llvm::BasicBlock& to) {
  ByteEdge edge{order_.IndexOf(&to), static_cast<std::uint32_t>(out_.steps.size()), 0};
  struct Copy {
    ByteType type;
    std::uint32_t dst, src;
  };
  llvm::SmallVector<Copy, 8> copies;
  llvm::DenseSet<std::uint32_t> written;
  bool crossing = false;
  for (const llvm::PHINode& phi : to.phis()) {
    const Registers source = Read(phi.getIncomingValueForBlock(&from)), target = Read(&phi);
    const ByteTypes& types = module_.TypesOf(phi.getType());
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (source[i] == target[i]) continue;
      crossing |= written.contains(source[i]);
      written.insert(target[i]);
      copies.push_back({types[i], target[i], source[i]});
    }
  }
  if (crossing) {
    for (Copy& copy : copies) {
      const std::uint32_t place = frame_.Take(copy.type);
      Add({.code = ByteCode::kMove, .type = copy.type, .dst = place, .a = copy.src});
      copy.src = place;
    }
  }
  for (const Copy& copy : copies) Add({.code = ByteCode::kMerge, .type = copy.type, .dst = copy.dst, .a = copy.src});
  if (crossing)
    for (const Copy& copy : copies) frame_.GiveBack(copy.src, copy.type);
  edge.last = static_cast<std::uint32_t>(out_.steps.size());
  return edge;
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels
// ---------------------------------------------------------------------------------------------------------------------

BytecodeResult MakeBytecode(SpmdModule& spmd, llvm::Function* kernel, const AddressTaken& address_taken,
                            const CompileOptions& options) {
  const ThreadEnds thread_ends(spmd, address_taken);
  ByteModule module{spmd, thread_ends, options.memcheck};
  std::vector<llvm::Function*> sources{kernel};
  for (llvm::Function* function : DeviceFunctions(spmd, kernel)) sources.push_back(function);
  BytecodeResult result;
  result.needs_fiber = HasBarriers(sources, spmd) || WaitsForChildren(sources, spmd);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    module.numbers[sources[i]] = static_cast<std::uint32_t>(i);
    if (HasBarriers(sources, spmd)) PlaceGiveWays(spmd, *sources[i], options);
    PlaceMeetings(spmd, *sources[i], options);
  }
  result.code.functions.resize(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ByteFunctionMaker maker(module, *sources[i], options, result.code.functions[i]);
    result.needs_fiber |= maker.has_waiting_loops();
    maker.Make();
    if (!module.error.empty()) {
      result.error = module.error;
      return result;
    }
  }
  for (const auto& [index, function] : address_taken) {
    const std::uint32_t number = module.numbers.lookup(function);
    const ByteFunction& made = result.code.functions[number];
    const std::uint32_t signature = module.Signature({made.result_types.begin(), made.result_types.end()},
                                                     {made.parameter_types.begin(), made.parameter_types.end()});
    result.code.pointers.push_back({(std::uint64_t{index} + 1) * 16, number, signature});
  }
  return result;
}

}  // namespace gridloom::exec
