#include "rewriter/machine/slice/refusal.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "rewriter/machine/print.h"
#include "rewriter/machine/slice/constants.h"
#include "rewriter/machine/slice/waits.h"
#include "rewriter/passes/slice.h"

namespace gridloom::machine {
namespace {

constexpr std::uint8_t kIsEntry = 0x10;  // st_other of kernels

/// What the driver puts into constant bank 0 below the parameters, as kernels of this project read it.
struct DriverSlot {
  std::int32_t first, end;
  unsigned first_sm, last_sm;
  const char* why_whole;  ///< nullptr: the same in a slice
};
constexpr DriverSlot kDriverSlots[] = {
    {0x00, 0x0C, 75, 90, nullptr},  // blockDim
    {0x0C, 0x18, 75, 90, nullptr},  // gridDim, which is redirected
    {0x18, 0x2C, 75, 90, nullptr},  // windows of shared and local memory, the stack
    {0x2C, 0x30, 75, 90, nullptr},  // %dynamic_smem_size
    {0x30, 0x38, 75, 90, "it reads %gridid"},
    {0x40, 0x48, 80, 89, nullptr},  // the generic address of parameters
    {0x44, 0x4C, 90, 90, "it synchronises the whole grid"},
    {0x68, 0x70, 90, 90, nullptr},  // %reserved_smem_offset_…
    {0x8C, 0x94, 75, 89, "it synchronises the whole grid"},
    {0x10C, 0x110, 75, 90, nullptr},  // %nsmid
    {0x114, 0x118, 80, 90, nullptr},  // what %total_smem_size leaves out
    {0x118, 0x120, 80, 89, nullptr},  // descriptor of global memory
    {0x120, 0x128, 80, 89, nullptr},  // %reserved_smem_offset_…
    {0x140, 0x18C, 90, 90, "it asks for its cluster"},
    {0x198, 0x1A0, 90, 90, nullptr},  // the generic address of parameters
    {0x208, 0x210, 90, 90, nullptr},  // descriptor of global memory
};

constexpr std::pair<std::string_view, const char*> kTogether[] = {
    {"UCGABAR", "it waits for other CTAs of its cluster"},
    {"ACQBULK", "the end of the grid before controls its start"},
    {"PREEXIT", "it controls the start of the next grid"},
    {"BRXU", "a branch leads to a place of a table"},
};

std::string HexOf(std::uint64_t number) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string InPlace(const Instruction& instruction, std::size_t at) {
  return " (at " + HexOf(at * kWordBytes) + ": " + Text(instruction, at * kWordBytes) + ")";
}

std::optional<std::string> WhyNotRead(const ConstantRead& read, const KernelParts& parts, unsigned sm) {
  if (read.unknown) return "it reads a constant bank that is not in the instruction";
  if (read.bank != 0) return std::nullopt;
  const auto params = static_cast<std::int32_t>(parts.first_param);
  const std::int32_t end = read.offset + static_cast<std::int32_t>(read.bytes);
  if (read.indexed) {
    if (read.offset >= params) return std::nullopt;
    return "it reads a place of constant bank 0 that is computed";
  }
  if (read.offset >= params) {
    if (end <= params + static_cast<std::int32_t>(parts.param_bytes + 3) / 4 * 4) return std::nullopt;
    return "it reads what is behind its parameters";
  }
  for (const DriverSlot& slot : kDriverSlots) {
    if (sm < slot.first_sm || slot.last_sm < sm || read.offset < slot.first || end > slot.end) continue;
    if (slot.why_whole == nullptr) return std::nullopt;
    return slot.why_whole;
  }
  return "it reads c[0x0][" + HexOf(static_cast<std::uint32_t>(read.offset)) + "], whose meaning is not known";
}

std::optional<std::string> WhyNotInstruction(const Instruction& instruction, const KernelParts& parts, unsigned sm) {
  for (const auto& [name, why] : kTogether) {
    if (instruction.format->name.starts_with(name)) return why;
  }
  for (const ConstantRead& read : ConstantReadsOf(instruction)) {
    if (auto why = WhyNotRead(read, parts, sm)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> WhyNotAttributes(const std::vector<Attribute>& attributes) {
  for (const AttributeCode code :
       {AttributeCode::kCtaPerCluster, AttributeCode::kExplicitCluster, AttributeCode::kMaxClusterRank}) {
    if (FindAttribute(attributes, code) != nullptr) return "it is launched in clusters";
  }
  const bool both = FindAttribute(attributes, AttributeCode::kKparamInfo) != nullptr &&
                    FindAttribute(attributes, AttributeCode::kKparamInfoV2) != nullptr;
  const auto count = std::ranges::count_if(attributes, [](const Attribute& one) {
    return one.code == AttributeCode::kKparamInfo || one.code == AttributeCode::kKparamInfoV2;
  });
  if (both || ParamCount(attributes) != static_cast<std::uint32_t>(count))
    return "its parameters are described in a way that is not known";
  return std::nullopt;
}

/// Somewhere in the cubin stands the address of the kernel: device code may launch it.
bool IsAddressTaken(const CubinFile& cubin, const KernelParts& parts) {
  for (std::size_t section = 0; section < cubin.sections().size(); ++section) {
    if (cubin.sections()[section].name.starts_with(".debug_")) continue;
    for (const CubinFile::Relocation& relocation : cubin.RelocationsOf(section)) {
      if (relocation.symbol == parts.symbol) return true;
    }
  }
  return false;
}

/// Code outside of the kernel that it may call: functions of the driver, which know no grid, or others.
std::optional<std::string> WhyNotCalled(const CubinFile& cubin) {
  for (const CubinFile::Symbol& symbol : cubin.symbols()) {
    if (symbol.name.empty() || symbol.name.front() == '.') continue;  // places in memory
    if (symbol.entry.st_shndx == SHN_UNDEF) {
      if (!passes::KnowsNoGrid(symbol.name)) return "it may call " + symbol.name + ", which is not in the cubin";
    } else if (ELF64_ST_TYPE(symbol.entry.st_info) == STT_FUNC && (symbol.entry.st_other & kIsEntry) == 0 &&
               cubin.Find(".text." + symbol.name)) {
      return "it may call " + symbol.name + ", which is outside of it";
    }
  }
  return std::nullopt;
}

bool WaitsInCalls(const CubinFile& cubin) {
  return std::ranges::any_of(cubin.symbols(), [](const CubinFile::Symbol& symbol) {
    return symbol.entry.st_shndx == SHN_UNDEF && (symbol.name == "malloc" || symbol.name == "cudaMalloc");
  });
}

}  // namespace

std::optional<std::string> WhyWhole(const CubinFile& cubin, const KernelParts& parts, const FlowGraph& flow) {
  if (auto why = WhyNotAttributes(parts.attributes)) return why;
  if (IsAddressTaken(cubin, parts)) return "device code launches it";
  if (!cubin.RelocationsOf(parts.text).empty()) return "the driver fills in places of its code";
  const auto instructions = flow.instructions();
  bool calls = false;
  for (std::size_t at = 0; at < instructions.size(); ++at) {
    if (auto why = WhyNotInstruction(instructions[at], parts, cubin.sm())) return *why + InPlace(instructions[at], at);
    calls |= instructions[at].format->flow == Flow::kOutside;
  }
  if (calls) {
    if (auto why = WhyNotCalled(cubin)) return why;
  }
  if (const auto wait = WaitOf(flow, WaitsInCalls(cubin)))
    return "a loop may wait for what another CTA writes" + InPlace(instructions[*wait], *wait);
  return std::nullopt;
}

}  // namespace gridloom::machine
