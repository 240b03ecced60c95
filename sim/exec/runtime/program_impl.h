// The runtime's view of a program: what Program shows, plus device addresses of its symbols and its compiled kernels.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/layout.h"
#include "sim/exec/program.h"
#include "sim/exec/runtime/code_key.h"
#include "sim/exec/runtime/kernel_table.h"
#include "sim/exec/runtime/register_estimate.h"

namespace gridloom::exec {

class ProgramImpl final : public Program {
 public:
  /// `original` is null but for a variant.
  ProgramImpl(std::shared_ptr<const ptx::Module> module, ProgramKey key, std::shared_ptr<const ProgramImpl> original,
              DeviceMemory& memory);
  ~ProgramImpl() override;
  Status Place();

  const ptx::Module& module() const override;
  const ptx::Module& module_as_read() const override { return *module_; }
  const ProgramKey& key() const override { return key_; }
  std::span<const KernelInfo> kernels() const override;
  std::vector<std::string_view> kernel_names() const override;
  std::span<const GlobalInfo> globals() const override { return globals_; }
  const KernelInfo* FindKernel(std::string_view name) const override;
  std::string ProblemOf(std::string_view kernel) const override;
  const GlobalInfo* FindGlobal(std::string_view name) const override;

  const std::shared_ptr<const ptx::Module>& module_pointer() const { return module_; }
  const std::vector<std::uint64_t>& symbol_addresses() const { return addresses_; }
  /// What names a kernel's code in the disk cache (code_key.h). The kernel was found by FindKernel.
  ProgramKey CodeKeyOf(const KernelInfo& kernel, bool recorded) const;
  /// The kernel that a device function pointer means, or null.
  const KernelInfo* KernelAt(std::uint64_t pointer) const;
  KernelTable& kernel_table() { return kernel_table_; }

 private:
  Status CheckFunctions() const;
  Status PlaceVariables();
  Status Initialize();
  void NameKernels();
  bool Describe(std::size_t kernel) const;
  Result<std::uint64_t> AddressOf(const ptx::Operand& symbol) const;

  std::shared_ptr<const ptx::Module> module_;
  std::shared_ptr<const ProgramImpl> original_;
  DeviceMemory& memory_;
  const ProgramKey key_;
  SymbolTable symbols_;
  mutable std::once_flag shared_code_made_;
  mutable SharedCode shared_code_;          // of all kernels' code
  std::vector<std::uint64_t> addresses_;    // by SymbolTable number
  std::vector<std::uint64_t> allocations_;  // to give back
  std::vector<GlobalInfo> globals_;         // by SymbolTable number
  std::unordered_map<std::string_view, std::size_t> kernel_by_name_;
  enum class Described : std::uint8_t { kNo, kYes, kHasErrors };
  mutable std::mutex describing_;            // of the three below; what is described stays as it is
  mutable std::vector<KernelInfo> kernels_;  // names and functions, until somebody asks for more
  mutable std::vector<Described> described_;
  mutable KernelRegisters kernel_registers_;
  std::uint32_t const_bytes_ = 0;
  bool functions_use_workspace_ = false;
  std::unordered_map<std::string_view, const GlobalInfo*> global_by_name_;
  KernelTable kernel_table_;
};

}  // namespace gridloom::exec
