// The runtime's view of a program: what Program shows, plus device addresses of its symbols and its compiled kernels.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/exec/layout.h"
#include "sim/exec/program.h"
#include "sim/exec/runtime/kernel_table.h"

namespace gridloom::exec {

/// XXH3 128 of the PTX text.
using TextHash = std::array<std::uint64_t, 2>;

class ProgramImpl final : public Program {
 public:
  ProgramImpl(std::unique_ptr<ptx::Module> module, std::string text, DeviceMemory& memory);
  ~ProgramImpl() override;
  Status Place();

  const ptx::Module& module() const override { return *module_; }
  std::span<const KernelInfo> kernels() const override { return kernels_; }
  std::span<const GlobalInfo> globals() const override { return globals_; }
  const KernelInfo* FindKernel(std::string_view name) const override;
  const GlobalInfo* FindGlobal(std::string_view name) const override;

  const std::vector<std::uint64_t>& symbol_addresses() const { return addresses_; }
  /// The kernel that a device function pointer means, or null.
  const KernelInfo* KernelAt(std::uint64_t pointer) const;
  const TextHash& text_hash() const { return hash_; }
  KernelTable& kernel_table() { return kernel_table_; }

 private:
  Status PlaceVariables();
  Status Initialize();
  void DescribeKernels();
  Result<std::uint64_t> AddressOf(const ptx::Operand& symbol) const;

  std::unique_ptr<ptx::Module> module_;
  std::string text_;
  DeviceMemory& memory_;
  TextHash hash_{};
  SymbolTable symbols_;
  std::vector<std::uint64_t> addresses_;    // by SymbolTable number
  std::vector<std::uint64_t> allocations_;  // to give back
  std::vector<KernelInfo> kernels_;
  std::vector<GlobalInfo> globals_;  // by SymbolTable number
  std::unordered_map<std::string_view, const KernelInfo*> kernel_by_name_;
  std::unordered_map<std::string_view, const GlobalInfo*> global_by_name_;
  KernelTable kernel_table_;
};

}  // namespace gridloom::exec
