#include "rewriter/ptx/form.h"

#include <algorithm>
#include <array>

#include "rewriter/ptx/forms_parse.h"
#include "rewriter/support/check.h"

namespace gridloom::ptx {
namespace {

struct FormRow {
  Opcode opcode;
  std::string_view modifiers, types, operands;
  std::uint16_t ptx, sm;
  char suffix;
};
struct NeedsRow {
  Opcode opcode;
  std::string_view modifiers;
  std::uint16_t ptx, sm;
  char suffix;
};

// The last column may be left out.
constexpr FormRow Row(Opcode opcode, std::string_view modifiers, std::string_view types, std::string_view operands,
                      std::uint16_t ptx, std::uint16_t sm, char suffix = '\0') {
  return {opcode, modifiers, types, operands, ptx, sm, suffix};
}
constexpr NeedsRow Row(Opcode opcode, std::string_view modifiers, std::uint16_t ptx, std::uint16_t sm,
                       char suffix = '\0') {
  return {opcode, modifiers, ptx, sm, suffix};
}

constexpr FormRow kFormRows[] = {
#define PTX_FORM(opcode, ...) Row(Opcode::opcode, __VA_ARGS__),
#include "rewriter/ptx/forms_read.h"
};

constexpr NeedsRow kNeedsRows[] = {
#define PTX_NEEDS(opcode, ...) Row(Opcode::opcode, __VA_ARGS__),
#include "rewriter/ptx/forms_read.h"
};

struct WordRow {
  Opcode opcode;
  std::string_view text;
};
constexpr WordRow kWordRows[] = {
#define PTX_WORD(opcode, text) {Opcode::opcode, text},
#include "rewriter/ptx/forms_read.h"
};

bool IsWordOf(Opcode opcode, std::string_view text) {
  return std::ranges::any_of(kWordRows, [&](const WordRow& row) { return row.opcode == opcode && row.text == text; });
}

Access AccessOf(char letter) {
  switch (letter) {
    case 'w': return Access::kWrite;
    case 'x': return Access::kReadWrite;
    case 'm': return Access::kMemory;
    case '#': return Access::kImmediate;
    case 'l': return Access::kLabel;
    case 't': return Access::kTargets;
    default: GL_CHECK(letter == 'r', "forms.def: unknown access"); return Access::kRead;
  }
}

// The type part of an operand's text, removed from it.
void TakeType(std::string_view& text, OperandForm& out) {
  const std::size_t end = text.find_first_of("vV~!|?_", text.empty() ? 0 : 1);
  const std::string_view name = text.substr(0, end);
  if (name.empty() || name.find_first_of("vV~!|?_") == 0) return;
  text.remove_prefix(name.size());
  if (name == "*") return;
  if (name[0] >= '0' && name[0] <= '9') {
    out.modifier = static_cast<std::uint8_t>(name[0] - '0');
    out.rule = name.ends_with('w') ? TypeRule::kWide : TypeRule::kModifier;
    return;
  }
  out.rule = TypeRule::kFixed;
  const auto type = name == "p" ? ScalarType::kPred : TypeFromText(name);
  GL_CHECK(type.has_value(), "forms.def: unknown type of an operand");
  out.type = *type;
}

OperandForm ParseOperandForm(std::string_view text) {
  OperandForm out;
  out.access = AccessOf(text.front());
  text.remove_prefix(1);
  TakeType(text, out);
  if (const std::size_t pair = text.find("|p"); pair != std::string_view::npos) out.pair = true;
  for (const char flag : text) {
    out.per_vector |= flag == 'v';
    out.list |= flag == 'V';
    out.wider_ok |= flag == '~';
    out.negatable |= flag == '!';
    out.optional |= flag == '?';
    out.discardable |= flag == '_';
  }
  return out;
}

Form ParseForm(const FormRow& row) {
  Form form{.opcode = row.opcode, .needs = {.ptx = row.ptx, .sm = row.sm, .specific = row.suffix == 'a'}};
  ForEachPart(row.modifiers, '.', [&](std::string_view modifier) {
    if (modifier.front() == '#') {
      form.type_count = static_cast<unsigned>(modifier[1] - '0');
    } else if (modifier.front() == '[') {
      form.address_at = static_cast<unsigned>(modifier[1] - '0');
    } else {
      form.modifiers.push_back(modifier);
    }
  });
  ForEachPart(row.types, '/', [&](std::string_view group) {
    ForEachPart(group, ' ',
                [&, types = &form.types.emplace_back()](std::string_view name) { AppendTypes(name, *types); });
  });
  ForEachPart(row.operands, ' ', [&](std::string_view text) { form.operands.push_back(ParseOperandForm(text)); });
  return form;
}

// Rows of each opcode stand together (checked), so a table per opcode is a range of the rows.
struct FormTable {
  std::vector<Form> forms;
  std::array<std::span<const Form>, kOpcodeCount> by_opcode;
  std::array<std::span<const NeedsRow>, kOpcodeCount> needs;
};

const FormTable& Table() {
  static const auto* table = [] {
    auto* out = new FormTable;
    for (const FormRow& row : kFormRows) out->forms.push_back(ParseForm(row));
    IndexByOpcode<Form>(out->forms, out->by_opcode);
    IndexByOpcode<NeedsRow>(kNeedsRows, out->needs);
    return out;
  }();
  return *table;
}

bool Matches(const Form& form, const Instruction& instruction) {
  for (const std::string_view modifier : form.modifiers) {
    if (!HasText(instruction, modifier)) return false;
  }
  if (form.address_at != 0 && (instruction.operands.size() <= form.address_at ||
                               instruction.operands[form.address_at].kind != OperandKind::kAddress))
    return false;
  return form.type_count == 0 ||
         std::ranges::count(instruction.modifiers, Mod::kType, &Modifier::mod) == form.type_count;
}

ScalarType TwiceAsWide(ScalarType type) {
  switch (type) {
    case ScalarType::kU16: return ScalarType::kU32;
    case ScalarType::kS16: return ScalarType::kS32;
    case ScalarType::kU32: return ScalarType::kU64;
    case ScalarType::kS32: return ScalarType::kS64;
    default: return ScalarType::kNone;
  }
}

}  // namespace

std::size_t Form::min_operands() const {
  return static_cast<std::size_t>(std::ranges::count(operands, false, &OperandForm::optional));
}

const OperandForm* Form::At(std::size_t n, std::size_t count) const {
  if (n >= count || count > operands.size()) return nullptr;
  std::size_t optionals_left = operands.size() - min_operands();
  const std::size_t missing = operands.size() - count;
  for (const OperandForm& operand : operands) {
    if (operand.optional && optionals_left-- <= missing) continue;
    if (n-- == 0) return &operand;
  }
  return nullptr;
}

std::span<const Form> FormsOf(Opcode opcode) { return Table().by_opcode[static_cast<std::size_t>(opcode)]; }

const Form* FormOf(const Instruction& instruction) {
  for (const Form& form : FormsOf(instruction.opcode)) {
    if (Matches(form, instruction)) return &form;
  }
  return nullptr;
}

const Modifier* UnknownModifierOf(const Instruction& instruction) {
  const auto unknown = std::ranges::find_if(instruction.modifiers, [&](const Modifier& modifier) {
    return modifier.mod == Mod::kOther && !IsShape(modifier.text) && !IsWordOf(instruction.opcode, modifier.text);
  });
  return unknown == instruction.modifiers.end() ? nullptr : &*unknown;
}

ScalarType TypeOf(const OperandForm& form, const Instruction& instruction) {
  switch (form.rule) {
    case TypeRule::kAny: return ScalarType::kNone;
    case TypeRule::kFixed: return form.type;
    case TypeRule::kModifier: return instruction.type(form.modifier);
    case TypeRule::kWide: return TwiceAsWide(instruction.type(form.modifier));
  }
  return ScalarType::kNone;
}

Requirement NeedsOf(const Instruction& instruction, const Form& form) {
  Requirement needs = form.needs;
  for (const NeedsRow& row : Table().needs[static_cast<std::size_t>(instruction.opcode)]) {
    bool all = true;
    ForEachPart(row.modifiers, '.', [&](std::string_view modifier) { all = all && HasText(instruction, modifier); });
    if (!all) continue;
    needs.ptx = std::max(needs.ptx, row.ptx);
    needs.sm = std::max(needs.sm, row.sm);
    needs.specific |= row.suffix == 'a';
  }
  return needs;
}

}  // namespace gridloom::ptx
