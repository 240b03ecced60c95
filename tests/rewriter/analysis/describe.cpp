#include "tests/rewriter/analysis/describe.h"

#include <set>

#include "rewriter/analysis/print_expression.h"

namespace gridloom::analysis::testing {

std::string DescribeRanges(const ptx::Module& module) {
  std::string text;
  const CallGraph calls(module);
  for (const ptx::Function& kernel : module.functions) {
    if (!kernel.is_entry || !kernel.body) continue;
    const AddressAnalysis analysis(module, calls, kernel);
    const ExpressionPrinter printer(analysis);
    text += std::string(kernel.name) + ": ";
    text += analysis.regular()
                ? "regular\n"
                : "irregular: " + analysis.reason() + " (line " + std::to_string(analysis.reason_loc().line) + ")\n";
    for (const RangeArgument& argument : analysis.arguments()) {
      for (const std::uint32_t index : argument.accesses) {
        const RangeAccess& access = analysis.accesses()[index];
        text += std::string("  ") + (access.reads ? "r" : "-") + (access.writes ? "w" : "-") + " " +
                printer.PrintAddress(access, argument.pointer) + " " + std::to_string(access.bytes);
        if (!access.irregular.empty()) {
          text += ": " + access.irregular;
        } else if (!access.bounded) {
          text += ": no bound";
        }
        text += "\n";
        for (const AssumptionId id : access.assumptions) text += "      if " + printer.PrintAssumption(id) + "\n";
        for (const RangeGuard& guard : access.guards) text += "      where 0 <= " + printer.Print(guard.number) + "\n";
      }
    }
    for (LoopInstanceId id = 0; id < analysis.loops().size(); ++id) {
      const std::string loop = printer.PrintLoop(id);
      text += "  " + (loop.empty() ? "i" + std::to_string(id) + " has no bound" : loop) + "\n";
    }
  }
  return text;
}

}  // namespace gridloom::analysis::testing
