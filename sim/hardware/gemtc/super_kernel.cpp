#include "sim/hardware/gemtc/super_kernel.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/kernels/kernels.h"
#include "rewriter/passes/module_text.h"
#include "rewriter/passes/task_calls.h"
#include "rewriter/ptx/parser.h"

namespace gridloom::hardware::gemtc {
namespace {

constexpr const char* kName = "gl_super";
constexpr const char* kFunction = "gl_task_";

std::string NameOf(std::uint32_t function) { return kFunction + std::to_string(function); }

/// A module with functions in the place of tasks, of which only the calls matter.
std::string ModuleText(unsigned sm) {
  std::string text = ".version 7.0\n.target sm_" + std::to_string(sm) + "\n.address_size 64\n";
  for (std::uint32_t i = 0; i < kMostKernels; ++i) text += ".func " + NameOf(i) + "(.param .b32 task) { ret; }\n";
  return text;
}

}  // namespace

Result<std::shared_ptr<const SuperKernel>> MakeSuperKernel(unsigned sm, const sim::TimingSpec& timing) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ModuleText(std::max(sm, 30u)), sink);
  passes::AddModule(*module, std::move(*kernels::Parse(kernels::kSuperPtx)));
  ptx::Function& kernel = *module->FindFunction(kName);
  std::vector<std::string> functions;
  for (std::uint32_t i = 0; i < kMostKernels; ++i) functions.push_back(NameOf(i));
  passes::task::CallTasks(*module, kernel, functions);
  auto made = std::make_shared<SuperKernel>();
  GL_TRY(code, resident::Compile(*module, kernel, kFunction));
  made->code = std::move(code);
  GL_TRY(decoded, timing::Decode(made->code.code, timing));
  made->decoded = std::make_shared<const timing::DecodedCode>(std::move(decoded));
  return std::shared_ptr<const SuperKernel>(std::move(made));
}

}  // namespace gridloom::hardware::gemtc
