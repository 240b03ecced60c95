#include <algorithm>
#include <map>
#include <utility>

#include "interpose/launcher/inspect/accesses.h"
#include "interpose/launcher/inspect/show.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/printable.h"
#include "rewriter/support/terminal.h"

namespace gridloom::launcher {
namespace {

std::string Count(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined;
}

/// "3 pred, 12 b32, 8 b64"
std::string RegistersText(const KernelReport& kernel) {
  static constexpr std::string_view kOrder[] = {"pred", "b16", "b32", "b64", "b128"};
  std::vector<std::string> parts;
  for (const std::string_view width : kOrder) {
    const auto found = kernel.registers.find(std::string(width));
    if (found != kernel.registers.end()) parts.push_back(std::to_string(found->second) + " " + std::string(width));
  }
  return parts.empty() ? "none" : Joined(parts);
}

/// "3/0/12/8": predicates and registers of 16, 32 and 64 bits; those of 128 bits count as two of 64.
std::string RegistersColumn(const KernelReport& kernel) {
  const auto count = [&](const char* width) -> std::uint64_t {
    const auto found = kernel.registers.find(width);
    return found == kernel.registers.end() ? 0 : found->second;
  };
  std::string text;
  for (const std::uint64_t number : {count("pred"), count("b16"), count("b32"), count("b64") + 2 * count("b128")}) {
    text += (text.empty() ? "" : "/") + std::to_string(number);
  }
  return text;
}

std::string SharedText(const KernelReport& kernel) {
  if (!kernel.dynamic_shared) return SizeText(kernel.shared_bytes);
  return kernel.shared_bytes == 0 ? "dynamic" : SizeText(kernel.shared_bytes) + " + dynamic";
}

/// "256, at least 2 blocks per SM" would be too long for a column: the threads only.
std::string BoundsColumn(const KernelReport& kernel) {
  for (const std::string& bound : kernel.launch_bounds) {
    const bool required = bound.starts_with("reqntid ");
    if (!required && !bound.starts_with("maxntid ")) continue;
    return (required ? "= " : "<= ") + bound.substr(8);
  }
  return "-";
}

std::string EntriesText(const ContainerReport& container) {
  Table table({" ", "what", "for", ">size", "stored as", "from"});
  for (const EntryReport& entry : container.entries) {
    const std::string stored = entry.compression.empty() ? "" : entry.compression + ", " + SizeText(entry.stored_bytes);
    std::string from = entry.source_name;
    if (!entry.options.empty()) from += (from.empty() ? "" : "  ") + entry.options;
    if (entry.debug) from += (from.empty() ? "" : "  ") + std::string("with debug information");
    if (!entry.error.empty()) from = Coloured(Colour::kRed, PrintableText(entry.error));
    table.Add({entry.selected ? "*" : " ", entry.kind, entry.arch, SizeText(entry.bytes), stored, from});
  }
  return table.Text(2);
}

/// "yes", or "no: it calls f (line 12)"
std::string PassText(const PassAnswer& answer) {
  if (answer.why_not.empty()) return "yes";
  return "no: " + answer.why_not + (answer.line == 0 ? "" : " (line " + std::to_string(answer.line) + ")");
}

/// "line 12 of f(): yes, unless the launch goes into …", or why not.
std::string PlaceText(const passes::PlaceReport& place) {
  std::string text = "line " + std::to_string(place.loc.line) + " of " + DemangledName(place.function) + ": " +
                     (place.changed ? "yes" : "no");
  if (!place.reason.empty()) text += (place.changed ? ", unless " : ": ") + place.reason;
  return text;
}

/// "all", "none", or which do not apply: "not slice, release".
std::string PassesColumn(const KernelReport& kernel) {
  std::vector<std::string> refused;
  for (const PassAnswer& answer : kernel.passes) {
    if (!answer.why_not.empty()) refused.push_back(answer.pass);
  }
  if (refused.empty()) return "all";
  return refused.size() == kernel.passes.size() ? "none" : "not " + Joined(refused);
}

std::string KernelTable(const ContainerReport& container, const InspectView& view) {
  Table table({">instr", ">pred/16/32/64", ">shared", ">local", ">params", "bar", "threads", "passes", "kernel"});
  for (const KernelReport& kernel : container.kernels) {
    if (!Wanted(view, kernel.name, kernel.demangled)) continue;
    const std::string parameters = std::to_string(kernel.parameters.size()) + ", " + SizeText(kernel.parameter_bytes);
    std::string name = kernel.demangled;
    if (kernel.refused) name = Coloured(Colour::kRed, "[refused] ") + name;
    else if (!kernel.unknown_opcodes.empty()) name = Coloured(Colour::kRed, "[unknown instructions] ") + name;
    table.Add({std::to_string(kernel.instructions), RegistersColumn(kernel), SharedText(kernel),
               SizeText(kernel.local_bytes), parameters, kernel.barriers.empty() ? "-" : Joined(kernel.barriers),
               BoundsColumn(kernel), PassesColumn(kernel), name});
  }
  return table.empty() ? "" : "\n" + table.Text(2);
}

std::string Fact(const std::string& name, const std::string& value) {
  constexpr std::size_t kNameWidth = 18;
  return "    " + name + std::string(kNameWidth - std::min(kNameWidth, name.size()), ' ') + value + "\n";
}

std::string ParameterTable(const KernelReport& kernel) {
  Table table({">offset", ">bytes", "type", "name"});
  for (const ParameterReport& parameter : kernel.parameters) {
    const std::string align = parameter.align != parameter.bytes ? " align " + std::to_string(parameter.align) : "";
    table.Add(
        {std::to_string(parameter.offset), std::to_string(parameter.bytes), parameter.type + align, parameter.name});
  }
  return table.Text(6);
}

std::string KernelDetails(const KernelReport& kernel) {
  std::string text = "\n  " + Coloured(Colour::kBold, kernel.demangled) + "\n";
  if (kernel.demangled != kernel.name) text += Fact("symbol", kernel.name);
  std::string instructions = std::to_string(kernel.instructions);
  if (kernel.callee_instructions != 0)
    instructions += ", and " + std::to_string(kernel.callee_instructions) + " in functions it may call";
  text += Fact("instructions", instructions);
  text += Fact("registers", RegistersText(kernel));
  text += Fact("", std::to_string(kernel.live_registers) + " of 32 bits in use at once");
  text += Fact("shared memory", SharedText(kernel));
  text += Fact("local memory", SizeText(kernel.local_bytes));
  text += Fact("barriers", kernel.barriers.empty() ? "none" : Joined(kernel.barriers));
  text += Fact("launch bounds", kernel.launch_bounds.empty() ? "none" : Joined(kernel.launch_bounds));
  if (!kernel.system_calls.empty()) text += Fact("system calls", Joined(kernel.system_calls));
  if (!kernel.unknown_opcodes.empty()) text += Fact("unknown", Coloured(Colour::kRed, Joined(kernel.unknown_opcodes)));
  for (const PassAnswer& answer : kernel.passes) {
    text += Fact(answer.pass, PassText(answer));
    for (const passes::PlaceReport& place : answer.places) text += Fact("", PlaceText(place));
  }
  if (!kernel.check.empty())
    text += Fact("check", Coloured(kernel.refused ? Colour::kRed : Colour::kGreen, PrintableText(kernel.check)));
  text += Fact("parameters", kernel.parameters.empty() ? "none" : std::to_string(kernel.parameter_bytes) + " bytes");
  if (!kernel.parameters.empty()) text += ParameterTable(kernel);
  text += Fact("global memory", kernel.arguments.empty() ? "not accessed" : "");
  text += AccessText(kernel, 6);
  return text;
}

std::string MachineKernels(const ContainerReport& container, const InspectView& view) {
  Table table({">code", ">shared", "kernel (machine code only)"});
  for (const MachineKernelReport& kernel : container.machine_kernels) {
    if (Wanted(view, kernel.name, kernel.demangled))
      table.Add({SizeText(kernel.code_bytes), SizeText(kernel.shared_bytes), kernel.demangled});
  }
  return table.empty() ? "" : "\n" + table.Text(2);
}

/// Why kernels are refused, one line each.
std::string Refusals(const InspectReport& report, const InspectView& view) {
  std::string text;
  for (const ContainerReport& container : report.containers) {
    for (const KernelReport& kernel : container.kernels) {
      if (!kernel.refused || !Wanted(view, kernel.name, kernel.demangled)) continue;
      text += Coloured(Colour::kRed, "refused: ") + kernel.demangled + "\n    " + PrintableText(kernel.check) + "\n";
    }
  }
  return text.empty() ? "" : "\n" + text;
}

/// "3 kernels, 2 device functions, 64 B constant"
std::string ModuleSummary(const ContainerReport& container) {
  if (container.kernels.empty() && container.device_functions == 0 && container.machine_kernels.empty())
    return "no kernels";
  std::string text = Count(container.kernels.size() + container.machine_kernels.size(), "kernel");
  if (container.device_functions != 0) text += ", " + Count(container.device_functions, "device function");
  if (container.global_bytes != 0) text += ", " + SizeText(container.global_bytes) + " global";
  if (container.constant_bytes != 0) text += ", " + SizeText(container.constant_bytes) + " constant";
  return text;
}

std::string ContainerText(const ContainerReport& container, std::size_t number, const InspectView& view) {
  std::string title = Coloured(Colour::kBold, "container " + std::to_string(number));
  if (!container.member.empty()) title += "  " + container.member;
  if (!container.section.empty()) title += "  " + container.section;
  if (container.relocatable) title += "  (separately compiled, linked with the others)";
  std::string text = "\n" + title + "  " + ModuleSummary(container) + "\n" + EntriesText(container);
  if (view.details) {
    for (const KernelReport& kernel : container.kernels) {
      if (Wanted(view, kernel.name, kernel.demangled)) text += KernelDetails(kernel);
    }
  } else {
    text += KernelTable(container, view);
  }
  text += MachineKernels(container, view);
  if (!container.diagnostics.empty()) text += "\n";
  for (const std::string& diagnostic : container.diagnostics) text += diagnostic;
  return text;
}

/// Machine code that nvcc adds to a program and that says nothing new: of a program without separate compilation there
/// is one container without kernels, of one with it a container of everything linked together.
bool IsLinkProduct(const ContainerReport& container, const InspectReport& report) {
  const bool has_ptx =
      std::ranges::any_of(container.entries, [](const EntryReport& entry) { return entry.kind.starts_with("PTX"); });
  const bool has_parts = std::ranges::any_of(report.containers, &ContainerReport::relocatable);
  if (container.section.empty() || container.relocatable || has_ptx) return false;
  return has_parts || container.machine_kernels.empty();
}

}  // namespace

bool Wanted(const InspectView& view, const std::string& name, const std::string& demangled) {
  return view.kernel.empty() || name.find(view.kernel) != std::string::npos ||
         demangled.find(view.kernel) != std::string::npos;
}

std::string ReportText(const InspectReport& report, const InspectView& view) {
  std::uint64_t kernels = 0, hidden = 0;
  std::size_t number = 0;
  bool any_selected = false;
  std::string containers;
  for (const ContainerReport& container : report.containers) {
    ++number;
    if (IsLinkProduct(container, report)) {
      ++hidden;
      continue;
    }
    kernels += container.kernels.size() + container.machine_kernels.size();
    containers += ContainerText(container, number, view);
    any_selected |= std::ranges::any_of(container.entries, &EntryReport::selected);
  }
  std::string text = Coloured(Colour::kBold, report.file) + ": " + report.format;
  if (!report.containers.empty()) text += ", " + Count(kernels, "kernel");
  text += "\n";
  if (!report.note.empty()) text += Coloured(Colour::kYellow, "note: ") + PrintableText(report.note) + "\n";
  std::string footer;
  if (any_selected)
    footer += "* what a device of compute capability " + report.device.text() + " runs; --device chooses another\n";
  if (hidden != 0)
    footer +=
        Count(hidden, "container") + " of linked machine code, which nvcc adds and Gridloom does not need, not shown\n";
  if (!footer.empty()) footer = "\n" + Coloured(Colour::kDim, footer);
  return text + containers + Refusals(report, view) + footer;
}

std::string BriefText(const InspectReport& report) {
  struct Sum {
    std::uint64_t entries = 0, bytes = 0, stored = 0;
    bool selected = false;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;  // by what they are, and for which architecture
  for (const ContainerReport& container : report.containers) {
    for (const EntryReport& entry : container.entries) {
      Sum& sum = sums[{entry.kind, entry.arch}];
      ++sum.entries;
      sum.bytes += entry.bytes;
      sum.stored += entry.stored_bytes;
      sum.selected |= entry.selected;
    }
  }
  std::string text = Coloured(Colour::kBold, report.file) + ": " + report.format;
  if (!report.containers.empty()) text += ", " + Count(report.containers.size(), "container");
  text += "\n";
  if (!report.note.empty()) text += Coloured(Colour::kYellow, "note: ") + PrintableText(report.note) + "\n";
  if (sums.empty()) return text;
  Table table({" ", "what", "for", ">entries", ">size", ">in the file"});
  bool any_selected = false;
  for (const auto& [key, sum] : sums) {
    table.Add({sum.selected ? "*" : " ", key.first, key.second, std::to_string(sum.entries), SizeText(sum.bytes),
               SizeText(sum.stored)});
    any_selected |= sum.selected;
  }
  text += table.Text(2);
  if (any_selected)
    text += Coloured(Colour::kDim, "* what a device of compute capability " + report.device.text() + " runs\n");
  return text;
}

}  // namespace gridloom::launcher
