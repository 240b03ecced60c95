#include "rewriter/analysis/walker.h"

#include <algorithm>
#include <unordered_set>

#include "rewriter/analysis/transfer.h"
#include "rewriter/ptx/defuse.h"

namespace gridloom::analysis {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::Trait;

Walker::Walker(WalkContext& context, const ptx::Function& function, ParamValues arguments, Place place)
    : context_(context),
      math_(context.math),
      function_(function),
      arguments_(std::move(arguments)),
      place_(std::move(place)),
      around_(place_.loop),
      cfg_(function),
      liveness_(cfg_),
      dominators_(cfg_.graph(), 0),
      post_dominators_(cfg_.graph(), 0, cfg_.GuardedLeaves()),
      nest_(cfg_.graph(), 0),
      position_(cfg_.blocks().size(), kNoNode),
      out_(cfg_.blocks().size()),
      current_(liveness_.registers().size()),
      branch_on_(cfg_.blocks().size()),
      passed_(cfg_.blocks().size()) {
  if (cfg_.unresolved_branch() != nullptr) Obstruct("a branch has no known target", cfg_.unresolved_branch()->loc);
}

ParamValues Walker::Run() {
  const auto deep =
      std::ranges::find_if(nest_.loops(), [](const Loop& loop) { return loop.depth > WalkContext::kMaxLoopDepth; });
  if (deep != nest_.loops().end()) {
    Obstruct("its loops are nested more than " + std::to_string(WalkContext::kMaxLoopDepth) + " deep", function_.loc);
    return {};
  }
  MakeLoops();
  const DepthFirst search(cfg_.graph(), 0);
  NodeId position = 0;
  for (auto it = search.postorder.rbegin(); it != search.postorder.rend(); ++it) position_[*it] = position++;
  for (auto it = search.postorder.rbegin(); it != search.postorder.rend(); ++it) {
    const BlockId block = *it;
    context_.instructions += cfg_.blocks()[block].count;
    if (context_.instructions > WalkContext::kMaxInstructions) {
      Obstruct("it is too large once its calls are inlined", function_.loc);
      break;
    }
    EnterBlock(block);
    for (const CfgInstruction& at : cfg_.Instructions(block)) WalkInstruction(at);
    if (cfg_.blocks()[block].end == BlockEnd::kReturn) WalkReturn();
    LeaveBlock(block);
  }
  CompletePhis();
  CollectConditions();
  ParamValues result;
  for (const ParamValues& values : returned_) {
    for (const auto& [place, value] : values) {
      const auto [entry, added] = result.try_emplace(place, value);
      if (!added) entry->second = math_.Choice({entry->second, value}, around_);
    }
  }
  // A place that some return leaves unset holds anything.
  std::erase_if(result, [&](const auto& entry) {
    return !std::ranges::all_of(returned_, [&](const ParamValues& values) { return values.contains(entry.first); });
  });
  return result;
}

void Walker::MakeLoops() {
  tests_.resize(nest_.loops().size());
  for (LoopId id = 0; id < nest_.loops().size(); ++id) {
    const Loop& loop = nest_.loops()[id];
    LoopInstance instance;
    instance.parent = loop.parent == kNoLoop ? around_ : instance_[loop.parent];
    instance.irreducible = loop.irreducible;
    const BasicBlock& header = cfg_.blocks()[loop.header];
    if (header.count > 0) instance.loc = cfg_.instructions()[header.first].instruction->loc;
    const auto number = static_cast<LoopInstanceId>(context_.result.loops.size());
    for (const bool tested : {false, true}) {
      Symbol counter;
      counter.kind = SymbolKind::kCounter;
      counter.bits = 64;
      counter.bounds = {0, INT64_MAX};
      counter.loop = counter.varies_in = number;
      counter.tested = tested;
      (tested ? instance.tested : instance.counter) = math_.pool().Add(counter);
    }
    instance_.push_back(number);
    context_.result.loops.push_back(std::move(instance));
    if (!loop.irreducible) FindTests(id);
  }
}

void Walker::FindTests(LoopId id) {
  const Loop& loop = nest_.loops()[id];
  for (const BlockId block : nest_.Nodes(id)) {
    const BasicBlock& end = cfg_.blocks()[block];
    if (nest_.LoopOf(block) != id || !end.guarded_end || end.next == kNoBlock || end.end == BlockEnd::kIndirect)
      continue;
    const bool in_every_iteration =
        std::ranges::all_of(loop.latches, [&](BlockId latch) { return dominators_.Dominates(block, latch); });
    if (!in_every_iteration) continue;
    const bool guard_negated = cfg_.instructions()[end.first + end.count - 1].instruction->guard->negated;
    const bool next_inside = nest_.Contains(id, end.next);
    const bool taken_inside = end.taken.size() == 1 && nest_.Contains(id, end.taken[0]);
    if (next_inside == taken_inside) continue;
    tests_[id].push_back({block, next_inside ? end.next : end.taken[0], taken_inside != guard_negated});
  }
}

void Walker::CollectConditions() {
  for (LoopId id = 0; id < nest_.loops().size(); ++id) {
    for (const Test& test : tests_[id]) {
      if (branch_on_[test.block] == nullptr) continue;
      for (const Predicate& condition : Implied(branch_on_[test.block]->predicate, test.truth)) {
        context_.result.loops[instance_[id]].conditions.push_back({test.block, condition});
      }
    }
  }
}

std::vector<std::pair<LoopInstanceId, BlockId>> Walker::TestedHere() const {
  std::vector<std::pair<LoopInstanceId, BlockId>> tested;
  for (LoopId id = nest_.LoopOf(block_); id != kNoLoop; id = nest_.loops()[id].parent) {
    for (const Test& test : tests_[id]) {
      const bool only_way = cfg_.graph().predecessors[test.goes_on].size() == 1;
      if (only_way && dominators_.Dominates(test.goes_on, block_)) tested.push_back({instance_[id], test.block});
    }
  }
  return tested;
}

// ---------------------------------------------------------------------------------------------------------------------
// Values of registers between blocks
// ---------------------------------------------------------------------------------------------------------------------

ValueRef Walker::Join(RegisterId id, const std::vector<BlockId>& from, const ChosenByRef& ways) {
  std::vector<ValueRef> values;
  for (const BlockId predecessor : from) {
    const auto live = liveness_.LiveOut(predecessor);
    const auto it = std::ranges::lower_bound(live, id);
    if (it == live.end() || *it != id) continue;
    const ValueRef& value = out_[predecessor][static_cast<std::size_t>(it - live.begin())];
    if (value != nullptr) values.push_back(value);  // a register that was never written holds anything
  }
  if (values.empty()) return nullptr;
  const bool of_all = values.size() == from.size();
  return math_.Choice(std::move(values), loop_, of_all ? ways : nullptr);
}

/// The blocks that lead into a loop. Those that do not lead to its header, as in a loop with several heads, bring
/// values there, too. They all stand before the header in reverse postorder: the search met the header first of all
/// blocks of the loop.
std::vector<BlockId> Walker::Entries(LoopId loop) const {
  std::vector<BlockId> entries;
  for (const BlockId block : nest_.Nodes(loop)) {
    for (const BlockId predecessor : cfg_.graph().predecessors[block]) {
      if (position_[predecessor] != kNoNode && !nest_.Contains(loop, predecessor)) entries.push_back(predecessor);
    }
  }
  return entries;
}

void Walker::EnterBlock(BlockId block) {
  block_ = block;
  FindPassed(block);
  slots_.clear();
  const LoopId loop = nest_.LoopOf(block);
  loop_ = loop == kNoLoop ? around_ : instance_[loop];
  for (const RegisterId id : touched_) current_[id] = nullptr;
  touched_.clear();
  std::vector<BlockId> from;
  for (const BlockId predecessor : cfg_.graph().predecessors[block]) {
    if (position_[predecessor] < position_[block]) from.push_back(predecessor);
  }
  std::unordered_set<RegisterId> written;
  const bool is_header = loop != kNoLoop && nest_.loops()[loop].header == block;
  if (is_header) {
    for (const BlockId inside : nest_.Nodes(loop)) {
      for (const CfgInstruction& at : cfg_.Instructions(inside)) {
        VisitDefs(*at.instruction, [&](const Operand& operand) {
          if (operand.variable != nullptr) written.insert(liveness_.registers().Find(*operand.variable, operand.index));
        });
      }
    }
  }
  if (is_header) {
    context_.result.loops[loop_].conditions_at_entry = passed_[block].conditions;
    context_.result.loops[loop_].entered = passed_[block].guards;
  }
  // Values that come into a loop were chosen outside of it.
  const std::vector<BlockId> entries = is_header && nest_.loops()[loop].irreducible ? Entries(loop) : from;
  const LoopInstanceId inside = loop_;
  if (is_header) loop_ = context_.result.loops[inside].parent;
  const ChosenByRef ways = WaysInto(block, from);
  for (const RegisterId id : liveness_.LiveIn(block)) {
    const bool from_all = entries != from && !written.contains(id);
    ValueRef value = from_all ? Join(id, entries, nullptr) : Join(id, from, ways);
    if (value == nullptr) continue;
    if (written.contains(id) && !value->IsData()) {
      Symbol phi;
      phi.kind = SymbolKind::kPhi;
      phi.bits = value->bits;
      phi.bounds = RangeOfType(phi.bits, true);
      phi.loop = phi.varies_in = inside;
      phi.operands.push_back(value);
      const SymbolId symbol = math_.pool().Add(std::move(phi));
      phis_.push_back({symbol, block, id});
      value = Number(Polynomial::Of(symbol), value->bits);
    }
    current_[id] = value;
    touched_.push_back(id);
  }
  loop_ = inside;
}

void Walker::LeaveBlock(BlockId block) {
  const BasicBlock& end = cfg_.blocks()[block];
  if (end.guarded_end) {
    VisitGuard(*cfg_.instructions()[end.first + end.count - 1].instruction,
               [&](const ptx::Variable& variable, std::uint32_t index) {
                 const ValueRef& value = current_[liveness_.registers().Find(variable, index)];
                 branch_on_[block] = value;
               });
  }
  for (const RegisterId id : liveness_.LiveOut(block)) out_[block].push_back(current_[id]);
}

void Walker::CompletePhis() {
  for (const OpenPhi& phi : phis_) {
    std::vector<ValueRef> updates;
    for (const BlockId predecessor : cfg_.graph().predecessors[phi.header]) {
      if (position_[predecessor] == kNoNode || position_[predecessor] < position_[phi.header]) continue;
      const auto live = liveness_.LiveOut(predecessor);
      const auto it = std::ranges::lower_bound(live, phi.id);
      if (it == live.end() || *it != phi.id || out_[predecessor].empty()) continue;
      const ValueRef& value = out_[predecessor][static_cast<std::size_t>(it - live.begin())];
      if (value != nullptr) updates.push_back(value);
    }
    auto& operands = math_.pool().at(phi.symbol).operands;
    operands.insert(operands.end(), updates.begin(), updates.end());
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Operands
// ---------------------------------------------------------------------------------------------------------------------

unsigned Walker::BitsOf(const Operand& operand) const {
  if (operand.variable == nullptr) return 32;
  const auto type = operand.variable->type;
  return type == ptx::ScalarType::kPred ? 1 : ptx::BytesOf(type) * 8;
}

ValueRef Walker::SpecialValue(const Operand& operand) {
  const auto special = ptx::SpecialFromText(operand.text);
  const auto data = [&] { return math_.Data("depends on " + std::string(operand.text), operand.loc, 32); };
  if (!special) return data();
  using ptx::Special;
  Symbol symbol;
  symbol.special = special->special;
  symbol.component = special->component;
  symbol.uniform = true;
  symbol.kind = SymbolKind::kSpecial;
  const bool x = special->component == 'x', z = special->component == 'z';
  const std::size_t axis = x ? 0 : z ? 2 : 1;
  const auto block_limit = [&]() -> std::int64_t {
    std::uint64_t limit = 1024;
    if (const auto* most = context_.kernel.FindDirective("maxntid")) {
      std::uint64_t threads = 1;
      for (const std::uint64_t value : most->values)
        threads *= std::max<std::uint64_t>(1, std::min<std::uint64_t>(value, 1024));
      limit = std::min(limit, threads);
    }
    return static_cast<std::int64_t>(z ? std::min<std::uint64_t>(limit, 64) : limit);
  };
  const auto* required = context_.kernel.FindDirective("reqntid");
  const auto required_block = [&]() -> std::int64_t {
    return axis < required->values.size()
               ? static_cast<std::int64_t>(std::min<std::uint64_t>(required->values[axis], 1024))
               : 1;
  };
  if (special->component == 'w')
    return Number(Polynomial::Constant(special->special == Special::kNtid || special->special == Special::kNctaid), 32);
  if (special->special == Special::kWarpSz) return Number(Polynomial::Constant(32), 32);
  if (special->component == 0 && Info(special->special).components > 1) return data();
  switch (special->special) {
    case Special::kCtaid: symbol.bounds = {0, x ? INT32_MAX - 1 : 65534}; break;
    case Special::kNctaid: symbol.bounds = {1, x ? INT32_MAX : 65535}; break;
    case Special::kNtid:
      if (required != nullptr) return Number(Polynomial::Constant(required_block()), 32);
      symbol.bounds = {1, block_limit()};
      break;
    case Special::kTid:
      symbol.kind = SymbolKind::kThread;
      symbol.uniform = false;
      symbol.bounds = {0, (required != nullptr ? required_block() : block_limit()) - 1};
      break;
    case Special::kLaneid:
      symbol.kind = SymbolKind::kLane;
      symbol.uniform = false;
      symbol.bounds = {0, 31};
      break;
    default: return data();
  }
  return Number(Polynomial::Of(math_.pool().Share(std::move(symbol))), 32);
}

ValueRef Walker::SymbolValue(const Operand& operand) {
  if (operand.variable == nullptr) return math_.Data("depends on the address of a function", operand.loc, 64);
  Symbol symbol;
  symbol.variable = operand.variable;
  symbol.bits = 64;
  symbol.space = operand.variable->space;
  const bool counts = symbol.space == StateSpace::kGlobal || symbol.space == StateSpace::kConst;
  if (counts && !context_.variables.contains(operand.variable)) {
    return math_.Data(
        "depends on the address of " + std::string(operand.variable->name) + ", which is not one of the module",
        operand.loc, 64);
  }
  symbol.kind = counts ? SymbolKind::kAddress : SymbolKind::kElsewhere;
  symbol.uniform = counts;  // other addresses mean nothing outside of the kernel
  symbol.is_pointer = true;
  return Number(Polynomial::Of(math_.pool().Share(std::move(symbol))).Plus(Polynomial::Constant(operand.offset)), 64);
}

ValueRef Walker::ValueOf(const Operand& operand, unsigned bits) {
  switch (operand.kind) {
    case OperandKind::kRegister: {
      if (operand.variable == nullptr || operand.variable->vector != 1)
        return math_.Data("is kept in a vector register", operand.loc, bits);
      const RegisterId id = liveness_.registers().Find(*operand.variable, operand.index);
      ValueRef value = id == kNoRegister ? nullptr : current_[id];
      if (value == nullptr) value = math_.Any(BitsOf(operand), loop_);
      if (operand.selector.empty() && !operand.minus) return value;
      if (value->IsData()) return value;
      return operand.minus && operand.selector.empty()
                 ? Number(value->number.Times(-1), value->bits, value->assumptions)
                 : math_.Any(value->bits, loop_);
    }
    case OperandKind::kInt:
      return Number(Polynomial::Constant(static_cast<std::int64_t>(operand.int_literal.value)), bits);
    case OperandKind::kSpecial: return SpecialValue(operand);
    case OperandKind::kSymbol: return SymbolValue(operand);
    case OperandKind::kFloat: {
      // Only instructions that are kept whole read one.
      Symbol symbol;
      symbol.kind = SymbolKind::kOperation;
      symbol.uniform = true;
      symbol.bits = static_cast<std::uint8_t>(bits);
      return Number(Polynomial::Of(math_.pool().Add(std::move(symbol))), bits);
    }
    default: return math_.Any(bits, loop_);
  }
}

ValueRef Walker::AddressOf(const ptx::AddressOperand& address) {
  const ValueRef base = address.base.empty() ? Number({}, 64) : ValueOf(address.base[0], 64);
  if (base->IsData()) return base;
  const ValueRef wide = math_.Exact(base, false);
  return Number(wide->number.Plus(Polynomial::Constant(address.offset)), 64, wide->assumptions);
}

void Walker::Define(const Operand& operand, ValueRef value) {
  if (operand.kind != OperandKind::kRegister || operand.variable == nullptr) return;
  const RegisterId id = liveness_.registers().Find(*operand.variable, operand.index);
  if (id == kNoRegister) return;
  if (operand.element != 0 || !operand.selector.empty())
    value = math_.Data("is kept in a part of a register", operand.loc, BitsOf(operand));
  if (current_[id] == nullptr) touched_.push_back(id);
  current_[id] = value == nullptr ? nullptr : math_.Limited(std::move(value), loop_);
}

void Walker::DefineAll(const Instruction& instruction, const ValueRef& value) {
  bool first = true;
  VisitDefs(instruction, [&](const Operand& operand) {
    const RegisterId id =
        operand.variable == nullptr ? kNoRegister : liveness_.registers().Find(*operand.variable, operand.index);
    if (id == kNoRegister) return;
    const unsigned bits = BitsOf(operand);
    ValueRef mine = value;
    if (!value->IsData() && (!first || value->bits != bits)) mine = math_.Any(bits, loop_);
    first = false;
    const ValueRef old = current_[id];
    if (instruction.guard && old != nullptr) mine = math_.Choice({mine, old}, loop_, ChosenByGuard(instruction));
    Define(operand, mine);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Instructions
// ---------------------------------------------------------------------------------------------------------------------

void Walker::WalkInstruction(const CfgInstruction& at) {
  const Instruction& instruction = *at.instruction;
  WalkMemory(instruction);
  if (instruction.Has(Trait::kCalls)) return WalkCall(instruction);
  if (instruction.Has(Trait::kTyped) && !instruction.Has(Trait::kAtomic)) {
    return instruction.Has(Trait::kReads) ? WalkLoad(instruction) : WalkStoreParam(instruction);
  }
  unsigned bits = 0;
  VisitDefs(instruction, [&](const Operand& operand) {
    if (bits == 0) bits = BitsOf(operand);
  });
  if (bits == 0) return;
  if (!IsPure(instruction) && instruction.info().cls != ptx::OpClass::kAlu &&
      instruction.info().cls != ptx::OpClass::kFma) {
    const bool atomic = instruction.info().cls == ptx::OpClass::kAtomic;
    const std::string because = (atomic ? "is returned by " : "comes from ") + instruction.FullName();
    return DefineAll(instruction, math_.Data(because, instruction.loc, bits));
  }
  std::vector<ValueRef> operands;
  const ptx::Form* form = FormOf(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    if (!ptx::detail::UseOf(instruction, form, i).reads) continue;
    const ptx::OperandForm* operand_form = form == nullptr ? nullptr : form->At(i, instruction.operands.size());
    const auto type = operand_form == nullptr ? ptx::ScalarType::kNone : TypeOf(*operand_form, instruction);
    const unsigned operand_bits = type == ptx::ScalarType::kNone ? 64 : std::max(1u, ptx::BitsOf(type));
    const auto leaves = [&](const auto& self, const Operand& operand) -> void {
      if (operand.elements.empty()) operands.push_back(ValueOf(operand, std::min(operand_bits, 64u)));
      for (const Operand& element : operand.elements) self(self, element);
    };
    leaves(leaves, instruction.operands[i]);
  }
  if (instruction.opcode == Opcode::kCvta && operands.size() == 1 && !operands[0]->IsData()) {
    const auto pointer = operands[0]->number.AsSymbol();
    const bool global = instruction.space() == StateSpace::kGlobal;
    if (global && pointer) math_.pool().at(*pointer).is_pointer = true;
    const bool elsewhere = std::ranges::any_of(operands[0]->number.terms(), [&](const Term& term) {
      return term.monomial.degree() == 1 && math_.pool()[term.monomial.symbols[0]].kind == SymbolKind::kElsewhere;
    });
    if (!global && !elsewhere && instruction.space() != StateSpace::kConst) {
      Symbol symbol;
      symbol.kind = SymbolKind::kElsewhere;
      symbol.bits = 64;
      symbol.space = instruction.space();
      return DefineAll(instruction, Number(Polynomial::Of(math_.pool().Share(std::move(symbol))), bits));
    }
    return DefineAll(instruction, Number(operands[0]->number, bits, operands[0]->assumptions));
  }
  DefineAll(instruction, math_.Apply(instruction, operands, bits, loop_));
}

}  // namespace gridloom::analysis
