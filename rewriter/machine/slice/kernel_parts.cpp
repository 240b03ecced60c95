#include "rewriter/machine/slice/kernel_parts.h"

#include <algorithm>

#include "rewriter/machine/word.h"

namespace gridloom::machine {
namespace {

using passes::HiddenRole;

constexpr std::uint8_t kEntryFlag = 0x10;  // st_other of kernels
constexpr char kSlicedSuffix[] = "$gridloom_slice";
// Of parameters that KPARAM_INFO describes; of others, as far as an instruction's offset reaches without a sign.
constexpr std::uint32_t kMostParamBytes = 4096, kMostConstantBytes = 0x8000;

std::string Named(std::string_view prefix, std::string_view kernel) {
  return std::string(prefix) + std::string(kernel);
}

Result<std::size_t> Needed(const CubinFile& cubin, const std::string& name) {
  const auto found = cubin.Find(name);
  if (!found || cubin.sections()[*found].data.empty()) return Error{"the cubin has no section " + name};
  return *found;
}

Status ReadParams(const CubinFile& cubin, KernelParts& parts) {
  const auto bytes = static_cast<std::uint32_t>(cubin.sections()[parts.constants].data.size());
  const Attribute* const bank = FindAttribute(parts.attributes, AttributeCode::kParamCbank);
  const Attribute* const size = FindAttribute(parts.attributes, AttributeCode::kCbankParamSize);
  if (bank == nullptr || size == nullptr) {
    if (bank != nullptr || size != nullptr || ParamCount(parts.attributes) != 0)
      return Error{"its attributes do not say where its parameters are"};
    parts.first_param = bytes;
    return {};
  }
  parts.first_param = bank->Number(4) & 0xFFFF;
  parts.param_bytes = size->value;
  if (bank->data.size() != 8 || bank->Number(4) >> 16 != parts.param_bytes ||
      parts.first_param + parts.param_bytes != bytes || parts.first_param < kGridEnd)
    return Error{"its attributes and its constant bank 0 disagree about the size of its parameters"};
  if (bank->Number(0) != parts.constants_symbol) return Error{"its parameters are in a bank of another kernel"};
  return {};
}

Result<std::uint32_t> ReadRegisters(const CubinFile& cubin, const KernelParts& parts) {
  GL_TRY(attributes, ReadAttributes(cubin.sections()[parts.file_info].data));
  for (const Attribute& attribute : attributes) {
    if (attribute.code == AttributeCode::kRegcount && attribute.data.size() == 8 && attribute.Number(0) == parts.symbol)
      return attribute.Number(4);
  }
  return Error{"the cubin does not say how many registers it has"};
}

/// A CTA of as many threads as the kernel says it may have has to find room in a multiprocessor's registers.
std::uint32_t RegisterLimit(const std::vector<Attribute>& attributes) {
  constexpr std::uint32_t kMost = 255, kOfMultiprocessor = 65536, kGranularity = 8;
  std::uint32_t limit = kMost;
  if (const Attribute* most = FindAttribute(attributes, AttributeCode::kMaxregCount);
      most != nullptr && most->value != 0)
    limit = std::min<std::uint32_t>(limit, most->value);
  const Attribute* const threads = FindAttribute(attributes, AttributeCode::kMaxThreads);
  if (threads == nullptr || threads->data.size() != 12) return limit;
  const std::uint64_t count = std::uint64_t{threads->Number(0)} * threads->Number(4) * threads->Number(8);
  if (count == 0 || count > kOfMultiprocessor) return limit;
  return std::min(limit, static_cast<std::uint32_t>(kOfMultiprocessor / count) / kGranularity * kGranularity);
}

}  // namespace

const std::vector<HiddenRole>& SliceRoles() {
  static const auto* const roles = new std::vector<HiddenRole>{
      HiddenRole::kFirstCtaX,   HiddenRole::kGridX,     HiddenRole::kGridY,       HiddenRole::kGridZ,
      HiddenRole::kFirstCtaY,   HiddenRole::kFirstCtaZ, HiddenRole::kReciprocalX, HiddenRole::kShiftX,
      HiddenRole::kReciprocalY, HiddenRole::kShiftY,    HiddenRole::kEndedTable,  HiddenRole::kEndedShift};
  return *roles;
}

std::uint32_t OffsetOf(HiddenRole role) {
  std::uint32_t offset = 0;
  for (const HiddenRole before : SliceRoles()) {
    if (before == role) break;
    offset += passes::Info(before).bytes;
  }
  return offset;
}

std::uint32_t HiddenBytes() { return OffsetOf(SliceRoles().back()) + passes::Info(SliceRoles().back()).bytes; }

std::string SlicedName(std::string_view kernel) { return std::string(kernel) + kSlicedSuffix; }

std::vector<std::string> KernelNames(const CubinFile& cubin) {
  std::vector<std::string> names;
  for (const CubinFile::Symbol& symbol : cubin.symbols()) {
    const bool kernel = (symbol.entry.st_other & kEntryFlag) != 0 && symbol.entry.st_shndx != SHN_UNDEF;
    if (kernel && !symbol.name.ends_with(kSlicedSuffix)) names.push_back(symbol.name);
  }
  return names;
}

Result<KernelParts> ReadKernelParts(const CubinFile& cubin, std::string_view kernel) {
  KernelParts parts;
  GL_TRY(text, Needed(cubin, Named(".text.", kernel)));
  GL_TRY(constants, Needed(cubin, Named(".nv.constant0.", kernel)));
  GL_TRY(info, Needed(cubin, Named(".nv.info.", kernel)));
  GL_TRY(file_info, Needed(cubin, ".nv.info"));
  parts.text = text;
  parts.constants = constants;
  parts.info = info;
  parts.file_info = file_info;
  const auto symbol = std::ranges::find_if(cubin.symbols(), [&](const CubinFile::Symbol& one) {
    return one.name == kernel && (one.entry.st_other & kEntryFlag) != 0;
  });
  if (symbol == cubin.symbols().end() || symbol->entry.st_shndx != text || symbol->entry.st_value != 0)
    return Error{"its symbol does not lead to the start of its code"};
  parts.symbol = static_cast<std::uint32_t>(symbol - cubin.symbols().begin());
  if (cubin.sections()[text].data.size() % kWordBytes != 0) return Error{"its code is no whole number of words"};
  const auto constants_symbol = cubin.SectionSymbol(constants);
  if (!constants_symbol) return Error{"its constant bank 0 has no symbol"};
  parts.constants_symbol = *constants_symbol;
  GL_TRY(attributes, ReadAttributes(cubin.sections()[info].data));
  parts.attributes = std::move(attributes);
  GL_TRY(targets, ReadBranchTargets(parts.attributes));
  parts.targets = std::move(targets);
  GL_TRY_STATUS(ReadParams(cubin, parts));
  GL_TRY(registers, ReadRegisters(cubin, parts));
  parts.registers = registers;
  parts.register_limit = RegisterLimit(parts.attributes);
  const std::uint32_t end = parts.hidden_at() + HiddenBytes();
  const bool large = FindAttribute(parts.attributes, AttributeCode::kKparamInfoV2) != nullptr;
  if (end > kMostConstantBytes || (!large && end - parts.first_param > kMostParamBytes))
    return Error{"its parameters have " + std::to_string(parts.param_bytes) +
                 " bytes, and those of slices find no room behind them"};
  return parts;
}

}  // namespace gridloom::machine
