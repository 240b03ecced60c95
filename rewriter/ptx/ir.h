// In-memory form of a PTX module (PTX ISA, chapters 4 to 11). The parser builds it, the printer writes it back,
// analyses and passes read and change it, the executor lifts it.
//
// Text is interned: every string_view in a module points into Module::strings and lives as long as the module.
// Declarations are owned by the scope that declares them and referred to by pointer (stable addresses).
// Nothing is lost: an opcode, modifier or directive the tables do not know is kept as text and printed back.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "rewriter/ptx/opcode.h"
#include "rewriter/ptx/types.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

struct Function;
struct Variable;
struct Label;
struct LabelDirective;

/// Owns the bytes behind every string_view of a module.
class StringPool {
 public:
  StringPool() = default;
  StringPool(StringPool&&) = default;  // keeps the addresses of all characters
  StringPool& operator=(StringPool&&) = default;

  /// Keeps a copy of a whole text; what is parsed from it are views into this copy.
  std::string_view Adopt(std::string_view text);
  /// A view of the same characters that lives as long as the pool; equal texts give the same view.
  std::string_view Intern(std::string_view text);
  /// Takes over another pool; views into it stay valid.
  void Absorb(StringPool&& other);

 private:
  std::deque<std::string> texts_;
  std::unordered_set<std::string_view> interned_;
  std::list<StringPool> absorbed_;
};

// ---------------------------------------------------------------------------------------------------------------------
// Operands
// ---------------------------------------------------------------------------------------------------------------------

/// Integer literal, kept as 64 bits; `negative` tells that a minus sign stood before it (value is already negated).
struct IntLiteral {
  std::uint64_t value = 0;
  bool negative = false;
  bool is_unsigned = false;  ///< written with suffix U
};

/// Floating literal: `0f3F800000` (32 bits), `0d3FF0000000000000` (64 bits) or decimal (kept as 64 bits).
struct FloatLiteral {
  std::uint64_t bits = 0;
  std::uint8_t width = 64;  ///< 32 or 64: how `bits` is to be read
  bool negative = false;    ///< a minus sign stood before it; `bits` already carries it
  std::string_view text;    ///< original spelling of a decimal literal, else empty
};

struct Operand;

/// Address expression inside [ ]: register or symbol, plus a constant; or a bare constant. Texture, surface and tensor
/// operands carry further elements: `[tex, sampler, {x, y}]` has base `tex` and two elements.
struct AddressOperand {
  std::vector<Operand> base;  ///< zero (absolute address) or one operand: kRegister, kSymbol
  std::int64_t offset = 0;
  bool printed_offset = false;    ///< an explicit "+0" is kept
  std::vector<Operand> elements;  ///< further comma-separated elements
};

enum class OperandKind : std::uint8_t {
  kRegister,  ///< variable in .reg space; `variable`, `element` for %v.x
  kSpecial,   ///< special register, `text` with its percent sign and component: "%tid.x"
  kSymbol,    ///< variable, function or label-like name taken as a value: `variable` or `function`; `offset` for sym+4
  kLabel,     ///< branch target: `label`
  kInt,       ///< `int_literal`
  kFloat,     ///< `float_literal`
  kAddress,   ///< `address`
  kVector,    ///< { a, b, c, d }: `elements`
  kPair,      ///< p|q (two destinations): `elements` of size 2
  kList,      ///< ( a, b ): call parameter lists: `elements`
  kSink,      ///< _ (destination not wanted)
  kName,      ///< identifier that names none of the above: `text`; with `directive` set it names a .callprototype,
              ///< .calltargets or .branchtargets, without it the symbol is unknown
  kString,    ///< "text": `text` without the quotes
};

struct Operand {
  /// Taken as it is: neither negated nor a part of what it names.
  bool IsPlain() const { return element == 0 && !negated && !minus && selector.empty(); }
  bool IsPlainRegister() const { return kind == OperandKind::kRegister && variable != nullptr && IsPlain(); }

  OperandKind kind = OperandKind::kName;
  SourceLoc loc;
  bool negated = false;       ///< !p
  bool minus = false;         ///< -a on a register (older PTX)
  char element = 0;           ///< 'x' 'y' 'z' 'w' (also r g b a) for a component of a vector register, else 0
  std::string_view selector;  ///< longer suffix without the dot: "b0", "h1", "b3210" of a video operand, "unified" of
                              ///< an address
  Variable* variable = nullptr;  ///< kRegister, kSymbol
  std::uint32_t index = 0;       ///< kRegister declared as a range: the 5 of %r5 (variable is the `%r<10>` declaration)
  Function* function = nullptr;  ///< kSymbol
  Label* label = nullptr;        ///< kLabel
  LabelDirective* directive = nullptr;  ///< kName
  std::int64_t offset = 0;              ///< kSymbol: constant added
  std::string_view text;                ///< spelling for kSpecial, kName, kString; otherwise the name referred to
  IntLiteral int_literal;
  FloatLiteral float_literal;
  std::vector<Operand> elements;  ///< kVector, kPair, kList
  std::unique_ptr<AddressOperand> address;

  Operand() = default;
  Operand(Operand&&) noexcept = default;
  Operand& operator=(Operand&&) noexcept = default;
  Operand(const Operand& other);
  Operand& operator=(const Operand& other);
  ~Operand() = default;
};

// ---------------------------------------------------------------------------------------------------------------------
// Statements
// ---------------------------------------------------------------------------------------------------------------------

/// One dot-suffix of an opcode: `.sat`, `.f32`, `.shared::cta`, `.m16n8k16`. Known ones carry their enumerator.
struct Modifier {
  Mod mod = Mod::kOther;
  std::string_view text;  ///< without the leading dot
};

/// Guard predicate @p or @!p.
struct Guard {
  Variable* predicate = nullptr;
  std::uint32_t index = 0;  ///< as Operand::index
  bool negated = false;
  std::string_view text;  ///< the name as written; all there is when it is not declared (`predicate` is null)
  SourceLoc loc;
};

struct Instruction {
  SourceLoc loc;
  std::optional<Guard> guard;
  Opcode opcode = Opcode::kUnknown;
  std::string_view name;            ///< base opcode text: "ld", "mad"
  std::vector<Modifier> modifiers;  ///< in source order
  std::vector<Operand> operands;    ///< in source order, destinations first (see OpcodeInfo)

  const OpcodeInfo& info() const { return Info(opcode); }
  /// Whether its opcode has one of these traits.
  bool Has(Trait any) const { return info().Has(any); }
  bool Has(Mod mod) const;
  /// The n-th type modifier (.u32, .f16x2, .b8x16 …) in source order, or kNone. cvt.f32.s32: type(0)=f32, type(1)=s32.
  ScalarType type(std::size_t n = 0) const;
  /// State space modifier; kNone when absent (generic addressing for ld/st/atom).
  StateSpace space() const;
  /// Width of .v2/.v4/.v8, else 1.
  unsigned vector_width() const;
  /// The whole opcode as written: "ld.global.v4.f32".
  std::string FullName() const;
};

struct Label {
  std::string_view name;
  SourceLoc loc;
};

/// A directive kept as text inside a body or at module level (.loc, .file, .pragma, .section, unknown ones).
struct TextDirective {
  SourceLoc loc;
  std::string_view name;  ///< ".loc"
  std::string_view text;  ///< the rest, tokens joined by single blanks; braces and semicolons included as needed
};

/// .loc file line column [, function_name label, inlined_at file line col]: which source line the following came from.
struct LocDirective {
  SourceLoc loc;
  std::uint32_t file = 0, line = 0, column = 0;
  std::string_view rest;  ///< ", function_name … inlined_at …" kept as text
};

struct Block;

/// One statement of a body. Labels stand for themselves: a label precedes the statement that follows it.
using Statement = std::variant<Instruction, Label*, Variable*, std::unique_ptr<LabelDirective>, LocDirective,
                               TextDirective, std::unique_ptr<Block>>;

/// { … }: the body of a function or a nested scope. Owns what it declares.
struct Block {
  SourceLoc loc;
  SourceLoc end_loc;
  std::vector<Statement> statements;
  std::deque<Variable> variables;
  std::deque<Label> labels;
};

// ---------------------------------------------------------------------------------------------------------------------
// Declarations
// ---------------------------------------------------------------------------------------------------------------------

enum class Linkage : std::uint8_t { kInternal, kVisible, kExtern, kWeak, kCommon };

/// One element of an initialiser, flattened in memory order.
struct Initializer {
  /// An Operand is a kSymbol (address of a variable or function, with an offset).
  std::variant<IntLiteral, FloatLiteral, Operand> value;
  bool generic = false;     ///< generic(symbol)
  std::uint64_t mask = 0;   ///< mask operator: `0xFF(symbol)`, 0 when absent
  std::uint32_t group = 0;  ///< nesting depth bookkeeping for the printer: number of braces opened before this element
  std::uint32_t close = 0;  ///< number of braces closed after this element
  std::uint64_t element = 0;  ///< which element of the flattened array it sets; elements nobody sets are zero
  bool empty = false;         ///< stands for `{}` inside another list: sets nothing
  std::string_view field;  ///< of a .samplerref or .texref: the attribute set, `addr_mode_0 = wrap` (value is a kName)
};

/// A variable in any state space: register, parameter, shared array, global, constant, texture reference.
struct Variable {
  SourceLoc loc;
  std::string_view name;
  StateSpace space = StateSpace::kReg;
  ScalarType type = ScalarType::kNone;
  std::uint32_t vector = 1;         ///< .v2, .v4
  std::uint32_t align = 0;          ///< explicit .align, 0 when absent
  std::vector<std::uint64_t> dims;  ///< array dimensions, empty for a scalar; first may be 0 = unsized []
  std::uint32_t range_count = 0;    ///< %r<10> declares %r0 … %r9; 0 for a plain name
  Linkage linkage = Linkage::kInternal;
  bool has_initializer = false;
  std::vector<Initializer> initializer;
  std::vector<std::string_view> attributes;  ///< .attribute(.managed) -> "managed"; unified(u1, u2) kept whole
  std::vector<std::string_view> sub_spaces;  ///< ::entry, ::func, .const[3] bank and the like, as text
  // Kernel parameter: .ptr .global .align 16
  bool is_pointer = false;
  StateSpace pointer_space = StateSpace::kGeneric;
  std::uint32_t pointer_align = 0;
  std::uint32_t order = 0;  ///< of module scope, as Function::order

  /// Bytes of one element (type times vector), e.g. 16 for .v4 .f32.
  std::uint32_t element_bytes() const { return BytesOf(type) * vector; }
  /// Number of elements; 1 for a scalar, 0 for an unsized array.
  std::uint64_t element_count() const;
  std::uint64_t bytes() const { return element_bytes() * element_count(); }
  /// Explicit alignment or the natural one.
  std::uint32_t alignment() const { return align != 0 ? align : element_bytes(); }
  bool HasAttribute(std::string_view attribute) const;
};

/// .callprototype: signature of an indirect call. .branchtargets / .calltargets: list of names.
struct LabelDirective {
  enum class Kind : std::uint8_t { kBranchTargets, kCallTargets, kCallPrototype };
  SourceLoc loc;
  Kind kind = Kind::kBranchTargets;
  std::string_view name;                 ///< its label
  std::vector<Operand> targets;          ///< kLabel or kSymbol
  std::deque<Variable> returns, params;  ///< kCallPrototype
  bool noreturn = false;
  std::string_view rest;  ///< further attributes kept as text
};

/// Performance directive of a function: .maxntid 256, 1, 1 -> {"maxntid", {256, 1, 1}}.
struct FunctionDirective {
  std::string_view name;  ///< without the dot
  std::vector<std::uint64_t> values;
  std::string_view text;  ///< .pragma strings and whatever is not numbers
};

struct Function {
  SourceLoc loc;
  std::string_view name;
  bool is_entry = false;
  Linkage linkage = Linkage::kInternal;
  bool noreturn = false;
  std::vector<std::string_view> attributes;
  std::uint32_t target_sm = 0;  ///< Module::sm() of the module it was linked from; 0 when it was not
  /// A function with a lower number comes first in the text, which is in another order than `Module::functions` was.
  /// With equal numbers functions come as they lie.
  std::uint32_t order = 0;
  std::deque<Variable> returns;  ///< .func only
  std::deque<Variable> params;
  bool variadic_param = false;  ///< last parameter is an unsized array (…[]), or `, ...`
  std::vector<FunctionDirective> directives;
  std::unique_ptr<Block> body;  ///< null for a prototype

  const FunctionDirective* FindDirective(std::string_view directive) const;
};

/// .alias a, b;
struct AliasDirective {
  SourceLoc loc;
  std::string_view alias, aliasee;
};

/// Module-level item in source order, so that printing keeps it.
using ModuleItem = std::variant<Variable*, Function*, AliasDirective, TextDirective>;

class LazyBodies;

struct Module {
  StringPool strings;
  std::uint32_t version_major = 0, version_minor = 0;  ///< .version 9.0
  std::vector<std::string_view> targets;               ///< .target sm_90a, texmode_independent, debug
  std::uint32_t address_size = 64;
  bool has_address_size = false;  ///< the directive was written
  std::vector<ModuleItem> items;
  std::deque<Variable> variables;
  std::deque<Function> functions;  ///< definitions and prototypes; a prototype followed by a definition is two entries
  /// Bodies of kernels that are read when they are asked for (lazy_bodies.h); null: there are none. Of this object,
  /// which must stay where it is.
  std::shared_ptr<LazyBodies> unread;

  /// The definition of that name, else a prototype, else null.
  Function* FindFunction(std::string_view name);
  const Function* FindFunction(std::string_view name) const;
  Variable* FindVariable(std::string_view name);
  const Variable* FindVariable(std::string_view name) const;
  /// 75 for sm_75, 90 for sm_90a, 120 for compute_120f; 0 when there is none.
  unsigned sm() const;
};

/// Byte offset of every parameter in the parameter block as a launch passes it: each aligned to its own alignment.
struct ParamLayout {
  std::vector<std::uint32_t> offsets;
  std::uint32_t bytes = 0;
};
ParamLayout LayoutParams(const Function& function);

}  // namespace gridloom::ptx
