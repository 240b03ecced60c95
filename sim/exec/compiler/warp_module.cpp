// What the functions of a module share while it is vectorised; types of the warp form.

#include "sim/exec/compiler/warp_module.h"

namespace gridloom::exec {

const MarkerInfo* WarpModule::MarkerOf(const llvm::Instruction& instruction) const {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  return call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
}

llvm::Type* WarpType(llvm::Type* type, unsigned lanes) {
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
    llvm::SmallVector<llvm::Type*, 8> parts;
    for (llvm::Type* part : structure->elements()) parts.push_back(WarpType(part, lanes));
    return llvm::StructType::get(type->getContext(), parts);
  }
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    return llvm::FixedVectorType::get(vector->getElementType(), vector->getNumElements() * lanes);
  }
  if (type->isVoidTy()) return type;
  return llvm::FixedVectorType::get(type, lanes);
}

llvm::Type* StorageType(llvm::Type* warp_type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(warp_type);
  if (!vector || !vector->getElementType()->isIntegerTy(1)) return warp_type;
  return llvm::Type::getIntNTy(warp_type->getContext(), vector->getNumElements());
}

}  // namespace gridloom::exec
