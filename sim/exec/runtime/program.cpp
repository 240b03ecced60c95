#include "sim/exec/program.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "rewriter/ptx/lazy_bodies.h"
#include "sim/exec/contract/stack_use.h"
#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/initializer.h"
#include "sim/exec/runtime/program_impl.h"
#include "sim/exec/runtime/register_estimate.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kVariableAlign = 16;  // widest access a kernel makes
constexpr std::uint64_t kCheckedGap = 256;    // behind a variable under memcheck: what runs over its end finds nothing
constexpr std::uint64_t kOwnAllocationBytes = kPageBytes;  // from this size on a variable has guard gaps of its own

ProgramKey HashOf(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

/// The product of a directive's values (".maxntid 16, 16"), 0 when it is absent.
std::uint64_t Product(const ptx::FunctionDirective* directive) {
  if (!directive || directive->values.empty()) return 0;
  std::uint64_t product = 1;
  for (const std::uint64_t value : directive->values) product *= value;
  return product;
}

void CopyDims(const ptx::FunctionDirective* directive, std::uint32_t (&dims)[3]) {
  if (!directive || directive->values.empty()) return;
  for (std::size_t i = 0; i < 3; ++i)
    dims[i] = i < directive->values.size() ? static_cast<std::uint32_t>(directive->values[i]) : 1;
}

/// Cooperative groups read its address, inlined or by the device runtime library.
bool UsesGridWorkspace(const ptx::Block& block) {
  constexpr std::string_view kGetHandle = "__cuda_syscall_CGS_get_intrinsic_handle";
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
      for (const ptx::Operand& operand : instruction->operands) {
        if (operand.kind == ptx::OperandKind::kSpecial && (operand.text == "%envreg1" || operand.text == "%envreg2"))
          return true;
        if (instruction->Has(ptx::Trait::kCalls) && operand.text == kGetHandle) return true;
      }
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      if (UsesGridWorkspace(**nested)) return true;
    }
  }
  return false;
}

/// `needed`: by the code alone.
std::uint32_t Registers(const ptx::Function& function, std::uint32_t needed, std::uint32_t max_threads, bool bounded) {
  constexpr std::uint32_t kRegisterFile = 65536;
  std::uint32_t registers = std::max(needed, 8u);
  // ptxas, too, has no use for fewer registers than the calling convention takes.
  if (const auto* cap = function.FindDirective("maxnreg"); cap && !cap->values.empty())
    registers =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(registers, std::max<std::uint64_t>(cap->values[0], 8)));
  if (bounded && max_threads != 0) registers = std::min(registers, std::max(kRegisterFile / max_threads / 8 * 8, 16u));
  return registers;
}

KernelInfo DescribeKernel(const ptx::Module& module, const ptx::Function& function, KernelRegisters& registers) {
  KernelInfo info;
  info.name = function.name;
  info.function = &function;
  info.params = ptx::LayoutParams(function);
  for (const ptx::Variable& param : function.params)
    info.param_bytes.push_back(static_cast<std::uint32_t>(param.bytes()));
  info.static_shared_bytes = LayoutShared(module, function).static_bytes();
  info.own_memory_bytes = OwnMemoryBytes(function);
  const StackUse stack = FindStackUse(module, function);
  info.local_bytes = stack.bytes;
  info.open_stack = stack.open;
  const ptx::FunctionDirective* const required = function.FindDirective("reqntid");
  CopyDims(required, info.required_block);
  CopyDims(function.FindDirective("reqnctapercluster"), info.required_cluster);
  std::uint64_t threads = Product(required);
  if (threads == 0) threads = Product(function.FindDirective("maxntid"));
  const bool bounded = threads != 0 && threads <= info.max_threads;
  if (bounded) info.max_threads = static_cast<std::uint32_t>(threads);
  info.registers = Registers(function, registers.Of(function), info.max_threads, bounded);
  return info;
}

}  // namespace

ProgramImpl::ProgramImpl(std::shared_ptr<const ptx::Module> module, ProgramKey key,
                         std::shared_ptr<const ProgramImpl> original, DeviceMemory& memory)
    : module_(std::move(module)),
      original_(std::move(original)),
      memory_(memory),
      key_(key),
      symbols_(NumberSymbols(*module_)),
      kernel_registers_(*module_) {}

ProgramImpl::~ProgramImpl() {
  for (const std::uint64_t base : allocations_) memory_.Free(base);
}

Status ProgramImpl::Place() {
  GL_TRY_STATUS(CheckFunctions());
  GL_TRY_STATUS(PlaceVariables());
  GL_TRY_STATUS(Initialize());
  NameKernels();
  return {};
}

Status ProgramImpl::CheckFunctions() const {
  if (original_ == nullptr) return {};
  const auto &before = original_->symbols_.functions, &after = symbols_.functions;
  for (std::size_t number = 0; number < before.size(); ++number) {
    if (number < after.size() && after[number]->name == before[number]->name) continue;
    return Error{"function " + std::string(before[number]->name) + " is not where it was in the rewritten module"};
  }
  return {};
}

Status ProgramImpl::PlaceVariables() {
  globals_.reserve(symbols_.variables.size());
  addresses_.assign(symbols_.variables.size(), 0);
  std::uint64_t packed_bytes = 0;
  const std::uint64_t gap = memory_.remembers_freed() ? kCheckedGap : 0;
  std::vector<std::pair<std::size_t, std::uint64_t>> packed;  // small variables share one allocation: number, offset
  for (std::size_t number = 0; number < symbols_.variables.size(); ++number) {
    const ptx::Variable& variable = *symbols_.variables[number];
    const std::string where = "line " + std::to_string(variable.loc.line) + ": variable " + std::string(variable.name);
    GlobalInfo info;
    info.name = variable.name;
    info.bytes = std::max<std::uint64_t>(InitializedBytes(variable), 1);
    info.managed = variable.HasAttribute("managed");
    info.constant = variable.space == ptx::StateSpace::kConst;
    info.variable = &variable;
    if (const GlobalInfo* shared = original_ != nullptr ? original_->FindGlobal(variable.name) : nullptr) {
      if (shared->bytes != info.bytes) return Error{where + " has another size in the rewritten module"};
      info.address = addresses_[number] = shared->address;
      globals_.push_back(std::move(info));
      continue;
    }
    const std::uint64_t align = std::max(variable.alignment(), kVariableAlign);
    if ((align & (align - 1)) != 0)
      return Error{where + " has alignment " + std::to_string(align) + ", which is no power of two"};
    if (info.managed || info.bytes >= kOwnAllocationBytes || align > kPageBytes) {
      info.address =
          memory_.Allocate(info.bytes, align, info.managed ? MemoryKind::kManaged : MemoryKind::kModule, this);
      if (info.address == 0)
        return Error{where + " needs " + std::to_string(info.bytes) + " bytes of device memory, which are not there"};
      allocations_.push_back(info.address);
    } else {
      packed_bytes = RoundUp(packed_bytes, align);
      packed.emplace_back(number, packed_bytes);
      packed_bytes += info.bytes + gap;
    }
    addresses_[number] = info.address;
    globals_.push_back(std::move(info));
  }
  if (packed.empty()) return {};
  const std::uint64_t base = memory_.Allocate(packed_bytes, kPageBytes, MemoryKind::kModule, this);
  if (base == 0)
    return Error{"no device memory for the module's variables (" + std::to_string(packed_bytes) + " bytes)"};
  allocations_.push_back(base);
  for (const auto& [number, offset] : packed) addresses_[number] = globals_[number].address = base + offset;
  return {};
}

Result<std::uint64_t> ProgramImpl::AddressOf(const ptx::Operand& symbol) const {
  if (symbol.function) {
    const auto it = symbols_.function_index.find(symbol.function);
    if (it == symbols_.function_index.end())
      return Error{"function " + std::string(symbol.function->name) + " is used by an initialiser and has no body"};
    return FunctionPointer(it->second);
  }
  if (symbol.variable) {
    const auto it = symbols_.variable_index.find(symbol.variable);
    if (it != symbols_.variable_index.end()) return addresses_[it->second];
  }
  return Error{"an initialiser names " + std::string(symbol.text) +
               ", which is neither a global variable nor a function"};
}

Status ProgramImpl::Initialize() {
  for (const GlobalInfo& info : globals_) {
    const bool shared = original_ != nullptr && original_->FindGlobal(info.name) != nullptr;
    if (shared || !info.variable->has_initializer) continue;
    const std::span bytes(reinterpret_cast<std::byte*>(info.address), info.bytes);
    GL_TRY_STATUS(ApplyInitializer(
        *info.variable, [this](const ptx::Operand& symbol) { return AddressOf(symbol); }, bytes));
  }
  for (const GlobalInfo& info : globals_) global_by_name_.emplace(info.name, &info);
  return {};
}

void ProgramImpl::NameKernels() {
  for (const GlobalInfo& info : globals_)
    if (info.constant) const_bytes_ += static_cast<std::uint32_t>(info.bytes);
  for (const ptx::Function& function : module_->functions) {
    if (!function.body) continue;
    if (!function.is_entry) {
      functions_use_workspace_ |= UsesGridWorkspace(*function.body);
      continue;
    }
    kernels_.emplace_back().name = function.name;
    kernels_.back().function = &function;
  }
  described_.resize(kernels_.size());
  for (std::size_t i = 0; i < kernels_.size(); ++i) kernel_by_name_.emplace(kernels_[i].function->name, i);
}

/// Under describing_. False when the kernel's body has errors.
bool ProgramImpl::Describe(std::size_t kernel) const {
  Described& described = described_[kernel];
  if (described != Described::kNo) return described == Described::kYes;
  const ptx::Function& function = *kernels_[kernel].function;
  if (module_->unread != nullptr && !module_->unread->Read(function).empty()) {
    described = Described::kHasErrors;
    return false;
  }
  KernelInfo info = DescribeKernel(*module_, function, kernel_registers_);
  info.const_bytes = const_bytes_;
  info.uses_grid_sync = functions_use_workspace_ || UsesGridWorkspace(*function.body);
  kernels_[kernel] = std::move(info);
  described = Described::kYes;
  return true;
}

const ptx::Module& ProgramImpl::module() const {
  ptx::ReadAllBodies(*module_);
  return *module_;
}

std::span<const KernelInfo> ProgramImpl::kernels() const {
  const std::lock_guard lock(describing_);
  for (std::size_t i = 0; i < kernels_.size(); ++i) Describe(i);
  return kernels_;
}

std::vector<std::string_view> ProgramImpl::kernel_names() const {
  const std::lock_guard lock(describing_);
  std::vector<std::string_view> names;
  for (const KernelInfo& kernel : kernels_) names.push_back(kernel.function->name);
  return names;
}

const KernelInfo* ProgramImpl::FindKernel(std::string_view name) const {
  const auto it = kernel_by_name_.find(name);
  if (it == kernel_by_name_.end()) return nullptr;
  const std::lock_guard lock(describing_);
  return Describe(it->second) ? &kernels_[it->second] : nullptr;
}

std::string ProgramImpl::ProblemOf(std::string_view kernel) const {
  const auto it = kernel_by_name_.find(kernel);
  if (it == kernel_by_name_.end() || module_->unread == nullptr) return {};
  const std::lock_guard lock(describing_);
  return module_->unread->Read(*kernels_[it->second].function);
}

ProgramKey ProgramImpl::CodeKeyOf(const KernelInfo& kernel, bool recorded) const {
  std::call_once(shared_code_made_, [this] { shared_code_ = SharedCodeOf(*module_, symbols_); });
  return CodeKey(*module_, symbols_, shared_code_, *kernel.function, recorded);
}

const KernelInfo* ProgramImpl::KernelAt(std::uint64_t pointer) const {
  const std::uint64_t number = pointer / FunctionPointer(0);
  if (pointer % FunctionPointer(0) != 0 || number == 0 || number > symbols_.functions.size()) return nullptr;
  const ptx::Function& function = *symbols_.functions[number - 1];
  return function.is_entry ? FindKernel(function.name) : nullptr;
}

const GlobalInfo* ProgramImpl::FindGlobal(std::string_view name) const {
  const auto it = global_by_name_.find(name);
  return it == global_by_name_.end() ? nullptr : it->second;
}

Result<std::shared_ptr<Program>> Program::Load(std::unique_ptr<ptx::Module> module, std::string text,
                                               DeviceMemory& memory) {
  auto program = std::make_shared<ProgramImpl>(std::move(module), HashOf(text), nullptr, memory);
  GL_TRY_STATUS(program->Place());
  return std::shared_ptr<Program>(std::move(program));
}

Result<std::shared_ptr<Program>> Program::LoadVariant(std::shared_ptr<const ptx::Module> module, ProgramKey key,
                                                      std::shared_ptr<const Program> original, DeviceMemory& memory) {
  auto base = std::static_pointer_cast<const ProgramImpl>(std::move(original));
  auto program = std::make_shared<ProgramImpl>(std::move(module), key, std::move(base), memory);
  GL_TRY_STATUS(program->Place());
  return std::shared_ptr<Program>(std::move(program));
}

std::span<const GlobalInfo> VariablesIn(const Allocation& allocation) {
  const auto* const program =
      allocation.kind == MemoryKind::kModule ? allocation.OwnerAs<const ProgramImpl>() : nullptr;
  return program != nullptr ? program->globals() : std::span<const GlobalInfo>();
}

}  // namespace gridloom::exec
