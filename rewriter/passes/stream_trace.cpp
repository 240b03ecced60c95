#include "rewriter/passes/stream_trace.h"

#include <algorithm>
#include <utility>

namespace gridloom::passes {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

namespace {

std::string NameOf(const Instruction& call) {
  const ptx::Function* const callee = analysis::CalleeOf(call);
  return callee == nullptr ? "a function" : PublicName(callee->name);
}

bool IsParameter(const ptx::Function& function, const ptx::Variable& variable) {
  return std::ranges::any_of(function.params, [&](const ptx::Variable& param) { return &param == &variable; });
}

}  // namespace

std::vector<StreamSource> StreamTrace::Argument(std::uint32_t call, std::size_t number, std::uint32_t bytes) {
  bytes_ = bytes;
  sources_.clear();
  seen_.clear();
  const Operand* const argument = ArgumentOf(*cfg_.instructions()[call].instruction, number);
  if (argument == nullptr) Unknown("is not passed");
  else if (argument->kind == OperandKind::kSymbol && argument->variable != nullptr &&
           argument->variable->space == StateSpace::kParam)
    Memory({argument->variable, 0}, call);
  else Value(*argument, call);
  while (!searches_.empty()) {
    const Search search = searches_.back();
    searches_.pop_back();
    SearchBack(search);
  }
  if (sources_.empty()) Unknown("is set nowhere");
  return std::exchange(sources_, {});
}

void StreamTrace::Add(StreamSource source) {
  if (std::ranges::find(sources_, source) == sources_.end()) sources_.push_back(std::move(source));
}

/// What an operand of the instruction at `at` holds.
void StreamTrace::Value(const Operand& operand, std::uint32_t at) {
  if (operand.kind == OperandKind::kInt)
    return Add({.kind = StreamSource::Kind::kConstant, .handle = operand.int_literal.value});
  if (!operand.IsPlainRegister()) return Unknown("is computed");
  searches_.push_back({{.variable = operand.variable, .index = operand.index}, cfg_.instructions()[at].block, at});
}

void StreamTrace::Memory(const Place& place, std::uint32_t at) {
  searches_.push_back(
      {{.variable = place.variable, .offset = place.offset, .memory = true}, cfg_.instructions()[at].block, at});
}

void StreamTrace::SearchBack(const Search& search) {
  const analysis::BasicBlock& block = cfg_.blocks()[search.block];
  for (std::uint32_t i = search.end; i-- > block.first;) {
    if (search.item.memory ? FromMemory(search.item, i) : FromRegister(search.item, i)) return;
  }
  if (search.block == 0) Unknown("has no value on some way to it");
  for (const analysis::BlockId before : cfg_.graph().predecessors[search.block]) {
    const analysis::BasicBlock& from = cfg_.blocks()[before];
    if (seen_.emplace(search.item, before).second) searches_.push_back({search.item, before, from.first + from.count});
  }
}

/// Whether the instruction sets the register, in any case. Adds what it sets it to.
bool StreamTrace::FromRegister(const Item& item, std::uint32_t at) {
  Operand reg;
  reg.variable = const_cast<ptx::Variable*>(item.variable);
  reg.index = item.index;
  const auto& writers = memory_.Writers(reg);
  if (!std::ranges::binary_search(writers, at)) return false;
  const Instruction& instruction = *cfg_.instructions()[at].instruction;
  const auto& operands = instruction.operands;
  const bool plain =
      operands[0].IsPlainRegister() && ptx::BytesOf(instruction.type()) == bytes_ && instruction.vector_width() == 1;
  if (plain && instruction.opcode == Opcode::kMov && operands.size() == 2) {
    Value(operands[1], at);
  } else if (plain && instruction.opcode == Opcode::kSelp && operands.size() == 4) {
    Value(operands[1], at);
    Value(operands[2], at);
  } else if (plain && instruction.opcode == Opcode::kLd) {
    FromLoad(instruction, at);
  } else if (instruction.Has(ptx::Trait::kCalls)) {
    Unknown("comes from a call of " + NameOf(instruction));
  } else if (instruction.opcode == Opcode::kLd && instruction.space() == StateSpace::kParam) {
    Unknown("comes from a parameter");
  } else {
    Unknown((instruction.Has(ptx::Trait::kReads) ? "comes from memory (" : "is computed (") + instruction.FullName() +
            ")");
  }
  return !instruction.guard;
}

void StreamTrace::FromLoad(const Instruction& load, std::uint32_t at) {
  const auto place = memory_.Named(load);
  if (place && IsParameter(cfg_.function(), *place->variable)) return Unknown("comes from a parameter");
  const bool followed =
      place && (place->variable->space == StateSpace::kParam || KeepsHandles(memory_.UseOf(*place->variable)));
  if (!followed) return Unknown("comes from memory (" + load.FullName() + ")");
  Memory(*place, at);
}

/// Whether the instruction sets the place, in any case. Adds what it sets it to.
bool StreamTrace::FromMemory(const Item& item, std::uint32_t at) {
  const Instruction& instruction = *cfg_.instructions()[at].instruction;
  const auto store = [&](std::int64_t offset, std::uint32_t bytes, bool whole) {
    if (offset >= item.offset + bytes_ || offset + bytes <= item.offset) return false;
    if (offset == item.offset && bytes == bytes_ && whole && instruction.operands.size() > 1)
      Value(instruction.operands[1], at);
    else Unknown("is put together from parts");
    return !instruction.guard;
  };
  if (item.variable->space == StateSpace::kParam) {
    for (const CallArgument& call : memory_.CallsWith(*item.variable)) {
      if (call.call != at || !call.result) continue;
      Unknown("comes from a call of " + NameOf(instruction));
      return !instruction.guard;
    }
    if (instruction.opcode != Opcode::kSt) return false;
    const auto place = memory_.Named(instruction);
    return place && place->variable == item.variable &&
           store(place->offset, ptx::BytesOf(instruction.type()) * instruction.vector_width(),
                 instruction.vector_width() == 1);
  }
  for (const PlaceAccess& access :
       std::ranges::equal_range(memory_.UseOf(*item.variable).accesses, at, {}, &PlaceAccess::instruction)) {
    if (!access.writes) continue;
    if (instruction.opcode == Opcode::kSt) return store(access.offset, access.bytes, access.whole);
    if (access.offset >= item.offset + bytes_ || access.offset + access.bytes <= item.offset) continue;
    const auto stream = std::ranges::find(made_, at, &MadeStream::instruction);
    if (stream == made_.end() || access.offset != item.offset) {
      Unknown("comes from a call of " + NameOf(instruction));
      return false;
    }
    Add({.kind = StreamSource::Kind::kMade, .made = static_cast<std::size_t>(stream - made_.begin())});
    return !stream->refused() && !instruction.guard;  // where none can be made, the older value stays
  }
  return false;
}

}  // namespace gridloom::passes
