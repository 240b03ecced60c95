#include "rewriter/kernels/kernels.h"

#include <string>

#include "rewriter/ptx/parser.h"
#include "rewriter/support/check.h"

namespace gridloom::kernels {

std::unique_ptr<ptx::Module> Parse(std::string_view text) {
  DiagnosticSink sink;
  auto module = ptx::ParseModule(std::string(text), sink);
  GL_CHECK(!sink.has_errors(), FormatDiagnostics(sink, "a kernel of our own", std::string(text)).c_str());
  for (ptx::Variable& variable : module->variables) {
    if (variable.linkage != ptx::Linkage::kExtern) variable.linkage = ptx::Linkage::kInternal;
  }
  for (ptx::Function& function : module->functions) {
    if (!function.is_entry && function.body != nullptr) function.linkage = ptx::Linkage::kInternal;
  }
  return module;
}

}  // namespace gridloom::kernels
