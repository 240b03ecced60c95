#include "rewriter/passes/pass.h"

#include <algorithm>
#include <iterator>

namespace gridloom::passes {

namespace {

constexpr HiddenRoleInfo kRoleInfo[] = {
#define X(id, text, bytes, meaning) {text, bytes, meaning},
    GL_HIDDEN_ROLES(X)
#undef X
};
constexpr std::string_view kInfix = "_gl_";  ///< between a kernel's name and a role's

}  // namespace

const HiddenRoleInfo& Info(HiddenRole role) { return kRoleInfo[static_cast<std::size_t>(role)]; }

// k_gl_first_x, or with underscores behind it where that name was taken.
std::optional<HiddenRole> HiddenRoleOf(const ptx::Function& kernel, const ptx::Variable& param) {
  std::string_view rest = param.name;
  if (!rest.starts_with(kernel.name) || !rest.substr(kernel.name.size()).starts_with(kInfix)) return std::nullopt;
  rest.remove_prefix(kernel.name.size() + kInfix.size());
  rest = rest.substr(0, rest.find_last_not_of('_') + 1);
  for (std::size_t i = 0; i < std::size(kRoleInfo); ++i) {
    if (kRoleInfo[i].text == rest && kRoleInfo[i].bytes == param.bytes()) return static_cast<HiddenRole>(i);
  }
  return std::nullopt;
}

PassReport StartReport(const ptx::Module& module) {
  PassReport report;
  for (const ptx::Function& function : module.functions) {
    if (function.is_entry && function.body != nullptr)
      report.kernels.push_back({.kernel = std::string(function.name), .reason = {}, .loc = {}});
  }
  return report;
}

std::uint32_t MaxParamBytes(const ptx::Module& module) {
  const bool large = module.sm() >= 70 && module.version_major * 10 + module.version_minor >= 81;
  return large ? 32764 : 4352;
}

namespace {

/// Fits where PTX wants a name: a kernel's parameters are named within the kernel, but ptxas wants them to differ from
/// every name of the module.
std::string ParamName(const ptx::Module& module, const ptx::Function& kernel, HiddenRole role) {
  std::string name = std::string(kernel.name) + std::string(kInfix) + std::string(Info(role).text);
  const auto taken = [&](const std::string& candidate) {
    const auto same = [&](const ptx::Variable& param) { return param.name == candidate; };
    return module.FindVariable(candidate) != nullptr || module.FindFunction(candidate) != nullptr ||
           std::ranges::any_of(kernel.params, same);
  };
  while (taken(name)) name += '_';
  return name;
}

}  // namespace

Result<ptx::Variable*> AppendHidden(ptx::Module& module, ptx::Function& kernel, HiddenRole role, KernelReport& report) {
  const ptx::ParamLayout before = ptx::LayoutParams(kernel);
  for (const HiddenParam& hidden : report.hidden) {
    if (hidden.role != role) continue;
    for (std::size_t i = 0; i < kernel.params.size(); ++i) {
      if (before.offsets[i] == hidden.offset) return &kernel.params[i];
    }
  }
  const HiddenRoleInfo& info = Info(role);
  const std::uint32_t offset = (before.bytes + info.bytes - 1) / info.bytes * info.bytes;
  if (offset + info.bytes > MaxParamBytes(module)) {
    return Error{"its " + std::to_string(before.bytes) +
                 " bytes of parameters leave no room for those that a launch adds"};
  }
  ptx::Variable& param = kernel.params.emplace_back();
  param.loc = kernel.loc;
  param.name = module.strings.Intern(ParamName(module, kernel, role));
  param.space = ptx::StateSpace::kParam;
  param.type = info.bytes == 8 ? ptx::ScalarType::kU64 : ptx::ScalarType::kU32;
  report.hidden.push_back({role, offset});
  return &param;
}

}  // namespace gridloom::passes
