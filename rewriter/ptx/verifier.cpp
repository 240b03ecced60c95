#include "rewriter/ptx/verifier.h"

#include <algorithm>

#include "rewriter/ptx/verifier_impl.h"

namespace gridloom::ptx {
namespace {

struct TargetRow {
  unsigned sm;
  unsigned ptx;           // first version that knows the target
  unsigned ptx_specific;  // … its 'a' variant; 0: there is none
};
// PTX ISA, chapter 13 (release notes) and 11.1.2.
constexpr TargetRow kTargets[] = {
    {10, 10, 0},  {11, 10, 0},   {12, 12, 0},   {13, 12, 0},   {20, 20, 0},   {21, 20, 0},   {30, 30, 0},   {32, 40, 0},
    {35, 31, 0},  {37, 41, 0},   {50, 40, 0},   {52, 41, 0},   {53, 42, 0},   {60, 50, 0},   {61, 50, 0},   {62, 50, 0},
    {70, 60, 0},  {72, 61, 0},   {75, 63, 0},   {80, 70, 0},   {86, 71, 0},   {87, 74, 0},   {88, 90, 0},   {89, 78, 0},
    {90, 78, 80}, {100, 86, 86}, {101, 86, 86}, {103, 88, 88}, {110, 90, 90}, {120, 87, 87}, {121, 88, 88},
};

/// Directives of kernels with numbers: how many there are at most, and whether 0 is none of them (ISA 11.4, 11.7).
struct CountRow {
  std::string_view directive;
  std::size_t most;
  bool positive;
};
constexpr CountRow kCountRows[] = {
    {"maxntid", 3, true},
    {"reqntid", 3, true},
    {"maxnreg", 1, true},
    {"minnctapersm", 1, true},
    {"reqnctapercluster", 3, false},
    {"maxclusterrank", 1, false},
};

/// What two declarations of a function disagree in; empty: nothing.
std::string DifferenceOf(const Function& one, const Function& other) {
  const auto compare = [](const auto& ones, const auto& others) -> std::string {
    if (ones.size() != others.size()) return "number of parameters";
    for (std::size_t i = 0; i < ones.size(); ++i) {
      const Variable &a = ones[i], &b = others[i];
      if (a.space != b.space) return "state space of a parameter";
      if (a.type != b.type || a.vector != b.vector || a.dims != b.dims) return "type of a parameter";
    }
    return {};
  };
  if (one.is_entry != other.is_entry) return "being a kernel or a function";
  const std::string difference = compare(one.returns, other.returns);
  return difference.empty() ? compare(one.params, other.params) : difference;
}

/// The first directive that makes `name` an alias; null: none does.
const AliasDirective* FirstAlias(const Module& module, std::string_view name) {
  for (const ModuleItem& item : module.items) {
    const auto* const alias = std::get_if<AliasDirective>(&item);
    if (alias != nullptr && alias->alias == name) return alias;
  }
  return nullptr;
}

std::string VersionText(unsigned ptx) { return std::to_string(ptx / 10) + '.' + std::to_string(ptx % 10); }

}  // namespace

bool VerifyModule(const Module& module, DiagnosticSink& sink, PtxOrigin origin) {
  const std::size_t before = sink.error_count();
  Verifier(module, sink, origin).VerifyModule();
  return sink.error_count() == before;
}

bool VerifyFunction(const Module& module, const Function& function, DiagnosticSink& sink, PtxOrigin origin) {
  const std::size_t before = sink.error_count();
  Verifier(module, sink, origin).VerifyFunction(function);
  return sink.error_count() == before;
}

bool VerifyInstruction(const Module& module, const Instruction& instruction, DiagnosticSink& sink) {
  const std::size_t before = sink.error_count();
  Verifier verifier(module, sink, PtxOrigin::kCompiled);
  verifier.BeStrict();
  verifier.VerifyInstruction(instruction);
  return sink.error_count() == before;
}

Target TargetOf(const Module& module) {
  Target target{.sm = module.sm()};
  for (const std::string_view name : module.targets) {
    if (!name.starts_with("sm_") && !name.starts_with("compute_")) continue;
    if (name.back() == 'a' || name.back() == 'f') target.suffix = name.back();
    break;
  }
  return target;
}

Verifier::Verifier(const Module& module, DiagnosticSink& sink, PtxOrigin origin)
    : module_(module),
      sink_(sink),
      origin_(origin),
      ptx_(module.version_major * 10 + module.version_minor),
      target_(TargetOf(module)) {}

void Verifier::UnknownWord(SourceLoc loc, std::string message) {
  if (strict_ || (ptx_ <= kNewestPtx && origin_ == PtxOrigin::kWritten)) {
    sink_.Error(loc, std::move(message));
  } else {
    sink_.Warning(loc, std::move(message));
  }
}

void Verifier::TooOld(SourceLoc loc, std::string message) {
  if (origin_ == PtxOrigin::kWritten) sink_.Error(loc, std::move(message));
  else sink_.Warning(loc, std::move(message));
}

void Verifier::VerifyModule() {
  VerifyHeader();
  VerifyConstants();
  VerifyGlobalNames();
  for (const ModuleItem& item : module_.items) {
    if (sink_.full()) return;
    if (const auto* variable = std::get_if<Variable*>(&item)) {
      VerifyVariable(**variable, /*in_body=*/false);
    } else if (const auto* function = std::get_if<Function*>(&item)) {
      VerifyFunction(**function);
    } else if (const auto* alias = std::get_if<AliasDirective>(&item)) {
      VerifyAlias(*alias);
    }
  }
}

// .version and .target stand first, and the version is late enough for the target.
void Verifier::VerifyHeader() {
  constexpr SourceLoc kTop{1, 1};
  if (module_.version_major == 0) Error(kTop, "expected .version before everything else");
  if (module_.targets.empty()) return Error(kTop, "expected .target after .version");
  if (target_.sm == 0)
    return Error(kTop, "expected a target such as sm_90, found '" + std::string(module_.targets[0]) + "'");
  const auto* row = std::ranges::find(kTargets, target_.sm, &TargetRow::sm);
  const std::string name(module_.targets[0]);
  if (row == std::end(kTargets)) return UnknownWord(kTop, "unknown target '" + name + "'");
  const unsigned needed = target_.suffix != '\0' ? row->ptx_specific : row->ptx;
  if (needed == 0) return TooOld(kTop, "unknown target '" + name + "'");
  if (ptx_ < needed) {
    TooOld(kTop,
           "target '" + name + "' needs .version " + VersionText(needed) + " or later, found " + VersionText(ptx_));
  }
}

// All constants of a module lie in one bank of 64 KiB (ISA 5.1.3).
void Verifier::VerifyConstants() {
  constexpr std::uint64_t kBank = 65536;
  std::uint64_t bytes = 0;
  for (const Variable& variable : module_.variables) {
    if (variable.space != StateSpace::kConst || variable.linkage == Linkage::kExtern) continue;
    const std::uint64_t align = std::max<std::uint64_t>(variable.alignment(), 1);
    bytes = (bytes + align - 1) / align * align + variable.bytes();
    if (bytes <= kBank) continue;
    return Error(variable.loc, "the module's constants take more than " + std::to_string(kBank) + " bytes, up to '" +
                                   std::string(variable.name) + "' " + std::to_string(bytes));
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------------------------------------------------

void Verifier::DeclareName(Names& names, std::string_view name, SourceLoc loc) {
  if (name == "_") return;
  const auto [it, fresh] = names.emplace(name, loc);
  if (fresh) return;
  Error(loc,
        "'" + std::string(name) + "' is declared twice in one scope, first in line " + std::to_string(it->second.line));
}

// Functions may be declared any number of times and defined once; variables are declared once, save after .extern.
void Verifier::VerifyGlobalNames() {
  Names variables, definitions;
  std::unordered_map<std::string_view, const Function*> first_of;
  for (const Variable& variable : module_.variables) {
    if (variable.linkage != Linkage::kExtern) DeclareName(variables, variable.name, variable.loc);
  }
  for (const Function& function : module_.functions) {
    if (function.body != nullptr) DeclareName(definitions, function.name, function.loc);
    if (variables.contains(function.name)) DeclareName(variables, function.name, function.loc);
    const Function& first = *first_of.emplace(function.name, &function).first->second;
    if (const std::string difference = DifferenceOf(first, function); !difference.empty())
      Error(function.loc, "'" + std::string(function.name) + "' differs from its declaration in line " +
                              std::to_string(first.loc.line) + " in the " + difference);
  }
}

// That of an alias may be there, as in ptxas; a call of it is one of a function that is defined nowhere.
void Verifier::VerifyAlias(const AliasDirective& alias) {
  const Function* const aliasee = module_.FindFunction(alias.aliasee);
  const Function* const prototype = module_.FindFunction(alias.alias);
  const std::string name = "'" + std::string(alias.alias) + "'", of = "'" + std::string(alias.aliasee) + "'";
  if (alias.alias == alias.aliasee) {
    Error(alias.loc, name + " is an alias of itself");
  } else if (aliasee == nullptr || (aliasee->body == nullptr && FirstAlias(module_, alias.aliasee) == nullptr)) {
    Error(alias.loc, "expected a function defined in this module, found " + of);
  } else if (aliasee->is_entry) {
    Error(alias.loc, of + " is a kernel; .alias is for functions");
  } else if (aliasee->linkage == Linkage::kWeak) {
    Error(alias.loc, of + " is .weak; it has no alias");
  }
  if (prototype == nullptr) {
    Error(alias.loc, "the alias " + name + " needs a prototype before it");
  } else if (prototype->body != nullptr) {
    Error(alias.loc, name + " is defined and no alias");
  } else if (FirstAlias(module_, alias.alias) != &alias) {
    Error(alias.loc, name + " is an alias already");
  } else if (aliasee != nullptr) {
    if (const std::string difference = DifferenceOf(*prototype, *aliasee); !difference.empty())
      Error(alias.loc, name + " differs from " + of + " in the " + difference);
  }
  CheckNeeds(alias.loc, [] { return ".alias"; }, {.ptx = 63, .sm = 30});
}

// ---------------------------------------------------------------------------------------------------------------------
// Functions and blocks
// ---------------------------------------------------------------------------------------------------------------------

void Verifier::VerifyFunction(const Function& function) {
  VerifyParameters(function);
  if (function.FindDirective("maxntid") != nullptr && function.FindDirective("reqntid") != nullptr)
    Error(function.loc, "'" + std::string(function.name) + "' has both .maxntid and .reqntid");
  for (const CountRow& row : kCountRows) {
    const FunctionDirective* const found = function.FindDirective(row.directive);
    const std::string name = "." + std::string(row.directive);
    if (found == nullptr) continue;
    if (found->values.empty() || found->values.size() > row.most)
      Error(function.loc, "'" + std::string(function.name) + "' has " + name + " with a wrong number of values");
    if (row.positive && std::ranges::find(found->values, 0) != found->values.end())
      Error(function.loc, "'" + std::string(function.name) + "' has " + name + " 0");
  }
  const auto has = [&](std::string_view name) { return function.FindDirective(name) != nullptr; };
  if (has("reqnctapercluster") && has("maxclusterrank"))
    Error(function.loc, "'" + std::string(function.name) + "' has both .reqnctapercluster and .maxclusterrank");
  if (has("blocksareclusters") && !(has("reqntid") && has("reqnctapercluster")))
    Error(function.loc, ".blocksareclusters needs .reqntid and .reqnctapercluster");
  if (has("maxnctapersm") && ptx_ > 20) Error(function.loc, ".maxnctapersm is .minnctapersm from .version 2.1 on");
  if (function.noreturn && function.is_entry) Error(function.loc, ".noreturn is for functions, not for kernels");
  if (function.noreturn && !function.returns.empty()) Error(function.loc, "a .noreturn function returns nothing");
  if (function.body == nullptr) return;
  Names names;
  for (const Variable& variable : function.returns) DeclareName(names, variable.name, variable.loc);
  for (const Variable& variable : function.params) DeclareName(names, variable.name, variable.loc);
  VerifyBlock(*function.body, {}, 0);
}

void Verifier::VerifyParameters(const Function& function) {
  if (function.is_entry && !function.returns.empty()) Error(function.loc, "a kernel returns nothing");
  std::uint64_t bytes = 0;
  for (const Variable& param : function.params) {
    const bool space_ok = param.space == StateSpace::kParam || (!function.is_entry && param.space == StateSpace::kReg);
    if (!space_ok)
      Error(param.loc, "expected a parameter in .param" + std::string(function.is_entry ? "" : " or .reg"));
    bytes += param.bytes();
  }
  // ISA 7.1: 4352 bytes, 32764 from PTX 8.1 on for sm_70 and later. Functions have no such limit.
  const std::uint64_t limit = ptx_ >= 81 && target_.sm >= 70 ? 32764 : 4352;
  if (function.is_entry && bytes > limit) {
    Error(function.loc,
          "the parameters take " + std::to_string(bytes) + " bytes; the limit is " + std::to_string(limit));
  }
  for (const Variable& variable : function.params) VerifyVariableType(variable);
  for (const Variable& variable : function.returns) VerifyVariableType(variable);
}

void Verifier::VerifyBlockNames(const Block& block, Names& names) {
  Names labels;
  std::unordered_map<std::string_view, const Variable*> ranges;
  for (const Statement& statement : block.statements) {
    if (const auto* label = std::get_if<Label*>(&statement)) {
      DeclareName(names, (*label)->name, (*label)->loc);
    } else if (const auto* directive = std::get_if<std::unique_ptr<LabelDirective>>(&statement)) {
      DeclareName(names, (*directive)->name, (*directive)->loc);
    } else if (const auto* variable = std::get_if<Variable*>(&statement)) {
      if ((*variable)->range_count == 0) {
        DeclareName(names, (*variable)->name, (*variable)->loc);
      } else if (!ranges.emplace((*variable)->name, *variable).second) {
        Error((*variable)->loc,
              "the registers '" + std::string((*variable)->name) + "<…>' are declared twice in one scope");
      }
    }
  }
}

void Verifier::VerifyBlock(const Block& block, Names names, int depth) {
  VerifyBlockNames(block, names);
  for (const Statement& statement : block.statements) {
    if (sink_.full()) return;
    if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      VerifyInstruction(*instruction);
    } else if (const auto* variable = std::get_if<Variable*>(&statement)) {
      VerifyVariable(**variable, /*in_body=*/true);
    } else if (const auto* directive = std::get_if<std::unique_ptr<LabelDirective>>(&statement)) {
      VerifyLabelDirective(**directive);
    } else if (const auto* inner = std::get_if<std::unique_ptr<Block>>(&statement)) {
      VerifyBlock(**inner, {}, depth + 1);
    }
  }
}

void Verifier::VerifyLabelDirective(const LabelDirective& directive) {
  for (const Operand& target : directive.targets) {
    if (directive.kind == LabelDirective::Kind::kBranchTargets && target.kind != OperandKind::kLabel) {
      Error(target.loc, "undefined label '" + std::string(target.text) + "'");
    }
    if (directive.kind == LabelDirective::Kind::kCallTargets && target.function == nullptr) {
      Error(target.loc, "undefined function '" + std::string(target.text) + "'");
    }
  }
}

bool Verifier::Meets(const Requirement& needs) const {
  if (ptx_ == 0 || target_.sm == 0) return true;  // reported once
  return ptx_ >= needs.ptx && target_.sm >= needs.sm && (!needs.specific || target_.suffix != '\0');
}

void Verifier::ReportNeeds(SourceLoc loc, const std::string& what, const Requirement& needs) {
  if (ptx_ < needs.ptx) {
    TooOld(loc, "'" + what + "' needs .version " + VersionText(needs.ptx) + " or later, found " + VersionText(ptx_));
  } else if (target_.sm < needs.sm) {
    TooOld(loc, "'" + what + "' needs .target sm_" + std::to_string(needs.sm) + (needs.specific ? "a" : "") +
                    " or later, found " + std::string(module_.targets.empty() ? "none" : module_.targets[0]));
  } else {
    TooOld(loc, "'" + what + "' needs an architecture-specific target such as sm_" + std::to_string(target_.sm) +
                    "a, found " + std::string(module_.targets[0]));
  }
}

}  // namespace gridloom::ptx
