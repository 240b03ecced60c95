#include "sim/hardware/pagoda/resident_code.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "rewriter/analysis/cfg.h"
#include "sim/exec/contract/layout.h"
#include "sim/trace/code_table.h"

namespace gridloom::hardware::resident {
namespace {

constexpr std::pair<std::string_view, Op> kOps[] = {
    {"mov", Op::kMove},
    {"cvta", Op::kMove},
    {"cvt", Op::kMove},
    {"add", Op::kAdd},
    {"sub", Op::kSubtract},
    {"mul", Op::kMultiply},
    {"mad", Op::kMultiplyAdd},
    {"div", Op::kDivide},
    {"min", Op::kMinimum},
    {"and", Op::kAnd},
    {"or", Op::kOr},
    {"xor", Op::kXor},
    {"not", Op::kNot},
    {"selp", Op::kSelect},
    {"bfe", Op::kExtractBits},
    {"shl", Op::kShiftLeft},
    {"shr", Op::kShiftRight},
    {"brev", Op::kReverse},
    {"clz", Op::kLeadingZeros},
    {"bfind", Op::kFindHighest},
    {"popc", Op::kCountOnes},
    {"setp", Op::kCompare},
    {"vote", Op::kBallot},
    {"ld", Op::kLoad},
    {"st", Op::kStore},
    {"atom", Op::kAtomicAdd},
    {"bra", Op::kBranch},
    {"call", Op::kCall},
    {"ret", Op::kReturn},
    {"nanosleep", Op::kSleep},
    {"bar", Op::kNothing},
    {"membar", Op::kNothing},
};

constexpr std::pair<ptx::Mod, Comparison> kComparisons[] = {
    {ptx::Mod::kEq, Comparison::kEqual},   {ptx::Mod::kNe, Comparison::kNotEqual},
    {ptx::Mod::kLt, Comparison::kLess},    {ptx::Mod::kLe, Comparison::kLessEqual},
    {ptx::Mod::kGt, Comparison::kGreater}, {ptx::Mod::kGe, Comparison::kGreaterEqual},
};

constexpr std::pair<std::string_view, Special> kSpecials[] = {
    {"%laneid", Special::kLane},   {"%tid.x", Special::kThread},           {"%ntid.x", Special::kThreads},
    {"%ctaid.x", Special::kBlock}, {"%lanemask_lt", Special::kLanesBelow},
};

class Compiler {
 public:
  Compiler(const ptx::Module& module, const ptx::Function& kernel, const std::string& called)
      : kernel_(kernel),
        called_(called),
        cfg_(kernel),
        table_(trace::BuildCodeTable(module, kernel)),
        shared_(exec::LayoutShared(module, kernel)) {
    const exec::InstructionNumbers numbers = exec::NumberInstructions(module, kernel);
    first_ = numbers.first.at(&kernel);
  }

  Result<ResidentCode> Run() {
    FindLabels();
    FindBlocks();
    for (std::uint32_t i = 0; i < count(); ++i) {
      auto step = Decode(*cfg_.instructions()[i].instruction);
      if (!step.ok()) return Error{std::string(kernel_.name) + ": " + step.error().message};
      out_.steps.push_back(*step);
    }
    out_.code = std::move(table_.code);
    out_.code.blocks = std::move(code_blocks_);
    out_.code.meanings = {};  // of the blocks that were there; this code is executed as it is
    out_.shared_bytes = shared_.dynamic_offset;
    return std::move(out_);
  }

  Numbers BlocksOfLabels() const {
    Numbers numbers;
    for (const auto& [label, at] : labels_) numbers.emplace(label->name, block_at_.at(at));
    return numbers;
  }

 private:
  std::uint32_t count() const { return static_cast<std::uint32_t>(cfg_.instructions().size()); }
  const ptx::Instruction& At(std::uint32_t i) const { return *cfg_.instructions()[i].instruction; }
  static bool IsMeeting(const ptx::Instruction& instruction) {
    return instruction.name == "bar" || instruction.name == "vote";
  }
  /// What follows happens when its stores are accepted, the time has passed, the others have come, or an answer from L2
  /// has.
  static bool Delays(const ptx::Instruction& instruction) {
    const bool block = instruction.name == "bar" && !instruction.Has(ptx::Mod::kWarp);
    const bool asks = instruction.name == "atom" && instruction.space() == ptx::StateSpace::kGlobal;
    return block || asks || instruction.name == "membar" || instruction.name == "nanosleep";
  }

  /// Those of the code table, and besides them one at each label and barrier, and one behind what delays a warp.
  void FindBlocks() {
    std::set<std::uint32_t> labelled;
    for (const auto& [label, at] : labels_) labelled.insert(at);
    for (std::uint32_t i = 0; i < count(); ++i) {
      const trace::CodeTable::Entry& entry = table_.entries[first_ + i];
      const bool leads = entry.block != trace::CodeTable::kNoBlock || labelled.contains(i) || IsMeeting(At(i)) ||
                         (i > 0 && Delays(At(i - 1)));
      if (leads) {
        block_at_[i] = static_cast<std::uint16_t>(out_.blocks.size());
        out_.blocks.push_back({.first = i,
                               .count = 0,
                               .next = static_cast<std::uint16_t>(out_.blocks.size() + 1),
                               .meets = IsMeeting(At(i))});
        code_blocks_.push_back({.first = entry.first, .count = 0});
      }
      ++out_.blocks.back().count;
      code_blocks_.back().count += entry.count;
    }
  }

  /// The register's number among those of its size.
  std::uint16_t Number(const ptx::Variable& variable, std::uint32_t index) {
    std::uint32_t& next = IsPredicate(variable) ? out_.predicates : IsWide(variable) ? out_.wide : out_.narrow;
    const auto [known, added] = numbers_.try_emplace({&variable, index}, static_cast<std::uint16_t>(next));
    if (added) ++next;
    return known->second;
  }
  static bool IsWide(const ptx::Variable& variable) { return ptx::BytesOf(variable.type) == 8; }
  static bool IsPredicate(const ptx::Variable& variable) { return variable.type == ptx::ScalarType::kPred; }

  void SetDestination(Step& step, const ptx::Operand& to) {
    step.destination = Number(*to.variable, to.index);
    step.wide = IsWide(*to.variable);
    step.predicate = IsPredicate(*to.variable);
  }

  Result<Source> SourceOf(const ptx::Operand& operand) {
    Source source;
    switch (operand.kind) {
      case ptx::OperandKind::kRegister:
        source.kind = IsPredicate(*operand.variable) ? Source::Kind::kPredicate
                      : IsWide(*operand.variable)    ? Source::Kind::kWide
                                                     : Source::Kind::kNarrow;
        source.number = Number(*operand.variable, operand.index);
        return source;
      case ptx::OperandKind::kInt:
        source.kind = Source::Kind::kImmediate;
        source.value = operand.int_literal.value;
        return source;
      case ptx::OperandKind::kSpecial:
        for (const auto& [name, special] : kSpecials) {
          if (name != operand.text) continue;
          source.kind = Source::Kind::kSpecial;
          source.special = special;
          return source;
        }
        break;
      case ptx::OperandKind::kSymbol:
        if (const auto at = shared_.offsets.find(operand.variable); at != shared_.offsets.end()) {
          source.kind = Source::Kind::kImmediate;
          source.value = at->second;
          return source;
        }
        if (operand.variable != nullptr && operand.variable->space == ptx::StateSpace::kShared) {
          source.kind = Source::Kind::kImmediate;
          source.value = shared_.dynamic_offset;
          return source;
        }
        break;
      default: break;
    }
    return Error{"the model does not know the operand '" + std::string(operand.text) + "'"};
  }

  Result<Step> Decode(const ptx::Instruction& instruction) {
    const auto known = std::ranges::find(kOps, instruction.name, &std::pair<std::string_view, Op>::first);
    if (known == std::end(kOps)) return Error{"the model does not run the instruction " + instruction.FullName()};
    Step step{.op = known->second};
    if (instruction.guard) {
      step.guard = Number(*instruction.guard->predicate, instruction.guard->index);
      step.negated = instruction.guard->negated;
    }
    switch (step.op) {
      case Op::kBranch: step.target = block_at_.at(labels_.at(instruction.operands[0].label)); return step;
      case Op::kReturn:
      case Op::kNothing: return step;
      case Op::kCall: return DecodeCall(instruction, step);
      case Op::kLoad:
      case Op::kStore:
      case Op::kAtomicAdd: return DecodeAccess(instruction, step);
      case Op::kSleep: {
        GL_TRY(time, SourceOf(instruction.operands[0]));
        step.a = time;
        return step;
      }
      default: return DecodeArithmetic(instruction, step);
    }
  }

  /// Forms of known instructions that do something else: of signed numbers, upper halves.
  static bool NotKnown(const Step& step, const ptx::Instruction& instruction) {
    switch (step.op) {
      case Op::kMove: return instruction.name == "cvt" && ptx::IsSigned(instruction.type(1));
      case Op::kMultiplyWide:
      case Op::kDivide:
      case Op::kMinimum:
      case Op::kShiftRight:
      case Op::kExtractBits:
        return step.is_signed || (step.wide && step.op != Op::kMultiplyWide && step.op != Op::kShiftRight);
      case Op::kMultiply:
      case Op::kMultiplyAdd: return !instruction.Has(ptx::Mod::kLo);
      default: return false;
    }
  }

  Result<Step> DecodeArithmetic(const ptx::Instruction& instruction, Step step) {
    SetDestination(step, instruction.operands[0]);
    step.is_signed = instruction.type() == ptx::ScalarType::kS32 || instruction.type() == ptx::ScalarType::kS64;
    if (step.op == Op::kMultiply && instruction.Has(ptx::Mod::kWide)) step.op = Op::kMultiplyWide;
    Source* const sources[] = {&step.a, &step.b, &step.c};
    for (std::size_t i = 1; i < instruction.operands.size() && i <= 3; ++i) {
      GL_TRY(source, SourceOf(instruction.operands[i]));
      *sources[i - 1] = source;
    }
    if (NotKnown(step, instruction)) return Error{"the model does not run the instruction " + instruction.FullName()};
    if (step.op != Op::kCompare) return step;
    if (step.c.kind != Source::Kind::kNone) return Error{"the model does not join comparisons"};
    for (const auto& [mod, comparison] : kComparisons) {
      if (instruction.Has(mod)) step.comparison = comparison;
    }
    return step;
  }

  Result<Step> DecodeAccess(const ptx::Instruction& instruction, Step step) {
    const bool stores = step.op == Op::kStore;
    const ptx::Operand& address = instruction.operands[stores ? 0 : 1];
    const ptx::Operand& value = instruction.operands[stores ? 1 : 0];
    const ptx::StateSpace space = instruction.space();
    if (space == ptx::StateSpace::kParam || space == ptx::StateSpace::kParamEntry ||
        space == ptx::StateSpace::kParamFunc) {
      return DecodeParameter(address, value, step);
    }
    step.shared = space == ptx::StateSpace::kShared;
    step.bytes = static_cast<std::uint8_t>(ptx::BytesOf(instruction.type()));
    if (address.address == nullptr || address.address->base.size() != 1)
      return Error{"the model needs a register in an address"};
    GL_TRY(base, SourceOf(address.address->base[0]));
    step.a = base;
    step.offset = address.address->offset;
    if (instruction.vector_width() != 1) return Error{"the model accesses no vectors"};
    if (!stores) SetDestination(step, value);
    if (step.op != Op::kLoad) {
      GL_TRY(data, SourceOf(stores ? value : instruction.operands[2]));
      step.b = data;
    }
    if (step.op != Op::kAtomicAdd || (instruction.Has(ptx::Mod::kAdd) && step.shared)) return step;
    if (!instruction.Has(ptx::Mod::kCas) || step.shared) {
      return Error{"of atomic instructions the model runs additions in shared and comparisons in global memory"};
    }
    step.op = Op::kCompareAndSwap;
    GL_TRY(swapped, SourceOf(instruction.operands[3]));
    step.c = swapped;
    return step;
  }

  /// The kernel's own parameters are read; those of calls are written, which nobody reads.
  Result<Step> DecodeParameter(const ptx::Operand& address, const ptx::Operand& value, Step step) {
    if (step.op == Op::kStore) {
      step.op = Op::kNothing;
      return step;
    }
    step.op = Op::kParameter;
    const ptx::Variable* const named = address.address->base[0].variable;
    for (const ptx::Variable& param : kernel_.params) {
      if (&param == named) {
        SetDestination(step, value);
        return step;
      }
      ++step.target;
    }
    return Error{"the model knows no parameter '" + std::string(address.address->base[0].text) + "'"};
  }

  Result<Step> DecodeCall(const ptx::Instruction& instruction, Step step) {
    const ptx::Function* const callee = analysis::CalleeOf(instruction);
    const std::string_view name = callee != nullptr ? callee->name : "";
    if (!name.starts_with(called_)) return Error{"the model does not know the function " + std::string(name)};
    const std::string_view number = name.substr(called_.size());
    std::from_chars(number.data(), number.data() + number.size(), step.target);
    return step;
  }

  /// Labels stand before instructions, in nested scopes too.
  void FindLabels() {
    std::uint32_t at = 0;
    const auto walk = [&](const auto& self, const ptx::Block& block) -> void {
      for (const ptx::Statement& statement : block.statements) {
        if (const auto* const label = std::get_if<ptx::Label*>(&statement)) labels_[*label] = at;
        else if (std::holds_alternative<ptx::Instruction>(statement)) ++at;
        else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) self(self, **nested);
      }
    };
    walk(walk, *kernel_.body);
    std::erase_if(labels_, [&](const auto& label) { return label.second == count(); });
  }

  const ptx::Function& kernel_;
  const std::string called_;
  const analysis::Cfg cfg_;
  trace::CodeTable table_;
  const exec::SharedLayout shared_;
  std::uint32_t first_ = 0;  // instruction's number
  std::vector<trace::BasicBlock> code_blocks_;
  std::map<std::uint32_t, std::uint16_t> block_at_;  // by its first instruction
  std::map<std::pair<const ptx::Variable*, std::uint32_t>, std::uint16_t> numbers_;
  std::map<const ptx::Label*, std::uint32_t> labels_;  // the instructions behind them
  ResidentCode out_;
};

}  // namespace

Result<ResidentCode> Compile(const ptx::Module& module, const ptx::Function& kernel, const std::string& called,
                             Numbers* labels) {
  Compiler compiler(module, kernel, called);
  auto code = compiler.Run();
  if (code.ok() && labels != nullptr) *labels = compiler.BlocksOfLabels();
  return code;
}

}  // namespace gridloom::hardware::resident
