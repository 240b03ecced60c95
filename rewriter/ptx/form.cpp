#include "rewriter/ptx/form.h"

#include <algorithm>
#include <array>

#include "rewriter/ptx/word_rules.h"
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
constexpr FormRow Row(Opcode opcode, std::string_view modifiers, std::string_view types, std::string_view operands, std::uint16_t ptx,
                      std::uint16_t sm, char suffix = '\0') {
  return {opcode, modifiers, types, operands, ptx, sm, suffix};
}
constexpr NeedsRow Row(Opcode opcode, std::string_view modifiers, std::uint16_t ptx, std::uint16_t sm, char suffix = '\0') {
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

struct TakesRow {
  Opcode opcode;
  std::string_view types, words;
};
constexpr TakesRow kTakesRows[] = {
#define PTX_TAKES(opcode, types, words) {Opcode::opcode, types, words},
#include "rewriter/ptx/forms_read.h"
};

struct WithRow {
  Opcode opcode;
  std::string_view types, word, others;
};
constexpr WithRow kWithRows[] = {
#define PTX_WITH(opcode, types, word, others) {Opcode::opcode, types, word, others},
#include "rewriter/ptx/forms_read.h"
};

struct GroupRow {
  std::string_view name, members;
};
constexpr GroupRow kGroupRows[] = {
#define PTX_GROUP(name, members) {name, members},
#include "rewriter/ptx/forms_read.h"
};

bool IsWordOf(Opcode opcode, std::string_view text) {
  return std::ranges::any_of(kWordRows, [&](const WordRow& row) { return row.opcode == opcode && row.text == text; });
}

// Calls `visit` for each part of a text between separators; empty parts are left out.
template <typename Visit>
void ForEachPart(std::string_view text, char separator, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// A type, or a group: i16 = u16 s16, x16 = b16 u16 s16.
void AppendTypes(std::string_view name, std::vector<ScalarType>& out) {
  if (const auto type = TypeFromText(name)) {
    out.push_back(*type);
    return;
  }
  GL_CHECK(name.front() == 'i' || name.front() == 'x', "forms.def: unknown type");
  for (const char kind : name.front() == 'i' ? std::string_view("us") : std::string_view("usb")) {
    const auto type = TypeFromText(std::string(1, kind) + std::string(name.substr(1)));
    GL_CHECK(type.has_value(), "forms.def: unknown group of types");
    out.push_back(*type);
  }
}

// Words between bars, with those of groups ("@round") in their place.
std::vector<std::string_view> Alternatives(std::string_view text) {
  std::vector<std::string_view> out;
  ForEachPart(text, '|', [&](std::string_view word) {
    if (word.front() != '@') return out.push_back(word);
    const auto* group = std::ranges::find(kGroupRows, word.substr(1), &GroupRow::name);
    GL_CHECK(group != std::end(kGroupRows), "forms.def: unknown group");
    const auto members = Alternatives(group->members);
    out.insert(out.end(), members.begin(), members.end());
  });
  return out;
}

/// Words that exclude each other.
using WordGroup = std::vector<std::string_view>;

/// The types that an instruction has where a row counts; none: any.
using RowTypes = std::array<std::vector<ScalarType>, 2>;

RowTypes ParseRowTypes(std::string_view text) {
  RowTypes out;
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view types[] = {text.substr(0, slash), text.substr(std::min(slash + 1, text.size()))};
  for (std::size_t i = 0; i < 2; ++i) {
    ForEachPart(types[i], ' ', [&](std::string_view names) {
      for (const std::string_view name : Alternatives(names)) AppendTypes(name, out[i]);
    });
  }
  return out;
}

struct Takes {
  Opcode opcode = Opcode::kUnknown;
  RowTypes types;
  std::vector<WordGroup> groups;
};

Takes ParseTakes(const TakesRow& row) {
  Takes takes{.opcode = row.opcode, .types = ParseRowTypes(row.types), .groups = {}};
  ForEachPart(row.words, ' ', [&](std::string_view words) { takes.groups.push_back(Alternatives(words)); });
  return takes;
}

struct With {
  Opcode opcode = Opcode::kUnknown;
  RowTypes types;
  std::vector<std::string_view> words, others;
};

With ParseWith(const WithRow& row) {
  return {.opcode = row.opcode, .types = ParseRowTypes(row.types), .words = Alternatives(row.word), .others = Alternatives(row.others)};
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
    } else {
      form.modifiers.push_back(modifier);
    }
  });
  ForEachPart(row.types, '/', [&](std::string_view group) {
    ForEachPart(group, ' ', [&, types = &form.types.emplace_back()](std::string_view name) { AppendTypes(name, *types); });
  });
  ForEachPart(row.operands, ' ', [&](std::string_view text) { form.operands.push_back(ParseOperandForm(text)); });
  return form;
}

constexpr std::size_t kOpcodeCount = kOpcodeInfo.size();

// Rows of each opcode stand together (checked), so a table per opcode is a range of the rows.
struct FormTable {
  std::vector<Form> forms;
  std::array<std::span<const Form>, kOpcodeCount> by_opcode;
  std::array<std::span<const NeedsRow>, kOpcodeCount> needs;
  std::vector<Takes> takes;
  std::array<std::span<const Takes>, kOpcodeCount> takes_by_opcode;
  std::vector<With> with;
  std::array<std::span<const With>, kOpcodeCount> with_by_opcode;
};

template <typename T>
void IndexByOpcode(std::span<const T> rows, std::array<std::span<const T>, kOpcodeCount>& out) {
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end].opcode == rows[i].opcode) ++end;
    auto& slot = out[static_cast<std::size_t>(rows[i].opcode)];
    GL_CHECK(slot.empty(), "forms.def: rows of an opcode must stand together");
    slot = rows.subspan(i, end - i);
    i = end;
  }
}

const FormTable& Table() {
  static const auto* table = [] {
    auto* out = new FormTable;
    for (const FormRow& row : kFormRows) out->forms.push_back(ParseForm(row));
    IndexByOpcode<Form>(out->forms, out->by_opcode);
    IndexByOpcode<NeedsRow>(kNeedsRows, out->needs);
    for (const TakesRow& row : kTakesRows) out->takes.push_back(ParseTakes(row));
    IndexByOpcode<Takes>(out->takes, out->takes_by_opcode);
    for (const WithRow& row : kWithRows) out->with.push_back(ParseWith(row));
    IndexByOpcode<With>(out->with, out->with_by_opcode);
    return out;
  }();
  return *table;
}

bool HasText(const Instruction& instruction, std::string_view modifier) {
  return std::ranges::find(instruction.modifiers, modifier, &Modifier::text) != instruction.modifiers.end();
}

bool Matches(const Form& form, const Instruction& instruction) {
  for (const std::string_view modifier : form.modifiers) {
    if (!HasText(instruction, modifier)) return false;
  }
  return form.type_count == 0 || std::ranges::count(instruction.modifiers, Mod::kType, &Modifier::mod) == form.type_count;
}

// m64n128k16: the shapes of wgmma are too many for a table.
bool IsShape(std::string_view text) {
  std::size_t at = 0;
  for (const char letter : {'m', 'n', 'k'}) {
    if (at == text.size() || text[at] != letter) return false;
    const std::size_t digits = ++at;
    while (at != text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == digits) return false;
  }
  return at == text.size();
}

bool Counts(const RowTypes& row, const Instruction& instruction) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::vector<ScalarType>& types = row[i];
    if (!types.empty() && std::ranges::find(types, instruction.type(i)) == types.end()) return false;
  }
  return true;
}

// Whether the instruction takes the word: some group has it, and none has it with another one that came before. A word that comes twice
// says nothing new.
bool HasPlace(const Instruction& instruction, std::string_view word, std::span<const Modifier> before) {
  bool found = false;
  for (const Takes& takes : Table().takes_by_opcode[static_cast<std::size_t>(instruction.opcode)]) {
    if (!Counts(takes.types, instruction)) continue;
    for (const WordGroup& group : takes.groups) {
      if (std::ranges::find(group, word) == group.end()) continue;
      found = true;
      const bool excluded = std::ranges::any_of(
          before, [&](const Modifier& other) { return other.text != word && std::ranges::find(group, other.text) != group.end(); });
      if (excluded) return false;
    }
  }
  return found;
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

std::size_t Form::min_operands() const { return static_cast<std::size_t>(std::ranges::count(operands, false, &OperandForm::optional)); }

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

const Modifier* MisplacedModifierOf(const Instruction& instruction) {
  const Form* form = FormOf(instruction);
  const std::size_t most_types = form != nullptr && !form->types.empty() ? form->types.size() : SIZE_MAX;
  const bool has_shapes = instruction.info().cls == OpClass::kTensor;
  std::size_t types = 0;
  for (std::size_t i = 0; i < instruction.modifiers.size(); ++i) {
    const Modifier& modifier = instruction.modifiers[i];
    if (modifier.mod == Mod::kType) {
      if (++types > most_types) return &modifier;
      continue;
    }
    if (has_shapes && IsShape(modifier.text)) continue;
    const std::string_view word = modifier.text.substr(0, modifier.text.find('['));  // const[2] of old modules
    if (!HasPlace(instruction, word, std::span(instruction.modifiers).first(i))) return &modifier;
  }
  return nullptr;
}

std::string WrongWordsOf(const Instruction& instruction, unsigned ptx) {
  constexpr unsigned kNeedsAreKnownSince = 63;
  if (const Modifier* misplaced = MisplacedModifierOf(instruction)) return "does not take '." + std::string(misplaced->text) + "'";
  if (ptx < kNeedsAreKnownSince) return "";
  const auto has = [&](std::string_view word) { return HasText(instruction, word); };
  for (const With& with : Table().with_by_opcode[static_cast<std::size_t>(instruction.opcode)]) {
    if (!Counts(with.types, instruction)) continue;
    const auto word = std::ranges::find_if(with.words, has);
    if ((!with.words.empty() && word == with.words.end()) || std::ranges::any_of(with.others, has)) continue;
    std::string text = with.others.size() > 1 ? "needs one of " : "needs ";
    for (const std::string_view& other : with.others) text += (&other == &with.others.front() ? "." : ", .") + std::string(other);
    return with.words.empty() ? text : text + " with ." + std::string(*word);
  }
  return "";
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
