// Makes kernels ready to run. What is in the cache or small becomes machine code at once. The rest is interpreted
// first, and machine code takes over when it has been made beside the program: in later launches, and in a running one
// between two CTAs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sim/exec/engine.h"
#include "sim/exec/runtime/background/client.h"
#include "sim/exec/runtime/code_cache.h"
#include "sim/exec/runtime/compiler_loader.h"
#include "sim/exec/runtime/kernel_table.h"
#include "sim/exec/runtime/processor_choices.h"
#include "sim/exec/runtime/program_impl.h"

namespace gridloom::exec {

class KernelBuilder {
 public:
  /// `compile` and `compiler_id`: tests', or null.
  KernelBuilder(const Engine::Options& options, CompileFn compile, std::string compiler_id, unsigned threads);

  KernelTable::Built Build(ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options);
  /// Machine code of what was built as bytecode, in place of waiting until it comes.
  Result<const LoadedKernel*> MakeNow(ProgramImpl& program, const KernelInfo& kernel, const LoadedKernel& interpreted);
  /// Measured where nobody has yet, which takes longer than most programs' first launch needs: not before one asks.
  const ProcessorChoices& Choices();
  /// Before code is made on a thread of ours, which does not wait for the loader.
  void LoadCompiler() { static_cast<void>(compiler_.Load()); }
  FindLineFn LoadFindLine() { return compiler_.LoadFindLine(); }

  /// Counts an interpreted kernel as used while one lives, and has its machine code made when it is used for long or
  /// again.
  class Use {
   public:
    Use(KernelBuilder& builder, const LaunchParams& params, const LoadedKernel& kernel);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const std::shared_ptr<TierState> tier_;
  };

 private:
  enum class Tiers : std::uint8_t { kOff, kOn, kInterpret };

  CacheKey KeyOf(const ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options) const;
  Result<LoadedKernel> BuildNow(ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options);
  Result<CompiledKernel> Compile(ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options,
                                 const CacheKey& key);
  Result<CompiledKernel> CompileBeside(ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options,
                                       const CacheKey& key);
  Result<LoadedKernel> MachineCode(ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options,
                                   const CacheKey& key, std::optional<CompiledKernel> compiled);
  Result<std::optional<LoadedKernel>> Interpret(ProgramImpl& program, const KernelInfo& kernel,
                                                const CompileOptions& options, const CacheKey& key,
                                                InterpretedKernel* known);
  std::optional<LoadedKernel> LoadBytecode(ProgramImpl& program, const KernelInfo& kernel,
                                           const CompileOptions& options, const InterpretedKernel& made,
                                           std::string& refused);
  void AskFor(const LaunchParams& params, const LoadedKernel& kernel, std::uint64_t patience_ns);

  const Engine::Options options_;
  CompilerLoader compiler_;
  CodeCache cache_;
  std::once_flag chosen_;
  ProcessorChoices choices_;
  Tiers tiers_ = Tiers::kOff;
  std::unique_ptr<BackgroundCompiler> background_;
};

/// The error names what is wrong with GRIDLOOM_TIERS.
Status CheckTiers(const std::string& tiers);

}  // namespace gridloom::exec
