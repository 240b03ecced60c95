// The recursive-descent parser behind ParseModule. One small function per grammar rule, the rule above its definition,
// spread over parser.cpp (module), parse_declaration.cpp, parse_function.cpp, parse_statement.cpp, parse_operand.cpp
// and parse_constant.cpp. A rule returns false after it has reported an error; the enclosing statement then recovers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/constant.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/lexer.h"
#include "rewriter/ptx/symbols.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

/// Limits that keep hostile input from exhausting stack or memory; far above what compilers emit.
inline constexpr int kMaxBlockDepth = 200;
inline constexpr int kMaxExpressionDepth = 100;
inline constexpr int kMaxInitializerDepth = 16;
inline constexpr std::uint64_t kMaxRegisterRange = 1u << 24;

class Parser {
 public:
  /// `lazy`: takes the bodies of kernels; null: they are read.
  Parser(Module& module, std::string_view text, DiagnosticSink& sink, LazyBodies* lazy = nullptr);

  void ParseModule();

  // --- bodies that were left unread (lazy_bodies.cpp)
  void ReadBody(Function& function, const LazyBodies::Place& place, SymbolTable& symbols);
  SymbolTable TakeSymbols() { return std::move(symbols_); }
  /// Kernels that something names which was read.
  const std::vector<const Function*>& named_kernels() const { return named_kernels_; }

 private:
  struct OperandContext {
    bool lists = false;                     // ( … ) is a list of operands, as in calls, not a constant expression
    bool subscripts_are_addresses = false;  // arr[3] stands for [arr + 12]
    bool subscripts_allow_registers = false;
    int depth = 0;
  };

  struct IndexedVariable {  // tab[%r1+2]
    std::string_view array, index;
    std::uint32_t element_bytes = 0;
    StateSpace space = StateSpace::kGlobal;
    std::int64_t constant = 0;
    std::string_view widening{};  // instruction that makes 32 bits of the index
    std::string_view address{};   // register that stands for it
  };

  // --- tokens (parser.cpp)
  const Token& Ahead();  // the token after the current one
  void Advance();
  bool At(TokenKind kind) const { return token_.kind == kind; }
  bool AtWord(std::string_view text) const { return token_.kind == TokenKind::kDotWord && token_.text == text; }
  bool AtIdent(std::string_view text) const { return token_.kind == TokenKind::kIdent && token_.text == text; }
  bool Match(TokenKind kind);
  bool MatchWord(std::string_view text);
  bool Expect(TokenKind kind, std::string_view context);
  bool ExpectName(std::string_view& name, std::string_view context);
  /// Reports "expected WHAT, found …" at the current token. Always false.
  bool Fail(std::string_view expected);
  bool FailAt(SourceLoc loc, std::string message);
  std::string Found() const;

  // --- module (parser.cpp)
  void ParseModuleItem();
  void RecoverAtModule(const char* start);
  bool ParseVersion();
  bool ParseTarget();
  bool ParseAddressSize();
  bool ParseAlias();
  bool ParseSection(TextDirective& out);
  bool ParseFile(TextDirective& out);
  bool ParsePragma(std::string_view& text);
  bool ParseUnknownDirective(TextDirective& out);
  bool AppendToken(std::string& out);
  void ResolveAtModuleEnd();

  // --- declarations (parse_declaration.cpp)
  static bool StartsDeclaration(std::string_view word);
  bool ParseLinkage(Linkage& linkage);
  bool ParseModuleVariable(Linkage linkage);
  bool ParseDeclarationHead(Variable& head, bool is_param);
  bool ParseStateSpace(Variable& head);
  bool ParseDeclarationWord(Variable& head, bool is_param);
  bool ParseAlign(std::uint32_t& align);
  bool ParsePointer(Variable& head);
  bool ParseAttributes(std::vector<std::string_view>& attributes);
  bool ParseDeclarator(Variable& variable);  // a range of no registers comes back without a name
  bool ParseRange(Variable& variable);
  bool ExpandRange(Variable variable, const std::function<void(Variable)>& keep);
  bool CountExpanded(std::uint64_t count, SourceLoc loc);
  bool ParseDimensions(Variable& variable);
  bool CheckSize(const Variable& variable);
  bool ParseInitializer(Variable& variable);
  bool ParseInitializerList(Variable& variable, std::size_t level, std::uint64_t first_element);
  bool ParseInitializerElement(Variable& variable, std::uint64_t element);
  bool ParseInitializerValue(Initializer& out);
  bool ParseSymbolAddress(Initializer& out);
  bool ParseFieldList(Variable& variable);
  void Declare(Variable& variable);

  // --- functions (parse_function.cpp)
  bool ParseFunction(Linkage linkage);
  bool ParseParameters(std::deque<Variable>& out, bool* variadic);
  bool ParseParameter(std::deque<Variable>& out);
  bool ParseFunctionDirectives(Function& function);
  bool ParseFunctionDirective(Function& function);
  bool ParseBody(Function& function);
  bool LeaveBody(Function& function);

  // --- statements (parse_statement.cpp)
  bool ParseBlock(Block& block);
  void ParseStatement(Block& block);
  void RecoverAtStatement(const char* start);
  bool ParseDirectiveStatement(Block& block);
  bool ParseLocalVariables(Block& block);
  bool ParseLoc(LocDirective& out);
  bool ParseLabel(Block& block);
  bool ParseLabelDirective(Block& block, std::string_view name, SourceLoc loc);
  bool ParseTargetList(LabelDirective& out);
  bool ParseCallPrototype(LabelDirective& out);
  bool ParseNestedBlock(Block& block);
  bool ParseInstruction(Block& block);
  bool ParseGuard(Instruction& instruction);
  bool ParseOpcode(Instruction& instruction);
  bool ParseModifier(Instruction& instruction);

  // --- operands (parse_operand.cpp)
  bool ParseOperands(Instruction& instruction);
  bool ParseOperand(Operand& out, OperandContext context);
  bool ParseSimpleOperand(Operand& out, OperandContext context);
  bool ParseNamedOperand(Operand& out, OperandContext context);
  bool ParseName(Operand& out, OperandContext context);
  bool AtOffset() const { return At(TokenKind::kPlus) || At(TokenKind::kMinus); }
  bool ParseOffset(std::int64_t& out);
  bool ParseSelector(Operand& out);
  bool ParseSubscript(Operand& out, OperandContext context);
  // --- variables indexed by registers (parse_indexed.cpp)
  bool ParseRegisterSubscript(Operand& out, const Variable& array);
  void WriteIndexedAddresses(Block& block, unsigned bytes, SourceLoc loc);
  void ParseText(Block& block, std::string_view text, SourceLoc loc);
  bool ParseOperandList(std::vector<Operand>& out, TokenKind close, OperandContext context);
  bool ParseAddress(Operand& out, OperandContext context);
  bool ParseAddressBase(AddressOperand& out);
  bool ParseConstantOperand(Operand& out);
  enum class WarpSize : std::uint8_t { kOperand, kNumber };
  bool AtConstant(WarpSize alone = WarpSize::kOperand);

  // --- names (resolve.cpp)
  void ResolveOperand(Operand& operand, bool label_expected);
  void ResolveName(Operand& operand, bool label_expected);
  void ResolveGuard(Guard& guard);
  void NoteFunctionUse(Operand& operand);
  void CloseScope(std::size_t first_pending);

  // --- constant expressions (parse_constant.cpp)
  bool ParseConstant(Constant& out);
  bool ParseConditional(Constant& out, int depth);
  bool ParseBinary(Constant& out, int min_precedence, int depth);
  bool ParseUnary(Constant& out, int depth);
  bool ParsePrimary(Constant& out, int depth);
  bool ParseParenthesized(Constant& out, int depth);
  bool ParseInteger(std::uint64_t& out, std::string_view what);
  bool ParseInteger32(std::uint32_t& out, std::string_view what);

  Module& module_;
  LazyBodies* const lazy_;
  std::vector<const Function*> named_kernels_;
  DiagnosticSink& sink_;
  std::string_view text_;
  Lexer lexer_;
  Token token_;
  Token ahead_;
  bool has_ahead_ = false;
  const char* last_end_ = nullptr;  // end of the token consumed last
  int block_depth_ = 0;
  std::uint64_t expanded_ = 0;  // names that came from ranges outside .reg
  bool reported_end_ = false;   // a block without its '}' is reported once, not for every block around it
  SymbolTable symbols_;
  std::vector<IndexedVariable> indexed_;  // of the instruction that is being read
  std::size_t indexed_count_ = 0;
  std::vector<Operand*> pending_;        // names no declaration explained yet: labels, mostly
  std::vector<Operand*> function_uses_;  // refer to a prototype; to be moved to the definition
};

}  // namespace gridloom::ptx
