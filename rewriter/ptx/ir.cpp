#include "rewriter/ptx/ir.h"

#include <algorithm>
#include <utility>

namespace gridloom::ptx {

std::string_view StringPool::Adopt(std::string_view text) { return texts_.emplace_back(text); }

std::string_view StringPool::Intern(std::string_view text) {
  if (const auto it = interned_.find(text); it != interned_.end()) return *it;
  return *interned_.insert(Adopt(text)).first;
}

// Moving a deque keeps the addresses of its strings, also of the short ones that hold their characters themselves.
void StringPool::Absorb(StringPool&& other) { absorbed_.push_back(std::move(other)); }

Operand::Operand(const Operand& other)
    : kind(other.kind),
      loc(other.loc),
      negated(other.negated),
      minus(other.minus),
      element(other.element),
      selector(other.selector),
      variable(other.variable),
      index(other.index),
      function(other.function),
      label(other.label),
      directive(other.directive),
      offset(other.offset),
      text(other.text),
      int_literal(other.int_literal),
      float_literal(other.float_literal),
      elements(other.elements),
      address(other.address ? std::make_unique<AddressOperand>(*other.address) : nullptr) {}

Operand& Operand::operator=(const Operand& other) {
  if (this != &other) *this = Operand(other);
  return *this;
}

bool Instruction::Has(Mod mod) const {
  return std::any_of(modifiers.begin(), modifiers.end(), [mod](const Modifier& m) { return m.mod == mod; });
}

ScalarType Instruction::type(std::size_t n) const {
  for (const Modifier& modifier : modifiers) {
    if (modifier.mod == Mod::kType && n-- == 0) return *TypeFromText(modifier.text);
  }
  return ScalarType::kNone;
}

StateSpace Instruction::space() const {
  for (const Modifier& modifier : modifiers) {
    // A constant bank of old PTX, `const[3]`, is space const.
    if (modifier.mod == Mod::kSpace) return *SpaceFromText(modifier.text.substr(0, modifier.text.find('[')));
  }
  return StateSpace::kNone;
}

unsigned Instruction::vector_width() const {
  if (Has(Mod::kV2)) return 2;
  if (Has(Mod::kV4)) return 4;
  return Has(Mod::kV8) ? 8 : 1;
}

std::string Instruction::FullName() const {
  std::string out(name);
  for (const Modifier& modifier : modifiers) (out += '.') += modifier.text;
  return out;
}

std::uint64_t Variable::element_count() const {
  std::uint64_t count = 1;
  for (const std::uint64_t dim : dims) count *= dim;
  return count;
}

bool Variable::HasAttribute(std::string_view attribute) const {
  return std::find(attributes.begin(), attributes.end(), attribute) != attributes.end();
}

const FunctionDirective* Function::FindDirective(std::string_view directive) const {
  const auto it = std::find_if(directives.begin(), directives.end(),
                               [&](const FunctionDirective& d) { return d.name == directive; });
  return it == directives.end() ? nullptr : &*it;
}

const Function* Module::FindFunction(std::string_view name) const {
  const Function* prototype = nullptr;
  for (const Function& function : functions) {
    if (function.name != name) continue;
    if (function.body) return &function;
    prototype = &function;
  }
  return prototype;
}

Function* Module::FindFunction(std::string_view name) {
  return const_cast<Function*>(std::as_const(*this).FindFunction(name));
}

const Variable* Module::FindVariable(std::string_view name) const {
  for (const Variable& variable : variables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

Variable* Module::FindVariable(std::string_view name) {
  return const_cast<Variable*>(std::as_const(*this).FindVariable(name));
}

unsigned Module::sm() const {
  for (const std::string_view target : targets) {
    const std::size_t digits = target.starts_with("sm_") ? 3 : target.starts_with("compute_") ? 8 : 0;
    if (digits == 0) continue;
    unsigned value = 0;
    for (const char c : target.substr(digits)) {
      if (c < '0' || c > '9') break;
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value;
  }
  return 0;
}

ParamLayout LayoutParams(const Function& function) {
  ParamLayout layout;
  for (const Variable& param : function.params) {
    const std::uint32_t align = std::max<std::uint32_t>(1, param.alignment());
    layout.bytes = (layout.bytes + align - 1) / align * align;
    layout.offsets.push_back(layout.bytes);
    layout.bytes += static_cast<std::uint32_t>(param.bytes());
  }
  return layout;
}

}  // namespace gridloom::ptx
