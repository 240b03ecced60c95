#include "interpose/launcher/inspect/accesses.h"

#include <algorithm>

namespace gridloom::launcher {
namespace {

/// Longer lists are cut: unrolled loops repeat themselves.
constexpr std::size_t kMostExpressions = 6;

std::string UseText(const analysis::ArgumentPattern& argument) {
  return argument.reads ? (argument.writes ? "read and written" : "read") : "written";
}

std::string WhyText(const analysis::ArgumentPattern& argument) {
  if (argument.irregular.empty()) return "";
  const std::string line =
      argument.because_of.line == 0 ? "" : " (line " + std::to_string(argument.because_of.line) + ")";
  return argument.irregular + line;
}

}  // namespace

void ReportAccesses(const ptx::Module& module, std::vector<KernelReport>& kernels) {
  const analysis::CallGraph calls(module);
  for (KernelReport& report : kernels) {
    const ptx::Function* kernel = module.FindFunction(report.name);
    if (kernel == nullptr || !kernel->body) continue;
    report.arguments = analysis::DescribeArguments(analysis::AddressAnalysis(module, calls, *kernel));
  }
}

std::string AccessText(const KernelReport& kernel, unsigned indent) {
  std::string text;
  const std::string margin(indent, ' ');
  for (const analysis::ArgumentPattern& argument : kernel.arguments) {
    text += margin + argument.pointer + ": " + UseText(argument) + ", " + std::string(TextOf(argument.pattern)) + "\n";
    if (const std::string why = WhyText(argument); !why.empty()) text += margin + "  " + why + "\n";
    for (std::size_t i = 0; i < std::min(argument.expressions.size(), kMostExpressions); ++i)
      text += margin + "  " + argument.expressions[i] + "\n";
    if (argument.expressions.size() > kMostExpressions) {
      text += margin + "  and " + std::to_string(argument.expressions.size() - kMostExpressions) + " more\n";
    }
  }
  return text;
}

nlohmann::ordered_json AccessJson(const KernelReport& kernel) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const analysis::ArgumentPattern& argument : kernel.arguments) {
    nlohmann::ordered_json one{{"pointer", argument.pointer},
                               {"reads", argument.reads},
                               {"writes", argument.writes},
                               {"pattern", TextOf(argument.pattern)},
                               {"expressions", argument.expressions}};
    if (const std::string why = WhyText(argument); !why.empty()) one["irregular"] = why;
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace gridloom::launcher
