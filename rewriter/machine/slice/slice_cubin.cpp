#include "rewriter/machine/slice/slice_cubin.h"

#include <algorithm>
#include <map>

#include "rewriter/machine/control_rules.h"
#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/form.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/patch.h"
#include "rewriter/machine/slice/proof.h"
#include "rewriter/machine/slice/refusal.h"
#include "rewriter/machine/table.h"

namespace gridloom::machine {
namespace {

/// What a kernel's form is made of.
struct FormParts {
  KernelParts parts{};
  PatchedCode code{};
};

void Describe(SlicedKernel& kernel, const KernelParts& parts) {
  kernel.own_bytes = parts.param_bytes;
  kernel.own_params = ParamCount(parts.attributes);
  kernel.registers_before = parts.registers;
  for (const passes::HiddenRole role : SliceRoles())
    kernel.hidden.push_back({role, parts.hidden_at() - parts.first_param + OffsetOf(role)});
}

Result<FormParts> Prepare(const CubinFile& cubin, SlicedKernel& kernel) {
  if (!cubin.is_linked()) return Error{"its cubin is yet to be linked"};
  if (!IsKnownArchitecture(cubin.sm()))
    return Error{"the table of machine code has no rows for sm_" + std::to_string(cubin.sm())};
  FormParts form;
  GL_TRY(parts, ReadKernelParts(cubin, kernel.name));
  form.parts = std::move(parts);
  const auto& text = cubin.sections()[form.parts.text].data;
  GL_TRY(flow, FlowGraph::Build(text, cubin.sm(), form.parts.targets));
  if (const Status rules = CheckControl(flow); !rules.ok())
    return Error{"its control bits break a rule: " + rules.error().message};
  if (const auto why = WhyWhole(cubin, form.parts, flow)) return Error{*why};
  if (const auto sections = SectionsOf(cubin, kernel.name); !sections.ok()) return sections.error();
  GL_TRY(code, PatchCode(text, cubin.sm(), flow, form.parts));
  form.code = std::move(code);
  Describe(kernel, form.parts);
  kernel.registers = form.code.registers;
  kernel.sites = form.code.sites;
  kernel.grid_reads = form.code.grid_reads;
  kernel.exits = form.code.exits;
  return form;
}

/// Ends of the kernel that are something else in the form.
std::uint32_t CountedEnds(const CubinFile& cubin, const KernelParts& parts, const KernelParts& form) {
  const image::Bytes theirs = cubin.sections()[parts.text].data, mine = cubin.sections()[form.text].data;
  std::uint32_t ends = 0;
  for (std::size_t at = 0; at + kWordBytes <= std::min(theirs.size(), mine.size()); at += kWordBytes) {
    const auto instruction = Decode(ReadWord(theirs, at), cubin.sm());
    const bool end = instruction && instruction->format->flow == Flow::kExit;
    ends += end && ReadWord(mine, at) != ReadWord(theirs, at) ? 1 : 0;
  }
  return ends;
}

/// A form that the file has already.
Status Recognise(const CubinFile& cubin, SlicedKernel& kernel) {
  GL_TRY(parts, ReadKernelParts(cubin, kernel.name));
  GL_TRY(form, ReadKernelParts(cubin, SlicedName(kernel.name)));
  Describe(kernel, parts);
  kernel.registers = form.registers;
  kernel.exits = CountedEnds(cubin, parts, form);
  return ProveKernel(cubin, cubin, kernel);
}

SlicedKernel Whole(const std::string& name, const std::string& why) { return {.name = name, .why_whole = why}; }

/// The file with these forms, read again; the first form whose proof fails is whole from now on, and nothing comes.
Result<std::optional<SlicedCubin>> WriteForms(const CubinFile& original, std::vector<SlicedKernel>& kernels,
                                              std::map<std::string, FormParts>& forms) {
  CubinFile cubin = original;
  for (SlicedKernel& kernel : kernels) {
    const auto form = forms.find(kernel.name);
    if (form != forms.end()) GL_TRY_STATUS(AddForm(cubin, kernel.name, form->second.parts, form->second.code));
  }
  SlicedCubin out{.bytes = cubin.Write()};
  GL_TRY(again, CubinFile::Read(out.bytes));
  bool proven = true;
  for (SlicedKernel& kernel : kernels) {
    if (!forms.contains(kernel.name)) continue;
    const Status status = ProveKernel(original, again, kernel);
    if (status.ok()) continue;
    forms.erase(kernel.name);
    kernel = Whole(kernel.name, "its proof fails: " + status.error().message);
    proven = false;
  }
  if (!proven) return std::optional<SlicedCubin>();
  GL_TRY_STATUS(ProveFile(original, again, kernels));
  return std::optional(std::move(out));
}

}  // namespace

Result<SlicedCubin> SliceCubin(image::Bytes bytes) {
  GL_TRY(original, CubinFile::Read(bytes));
  std::vector<SlicedKernel> kernels;
  std::map<std::string, FormParts> forms;
  for (const std::string& name : KernelNames(original)) {
    SlicedKernel kernel{.name = name};
    if (original.Find(".text." + SlicedName(name))) {
      const Status known = Recognise(original, kernel);
      kernels.push_back(known.ok() ? std::move(kernel)
                                   : Whole(name, "what is called its sliced form is none: " + known.error().message));
      continue;
    }
    auto form = Prepare(original, kernel);
    if (form.ok()) forms.emplace(name, std::move(form).value());
    kernels.push_back(form.ok() ? std::move(kernel) : Whole(name, form.error().message));
  }
  while (true) {
    GL_TRY(out, WriteForms(original, kernels, forms));
    if (!out) continue;
    out->kernels = std::move(kernels);
    return *std::move(out);
  }
}

}  // namespace gridloom::machine
