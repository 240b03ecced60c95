#include "sim/exec/compiler/out_of_line.h"

#include <llvm/IR/Module.h>

namespace gridloom::exec {

llvm::Function* FunctionBeside(llvm::IRBuilder<>& b, const char* name, llvm::FunctionType* type,
                               llvm::IRBuilder<>& inside) {
  const llvm::Function& beside = *b.GetInsertBlock()->getParent();
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  if (llvm::Function* const known = module.getFunction(name)) return known;
  auto* const function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  function->addFnAttrs(llvm::AttrBuilder(b.getContext(), beside.getAttributes().getFnAttrs()));
  function->addFnAttr(llvm::Attribute::NoInline);
  inside.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  return function;
}

}  // namespace gridloom::exec
