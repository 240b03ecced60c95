// Runs the PTX of random kernels CTA by CTA, straight from the module: slow per instruction, but nothing has to be
// compiled, so that thousands of kernels can be tried. Knows the instructions that random kernels and passes make, and
// fails the test on others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::test {

/// What the special registers say to all threads of a CTA.
struct CtaPlace {
  std::array<std::uint32_t, 3> block{1, 1, 1}, cta{}, grid{1, 1, 1};
  std::uint64_t grid_id = 0;
};

/// Is told of what a CTA does, in order.
class InterpreterWatcher {
 public:
  virtual ~InterpreterWatcher() = default;
  virtual void OnAccess(std::uint64_t address, unsigned bytes, bool reads, bool writes) = 0;  ///< to global memory
  /// Of a function without a body. An argument of 12 bytes stands there as three.
  virtual void OnCall(std::string_view function, std::span<const std::uint64_t> arguments) = 0;
  /// Whether OnCall stands for the body of a function that has one.
  virtual bool Replaces(std::string_view) const { return false; }
  /// What the function returns that OnCall was told of last.
  virtual std::uint64_t Result() const { return 0; }
};

class Interpreter {
 public:
  /// Without a watcher, functions without a body are unknown.
  explicit Interpreter(const ptx::Module& module, InterpreterWatcher* watcher = nullptr);

  /// Runs the threads of a CTA one after the other, x fastest, each to its next barrier or its end. `params` is the
  /// parameter block; addresses are those of the host.
  void RunCta(const ptx::Function& kernel, const std::vector<std::byte>& params, const CtaPlace& place);
  /// What an address stands for that a kernel has passed on.
  const ptx::Function& FunctionAt(std::uint64_t address) const;
  /// The module's variables in global memory: address and bytes.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> Globals() const;

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
  using Memory = std::unordered_map<const ptx::Variable*, std::vector<std::uint64_t>>;
  struct Thread {
    std::array<std::uint32_t, 3> tid{};
    std::size_t at = 0;  ///< instruction of the kernel
    bool ended = false;
    std::unordered_map<RegisterKey, std::uint64_t, RegisterHash> registers;
    /// .param variables of calls and functions, by byte.
    std::unordered_map<RegisterKey, std::uint64_t, RegisterHash> params;
    Memory local;
  };
  enum class Flow : std::uint8_t { kNext, kReturn, kExit, kBarrier };

  const Code& CodeOf(const ptx::Function& function);
  void RunThread(const Code& code);
  Flow RunFunction(const ptx::Function& function);
  Flow Step(const ptx::Instruction& instruction, const Code& code, std::size_t& next);
  Flow Call(const ptx::Instruction& call);
  void Compute(const ptx::Instruction& instruction);
  void Move(const ptx::Instruction& instruction);
  void Load(const ptx::Instruction& instruction);
  void Store(const ptx::Instruction& instruction);
  void Add(const ptx::Instruction& atomic);
  void Tell(const ptx::Instruction& access, std::uint64_t address, bool reads, bool writes) const;
  std::uint64_t Address(const ptx::Operand& operand);
  std::uint64_t AddressOf(const ptx::Variable& variable);
  const std::byte* ParamBytes(const ptx::Variable& param) const;
  std::uint64_t Value(const ptx::Operand& operand);
  std::uint64_t Special(std::string_view name) const;
  void CopyParam(const ptx::Variable& from, const ptx::Variable& to);
  /// Of the thread in its warp. No other lane ever comes along with it.
  std::uint64_t Lane() const;
  std::uint64_t Alone(const ptx::Instruction& of_warp);
  std::uint64_t FunctionAddress(const ptx::Function& function) const;
  void Set(const ptx::Operand& operand, std::uint64_t value);

  const ptx::Module& module_;
  InterpreterWatcher* const watcher_;
  std::unordered_map<const ptx::Function*, Code> code_;
  Memory globals_, shared_;
  const std::vector<std::byte>* block_ = nullptr;
  const ptx::Function* kernel_ = nullptr;
  ptx::ParamLayout layout_;
  CtaPlace place_;
  Thread* thread_ = nullptr;
};

}  // namespace gridloom::test
