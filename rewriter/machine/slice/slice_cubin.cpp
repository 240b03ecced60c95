#include "rewriter/machine/slice/slice_cubin.h"

#include <algorithm>

#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/debug_frame.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/patch.h"
#include "rewriter/machine/slice/proof.h"
#include "rewriter/machine/slice/refusal.h"
#include "rewriter/machine/table.h"

namespace gridloom::machine {
namespace {

// Space, alignment and bank of a parameter in KPARAM_INFO, as ptxas has them; the size stands above.
constexpr std::uint32_t kParamPlace = 0x1F000, kParamSizeAt = 18, kHiddenParamBytes = 4;
constexpr unsigned kRegistersInfoAt = 24;  // in sh_info of code, below sm_90

/// The kernel's own attributes with those of the hidden parameters.
std::vector<Attribute> WithHidden(const KernelParts& parts) {
  std::vector<Attribute> attributes = parts.attributes;
  const std::uint32_t hidden = parts.hidden_at() - parts.first_param;
  const std::uint32_t bytes = hidden + static_cast<std::uint32_t>(SliceRoles().size()) * kHiddenParamBytes;
  const std::uint32_t place = parts.first_param | bytes << 16;
  auto at = std::ranges::find(attributes, AttributeCode::kCbankParamSize, &Attribute::code);
  if (at == attributes.end()) {
    attributes.push_back(SizedAttribute(AttributeCode::kParamCbank, {parts.constants_symbol, place}));
    attributes.push_back({AttributeFormat::kHalf, AttributeCode::kCbankParamSize, static_cast<std::uint16_t>(bytes)});
  } else {
    at->value = static_cast<std::uint16_t>(bytes);
    std::ranges::find(attributes, AttributeCode::kParamCbank, &Attribute::code)->SetNumber(4, place);
  }
  const auto own =
      static_cast<std::uint32_t>(std::ranges::count(attributes, AttributeCode::kKparamInfo, &Attribute::code));
  // The last parameter is described first.
  auto first = std::ranges::find(attributes, AttributeCode::kKparamInfo, &Attribute::code);
  auto to = first - attributes.begin();
  for (std::size_t number = SliceRoles().size(); number-- > 0; ++to) {
    const auto ordinal = own + static_cast<std::uint32_t>(number);
    const std::uint32_t offset = hidden + OffsetOf(SliceRoles()[number]);
    attributes.insert(attributes.begin() + to,
                      SizedAttribute(AttributeCode::kKparamInfo,
                                     {0, ordinal | offset << 16, kHiddenParamBytes << kParamSizeAt | kParamPlace}));
  }
  return attributes;
}

void MoveOffsets(std::vector<Attribute>& attributes, const PatchedCode& code) {
  for (Attribute& attribute : attributes) {
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

Status SetRegisters(CubinFile& cubin, const KernelParts& parts, std::uint32_t registers) {
  if (registers == parts.registers) return {};
  GL_TRY(attributes, ReadAttributes(cubin.sections()[parts.file_info].data));
  for (Attribute& attribute : attributes) {
    if (attribute.code == AttributeCode::kRegcount && attribute.data.size() == 8 && attribute.Number(0) == parts.symbol)
      attribute.SetNumber(4, registers);
  }
  const std::uint32_t info = cubin.sections()[parts.text].header.sh_info;
  if (info >> kRegistersInfoAt == parts.registers)
    cubin.SetInfo(parts.text, (info & ((1U << kRegistersInfoAt) - 1)) | registers << kRegistersInfoAt);
  return cubin.SetData(parts.file_info, WriteAttributes(attributes));
}

/// One kernel; the cubin is only changed when all of it can be.
class KernelSlicer {
 public:
  KernelSlicer(const CubinFile& cubin, SlicedKernel& kernel) : cubin_(cubin), kernel_(kernel) {}

  Result<CubinFile> Slice() {
    if (!cubin_.is_linked()) return Error{"its cubin is yet to be linked"};
    if (!IsKnownArchitecture(cubin_.sm()))
      return Error{"the table of machine code has no rows for sm_" + std::to_string(cubin_.sm())};
    GL_TRY(parts, ReadKernelParts(cubin_, kernel_.name));
    const auto& text = cubin_.sections()[parts.text].data;
    GL_TRY(flow, FlowGraph::Build(text, cubin_.sm()));
    if (const auto why = WhyWhole(cubin_, parts, flow)) return Error{*why};
    GL_TRY(code, PatchCode(text, cubin_.sm(), flow, parts));
    GL_TRY(changed, Apply(parts, code));
    kernel_.own_bytes = parts.param_bytes;
    kernel_.registers_before = parts.registers;
    kernel_.registers = code.registers;
    kernel_.sites = code.sites;
    kernel_.grid_reads = code.grid_reads;
    for (const passes::HiddenRole role : SliceRoles())
      kernel_.hidden.push_back({role, parts.hidden_at() - parts.first_param + OffsetOf(role)});
    return changed;
  }

 private:
  Result<CubinFile> Apply(const KernelParts& parts, const PatchedCode& code) const {
    CubinFile changed = cubin_;
    const std::uint64_t before = cubin_.sections()[parts.text].data.size();
    GL_TRY_STATUS(SetRegisters(changed, parts, code.registers));
    GL_TRY_STATUS(changed.SetData(parts.text, code.code));
    if (cubin_.symbols()[parts.symbol].entry.st_size == before) changed.SetSymbolSize(parts.symbol, code.code.size());
    GL_TRY_STATUS(GrowFrame(changed, parts.symbol, before, code.code.size()));
    std::vector<std::byte> constants = cubin_.sections()[parts.constants].data;
    constants.resize(parts.hidden_at() + SliceRoles().size() * kHiddenParamBytes);
    GL_TRY_STATUS(changed.SetData(parts.constants, std::move(constants)));
    std::vector<Attribute> attributes = WithHidden(parts);
    MoveOffsets(attributes, code);
    GL_TRY_STATUS(changed.SetData(parts.info, WriteAttributes(attributes)));
    return changed;
  }

  const CubinFile& cubin_;
  SlicedKernel& kernel_;
};

}  // namespace

Result<SlicedCubin> SliceCubin(image::Bytes bytes) {
  GL_TRY(original, CubinFile::Read(bytes));
  CubinFile cubin = original;
  SlicedCubin out;
  for (const std::string& name : KernelNames(original)) {
    SlicedKernel kernel{.name = name};
    auto changed = KernelSlicer(cubin, kernel).Slice();
    const Status proven = changed.ok() ? ProveKernel(cubin, *changed, kernel) : Status(changed.error());
    if (proven.ok()) {
      cubin = std::move(changed).value();
    } else {
      kernel = {.name = name, .why_whole = (changed.ok() ? "its proof fails: " : "") + proven.error().message};
    }
    out.kernels.push_back(std::move(kernel));
  }
  out.bytes = cubin.Write();
  GL_TRY(again, CubinFile::Read(out.bytes));
  GL_TRY_STATUS(ProveFile(original, again, out.kernels));
  return out;
}

}  // namespace gridloom::machine
