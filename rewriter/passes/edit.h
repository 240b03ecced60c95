// Putting statements into functions: fresh names, PTX written as text, and a walk over all statements of a function.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/symbols.h"

namespace gridloom::passes {

/// An operand that names a register: the plain one, or element `index` of a declared range.
ptx::Operand RegisterOperand(const ptx::Variable& variable, std::uint32_t index = 0);
/// One that names a variable (a parameter, say), for [name] see AddressOperand.
ptx::Operand SymbolOperand(const ptx::Variable& variable);
ptx::Operand IntOperand(std::uint64_t value);

/// Changes one function of a module. Text is written with the names of the function's outermost scope and of the
/// module:
///
///   FunctionEditor editor(module, kernel);
///   const auto t = editor.NewRegister(ScalarType::kU32, "t");             // %gl_t
///   before = editor.Text("mov.u32 " + t + ", %ctaid.x; add.u32 " + t + ", " + t + ", 1;", loc);
class FunctionEditor {
 public:
  FunctionEditor(ptx::Module& module, ptx::Function& function);
  /// Puts the declarations of new registers at the head of the body; until then the function does not print as PTX.
  ~FunctionEditor();
  FunctionEditor(const FunctionEditor&) = delete;
  FunctionEditor& operator=(const FunctionEditor&) = delete;

  ptx::Module& module() { return module_; }
  ptx::Function& function() { return function_; }

  /// Declares a register in the function's outermost scope under a name that nothing in the function has: %gl_<hint>,
  /// with a number when that is taken.
  std::string NewRegister(ptx::ScalarType type, std::string_view hint) {
    return NewVariable(ptx::StateSpace::kReg, type, hint);
  }
  /// Declares a variable in any state space in the same way: gl_<hint>.
  std::string NewVariable(ptx::StateSpace space, ptx::ScalarType type, std::string_view hint);
  /// A name of a label that nothing in the function has, for use inside a text.
  std::string NewLabel(std::string_view hint);

  /// Statements from text; all of them carry `loc`. Names that are declared nowhere are a broken invariant, as is text
  /// that does not parse: texts are the pass's own. Text that declares registers or labels becomes one statement, a
  /// block (PTX scopes them), so that no declaration escapes.
  std::vector<ptx::Statement> Text(std::string_view text, SourceLoc loc);

  /// The declaration of a name in the outermost scope or the module: what Text uses.
  ptx::Symbol Find(std::string_view name) const { return symbols_.Find(name); }

 private:
  std::string FreshName(std::string name);
  void Resolve(ptx::Operand& operand) const;
  void Resolve(ptx::Statement& statement, SourceLoc loc) const;

  ptx::Module& module_;
  ptx::Function& function_;
  ptx::SymbolTable symbols_;
  std::unordered_set<std::string_view> taken_;  ///< every name inside the function, nested scopes included
  std::vector<ptx::Statement> declarations_;
};

/// What Rewrite does with a statement.
struct Replacement {
  std::vector<ptx::Statement> before = {}, after = {};
  bool drop = false;  ///< the statement itself goes
};
using StatementEdit = std::function<void(ptx::Statement& statement, Replacement& replacement)>;

/// Calls `edit` for every statement of a block, nested ones included (a nested block before its statements; what was
/// put in is not visited), and rebuilds the lists of statements. The statement may be changed in place.
void EditStatements(ptx::Block& block, const StatementEdit& edit);

/// Puts statements in front of a body, behind the declarations at its head.
void InsertAtEntry(ptx::Block& body, std::vector<ptx::Statement> statements);

}  // namespace gridloom::passes
