// Loads of neighbouring words from one irregular address, as unrolled loops over rows have them: one check and one
// access a lane for two or four of them.
#include <llvm/Analysis/ValueTracking.h>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

/// address = root + offset
struct RootAndOffset {
  const Value* root;
  std::int64_t offset;
};
RootAndOffset Resolve(const Value* address) {
  const auto* add = llvm::dyn_cast<llvm::BinaryOperator>(address);
  const auto* constant =
      add && add->getOpcode() == llvm::Instruction::Add ? llvm::dyn_cast<llvm::ConstantInt>(add->getOperand(1)) : nullptr;
  return constant ? RootAndOffset{add->getOperand(0), constant->getSExtValue()} : RootAndOffset{address, 0};
}

}  // namespace

/// The loads that can be made together with `call`, which has the lowest address, in order: one, two or four. Nothing
/// between them may write memory or wait.
std::vector<llvm::CallInst*> WarpFunction::GroupFrom(llvm::CallInst& call, const Access& access) {
  constexpr unsigned kLookAhead = 100;
  std::vector<llvm::CallInst*> group(4, nullptr);
  group[0] = &call;
  if (memcheck() || access.strong || access.bytes != 4 || access.space == Space::kLocal) return {&call};
  const RootAndOffset first = Resolve(call.getArgOperand(0));
  unsigned distance = 0;
  for (llvm::Instruction* next = call.getNextNode(); next && ++distance < kLookAhead; next = next->getNextNode()) {
    const MarkerInfo* info = module_.MarkerOf(*next);
    if (!info || info->kind != MarkerKind::kLoad) {
      if (next->mayWriteToMemory() || !llvm::isGuaranteedToTransferExecutionToSuccessor(next)) break;
      continue;
    }
    if (info->strong) break;
    auto* other = llvm::cast<llvm::CallInst>(next);
    if (info->space != access.space || info->count != 1 || info->element->getScalarSizeInBits() != 32 || grouped_.contains(other)) continue;
    const RootAndOffset at = Resolve(other->getArgOperand(0));
    const std::int64_t place = at.offset - first.offset;
    if (at.root == first.root && place > 0 && place < 16 && place % 4 == 0 && !group[place / 4]) group[place / 4] = other;
  }
  if (!group[1]) return {&call};
  if (!group[2] || !group[3]) group.resize(2);
  return group;
}

void WarpFunction::EmitGroup(const std::vector<llvm::CallInst*>& group, const Access& single, const Window& window) {
  const unsigned count = static_cast<unsigned>(group.size());
  Access whole = single;
  whole.element = b_.getInt32Ty();
  whole.count = count;
  whole.bytes = 4 * count;
  Access word = single;
  word.element = b_.getInt32Ty();
  Value* address = group[0]->getArgOperand(0);
  const Irregular at = IrregularOf(address, whole);
  const auto fast = [&] { return LoadIrregularGroup(at, whole, word, window); };
  const auto slow = [&] {
    std::vector<Value*> parts;
    Value* host = HostLanes(Lanes(address), word, window);
    for (unsigned part = 0; part < count; ++part) {
      word.line = group[part]->getArgOperand(group[part]->arg_size() - 1);
      parts.push_back(SlowLoad(b_.CreateAdd(host, Splat(b_.getInt64(4 * part))), word)[0]);
    }
    return parts;
  };
  const std::vector<Value*> parts = FastOrSlow(IrregularInRange(at, whole, window), fast, slow);
  for (unsigned part = 0; part < count; ++part) {
    Define(group[part], b_.CreateBitCast(parts[part], WarpType(group[part]->getType())));
    if (part != 0) grouped_.insert(group[part]);
  }
}

}  // namespace gridloom::exec
