// Calls that are hardly ever made (the slow path of every access) and keep all registers: what is alive around them is
// neither spilled nor an obstacle to the register allocator, whose work they would otherwise double. LLVM 19's own
// means (no_caller_saved_registers, preserve_all) lose registers or know no AVX-512, so the call is an assembly that
// clobbers memory alone:
//
//   caller: arguments into a block in its frame; rdi = block, rax = function; call gl_keep
//   gl_keep (module assembly, once a module): saves what C may clobber, calls rax, restores
//   function(ptr block): loads its arguments from the block, stores its results behind them
#include <llvm/IR/InlineAsm.h>

#include "sim/exec/compiler/warp_helpers.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr unsigned kRareCallScratch = 1001;  // beside 1000, the arguments of helpers

/// Where arguments and results are in the block.
struct BlockLayout {
  BlockLayout(const llvm::Function& function, const llvm::DataLayout& layout) {
    for (const llvm::Argument& argument : function.args()) Add(argument.getType(), layout);
    arguments = static_cast<unsigned>(fields.size());
    if (auto* structure = llvm::dyn_cast<llvm::StructType>(function.getReturnType())) {
      for (llvm::Type* type : structure->elements()) Add(type, layout);
    } else if (!function.getReturnType()->isVoidTy()) {
      Add(function.getReturnType(), layout);
    }
  }

  void Add(llvm::Type* type, const llvm::DataLayout& layout) {
    const std::uint64_t size = layout.getTypeStoreSize(type);
    const std::uint64_t align = size >= 64 ? 64 : 8;
    bytes = (bytes + align - 1) / align * align;
    fields.push_back({type, bytes, llvm::Align(align)});
    bytes += size;
  }

  Value* Load(llvm::IRBuilder<>& b, Value* block, unsigned i) const {
    return b.CreateAlignedLoad(fields[i].type, At(b, block, i), fields[i].align);
  }
  void Store(llvm::IRBuilder<>& b, Value* block, unsigned i, Value* value) const {
    b.CreateAlignedStore(value, At(b, block, i), fields[i].align);
  }

  struct Field {
    llvm::Type* type;
    std::uint64_t offset;
    llvm::Align align;
  };
  llvm::SmallVector<Field, 16> fields;  // arguments, then results
  unsigned arguments = 0;
  std::uint64_t bytes = 0;

 private:
  Value* At(llvm::IRBuilder<>& b, Value* block, unsigned i) const {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), block, fields[i].offset);
  }
};

/// The form of `function` that takes a block.
llvm::Function* BlockForm(llvm::Function& function, const BlockLayout& layout) {
  llvm::Module& module = *function.getParent();
  const std::string name = (function.getName() + ".rare").str();
  if (llvm::Function* existing = module.getFunction(name)) return existing;
  llvm::LLVMContext& context = module.getContext();
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {llvm::PointerType::get(context, 0)}, false);
  auto* form = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  form->setAttributes(form->getAttributes().addFnAttributes(
      context, llvm::AttrBuilder(context, function.getAttributes().getFnAttrs())));
  llvm::IRBuilder<> b(BasicBlock::Create(context, "entry", form));
  Value* block = form->getArg(0);
  llvm::SmallVector<Value*, 12> arguments;
  for (unsigned i = 0; i < layout.arguments; ++i) arguments.push_back(layout.Load(b, block, i));
  Value* result = b.CreateCall(&function, arguments);
  const unsigned results = static_cast<unsigned>(layout.fields.size()) - layout.arguments;
  for (unsigned i = 0; i < results; ++i) {
    Value* one = function.getReturnType()->isStructTy() ? b.CreateExtractValue(result, i) : result;
    layout.Store(b, block, layout.arguments + i, one);
  }
  b.CreateRetVoid();
  return form;
}

/// gl_keep for a processor whose machine vectors have so many bytes.
std::string KeepAssembly(unsigned vector_bytes) {
  constexpr const char* kGeneral[] = {"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"};
  const bool masks = vector_bytes == 64;
  const unsigned vectors = masks ? 32 : 16, masks_at = vectors * vector_bytes;
  const std::string move = vector_bytes == 16 ? "movups " : "vmovups ";
  const std::string name = vector_bytes == 64 ? "%zmm" : vector_bytes == 32 ? "%ymm" : "%xmm";
  const auto at = [](unsigned offset) { return std::to_string(offset) + "(%rsp)"; };
  std::string text = ".text\n.p2align 4\n.type gl_keep,@function\ngl_keep:\npushq %rbp\nmovq %rsp,%rbp\n";
  for (const char* general : kGeneral) text += std::string("pushq %") + general + "\n";
  text += "subq $" + std::to_string(masks_at + 64) + ",%rsp\nandq $-64,%rsp\n";
  for (unsigned i = 0; i < vectors; ++i) text += move + name + std::to_string(i) + "," + at(i * vector_bytes) + "\n";
  for (unsigned i = 0; masks && i < 8; ++i) text += "kmovq %k" + std::to_string(i) + "," + at(masks_at + i * 8) + "\n";
  text += "cld\ncall *%rax\n";
  for (unsigned i = 0; i < vectors; ++i) text += move + at(i * vector_bytes) + "," + name + std::to_string(i) + "\n";
  for (unsigned i = 0; masks && i < 8; ++i) text += "kmovq " + at(masks_at + i * 8) + ",%k" + std::to_string(i) + "\n";
  text += "leaq -" + std::to_string(sizeof kGeneral / sizeof *kGeneral * 8) + "(%rbp),%rsp\n";
  for (unsigned i = sizeof kGeneral / sizeof *kGeneral; i-- > 0;) text += std::string("popq %") + kGeneral[i] + "\n";
  return text + "popq %rbp\nret\n.size gl_keep,.-gl_keep\n";
}

}  // namespace

/// What function(arguments) returns; null where that is nothing.
Value* HelperCalls::CallRarely(llvm::Function* function, llvm::ArrayRef<Value*> arguments) {
  if (SwitchesInLine()) return b_.CreateCall(function, arguments);
  llvm::Module& module = *w_.target->getParent();
  if (module.getModuleInlineAsm().empty()) module.setModuleInlineAsm(KeepAssembly(64 / module_.pieces));
  const BlockLayout layout(*function, module.getDataLayout());
  llvm::Function* form = BlockForm(*function, layout);
  Value* block = w_.Scratch(kRareCallScratch, static_cast<unsigned>(layout.bytes));
  for (unsigned i = 0; i < layout.arguments; ++i) layout.Store(b_, block, i, arguments[i]);
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy()}, false);
  b_.CreateCall(
      llvm::InlineAsm::get(type, "call gl_keep", "{rdi},{rax},~{memory},~{dirflag},~{fpsr},~{flags}", true, false),
      {block, form});
  llvm::Type* result = function->getReturnType();
  if (result->isVoidTy()) return nullptr;
  if (!result->isStructTy()) return layout.Load(b_, block, layout.arguments);
  Value* value = llvm::PoisonValue::get(result);
  for (unsigned i = layout.arguments; i < layout.fields.size(); ++i)
    value = b_.CreateInsertValue(value, layout.Load(b_, block, i), i - layout.arguments);
  return value;
}

}  // namespace gridloom::exec
