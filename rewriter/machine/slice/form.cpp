#include "rewriter/machine/slice/form.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace gridloom::machine {
namespace {

using passes::HiddenRole;

constexpr char kText[] = ".text.", kInfo[] = ".nv.info.", kConstants[] = ".nv.constant0.";
constexpr std::array kCopied = {".nv.constant2.", ".nv.shared.", ".nv.local."};
constexpr char kCallGraph[] = ".nv.callgraph";

constexpr unsigned kRegistersInfoAt = 24;  // in sh_info of code, below sm_90

bool IsRelocations(const CubinFile::Section& section) {
  return section.header.sh_type == SHT_REL || section.header.sh_type == SHT_RELA;
}

bool IsKnownSection(const std::string& prefix) {
  return prefix == kText || prefix == kInfo || prefix == kConstants || std::ranges::count(kCopied, prefix) != 0;
}

/// The kernel's own attributes with those of the hidden parameters, which are in another kernel's bank.
std::vector<Attribute> WithHidden(const KernelParts& parts, std::uint32_t constants_symbol) {
  std::vector<Attribute> attributes = parts.attributes;
  const std::uint32_t hidden = parts.hidden_at() - parts.first_param;
  const std::uint32_t bytes = hidden + HiddenBytes();
  const Attribute bank =
      SizedAttribute(AttributeCode::kParamCbank, {constants_symbol, parts.first_param | bytes << 16});
  auto at = std::ranges::find(attributes, AttributeCode::kCbankParamSize, &Attribute::code);
  if (at == attributes.end()) {
    attributes.push_back(bank);
    attributes.push_back({AttributeFormat::kHalf, AttributeCode::kCbankParamSize, static_cast<std::uint16_t>(bytes)});
  } else {
    at->value = static_cast<std::uint16_t>(bytes);
    *std::ranges::find(attributes, AttributeCode::kParamCbank, &Attribute::code) = bank;
  }
  const std::uint32_t own = ParamCount(attributes);
  // The last parameter is described first.
  const auto first = std::ranges::find_if(attributes, [](const Attribute& one) { return ReadParam(one).has_value(); });
  const AttributeCode kind = first == attributes.end() ? AttributeCode::kKparamInfo : first->code;
  auto to = first - attributes.begin();
  for (std::size_t number = SliceRoles().size(); number-- > 0; ++to) {
    const HiddenRole role = SliceRoles()[number];
    const auto ordinal = own + static_cast<std::uint32_t>(number);
    const std::uint32_t offset = hidden + OffsetOf(role);
    attributes.insert(attributes.begin() + to, ParamAttribute(kind, {ordinal, offset, passes::Info(role).bytes}));
  }
  return attributes;
}

void MoveOffsets(std::vector<Attribute>& attributes, const PatchedCode& code) {
  for (Attribute& attribute : attributes) {
    if (attribute.code == AttributeCode::kExitOffsets && !code.exit_offsets.empty())
      attribute = SizedAttribute(AttributeCode::kExitOffsets, code.exit_offsets);
    if (attribute.code != AttributeCode::kCtaidReadOffsets) continue;
    for (std::size_t at = 0; at + 4 <= attribute.data.size(); at += 4) {
      for (const auto& [from, to] : code.moved) {
        if (attribute.Number(at) == from) {
          attribute.SetNumber(at, to);
          break;
        }
      }
    }
  }
}

class FormWriter {
 public:
  FormWriter(CubinFile& cubin, const std::string& kernel, const KernelParts& parts, const PatchedCode& code)
      : cubin_(cubin), name_(SlicedName(kernel)), parts_(parts), code_(code) {}

  Status Write(const std::vector<KernelSection>& sections) {
    for (const KernelSection& one : sections) GL_TRY_STATUS(AddSection(one));
    GL_TRY_STATUS(AddSymbols());
    Link();
    GL_TRY_STATUS(AddFileAttributes());
    return AddCalls();
  }

 private:
  Status AddSection(const KernelSection& one) {
    std::vector<std::byte> data = cubin_.sections()[one.section].data;
    if (one.prefix == kText) data = code_.code;
    if (one.prefix == kConstants) data.resize(parts_.hidden_at() + HiddenBytes());
    if (one.prefix == kInfo) data = WriteAttributes(Attributes(0));
    GL_TRY(added, cubin_.AddSection(one.prefix + name_, one.section, std::move(data)));
    added_[one.prefix] = added;
    return {};
  }

  Status AddSymbols() {
    for (const char* const prefix : {kText, kConstants}) {
      const std::size_t like = prefix == kText ? parts_.text : parts_.constants;
      const auto symbol = cubin_.SectionSymbol(like);
      if (!symbol) continue;
      CubinFile::Symbol copy = cubin_.symbols()[*symbol];
      copy.entry.st_shndx = static_cast<Elf64_Section>(added_[prefix]);
      GL_TRY(number, cubin_.AddSymbol(copy.name.empty() ? copy.name : prefix + name_, copy.entry));
      if (prefix == kConstants) constants_symbol_ = number;
    }
    Elf64_Sym entry = cubin_.symbols()[parts_.symbol].entry;
    entry.st_shndx = static_cast<Elf64_Section>(added_[kText]);
    entry.st_size = code_.code.size();
    GL_TRY(symbol, cubin_.AddSymbol(name_, entry));
    symbol_ = symbol;
    return cubin_.SetData(added_[kInfo], WriteAttributes(Attributes(constants_symbol_)));
  }
  std::vector<Attribute> Attributes(std::uint32_t constants_symbol) const {
    std::vector<Attribute> attributes = WithHidden(parts_, constants_symbol);
    MoveOffsets(attributes, code_);
    return attributes;
  }

  /// Sections lead to the code, and the code to its symbol and its count of registers.
  void Link() {
    for (const auto& [prefix, section] : added_) {
      if (prefix != kText && cubin_.sections()[section].header.sh_info == parts_.text)
        cubin_.SetInfo(section, static_cast<std::uint32_t>(added_[kText]));
    }
    const std::uint32_t registers = cubin_.sections()[parts_.text].header.sh_info >> kRegistersInfoAt;
    cubin_.SetInfo(added_[kText], symbol_ | (registers == parts_.registers ? code_.registers : registers)
                                                << kRegistersInfoAt);
  }

  Status AddFileAttributes() {
    GL_TRY(attributes, ReadAttributes(cubin_.sections()[parts_.file_info].data));
    std::vector<Attribute> added;
    for (Attribute attribute : attributes) {
      if (!IsOfSymbol(attribute, parts_.symbol)) continue;
      attribute.SetNumber(0, symbol_);
      if (attribute.code == AttributeCode::kRegcount) attribute.SetNumber(4, code_.registers);
      added.push_back(std::move(attribute));
    }
    std::vector<std::byte> data = cubin_.sections()[parts_.file_info].data;
    const std::vector<std::byte> more = WriteAttributes(added);
    data.insert(data.end(), more.begin(), more.end());
    return cubin_.SetData(parts_.file_info, std::move(data));
  }

  Status AddCalls() {
    const auto section = cubin_.Find(kCallGraph);
    if (!section) return {};
    std::vector<std::byte> data = cubin_.sections()[*section].data;
    const std::size_t before = data.size();
    for (const auto& [caller, callee] : CallsOf(cubin_)) {
      if (caller != parts_.symbol) continue;
      const std::array<std::uint32_t, 2> call = {symbol_, callee};
      const auto* const bytes = reinterpret_cast<const std::byte*>(call.data());
      data.insert(data.end(), bytes, bytes + sizeof call);
    }
    return data.size() == before ? Status() : cubin_.SetData(*section, std::move(data));
  }

  CubinFile& cubin_;
  const std::string name_;
  const KernelParts& parts_;
  const PatchedCode& code_;
  std::map<std::string, std::size_t> added_{};
  std::uint32_t symbol_ = 0, constants_symbol_ = 0;
};

}  // namespace

bool IsOfSymbol(const Attribute& attribute, std::uint32_t symbol) {
  constexpr std::array kOfSymbols = {AttributeCode::kRegcount, AttributeCode::kFrameSize, AttributeCode::kMinStackSize,
                                     AttributeCode::kMaxStackSize};
  return std::ranges::count(kOfSymbols, attribute.code) != 0 && attribute.data.size() == 8 &&
         attribute.Number(0) == symbol;
}

Calls CallsOf(const CubinFile& cubin) {
  Calls calls;
  const auto section = cubin.Find(kCallGraph);
  if (!section) return calls;
  const image::Bytes data = cubin.sections()[*section].data;
  for (std::size_t at = 0; at + 8 <= data.size(); at += 8)
    calls.emplace_back(*image::ReadAt<std::uint32_t>(data, at), *image::ReadAt<std::uint32_t>(data, at + 4));
  return calls;
}

Result<std::vector<KernelSection>> SectionsOf(const CubinFile& cubin, const std::string& kernel) {
  std::vector<KernelSection> found;
  const std::string end = "." + kernel;
  for (std::size_t number = 0; number < cubin.sections().size(); ++number) {
    const CubinFile::Section& section = cubin.sections()[number];
    if (!section.name.ends_with(end) || section.name.size() == end.size()) continue;
    const std::string prefix = section.name.substr(0, section.name.size() - kernel.size());
    if (IsRelocations(section)) {
      if (!section.data.empty()) return Error{"the driver fills in places of its section " + section.name};
    } else if (IsKnownSection(prefix)) {
      found.push_back({prefix, number});
    } else {
      return Error{"the use of its section " + section.name + " is not known"};
    }
  }
  return found;
}

Status AddForm(CubinFile& cubin, const std::string& kernel, const KernelParts& parts, const PatchedCode& code) {
  GL_TRY(sections, SectionsOf(cubin, kernel));
  return FormWriter(cubin, kernel, parts, code).Write(sections);
}

}  // namespace gridloom::machine
