// Registers become values without a search for places of phis where they are written once, and as LLVM's own promotion
// has them.
#include "sim/exec/compiler/promote_registers.h"

#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace gridloom::exec {
namespace {

/// A function whose registers are slots of its entry block, with zero in each at first.
class Registers {
 public:
  explicit Registers(unsigned count) : module_("m", context_), b_(context_) {
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getInt32Ty()}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module_);
    use_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "use", module_);
    b_.SetInsertPoint(Block());
    for (unsigned i = 0; i < count; ++i) {
      slots_.push_back(b_.CreateAlloca(b_.getInt32Ty(), nullptr, "r" + std::to_string(i)));
      b_.CreateStore(b_.getInt32(0), slots_.back());
    }
  }
  llvm::IRBuilder<>& builder() { return b_; }
  llvm::Function& function() { return *function_; }
  std::vector<llvm::AllocaInst*>& slots() { return slots_; }
  llvm::BasicBlock* Block() { return llvm::BasicBlock::Create(context_, "", function_); }
  llvm::Value* Argument() { return function_->getArg(0); }
  llvm::Value* Read(unsigned number) { return b_.CreateLoad(b_.getInt32Ty(), slots_[number]); }
  void Write(unsigned number, llvm::Value* value) { b_.CreateStore(value, slots_[number]); }
  void Use(llvm::Value* value) { b_.CreateCall(use_, {value}); }
  /// An `if` without an `else`, which is where the builder is then; the block behind both.
  llvm::BasicBlock* If(unsigned number) {
    llvm::BasicBlock *arm = Block(), *behind = Block();
    b_.CreateCondBr(b_.CreateICmpEQ(Argument(), b_.getInt32(number)), arm, behind);
    b_.SetInsertPoint(arm);
    return behind;
  }
  void Go(llvm::BasicBlock* to) {
    b_.CreateBr(to);
    b_.SetInsertPoint(to);
  }
  /// Of what can be reached, as elsewhere anything is right; phis in the order of their names, what they merge in that
  /// of blocks.
  std::string Text() {
    llvm::removeUnreachableBlocks(*function_);
    for (llvm::BasicBlock& block : *function_) {
      std::vector<llvm::PHINode*> phis;
      for (llvm::PHINode& phi : block.phis()) phis.push_back(&phi);
      std::ranges::sort(phis, {}, [](const llvm::PHINode* phi) { return phi->getName(); });
      for (llvm::PHINode* phi : phis) {
        phi->moveBefore(block, block.getFirstNonPHIIt());
        SortIncoming(*phi);
      }
    }
    std::string text, problem;
    llvm::raw_string_ostream stream(problem), out(text);
    if (llvm::verifyModule(module_, &stream)) FAIL("does not verify: " << problem);
    module_.print(out, nullptr);
    return text;
  }

 private:
  void SortIncoming(llvm::PHINode& phi) {
    std::vector<std::pair<llvm::BasicBlock*, llvm::Value*>> incoming;
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      incoming.emplace_back(phi.getIncomingBlock(i), phi.getIncomingValue(i));
    std::map<const llvm::BasicBlock*, unsigned> numbers;
    for (llvm::BasicBlock& block : *function_) numbers.emplace(&block, static_cast<unsigned>(numbers.size()));
    std::ranges::stable_sort(incoming, {}, [&](const auto& one) { return numbers.at(one.first); });
    for (unsigned i = 0; i < incoming.size(); ++i) {
      phi.setIncomingBlock(i, incoming[i].first);
      phi.setIncomingValue(i, incoming[i].second);
    }
  }

  llvm::LLVMContext context_;
  llvm::Module module_;
  llvm::IRBuilder<> b_;
  llvm::Function *function_ = nullptr, *use_ = nullptr;
  std::vector<llvm::AllocaInst*> slots_;
};

/// Blocks that go anywhere, back and forth, with reads and writes in any order.
void FillAtRandom(Registers& registers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t end) { return static_cast<unsigned>(random() % end); };
  llvm::IRBuilder<>& b = registers.builder();
  const auto some = [&] {
    for (unsigned i = below(6); i > 0; --i) {
      const unsigned number = below(registers.slots().size());
      if (below(2) == 0) registers.Use(registers.Read(number));
      else
        registers.Write(number,
                        below(3) == 0 ? registers.Read(below(registers.slots().size())) : b.getInt32(below(1000)));
    }
  };
  std::vector<llvm::BasicBlock*> blocks(2 + below(12));
  for (llvm::BasicBlock*& block : blocks) block = registers.Block();
  some();
  b.CreateBr(blocks[0]);
  for (llvm::BasicBlock* block : blocks) {
    b.SetInsertPoint(block);
    some();
    const auto any = [&] { return blocks[below(blocks.size())]; };
    if (below(5) == 0) b.CreateRetVoid();
    else if (below(3) == 0) b.CreateBr(any());
    else b.CreateCondBr(b.CreateICmpEQ(registers.Argument(), b.getInt32(below(9))), any(), any());
  }
}

}  // namespace

TEST_CASE("PromoteRegisters_RandomFunctions_AsLlvmPromotesThem") {
  Promotion all;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const unsigned count = 1 + static_cast<unsigned>(seed % 12);
    Registers ours(count), llvms(count);
    FillAtRandom(ours, seed);
    FillAtRandom(llvms, seed);
    const Promotion promotion = PromoteRegisters(ours.function());
    llvm::DominatorTree tree(llvms.function());
    llvm::PromoteMemToReg(llvms.slots(), tree);
    INFO("seed " << seed);
    REQUIRE(ours.Text() == llvms.Text());
    REQUIRE(promotion.without_search + promotion.searched == count);
    all.without_search += promotion.without_search;
    all.searched += promotion.searched;
  }
  // All kinds were met.
  CHECK(all.without_search > 1000);
  CHECK(all.searched > 1200);
}

TEST_CASE("PromoteRegisters_WrittenOnceInManyBlocks_NoneIsSearchedFor") {
  constexpr unsigned kIfs = 300;
  Registers registers(kIfs);
  for (unsigned i = 0; i < kIfs; ++i) {
    registers.Write(i, registers.builder().CreateMul(registers.Argument(), registers.builder().getInt32(i)));
    llvm::BasicBlock* const behind = registers.If(i);
    registers.Use(registers.Read(i));
    registers.Go(behind);
    registers.Use(registers.Read(i / 2));
  }
  registers.builder().CreateRetVoid();
  const Promotion promotion = PromoteRegisters(registers.function());
  CHECK(promotion.without_search == kIfs);
  CHECK(promotion.searched == 0);
}

TEST_CASE("PromoteRegisters_PhisInManyBlocks_AreSearchedForWhereTheyAreLive") {
  constexpr unsigned kIfs = 300;
  Registers registers(kIfs + 1);
  for (unsigned i = 0; i < kIfs; ++i) {
    registers.Write(i, registers.Argument());
    llvm::BasicBlock* const behind = registers.If(i);
    registers.Write(i, registers.builder().getInt32(i));
    registers.Write(kIfs, registers.Read(i));  // zero where no `if` is taken
    registers.Go(behind);
    registers.Use(registers.Read(i));
  }
  registers.Use(registers.Read(kIfs));
  registers.builder().CreateRetVoid();
  const Promotion promotion = PromoteRegisters(registers.function());
  CHECK(promotion.without_search == 0);
  CHECK(promotion.searched == kIfs + 1);
  CHECK(promotion.looked_at < 20 * kIfs);  // not registers times blocks
}

}  // namespace gridloom::exec
