// Runs the PTX of random kernels thread by thread, straight from the module: slow per instruction, but nothing has to be compiled, so
// that thousands of kernels can be tried. Knows the instructions that random kernels and passes make, and fails the test on others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::test {

/// What the special registers say.
struct ThreadPlace {
  std::uint32_t tid = 0, ntid = 1;
  std::array<std::uint32_t, 3> cta{}, grid{1, 1, 1};
  std::uint64_t grid_id = 0;
};

class Interpreter {
 public:
  explicit Interpreter(const ptx::Module& module);

  /// Runs one thread of a kernel to its end. `params` is the parameter block; addresses of global memory are those of the host.
  void Run(const ptx::Function& kernel, const std::vector<std::byte>& params, const ThreadPlace& place);

 private:
  struct Code {
    std::vector<const ptx::Instruction*> instructions;
    std::unordered_map<const ptx::Label*, std::size_t> labels;
  };
  struct RegisterKey {
    const ptx::Variable* variable;
    std::uint64_t index;
    bool operator==(const RegisterKey&) const = default;
  };
  struct RegisterHash {
    std::size_t operator()(const RegisterKey& key) const {
      return std::hash<const void*>()(key.variable) * 31 + key.index * 0x9E3779B97F4A7C15u;
    }
  };
  enum class Flow : std::uint8_t { kNext, kReturn, kExit };

  const Code& CodeOf(const ptx::Function& function);
  Flow RunFunction(const ptx::Function& function);
  Flow Step(const ptx::Instruction& instruction, const Code& code, std::size_t& next);
  Flow Call(const ptx::Instruction& call);
  void Compute(const ptx::Instruction& instruction);
  void Move(const ptx::Instruction& instruction);
  void Load(const ptx::Instruction& instruction);
  void Store(const ptx::Instruction& instruction);
  std::uint64_t Address(const ptx::Operand& operand) const;
  const std::byte* ParamBytes(const ptx::Variable& param) const;
  std::uint64_t Value(const ptx::Operand& operand) const;
  std::uint64_t Special(std::string_view name) const;
  void Set(const ptx::Operand& operand, std::uint64_t value);

  const ptx::Module& module_;
  std::unordered_map<const ptx::Function*, Code> code_;
  std::unordered_map<const ptx::Variable*, std::vector<std::uint64_t>> globals_;
  std::unordered_map<RegisterKey, std::uint64_t, RegisterHash> registers_;
  std::unordered_map<const ptx::Variable*, std::uint64_t> params_;  ///< .param variables of calls and functions
  const std::vector<std::byte>* block_ = nullptr;
  const ptx::Function* kernel_ = nullptr;
  ptx::ParamLayout layout_;
  ThreadPlace place_;
};

}  // namespace gridloom::test
