#include "sim/exec/compiler/debug_lines.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

namespace gridloom::exec {
namespace {

llvm::StringRef Ref(std::string_view text) { return {text.data(), text.size()}; }

/// The module's compile unit, made on first use.
llvm::DICompileUnit* CompileUnitOf(llvm::Module& module) {
  if (auto* units = module.getNamedMetadata("llvm.dbg.cu"); units && units->getNumOperands() != 0) {
    return llvm::cast<llvm::DICompileUnit>(units->getOperand(0));
  }
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  llvm::DIBuilder builder(module);
  auto* unit = builder.createCompileUnit(llvm::dwarf::DW_LANG_C, builder.createFile("kernel.ptx", "."), "gridloom",
                                         true, "", 0, "", llvm::DICompileUnit::LineTablesOnly);
  builder.finalize();
  return unit;
}

/// Hands the line of a load on to what takes its value in the same block.
void HandOn(const llvm::Instruction& value, const llvm::DebugLoc& line) {
  for (llvm::User* user : const_cast<llvm::Instruction&>(value).users()) {
    auto* taker = llvm::cast<llvm::Instruction>(user);
    if (taker->getParent() != value.getParent() || llvm::isa<llvm::PHINode>(taker) || taker->mayReadOrWriteMemory())
      continue;
    taker->setDebugLoc(line);
    if (taker->isCast() || llvm::isa<llvm::ShuffleVectorInst>(taker)) HandOn(*taker, line);
  }
}

}  // namespace

void GiveLinesOfLoads(llvm::Module& module) {
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block)
        if (llvm::isa<llvm::LoadInst>(instruction) && instruction.getDebugLoc())
          HandOn(instruction, instruction.getDebugLoc());
    }
  }
}

void AddSubprogram(llvm::Function& function, std::string_view name, std::uint32_t line) {
  llvm::DICompileUnit* unit = CompileUnitOf(*function.getParent());
  llvm::DIBuilder builder(*function.getParent(), true, unit);
  auto* type = builder.createSubroutineType(builder.getOrCreateTypeArray({}));
  auto* subprogram = builder.createFunction(unit->getFile(), Ref(name), Ref(name), unit->getFile(), line, type, line,
                                            llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition);
  function.setSubprogram(subprogram);
  builder.finalizeSubprogram(subprogram);
}

std::uint32_t LineAt(std::span<const std::uint8_t> object, std::uint64_t offset, std::uint64_t text_bytes) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    auto name = section.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    if (*name != ".text" || section.getSize() != text_bytes || offset >= text_bytes) continue;
    const auto context = llvm::DWARFContext::create(**file);
    return context->getLineInfoForAddress({offset, section.getIndex()}).Line;
  }
  return 0;
}

}  // namespace gridloom::exec
