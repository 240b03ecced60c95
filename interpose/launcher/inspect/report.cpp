#include "interpose/launcher/inspect/report.h"

#include <algorithm>

#include "interpose/launcher/inspect/accesses.h"
#include "interpose/launcher/inspect/strings.h"
#include "rewriter/image/cubin.h"
#include "rewriter/image/select.h"
#include "rewriter/passes/pipeline.h"
#include "rewriter/passes/registry.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/whole_file.h"
#include "sim/device/device_files.h"

namespace gridloom::launcher {
namespace {

using image::Compression;
using image::Container;
using image::Entry;
using image::EntryKind;

constexpr ComputeCapability kDefaultCapability{9, 0};

std::string KindText(const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::kPtx:
      return "PTX " + std::to_string(entry.version_major) + "." + std::to_string(entry.version_minor);
    case EntryKind::kCubin: return "machine code";
    case EntryKind::kOther: return "kind " + std::to_string(entry.raw_kind);
  }
  return "";
}

std::string CompressionText(Compression compression) {
  if (compression == Compression::kLz4) return "LZ4";
  return compression == Compression::kZstd ? "zstd" : "";
}

EntryReport ReportEntry(const Entry& entry, bool selected) {
  return {.kind = KindText(entry),
          .arch = entry.arch.capability.sm() != 0 ? entry.arch.text() : "unknown",
          .compression = CompressionText(entry.compression),
          .stored_bytes = entry.stored.size(),
          .bytes = entry.uncompressed_bytes,
          .source_name = std::string(entry.source_name),
          .options = std::string(entry.options),
          .debug = entry.debug,
          .selected = selected,
          .error = {}};
}

/// Asks every pass about every kernel, by running it on a copy.
void ReportPasses(const ptx::Module& module, ContainerReport& report) {
  for (const auto& pass : passes::AllPasses()) {
    const auto rewritten = passes::Run(passes::Pipeline({pass.get()}), module);
    for (KernelReport& kernel : report.kernels) {
      PassAnswer& answer = kernel.passes.emplace_back(PassAnswer{std::string(pass->name()), {}});
      const passes::KernelOutcome* const outcome = rewritten.ok() ? rewritten->Find(kernel.name) : nullptr;
      if (outcome == nullptr) {
        answer.why_not = rewritten.ok() ? "it has no body" : rewritten.error().message;
      } else if (outcome->status == passes::KernelStatus::kRefused) {
        answer.why_not = outcome->reason;
        answer.line = outcome->loc.line;
      }
      if (outcome != nullptr) answer.places = outcome->places;
    }
  }
}

void ReportModule(const ptx::Module& module, ContainerReport& report) {
  for (const ptx::Variable& variable : module.variables) {
    if (variable.linkage == ptx::Linkage::kExtern) continue;
    if (variable.space == ptx::StateSpace::kGlobal) report.global_bytes += variable.bytes();
    if (variable.space == ptx::StateSpace::kConst) report.constant_bytes += variable.bytes();
  }
  for (const ptx::Function& function : module.functions) {
    if (function.body == nullptr) continue;
    if (function.is_entry) report.kernels.push_back(ReportKernel(module, function));
    else ++report.device_functions;
  }
}

void ReportPtx(const Entry& entry, EntryReport& entry_report, ContainerReport& report) {
  auto text = entry.Read();
  if (!text.ok()) {
    entry_report.error = text.error().message;
    return;
  }
  report.ptx = *std::move(text);
  if (!entry.source_name.empty()) report.ptx_name = entry.source_name;
  DiagnosticSink sink;
  auto module = ptx::ParseModule(report.ptx, sink);
  AddDiagnostics(sink, report);
  ReportModule(*module, report);
  if (sink.has_errors()) return;
  ReportPasses(*module, report);
  ReportAccesses(*module, report.kernels);
  report.module = std::move(module);
}

/// Kernels of the machine code for the highest architecture, when there is no PTX to tell more.
void ReportCubins(const Container& container, ContainerReport& report) {
  const Entry* best = nullptr;
  for (const Entry& entry : container.entries) {
    if (entry.kind != EntryKind::kCubin) continue;
    if (best == nullptr || entry.arch.capability > best->arch.capability) best = &entry;
  }
  if (best == nullptr) return;
  const auto bytes = best->Read();
  if (!bytes.ok()) return;
  const auto cubin = image::ReadCubin(image::AsBytes(*bytes));
  if (!cubin.ok()) return;
  for (const image::CubinKernel& kernel : cubin->kernels) {
    const std::string name(kernel.name);
    report.machine_kernels.push_back({name, DemangledName(name), kernel.code_bytes, kernel.shared_bytes});
  }
}

ContainerReport ReportContainer(const Container& container, ComputeCapability device, const std::string& ptx_name,
                                InspectDepth depth) {
  ContainerReport report;
  report.ptx_name = ptx_name;
  report.member = container.member;
  report.section = container.section;
  report.relocatable = container.relocatable;
  const Entry* selected = image::SelectPtx(container, device);
  for (const Entry& entry : container.entries) {
    report.entries.push_back(ReportEntry(entry, &entry == selected));
    if (&entry == selected && depth == InspectDepth::kKernels) ReportPtx(entry, report.entries.back(), report);
  }
  if (selected == nullptr && depth == InspectDepth::kKernels) ReportCubins(container, report);
  return report;
}

/// What to tell a user of a file that cannot run as it is; empty when it can.
std::string NoteOn(const image::ImageSet& set, ComputeCapability device) {
  if (set.containers.empty()) {
    const bool program = set.format == image::Format::kExecutable || set.format == image::Format::kSharedObject;
    return program ? "no device code in this file; it may load some from its libraries or compile it at run time"
                   : "no device code in this file";
  }
  // The device-link product of a program has machine code only, and is not what runs.
  const auto texts = image::SelectPtx(set, device);
  return texts.ok() ? "" : texts.error().message;
}

}  // namespace

void AddDiagnostics(const DiagnosticSink& sink, ContainerReport& container) {
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    container.diagnostics.push_back(FormatDiagnostic(diagnostic, container.ptx_name, container.ptx));
  }
}

Result<InspectReport> InspectFile(const std::filesystem::path& file, std::optional<ComputeCapability> device,
                                  InspectDepth depth) {
  GL_TRY(set, image::ReadImageFile(file));
  std::string bytes;  // that the containers found in strings point into
  if (set.containers.empty() && set.format != image::Format::kPtx) {
    GL_TRY(all, ReadWholeFile(file));
    bytes = std::move(all);
    for (const std::string_view text : PtxInStrings(bytes)) {
      auto found = image::ReadImages(image::AsBytes(text));
      if (!found.ok()) continue;
      for (Container& container : found->containers) {
        container.section = "strings";
        set.containers.push_back(std::move(container));
      }
    }
  }
  InspectReport report;
  report.file = file.string();
  report.format = image::TextOf(set.format);
  report.device = device.value_or(image::FittingCapability(set, kDefaultCapability).value_or(kDefaultCapability));
  report.note = NoteOn(set, report.device);
  const std::string ptx_name = set.format == image::Format::kPtx ? report.file : "PTX";
  for (const Container& container : set.containers) {
    report.containers.push_back(ReportContainer(container, report.device, ptx_name, depth));
  }
  return report;
}

}  // namespace gridloom::launcher
