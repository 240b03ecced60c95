// Intrinsics that bytecode has no step for, expanded: of constants both are constants, and LLVM's own folding says
// which.
#include "sim/exec/compiler/bytecode_expand.h"

#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <catch2/catch.hpp>
#include <vector>

namespace gridloom::test {
namespace {

namespace Intrinsic = llvm::Intrinsic;

class Expansions {
 public:
  Expansions() : module_("m", context_), builder_(context_) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), false),
                                            llvm::GlobalValue::InternalLinkage, "f", module_);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "b", function));
  }
  llvm::IRBuilder<>& builder() { return builder_; }

  void Check(Intrinsic::ID id, llvm::Type* result, llvm::ArrayRef<llvm::Type*> types,
             const std::vector<llvm::Value*>& arguments) {
    llvm::CallInst* call = builder_.CreateIntrinsic(id, types, arguments);
    const llvm::SmallVector<llvm::Constant*, 3> constants(
        llvm::map_range(arguments, [](llvm::Value* value) { return llvm::cast<llvm::Constant>(value); }));
    const llvm::Constant* right = llvm::ConstantFoldCall(call, call->getCalledFunction(), constants);
    const llvm::Value* expanded = exec::ExpandIntrinsic(builder_, id, arguments, result);
    call->eraseFromParent();
    REQUIRE(right);
    REQUIRE(expanded);
    if (right == expanded) return ++equal_, void();
    std::string text;
    llvm::raw_string_ostream out(text);
    out << Intrinsic::getBaseName(id).str();
    for (const llvm::Value* argument : arguments) out << ' ' << *argument;
    out << ": " << *expanded << ", right is " << *right;
    FAIL_CHECK(text);
  }
  unsigned equal() const { return equal_; }

 private:
  llvm::LLVMContext context_;
  llvm::Module module_;
  llvm::IRBuilder<> builder_;
  unsigned equal_ = 0;
};

}  // namespace

TEST_CASE("BytecodeExpand_IntegerIntrinsics_AsLlvmFoldsThem") {
  Expansions expansions;
  llvm::IRBuilder<>& b = expansions.builder();
  constexpr Intrinsic::ID kPairs[] = {Intrinsic::uadd_with_overflow, Intrinsic::usub_with_overflow,
                                      Intrinsic::sadd_with_overflow, Intrinsic::ssub_with_overflow,
                                      Intrinsic::umul_with_overflow, Intrinsic::smul_with_overflow};
  for (const unsigned width : {8u, 11u, 32u, 64u, 128u}) {
    llvm::Type* const type = b.getIntNTy(width);
    std::vector<llvm::APInt> numbers;
    for (const unsigned bit : {0u, 1u, width / 2, width - 1}) {
      for (const int near : {-1, 0, 1})
        numbers.push_back(llvm::APInt::getOneBitSet(width, bit) +
                          llvm::APInt(width, static_cast<std::uint64_t>(near), true));
      numbers.push_back(-numbers.back());
    }
    for (const llvm::APInt& x : numbers) {
      for (const llvm::APInt& y : numbers) {
        const std::vector<llvm::Value*> arguments{llvm::ConstantInt::get(type, x), llvm::ConstantInt::get(type, y)};
        for (const Intrinsic::ID id : kPairs)
          expansions.Check(id, llvm::StructType::get(type, b.getInt1Ty()), {type}, arguments);
        for (const Intrinsic::ID id : {Intrinsic::ucmp, Intrinsic::scmp})
          expansions.Check(id, b.getInt8Ty(), {b.getInt8Ty(), type}, arguments);
      }
    }
  }
  CHECK(expansions.equal() == 5 * 16 * 16 * 8);
}

TEST_CASE("BytecodeExpand_FloatIntrinsics_AsLlvmFoldsThem") {
  Expansions expansions;
  llvm::IRBuilder<>& b = expansions.builder();
  for (llvm::Type* type : {b.getHalfTy(), b.getFloatTy(), b.getDoubleTy()}) {
    const llvm::fltSemantics& semantics = type->getFltSemantics();
    std::vector<llvm::Value*> numbers;
    for (const bool negative : {false, true}) {
      numbers.push_back(llvm::ConstantFP::getZero(type, negative));
      numbers.push_back(llvm::ConstantFP::getInfinity(type, negative));
      for (const llvm::APFloat& number :
           {llvm::APFloat::getSmallest(semantics, negative), llvm::APFloat::getSmallestNormalized(semantics, negative),
            llvm::APFloat::getLargest(semantics, negative)})
        numbers.push_back(llvm::ConstantFP::get(b.getContext(), number));
      for (const double number : {0.75, 1.0, 127.5, 128.0, 255.5, 256.0, 32768.0, 65504.0, 2147483520.0, 4294967296.0})
        numbers.push_back(llvm::ConstantFP::get(type, negative ? -number : number));
    }
    llvm::Value* const none = llvm::ConstantFP::getNaN(type);
    for (llvm::Value* x : numbers) {
      for (const unsigned width : {8u, 16u, 32u, 64u}) {
        for (const Intrinsic::ID id : {Intrinsic::fptoui_sat, Intrinsic::fptosi_sat})
          expansions.Check(id, b.getIntNTy(width), {b.getIntNTy(width), type}, {x});
      }
      for (const Intrinsic::ID id : {Intrinsic::minnum, Intrinsic::maxnum, Intrinsic::minimum, Intrinsic::maximum}) {
        const bool orders_zeros = id == Intrinsic::minimum || id == Intrinsic::maximum;
        for (llvm::Value* y : numbers) {
          const bool zeros = llvm::cast<llvm::ConstantFP>(x)->isZero() && llvm::cast<llvm::ConstantFP>(y)->isZero();
          if (orders_zeros || !zeros) expansions.Check(id, type, {type}, {x, y});
        }
        expansions.Check(id, type, {type}, {x, none});
        expansions.Check(id, type, {type}, {none, x});
      }
    }
    expansions.Check(Intrinsic::fptosi_sat, b.getInt32Ty(), {b.getInt32Ty(), type}, {none});
    expansions.Check(Intrinsic::fptoui_sat, b.getInt32Ty(), {b.getInt32Ty(), type}, {none});
  }
  CHECK(expansions.equal() > 10000);
}

TEST_CASE("BytecodeExpand_ClassesOfHalves_AsLlvmFoldsThem") {
  Expansions expansions;
  llvm::IRBuilder<>& b = expansions.builder();
  for (const unsigned bits :
       {0x0000u, 0x0001u, 0x03ffu, 0x0400u, 0x3c00u, 0x7bffu, 0x7c00u, 0x7c01u, 0x7dffu, 0x7e00u, 0x7fffu}) {
    for (const unsigned sign : {0u, 0x8000u}) {
      llvm::Value* const x =
          llvm::ConstantFP::get(b.getContext(), llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits | sign)));
      for (unsigned classes = 0; classes <= llvm::fcAllFlags; ++classes)
        expansions.Check(Intrinsic::is_fpclass, b.getInt1Ty(), {b.getHalfTy()}, {x, b.getInt32(classes)});
    }
  }
  CHECK(expansions.equal() == 22 * 1024);
}

}  // namespace gridloom::test
