#include "sim/exec/compiler/spmd.h"

#include <llvm/Support/raw_ostream.h>

#include "sim/exec/contract/recorded_event.h"

namespace gridloom::exec {
namespace {

struct HelperTraits {
  bool convergent, reads, writes;
};

constexpr HelperTraits kHelperTraits[] = {
#define GL_HELPER(name, convergent, reads, writes) {convergent, reads, writes},
#include "sim/exec/contract/helpers.def"
#undef GL_HELPER
};

struct Effects {
  bool convergent = false, reads = false, writes = false;
  bool private_memory = false;  ///< nothing else in the kernel can see what it touches
};

Effects EffectsOf(const MarkerInfo& info) {
  switch (info.kind) {
    case MarkerKind::kSpecial:
    case MarkerKind::kParam:
    case MarkerKind::kSymbol:
    case MarkerKind::kToGeneric:
    case MarkerKind::kFromGeneric:
    case MarkerKind::kIsSpace: return {};
    case MarkerKind::kRecord:
    case MarkerKind::kRecordLoop:
    case MarkerKind::kFetchAhead: return {.writes = true, .private_memory = true};
    case MarkerKind::kLoad: return {false, true, info.strong};
    case MarkerKind::kStore: return {false, false, true};
    case MarkerKind::kAtomic: return {false, true, true};
    case MarkerKind::kBallot:
    case MarkerKind::kActiveMask:
    case MarkerKind::kMet:
    case MarkerKind::kShuffle: return {true, false, false};
    case MarkerKind::kHelper: {
      const HelperTraits& traits = kHelperTraits[static_cast<std::size_t>(info.helper)];
      return {traits.convergent, traits.reads, traits.writes};
    }
    case MarkerKind::kBarrier:
    case MarkerKind::kSync:
    case MarkerKind::kWarpSync:
    case MarkerKind::kMeet:
    case MarkerKind::kGiveWay:
    case MarkerKind::kExit:
    case MarkerKind::kIndirectCall: return {true, true, true};
  }
  return {true, true, true};
}

std::string NameOf(const MarkerInfo& info, llvm::FunctionType* type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "gl." << static_cast<int>(info.kind) << '.' << static_cast<int>(info.space) << '.'
      << static_cast<int>(info.special) << '.' << static_cast<int>(info.helper) << '.' << info.strong << '.'
      << info.checked << '.' << info.count << '.' << info.imm << '.' << *type;
  return text;
}

}  // namespace

SpmdModule::SpmdModule(llvm::LLVMContext& context, llvm::StringRef name)
    : module_(std::make_unique<llvm::Module>(name, context)) {}

const MarkerInfo* SpmdModule::Find(const llvm::Function* callee) const {
  const auto it = info_.find(callee);
  return it == info_.end() ? nullptr : &it->second;
}

llvm::Function* SpmdModule::Marker(const MarkerInfo& info, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args) {
  auto* type = llvm::FunctionType::get(result, args, false);
  const std::string name = NameOf(info, type);
  auto [it, inserted] = by_name_.try_emplace(name, nullptr);
  if (!inserted) return it->second;
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *module_);
  const Effects effects = EffectsOf(info);
  function->setDoesNotThrow();
  function->setWillReturn();
  if (effects.convergent) function->setConvergent();
  if (effects.private_memory) {
    function->setOnlyAccessesInaccessibleMemory();
  } else if (!effects.reads && !effects.writes) {
    function->setDoesNotAccessMemory();
  } else if (!effects.writes) {
    // Not what records write.
    function->setMemoryEffects(llvm::MemoryEffects::readOnly().getWithoutLoc(llvm::IRMemLocation::InaccessibleMem));
  }
  it->second = function;
  info_[function] = info;
  return function;
}

llvm::Value* SpmdBuilder::SpecialReg(Special special) {
  MarkerInfo info{.kind = MarkerKind::kSpecial, .special = special};
  llvm::Type* type = special == Special::kGridId ? getInt64Ty() : getInt32Ty();
  return CreateCall(module_.Marker(info, type, {}));
}

llvm::Value* SpmdBuilder::LoadParam(llvm::Type* element, llvm::Value* offset) {
  MarkerInfo info{.kind = MarkerKind::kParam, .element = element};
  return CreateCall(module_.Marker(info, element, {getInt64Ty()}), {offset});
}

llvm::Value* SpmdBuilder::SymbolAddress(std::uint32_t index) {
  MarkerInfo info{.kind = MarkerKind::kSymbol, .imm = index};
  return CreateCall(module_.Marker(info, getInt64Ty(), {}));
}

void SpmdBuilder::RecordBlock() {
  if (record != Recording::kAll) return;
  const RecordHeader header{.kind = RecordKind::kBlock, .instruction = number};
  CreateCall(module_.Marker({.kind = MarkerKind::kRecord, .imm = header.Pack()}, getVoidTy(), {}));
}

void SpmdBuilder::RecordAccess(AccessKind kind, Space space, std::size_t bytes, llvm::Value* address) {
  const bool global = space == Space::kGlobal || space == Space::kGeneric;
  if (record == Recording::kNone || (record == Recording::kGlobal && !global)) return;
  const RecordHeader header{.kind = RecordKind::kLanes,
                            .access = kind,
                            .space = space,
                            .bytes = static_cast<std::uint32_t>(bytes),
                            .instruction = number};
  CreateCall(module_.Marker({.kind = MarkerKind::kRecord, .imm = header.Pack()}, getVoidTy(), {getInt64Ty()}),
             {address});
}

void SpmdBuilder::RecordElements(AccessKind kind, Space space, llvm::Type* element, std::size_t count,
                                 llvm::Value* address) {
  RecordAccess(kind, space, element->getScalarSizeInBits() / 8 * count, address);
}

llvm::Value* SpmdBuilder::LoadMem(Space space, llvm::Type* element, unsigned count, llvm::Value* address, bool strong) {
  RecordElements(AccessKind::kRead, space, element, count, address);
  MarkerInfo info{.kind = MarkerKind::kLoad, .space = space, .strong = strong, .count = count, .element = element};
  llvm::Type* result = element;
  if (count > 1) result = llvm::StructType::get(getContext(), llvm::SmallVector<llvm::Type*, 8>(count, element));
  return CreateCall(module_.Marker(info, result, {getInt64Ty(), getInt32Ty()}), {address, getInt32(line)});
}

void SpmdBuilder::StoreMem(Space space, llvm::ArrayRef<llvm::Value*> values, llvm::Value* address, bool strong) {
  RecordElements(AccessKind::kWrite, space, values[0]->getType(), values.size(), address);
  MarkerInfo info{.kind = MarkerKind::kStore,
                  .space = space,
                  .strong = strong,
                  .count = static_cast<std::uint32_t>(values.size()),
                  .element = values[0]->getType()};
  llvm::SmallVector<llvm::Type*, 8> types{getInt64Ty()};
  llvm::SmallVector<llvm::Value*, 8> args{address};
  for (llvm::Value* value : values) {
    types.push_back(value->getType());
    args.push_back(value);
  }
  types.push_back(getInt32Ty());
  args.push_back(getInt32(line));
  CreateCall(module_.Marker(info, getVoidTy(), types), args);
}

llvm::Value* SpmdBuilder::Atomic(Space space, AtomicOp op, AtomicType type, llvm::Value* address, llvm::Value* b,
                                 llvm::Value* c, bool result_unused, AtomicFlush flush) {
  RecordElements(AccessKind::kAtomic, space, b->getType(), 1, address);
  MarkerInfo info{.kind = MarkerKind::kAtomic,
                  .space = space,
                  .strong = true,
                  .element = b->getType(),
                  .imm = AtomicImm(op, type, result_unused, space, flush)};
  if (!c) c = llvm::Constant::getNullValue(b->getType());
  return CreateCall(module_.Marker(info, b->getType(), {getInt64Ty(), b->getType(), c->getType(), getInt32Ty()}),
                    {address, b, c, getInt32(line)});
}

llvm::Value* SpmdBuilder::ToGeneric(Space space, llvm::Value* offset) {
  return CreateCall(module_.Marker({.kind = MarkerKind::kToGeneric, .space = space}, getInt64Ty(), {getInt64Ty()}),
                    {offset});
}

llvm::Value* SpmdBuilder::FromGeneric(Space space, llvm::Value* address) {
  return CreateCall(module_.Marker({.kind = MarkerKind::kFromGeneric, .space = space}, getInt64Ty(), {getInt64Ty()}),
                    {address});
}

llvm::Value* SpmdBuilder::IsSpace(Space space, llvm::Value* address) {
  return CreateCall(module_.Marker({.kind = MarkerKind::kIsSpace, .space = space}, getInt1Ty(), {getInt64Ty()}),
                    {address});
}

llvm::Value* SpmdBuilder::Ballot(llvm::Value* predicate) {
  return CreateCall(module_.Marker({.kind = MarkerKind::kBallot}, getInt32Ty(), {getInt1Ty()}), {predicate});
}

llvm::Value* SpmdBuilder::ActiveMask() {
  return CreateCall(module_.Marker({.kind = MarkerKind::kActiveMask}, getInt32Ty(), {}));
}

llvm::Value* SpmdBuilder::Shuffle(llvm::Value* value, llvm::Value* source_lane, llvm::Value* valid) {
  return CreateCall(
      module_.Marker({.kind = MarkerKind::kShuffle}, getInt32Ty(), {getInt32Ty(), getInt32Ty(), getInt1Ty()}),
      {value, source_lane, valid});
}

llvm::Value* SpmdBuilder::Barrier(BarrierOp op, llvm::Value* id, llvm::Value* threads, llvm::Value* predicate,
                                  std::uint64_t flags) {
  MarkerInfo info{.kind = MarkerKind::kBarrier, .imm = static_cast<std::uint64_t>(op) | flags};
  return CreateCall(module_.Marker(info, getInt32Ty(), {getInt32Ty(), getInt32Ty(), getInt1Ty(), getInt32Ty()}),
                    {id, threads, predicate, getInt32(line)});
}

namespace {

llvm::Type* ExchangeType(llvm::IRBuilder<>& b, SyncOp op) {
  switch (Info(op).result) {
    case SyncValue::kNone: return b.getVoidTy();
    case SyncValue::kPredicate: return b.getInt1Ty();
    case SyncValue::kWord: return b.getInt32Ty();
    case SyncValue::kLong: return b.getInt64Ty();
    case SyncValue::kWordAndPredicate: return llvm::StructType::get(b.getContext(), {b.getInt32Ty(), b.getInt1Ty()});
  }
  return nullptr;
}

}  // namespace

llvm::Value* SpmdBuilder::Sync(const SyncImm& imm, llvm::Value* members, llvm::ArrayRef<llvm::Value*> inputs) {
  llvm::SmallVector<llvm::Value*, 8> values{members};
  values.append(inputs.begin(), inputs.end());
  values.push_back(getInt32(line));
  llvm::SmallVector<llvm::Type*, 8> types;
  for (llvm::Value* value : values) types.push_back(value->getType());
  return CreateCall(
      module_.Marker({.kind = MarkerKind::kSync, .imm = PackImm(imm)}, ExchangeType(*this, imm.op), types), values);
}

void SpmdBuilder::WarpSync(const SyncImm& imm, llvm::Value* members) {
  CreateCall(module_.Marker({.kind = MarkerKind::kWarpSync, .imm = PackImm(imm)}, getVoidTy(), {getInt32Ty()}),
             {members});
}

llvm::Value* SpmdBuilder::Exchange(const SyncImm& imm, llvm::Value* members, llvm::ArrayRef<llvm::Value*> inputs) {
  switch (imm.op) {
    case SyncOp::kBarrier: return nullptr;
    case SyncOp::kElect: return ActiveMask();
    case SyncOp::kBallot: return Ballot(inputs[0]);
    case SyncOp::kUni: {
      llvm::Value* yes = Ballot(inputs[0]);
      llvm::Value* no = Ballot(CreateNot(inputs[0]));
      yes = CreateAnd(yes, members);
      no = CreateAnd(no, members);
      return CreateNot(CreateAnd(CreateICmpNE(yes, getInt32(0)), CreateICmpNE(no, getInt32(0))));
    }
    case SyncOp::kShuffle: return Shuffle(inputs[0], inputs[1], inputs[2]);
    case SyncOp::kMatchAny: return CallHelper(Helper::kMatchAny, {getInt32Ty()}, {inputs[0], members});
    case SyncOp::kMatchAll: return CallHelper(Helper::kMatchAll, {getInt32Ty(), getInt1Ty()}, {inputs[0], members});
    case SyncOp::kRedux:
      return CallHelper(Helper::kRedux, {getInt32Ty()}, {inputs[0], members}, ReduxImmOf(imm.qualifiers));
  }
  return nullptr;
}

void SpmdBuilder::ExitThread() { CreateCall(module_.Marker({.kind = MarkerKind::kExit}, getVoidTy(), {})); }

llvm::Value* SpmdBuilder::IndirectCall(llvm::Type* result, llvm::Value* function, llvm::ArrayRef<llvm::Value*> args) {
  llvm::SmallVector<llvm::Type*, 8> types{getInt64Ty()};
  llvm::SmallVector<llvm::Value*, 8> values{function};
  for (llvm::Value* arg : args) {
    types.push_back(arg->getType());
    values.push_back(arg);
  }
  return CreateCall(module_.Marker({.kind = MarkerKind::kIndirectCall}, result, types), values);
}

llvm::Value* SpmdBuilder::CallHelper(Helper helper, llvm::ArrayRef<llvm::Type*> outputs,
                                     llvm::ArrayRef<llvm::Value*> inputs, std::uint64_t imm) {
  if (record == Recording::kAll && MayRecordEvents(helper, imm)) imm |= std::uint64_t{number} << kEventInstructionShift;
  llvm::Type* result = getVoidTy();
  if (outputs.size() == 1) result = outputs[0];
  if (outputs.size() > 1) result = llvm::StructType::get(getContext(), outputs);
  llvm::SmallVector<llvm::Type*, 8> types;
  llvm::SmallVector<llvm::Value*, 8> values(inputs.begin(), inputs.end());
  for (llvm::Value* input : inputs) types.push_back(input->getType());
  types.push_back(getInt32Ty());
  values.push_back(getInt32(line));
  return CreateCall(module_.Marker({.kind = MarkerKind::kHelper, .helper = helper, .imm = imm}, result, types), values);
}

}  // namespace gridloom::exec
