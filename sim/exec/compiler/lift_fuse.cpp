#include "sim/exec/compiler/lift_fuse.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Transforms/Utils/Local.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "sim/exec/compiler/promote_registers.h"

namespace gridloom::exec {
namespace {

using llvm::CallInst;
using llvm::Value;
using ptx::Opcode;
using ptx::ScalarType;

constexpr const char* kFloatMark = "gl.float.";
constexpr const char* kBranches = "gl.branches";

// An operation as the first argument of its mark.
std::uint32_t Encode(const FloatOperation& operation) {
  return static_cast<std::uint32_t>(operation.opcode) | static_cast<std::uint32_t>(operation.type) << 16 |
         std::uint32_t{operation.modifiers.ftz} << 24 | std::uint32_t{operation.modifiers.sat} << 25;
}

FloatOperation Decode(const CallInst& mark) {
  const auto code = static_cast<std::uint32_t>(llvm::cast<llvm::ConstantInt>(mark.getArgOperand(0))->getZExtValue());
  return {.opcode = static_cast<Opcode>(code & 0xffff),
          .type = static_cast<ScalarType>(code >> 16 & 0xff),
          .modifiers = {.ftz = (code >> 24 & 1) != 0, .sat = (code >> 25 & 1) != 0}};
}

bool IsMark(const Value* value) {
  const auto* call = llvm::dyn_cast<CallInst>(value);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(kFloatMark);
}

// The add, sub or mul of a function, in the order of its instructions.
struct Node {
  CallInst* mark = nullptr;
  FloatOperation operation;
  std::uint32_t block = 0;  ///< number of the basic block as ptxas sees it
  // Of a product:
  bool stays = false;      ///< something reads it that cannot be fused with it
  std::uint32_t uses = 0;  ///< sums that read it
  // Of a sum:
  struct Side {
    Node* product = nullptr;  ///< that this operand is, up to its sign
    bool negated = false;
  } side[2];
  int fused = -1;  ///< the side that is fused
};

// What the instruction computes by itself.
void Expand(CallInst& mark, bool portable) {
  const FloatOperation operation = Decode(mark);
  llvm::IRBuilder<> b(&mark);
  FloatEmitter emit(b, portable);
  FloatLanes lanes(b, emit);
  const bool ftz = operation.modifiers.ftz;
  if (operation.opcode == Opcode::kNeg) {
    mark.replaceAllUsesWith(lanes.Negate(mark.getArgOperand(1), operation.type, ftz));
    return;
  }
  const FloatLanes::Lanes x = lanes.Unpack(mark.getArgOperand(1), operation.type, ftz);
  const FloatLanes::Lanes y = lanes.Unpack(mark.getArgOperand(2), operation.type, ftz);
  FloatLanes::Lanes results;
  for (std::size_t i = 0; i < x.size(); ++i) {
    results.push_back(operation.opcode == Opcode::kMul   ? b.CreateFMul(x[i], y[i])
                      : operation.opcode == Opcode::kSub ? b.CreateFSub(x[i], y[i])
                                                         : b.CreateFAdd(x[i], y[i]));
  }
  mark.replaceAllUsesWith(lanes.Pack(results, operation.type, operation.modifiers, mark.getType()));
}

class Fuser {
 public:
  Fuser(llvm::Function& function, bool portable) : function_(function), portable_(portable) {}

  void Run() {
    RemoveDead();
    FoldConstants();
    Number();
    FindUses();
    Decide();
    for (Node& node : nodes_) {
      if (node.fused >= 0) Fuse(node);
    }
  }

 private:
  // What nobody reads is no use of a product.
  void RemoveDead() {
    for (llvm::BasicBlock* block : llvm::post_order(&function_)) {
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::reverse(*block))) {
        if (llvm::isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
      }
    }
  }

  // ptxas computes what is constant in f32 and f64, rounded step by step, before it fuses anything; not what is in f16
  // and bf16, and not what a program says is fused (a call of llvm.fma).
  void FoldConstants() {
    const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(*block)) {
        auto* call = llvm::dyn_cast<CallInst>(&instruction);
        if (call && IsFolded(*call)) {
          Expand(*call, portable_);
          call->eraseFromParent();
        } else if (llvm::Constant* value = call ? nullptr : llvm::ConstantFoldInstruction(&instruction, layout)) {
          instruction.replaceAllUsesWith(value);
          instruction.eraseFromParent();
        }
      }
    }
  }

  static bool IsFolded(const CallInst& call) {
    if (!IsMark(&call)) return false;
    const ScalarType type = Decode(call).type;
    if (type != ScalarType::kF32 && type != ScalarType::kF64 && type != ScalarType::kF32x2) return false;
    return llvm::all_of(call.args(), [](const llvm::Use& argument) { return llvm::isa<llvm::Constant>(argument); });
  }

  // Blocks that only one edge leads to, from a block without others, are one for ptxas.
  void Number() {
    llvm::DenseMap<const llvm::BasicBlock*, std::uint32_t> last;
    std::uint32_t blocks = 0;
    const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
    for (llvm::BasicBlock* block : order) {
      const llvm::BasicBlock* before = block->getSinglePredecessor();
      std::uint32_t number = before && before->getSingleSuccessor() && last.contains(before) ? last[before] : blocks++;
      for (llvm::Instruction& instruction : *block) {
        auto* call = llvm::dyn_cast<CallInst>(&instruction);
        if (!call) continue;
        const llvm::Function* callee = call->getCalledFunction();
        if (callee && callee->getName() == kBranches) number = blocks++;
        if (IsMark(call)) Add(*call, number);
      }
      last[block] = number;
    }
  }

  void Add(CallInst& mark, std::uint32_t block) {
    const FloatOperation operation = Decode(mark);
    if (operation.opcode != Opcode::kNeg)
      nodes_.push_back({.mark = &mark, .operation = operation, .block = block, .side = {}});
  }

  void FindUses() {
    for (Node& node : nodes_) by_mark_[node.mark] = &node;
    for (Node& node : nodes_) {
      if (node.operation.opcode != Opcode::kMul) continue;
      node.stays = node.operation.modifiers.sat;
      FollowUses(node, *node.mark, false);
    }
  }

  void FollowUses(Node& product, Value& value, bool negated) {
    for (llvm::Use& use : value.uses()) {
      auto* user = llvm::cast<llvm::Instruction>(use.getUser());
      if (llvm::isa<llvm::BitCastInst>(user)) {  // a mov, or a register of another type
        FollowUses(product, *user, negated);
      } else if (const std::optional<bool> sign = SignThrough(product, *user)) {
        FollowUses(product, *user, negated != *sign);
      } else if (!Join(product, use, negated)) {
        product.stays = true;
      }
    }
  }

  // Whether `user` is a neg that is only a sign of what the product goes into.
  static std::optional<bool> SignThrough(const Node& product, const llvm::Instruction& user) {
    if (!IsMark(&user)) return std::nullopt;
    const FloatOperation operation = Decode(llvm::cast<CallInst>(user));
    if (operation.opcode != Opcode::kNeg || operation.type != product.operation.type) return std::nullopt;
    if (operation.type == ScalarType::kBF16x2 || (operation.modifiers.ftz && !product.operation.modifiers.ftz))
      return std::nullopt;
    return true;
  }

  // Notes the product as an operand of a sum; false where the two do not go together.
  bool Join(Node& product, const llvm::Use& use, bool negated) {
    const auto found = by_mark_.find(use.getUser());
    if (found == by_mark_.end()) return false;
    Node& sum = *found->second;
    if (sum.operation.opcode == Opcode::kMul || sum.operation.type != product.operation.type ||
        sum.block != product.block || sum.operation.modifiers.ftz != product.operation.modifiers.ftz) {
      return false;
    }
    const unsigned side = use.getOperandNo() - 1;
    if (sum.side[1 - side].product == &product) return false;  // its sum with itself
    sum.side[side] = {.product = &product, .negated = negated != (side == 1 && sum.operation.opcode == Opcode::kSub)};
    ++product.uses;
    return true;
  }

  // Products that one sum reads come first, then those that several do.
  void Decide() {
    for (const bool alone : {true, false}) {
      for (Node& node : nodes_) {
        for (int side = 0; side < 2 && node.fused < 0; ++side) {
          const Node* product = node.side[side].product;
          if (!product || product->stays || (alone && product->uses != 1)) continue;
          node.fused = side;
          if (Node* other = node.side[1 - side].product) other->stays = true;
        }
      }
    }
  }

  void Fuse(Node& sum) {
    const Node::Side& side = sum.side[sum.fused];
    const ScalarType type = sum.operation.type;
    const FloatModifiers modifiers = sum.operation.modifiers;
    llvm::IRBuilder<> b(sum.mark);
    FloatEmitter emit(b, portable_);
    FloatLanes lanes(b, emit);
    const FloatLanes::Lanes x = lanes.Unpack(side.product->mark->getArgOperand(1), type, modifiers.ftz);
    const FloatLanes::Lanes y = lanes.Unpack(side.product->mark->getArgOperand(2), type, modifiers.ftz);
    const FloatLanes::Lanes z =
        lanes.Unpack(sum.mark->getArgOperand(2 - static_cast<unsigned>(sum.fused)), type, modifiers.ftz);
    const bool subtracted = sum.operation.opcode == Opcode::kSub && sum.fused == 0;
    FloatLanes::Lanes results;
    for (std::size_t i = 0; i < x.size(); ++i) {
      results.push_back(
          lanes.Fma(type, side.negated ? b.CreateFNeg(x[i]) : x[i], y[i], subtracted ? b.CreateFNeg(z[i]) : z[i]));
    }
    sum.mark->replaceAllUsesWith(lanes.Pack(results, type, modifiers, sum.mark->getType()));
  }

  llvm::Function& function_;
  bool portable_;
  std::deque<Node> nodes_;  ///< in order; their places are kept
  llvm::DenseMap<const Value*, Node*> by_mark_;
};

}  // namespace

Value* MarkFloat(llvm::IRBuilder<>& builder, const FloatOperation& operation, llvm::ArrayRef<Value*> inputs) {
  llvm::Type* type = inputs[0]->getType();
  llvm::SmallVector<llvm::Type*, 3> types{builder.getInt32Ty()};
  types.append(inputs.size(), type);
  // One mark per shape; an i32 and a float of as many bits are two.
  const std::string name = kFloatMark + std::to_string(inputs.size()) + (type->isIntegerTy() ? ".i" : ".f") +
                           std::to_string(type->getScalarSizeInBits());
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  llvm::FunctionCallee mark = module.getOrInsertFunction(name, llvm::FunctionType::get(type, types, false));
  auto* function = llvm::cast<llvm::Function>(mark.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  llvm::SmallVector<Value*, 3> arguments{builder.getInt32(Encode(operation))};
  arguments.append(inputs.begin(), inputs.end());
  return builder.CreateCall(mark, arguments);
}

void MarkBranches(llvm::IRBuilder<>& builder) {
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  builder.CreateCall(module.getOrInsertFunction(kBranches, builder.getVoidTy()));
}

void FuseProducts(llvm::Module& module, bool portable) {
  std::vector<llvm::Function*> marks;
  for (llvm::Function& function : module) {
    if (function.getName().starts_with(kFloatMark)) marks.push_back(&function);
  }
  llvm::SmallPtrSet<llvm::Function*, 8> functions;
  for (const llvm::Function* mark : marks) {
    for (const llvm::User* user : mark->users())
      functions.insert(const_cast<llvm::Function*>(llvm::cast<CallInst>(user)->getFunction()));
  }
  for (llvm::Function* function : functions) {
    PromoteRegisters(*function);
    Fuser(*function, portable).Run();
  }
  // Sums that were fused read no product any more; the order of the others does not matter.
  for (llvm::Function* mark : marks) {
    while (!mark->use_empty()) {
      auto* call = llvm::cast<CallInst>(*mark->user_begin());
      if (!call->use_empty()) Expand(*call, portable);
      call->eraseFromParent();
    }
    mark->eraseFromParent();
  }
  if (llvm::Function* branches = module.getFunction(kBranches)) {
    while (!branches->use_empty()) llvm::cast<CallInst>(*branches->user_begin())->eraseFromParent();
    branches->eraseFromParent();
  }
}

}  // namespace gridloom::exec
