#include "interpose/objects/ptx_sources.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/objects/driver_refusals.h"
#include "rewriter/image/select.h"
#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/verifier.h"

namespace gridloom::session {

using namespace cuda;

namespace {

/// What ptxas does with -maxrregcount: kernels with launch bounds ignore it (CUDA C++ Programming Guide, "Launch
/// Bounds"), and those with .maxnreg have a limit of their own.
void CapRegisters(ptx::Module& module, std::uint32_t max_registers) {
  if (max_registers == 0) return;
  constexpr std::string_view kOwnLimits[] = {"maxntid", "minnctapersm", "maxnreg"};
  for (ptx::Function& function : module.functions) {
    if (!function.is_entry ||
        std::ranges::any_of(kOwnLimits, [&](std::string_view name) { return function.FindDirective(name); }))
      continue;
    function.directives.push_back({.name = "maxnreg", .values = {max_registers}, .text = {}});
  }
}

/// As drivers do, modules of a PTX version that nobody has heard of are refused, unless a compiler has put them into a
/// binary.
CUresult CheckVersion(const ptx::Module& module, ptx::PtxOrigin origin, JitLog* log, std::string* why) {
  if (origin != ptx::PtxOrigin::kWritten || module.version_major * 10 + module.version_minor <= ptx::kLastPtx)
    return CUDA_SUCCESS;
  *why = Format("PTX has .version %u.%u; the newest one there is is %u.%u", module.version_major, module.version_minor,
                ptx::kLastPtx / 10, ptx::kLastPtx % 10);
  log->error += *why + "\n";
  return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

CUresult ParseParts(const std::vector<PtxSource>& sources, ptx::PtxOrigin origin,
                    std::vector<std::unique_ptr<ptx::Module>>* parts, JitLog* log, std::string* why) {
  std::string complaints;
  // What a compiler made is right as a rule; what is linked or written by hand is read whole, and refused at once.
  const bool lazy = origin == ptx::PtxOrigin::kCompiled && sources.size() == 1;
  for (const PtxSource& source : sources) {
    DiagnosticSink sink;
    parts->push_back(lazy ? ptx::ParseModuleLazily(source.text, sink, origin) : ptx::ParseModule(source.text, sink));
    CapRegisters(*parts->back(), source.max_registers);
    if (const CUresult status = CheckVersion(*parts->back(), origin, log, why); status != CUDA_SUCCESS) return status;
    if (!lazy && !sink.has_errors()) ptx::VerifyModule(*parts->back(), sink, origin);
    if (sink.diagnostics().empty()) continue;
    (sink.has_errors() ? complaints : log->info) += FormatDiagnostics(sink, source.name, source.text);
  }
  if (complaints.empty()) return CUDA_SUCCESS;
  log->error += complaints;
  *why = "PTX has errors:\n" + complaints;
  return CUDA_ERROR_INVALID_PTX;
}

CUresult LinkParts(const std::vector<PtxSource>& sources, std::vector<std::unique_ptr<ptx::Module>> parts,
                   std::unique_ptr<ptx::Module>* module, JitLog* log, std::string* why) {
  std::vector<ptx::LinkInput> inputs;
  for (std::size_t i = 0; i < parts.size(); ++i)
    inputs.push_back({sources[i].name, std::move(parts[i]), sources[i].stands_in});
  auto linked = ptx::LinkModules(std::move(inputs), IsProvided);
  if (!linked.ok()) {
    log->error += linked.error().message + "\n";
    *why = "the parts of a program do not link: " + linked.error().message;
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = std::move(linked).value();
  return CUDA_SUCCESS;
}

}  // namespace

bool IsProvided(std::string_view name) {
  return name == "vprintf" || name == "malloc" || name == "free" || name == "__assertfail" ||
         name.starts_with("cuda") || name.starts_with("__cuda") || name.starts_with("__nv_") ||
         name.starts_with("cnp") || name.starts_with("gridloom_");
}

std::uint32_t MaxRegisters(std::string_view options) {
  constexpr std::string_view kName = "-maxrregcount";
  for (std::size_t at = 0; (at = options.find(kName, at)) != std::string_view::npos; at += kName.size()) {
    // The option's word begins here, with one dash or two.
    const std::size_t begin = at != 0 && options[at - 1] == '-' ? at - 1 : at;
    if (begin != 0 && options[begin - 1] != ' ') continue;
    const std::string_view rest = options.substr(at + kName.size());
    const std::size_t digits = rest.find_first_not_of("= ");
    if (digits == 0 || digits == std::string_view::npos) continue;
    const std::string_view text = rest.substr(digits, rest.find(' ', digits) - digits);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    LogFormat(LogLevel::kWarn, "-maxrregcount=%.40s is no number of registers; there is no limit",
              std::string(text).c_str());
    return 0;
  }
  return 0;
}

std::string WithMaxRegisters(std::string ptx, std::uint32_t max_registers) {
  if (max_registers == 0) return ptx;
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  if (sink.has_errors()) return ptx;
  CapRegisters(*module, max_registers);
  return ptx::PrintModule(*module);
}

CUresult SelectSources(const image::ImageSet& images, ComputeCapability device, std::vector<PtxSource>* sources,
                       std::string* why) {
  if (images.containers.empty()) return CUDA_SUCCESS;
  const auto entries = image::SelectPtx(images, device);
  if (!entries.ok()) {
    *why = entries.error().message;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  for (const image::Entry* entry : *entries) {
    auto text = entry->Read();
    if (!text.ok()) {
      *why = "PTX cannot be read: " + text.error().message;
      return CUDA_ERROR_INVALID_IMAGE;
    }
    std::string name =
        entry->source_name.empty() ? Format("part %zu", sources->size() + 1) : std::string(entry->source_name);
    sources->push_back({.name = entries->size() == 1 && entry->source_name.empty() ? "ptx" : std::move(name),
                        .text = std::move(text).value(),
                        .max_registers = MaxRegisters(entry->options)});
  }
  return CUDA_SUCCESS;
}

CUresult ParseSources(const std::vector<PtxSource>& sources, ptx::PtxOrigin origin,
                      std::unique_ptr<ptx::Module>* module, JitLog* log, std::string* why) {
  std::vector<std::unique_ptr<ptx::Module>> parts;
  if (const auto status = ParseParts(sources, origin, &parts, log, why); status != CUDA_SUCCESS) return status;
  if (parts.size() > 1) return LinkParts(sources, std::move(parts), module, log, why);
  // A container without entries is legal, and holds nothing.
  *module = parts.empty() ? std::make_unique<ptx::Module>() : std::move(parts.front());
  if (origin == ptx::PtxOrigin::kCompiled) return CUDA_SUCCESS;
  const std::string refusal = WhyDriversRefuse(**module);
  if (refusal.empty()) return CUDA_SUCCESS;
  log->error += refusal + "\n";
  *why = "PTX cannot be loaded: " + refusal;
  return CUDA_ERROR_INVALID_PTX;
}

CUresult LinkTexts(const std::vector<PtxSource>& sources, std::string* image, JitLog* log) {
  std::vector<std::unique_ptr<ptx::Module>> parts;
  std::unique_ptr<ptx::Module> module;
  std::string why;
  CUresult status = ParseParts(sources, ptx::PtxOrigin::kWritten, &parts, log, &why);
  if (status == CUDA_SUCCESS) status = LinkParts(sources, std::move(parts), &module, log, &why);
  if (status != CUDA_SUCCESS) {
    LogFormat(LogLevel::kError, "%s", why.c_str());
    return status;
  }
  *image = ptx::PrintModule(*module);
  return CUDA_SUCCESS;
}

}  // namespace gridloom::session
