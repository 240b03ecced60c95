#include "interpose/launcher/inspect/machine_code.h"

#include <algorithm>
#include <cstdio>

#include "interpose/launcher/inspect/show.h"
#include "rewriter/image/cubin.h"
#include "rewriter/machine/instruction.h"
#include "rewriter/machine/print.h"
#include "rewriter/machine/slice/slice_cubin.h"
#include "rewriter/machine/table.h"
#include "rewriter/support/demangle.h"

namespace gridloom::launcher {
namespace {

std::string ListingLine(const machine::Word& word, unsigned sm, std::size_t at, std::size_t& unknown) {
  char address[32];
  std::snprintf(address, sizeof address, "    /*%04zx*/  ", at);
  const auto instruction = machine::Decode(word, sm);
  if (!instruction) {
    ++unknown;
    return address + machine::Text(machine::ReadControl(word)) + "  unknown " + machine::Hex(word) + "\n";
  }
  return address + machine::Text(instruction->control) + "  " + machine::Text(*instruction, at) + " ;\n";
}

/// What slicing would do to a kernel.
std::string SliceLine(const Result<machine::SlicedCubin>& sliced, std::string_view name) {
  if (!sliced.ok()) return "    not sliced: " + sliced.error().message + "\n";
  const auto kernel = std::ranges::find(sliced->kernels, name, &machine::SlicedKernel::name);
  if (kernel == sliced->kernels.end()) return {};
  if (!kernel->why_whole.empty()) return "    not sliced: " + kernel->why_whole + "\n";
  std::string text = "    in slices: " + std::to_string(kernel->sites) + " reads of %ctaid and " +
                     std::to_string(kernel->grid_reads) + " of the grid's size become others, " +
                     std::to_string(kernel->registers) + " registers";
  if (kernel->registers != kernel->registers_before) text += " in place of " + std::to_string(kernel->registers_before);
  if (kernel->exits == 0) text += "; its threads are not counted as they end";
  return text + "\n";
}

std::string Listing(const image::CubinKernel& kernel, const std::string& demangled, const image::Arch& arch,
                    const std::string& slices) {
  const unsigned sm = arch.capability.sm();
  std::string head = demangled + ", " + arch.text() + ", " + std::to_string(kernel.code.size() / machine::kWordBytes) +
                     " instructions";
  if (!machine::IsKnownArchitecture(sm))
    return head + ": the table of machine code has no rows for " + arch.text() + "\n";
  std::string lines;
  std::size_t unknown = 0;
  for (std::size_t at = 0; at + machine::kWordBytes <= kernel.code.size(); at += machine::kWordBytes)
    lines += ListingLine(machine::ReadWord(kernel.code, at), sm, at, unknown);
  if (unknown != 0) head += ", " + std::to_string(unknown) + " unknown";
  return head + "\n" + slices + lines;
}

/// What an entry has to list, behind `text`; an entry that cannot be read says so there.
void AppendEntry(const image::Entry& entry, const InspectView& view, std::string& text) {
  const auto bytes = entry.Read();
  const auto cubin = bytes.ok() ? image::ReadCubin(image::AsBytes(*bytes)) : Result<image::Cubin>(bytes.error());
  if (!cubin.ok()) {
    text += "machine code of " + entry.arch.text() + ": " + cubin.error().message + "\n";
    return;
  }
  const auto sliced = machine::SliceCubin(image::AsBytes(*bytes));
  for (const image::CubinKernel& kernel : cubin->kernels) {
    const std::string name(kernel.name), demangled = DemangledName(name);
    if (!Wanted(view, name, demangled)) continue;
    if (!text.empty()) text += "\n";
    text += Listing(kernel, demangled, entry.arch, SliceLine(sliced, name));
  }
}

}  // namespace

Result<std::string> MachineCodeText(const std::filesystem::path& file, const std::string& kernel,
                                    std::optional<ComputeCapability> device) {
  GL_TRY(images, image::ReadImageFile(file));
  const InspectView view{.kernel = kernel};
  std::string text;
  for (const image::Container& container : images.containers) {
    for (const image::Entry& entry : container.entries) {
      if (entry.kind != image::EntryKind::kCubin || (device && entry.arch.capability != *device)) continue;
      AppendEntry(entry, view, text);
    }
  }
  if (!text.empty()) return text;
  const std::string of = device ? " of sm_" + std::to_string(device->sm()) : "";
  return Error{"no machine code" + of + " in " + file.string() + " is of a kernel whose name contains '" + kernel +
               "'"};
}

}  // namespace gridloom::launcher
