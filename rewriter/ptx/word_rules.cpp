// Whether the words of an instruction go together: as a whole, where forms.def has the words of each form (PTX_WORDS);
// elsewhere word by word (PTX_TAKES, PTX_WITH).
#include "rewriter/ptx/word_rules.h"

#include <functional>
#include <optional>

#include "rewriter/ptx/form.h"
#include "rewriter/ptx/forms_parse.h"

namespace gridloom::ptx {
namespace {

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

struct WordsRow {
  Opcode opcode;
  std::string_view types, words;
};
constexpr WordsRow kWordsRows[] = {
#define PTX_WORDS(opcode, types, words) {Opcode::opcode, types, words},
#include "rewriter/ptx/forms_read.h"
};

struct MostRow {
  Opcode opcode;
  std::string_view modifiers;
  std::size_t types, shapes, layouts;
};
constexpr MostRow kMostRows[] = {
#define PTX_MOST(opcode, modifiers, types, shapes, layouts) {Opcode::opcode, modifiers, types, shapes, layouts},
#include "rewriter/ptx/forms_read.h"
};

struct FirstRow {
  Opcode opcode;
  std::string_view words;
};
constexpr FirstRow kFirstRows[] = {
#define PTX_FIRST(opcode, words) {Opcode::opcode, words},
#include "rewriter/ptx/forms_read.h"
};

struct OrderRow {
  Opcode opcode;
  std::string_view modifiers, before, behind;
};
constexpr OrderRow kOrderRows[] = {
#define PTX_ORDER(opcode, modifiers, before, behind) {Opcode::opcode, modifiers, before, behind},
#include "rewriter/ptx/forms_read.h"
};

struct GroupRow {
  std::string_view name, members;
};
constexpr GroupRow kGroupRows[] = {
#define PTX_GROUP(name, members) {name, members},
#include "rewriter/ptx/forms_read.h"
};

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

/// The types that an instruction has where a row counts; none: any. "-" stands for no such type.
using RowTypes = std::array<std::vector<ScalarType>, 2>;

RowTypes ParseRowTypes(std::string_view text) {
  RowTypes out;
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view types[] = {text.substr(0, slash), text.substr(std::min(slash + 1, text.size()))};
  for (std::size_t i = 0; i < 2; ++i) {
    ForEachPart(types[i], ' ', [&](std::string_view names) {
      if (names == "-") out[i].push_back(ScalarType::kNone);
      else
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
  return {.opcode = row.opcode,
          .types = ParseRowTypes(row.types),
          .words = Alternatives(row.word),
          .others = Alternatives(row.others)};
}

/// One of some words, or none of them; or that the instruction has so many operands.
struct WordItem {
  WordGroup words;
  bool optional = false;
  std::optional<std::size_t> operands = std::nullopt;
};

/// The words of a form.
struct WholeWords {
  Opcode opcode = Opcode::kUnknown;
  RowTypes types;
  std::vector<WordItem> items;
};

WholeWords ParseWords(const WordsRow& row) {
  WholeWords whole{.opcode = row.opcode, .types = ParseRowTypes(row.types), .items = {}};
  ForEachPart(row.words, ' ', [&](std::string_view text) {
    WordItem item;
    if (text.front() == '#') item.operands = static_cast<std::size_t>(text[1] - '0');
    item.optional = text.front() == '[';
    if (!item.operands) item.words = Alternatives(item.optional ? text.substr(1, text.size() - 2) : text);
    whole.items.push_back(std::move(item));
  });
  return whole;
}

/// What an instruction begins with, if it has a word of each.
struct First {
  Opcode opcode = Opcode::kUnknown;
  std::vector<WordGroup> words;
};

First ParseFirst(const FirstRow& row) {
  First first{.opcode = row.opcode, .words = {}};
  ForEachPart(row.words, '.', [&](std::string_view words) { first.words.push_back(Alternatives(words)); });
  return first;
}

/// What stands before what, in an instruction that has the modifiers.
struct Order {
  Opcode opcode = Opcode::kUnknown;
  std::string_view modifiers;
  WordGroup before, behind;
};

Order ParseOrder(const OrderRow& row) {
  return {.opcode = row.opcode,
          .modifiers = row.modifiers,
          .before = Alternatives(row.before),
          .behind = Alternatives(row.behind)};
}

struct WordTable {
  std::vector<Takes> takes;
  std::array<std::span<const Takes>, kOpcodeCount> takes_by_opcode;
  std::vector<With> with;
  std::array<std::span<const With>, kOpcodeCount> with_by_opcode;
  std::vector<WholeWords> whole;
  std::array<std::span<const WholeWords>, kOpcodeCount> whole_by_opcode;
  std::array<std::span<const MostRow>, kOpcodeCount> most_by_opcode;
  std::vector<First> first;
  std::array<std::span<const First>, kOpcodeCount> first_by_opcode;
  std::vector<Order> order;
  std::array<std::span<const Order>, kOpcodeCount> order_by_opcode;
  WordGroup twice;
};

const WordTable& Rules() {
  static const auto* table = [] {
    auto* out = new WordTable;
    for (const TakesRow& row : kTakesRows) out->takes.push_back(ParseTakes(row));
    IndexByOpcode<Takes>(out->takes, out->takes_by_opcode);
    for (const WithRow& row : kWithRows) out->with.push_back(ParseWith(row));
    IndexByOpcode<With>(out->with, out->with_by_opcode);
    for (const WordsRow& row : kWordsRows) out->whole.push_back(ParseWords(row));
    IndexByOpcode<WholeWords>(out->whole, out->whole_by_opcode);
    IndexByOpcode<MostRow>(kMostRows, out->most_by_opcode);
    for (const FirstRow& row : kFirstRows) out->first.push_back(ParseFirst(row));
    IndexByOpcode<First>(out->first, out->first_by_opcode);
    for (const OrderRow& row : kOrderRows) out->order.push_back(ParseOrder(row));
    IndexByOpcode<Order>(out->order, out->order_by_opcode);
    out->twice = Alternatives("@twice");
    return out;
  }();
  return *table;
}

std::size_t IndexOf(const Instruction& instruction) { return static_cast<std::size_t>(instruction.opcode); }

bool Counts(const RowTypes& row, const Instruction& instruction) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::vector<ScalarType>& types = row[i];
    if (!types.empty() && std::ranges::find(types, instruction.type(i)) == types.end()) return false;
  }
  return true;
}

/// Whether the instruction takes the word: some group has it, and none has it with another one that came before.
bool HasPlace(const Instruction& instruction, std::string_view word, std::span<const std::string_view> before) {
  bool found = false;
  for (const Takes& takes : Rules().takes_by_opcode[IndexOf(instruction)]) {
    if (!Counts(takes.types, instruction)) continue;
    for (const WordGroup& group : takes.groups) {
      if (std::ranges::find(group, word) == group.end()) continue;
      found = true;
      if (std::ranges::any_of(before,
                              [&](std::string_view other) { return std::ranges::find(group, other) != group.end(); }))
        return false;
    }
  }
  return found;
}

/// Whether the instruction has all of the modifiers, which stand between dots.
bool HasAllOf(const Instruction& instruction, std::string_view modifiers) {
  bool all = true;
  ForEachPart(modifiers, '.', [&](std::string_view word) { all = all && HasText(instruction, word); });
  return all;
}

/// How many types, shapes and layouts an instruction has at most.
MostRow MostOf(const Instruction& instruction) {
  for (const MostRow& row : Rules().most_by_opcode[IndexOf(instruction)]) {
    if (HasAllOf(instruction, row.modifiers)) return row;
  }
  const Form* form = FormOf(instruction);
  const std::size_t types = form != nullptr && !form->types.empty() ? form->types.size() : SIZE_MAX;
  return {.opcode = instruction.opcode, .modifiers = {}, .types = types, .shapes = 0, .layouts = 0};
}

/// The words of an instruction that are no types and no shapes, each once; and the first type, shape or layout too
/// many, or word that comes again, or null.
struct Words {
  std::vector<std::string_view> words;
  const Modifier* extra = nullptr;
};

Words WordsOf(const Instruction& instruction) {
  const MostRow most = MostOf(instruction);
  Words out;
  std::size_t types = 0, shapes = 0, layouts = 0;
  const auto count = [&](const Modifier& modifier, std::size_t& number, std::size_t limit) {
    if (++number > limit && out.extra == nullptr) out.extra = &modifier;
  };
  for (const Modifier& modifier : instruction.modifiers) {
    const bool is_layout = most.layouts != 0 && (modifier.text == "row" || modifier.text == "col");
    if (modifier.mod == Mod::kType) {
      count(modifier, types, most.types);
      continue;
    }
    if (IsShape(modifier.text)) {
      count(modifier, shapes, most.shapes);
      continue;
    }
    if (is_layout) count(modifier, layouts, most.layouts);
    const std::string_view word = modifier.text.substr(0, modifier.text.find('['));  // const[2] of old modules
    if (std::ranges::find(out.words, word) == out.words.end()) {
      out.words.push_back(word);
    } else if (!is_layout && out.extra == nullptr && std::ranges::find(Rules().twice, word) == Rules().twice.end()) {
      out.extra = &modifier;
    }
  }
  return out;
}

std::string Refusal(std::string_view word) { return "does not take '." + std::string(word) + "'"; }

std::string Need(const WordGroup& words) {
  std::string text = words.size() > 1 ? "needs one of " : "needs ";
  for (const std::string_view& word : words) text += (&word == &words.front() ? "." : ", .") + std::string(word);
  return text;
}

bool HasAny(std::span<const std::string_view> words, const WordGroup& group) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return std::ranges::find(group, word) != group.end(); });
}

/// Whether each of the words has a place of its own in the form.
bool HasPlaces(const WholeWords& form, std::span<const std::string_view> words) {
  std::size_t placed = 0;
  for (const WordItem& item : form.items) {
    const auto here = std::ranges::count_if(
        words, [&](std::string_view word) { return std::ranges::find(item.words, word) != item.words.end(); });
    if (here > 1) return false;
    placed += static_cast<std::size_t>(here);
  }
  return placed == words.size();
}

/// What the form needs and the words are not; null: nothing.
const WordItem* MissingOf(const WholeWords& form, std::span<const std::string_view> words) {
  for (const WordItem& item : form.items)
    if (!item.optional && !item.operands && !HasAny(words, item.words)) return &item;
  return nullptr;
}

bool FitsOperands(const WholeWords& form, const Instruction& instruction) {
  return std::ranges::all_of(
      form.items, [&](const WordItem& item) { return !item.operands || item.operands == instruction.operands.size(); });
}

/// Whether the instruction has as many types as the forms ask for. Too few are told of elsewhere.
bool HasAllTypes(const Instruction& instruction) {
  std::size_t asked = 0;
  for (const WholeWords& form : Rules().whole_by_opcode[IndexOf(instruction)])
    for (std::size_t i = 0; i < form.types.size(); ++i)
      if (!form.types[i].empty()) asked = std::max(asked, i + 1);
  return asked != 0 && instruction.type(asked - 1) != ScalarType::kNone;
}

const Modifier* LastTypeOf(const Instruction& instruction) {
  const Modifier* last = nullptr;
  for (const Modifier& modifier : instruction.modifiers)
    if (modifier.mod == Mod::kType) last = &modifier;
  return last;
}

/// Of an opcode whose forms' words are written down. The word that is told of is the first one that no form has
/// together with those before.
std::string WrongInForms(const Instruction& instruction, std::span<const std::string_view> words,
                         bool needs_are_known) {
  std::vector<const WholeWords*> left;
  for (const WholeWords& form : Rules().whole_by_opcode[IndexOf(instruction)])
    if (Counts(form.types, instruction)) left.push_back(&form);
  if (left.empty() && HasAllTypes(instruction)) return Refusal(LastTypeOf(instruction)->text);
  const auto fits = [&](const WholeWords* form) { return FitsOperands(*form, instruction); };
  if (std::ranges::any_of(left, fits))
    std::erase_if(left, std::not_fn(fits));  // a wrong number of operands is told of elsewhere
  for (std::size_t i = 1; i <= words.size(); ++i) {
    std::erase_if(left, [&](const WholeWords* form) { return !HasPlaces(*form, words.first(i)); });
    if (left.empty()) return Refusal(words[i - 1]);
  }
  WordGroup missing;
  for (const WholeWords* const form : left) {
    const WordItem* const item = needs_are_known ? MissingOf(*form, words) : nullptr;
    if (item == nullptr) return "";
    for (const std::string_view word : item->words)
      if (std::ranges::find(missing, word) == missing.end()) missing.push_back(word);
  }
  return missing.empty() ? "" : Need(missing);
}

/// Which word stands before one that it belongs behind.
std::string WrongPlace(const Instruction& instruction, std::span<const std::string_view> words) {
  const auto first_of = [&](const WordGroup& group) {
    return std::ranges::find_if(words,
                                [&](std::string_view word) { return std::ranges::find(group, word) != group.end(); });
  };
  for (const Order& order : Rules().order_by_opcode[IndexOf(instruction)]) {
    if (!HasAllOf(instruction, order.modifiers)) continue;
    const auto before = first_of(order.before), behind = first_of(order.behind);
    if (before != words.end() && behind < before) return Refusal(*before) + " behind '." + std::string(*behind) + "'";
  }
  return "";
}

/// Whether the words that the instruction begins with stand there, and others before those that they belong before.
std::string WrongOrder(const Instruction& instruction) {
  std::vector<std::string_view> words;
  for (const Modifier& modifier : instruction.modifiers) words.push_back(modifier.text);
  const std::string wrong = WrongPlace(instruction, words);
  if (!wrong.empty()) return wrong;
  for (const First& first : Rules().first_by_opcode[IndexOf(instruction)]) {
    if (!std::ranges::all_of(first.words, [&](const WordGroup& group) { return HasAny(words, group); })) continue;
    for (std::size_t i = 0; i < first.words.size(); ++i) {
      const WordGroup& group = first.words[i];
      const auto at = std::ranges::find_if(
          words, [&](std::string_view word) { return std::ranges::find(group, word) != group.end(); });
      const auto behind = words.begin() + static_cast<std::ptrdiff_t>(i);
      if (at > behind) return Refusal(*at) + " behind '." + std::string(*behind) + "'";
    }
    return "";
  }
  return "";
}

/// For opcodes whose words are not written down: which word has no place.
std::string WrongWords(const Instruction& instruction, std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (!HasPlace(instruction, words[i], words.first(i))) return Refusal(words[i]);
  return "";
}

/// Which word needs another one that the instruction does not have.
std::string MissingWords(const Instruction& instruction, std::span<const std::string_view> words) {
  for (const With& with : Rules().with_by_opcode[IndexOf(instruction)]) {
    if (!Counts(with.types, instruction) || (!with.words.empty() && !HasAny(words, with.words)) ||
        HasAny(words, with.others))
      continue;
    if (with.words.empty()) return Need(with.others);
    const auto word = std::ranges::find_if(
        with.words, [&](std::string_view one) { return std::ranges::find(words, one) != words.end(); });
    return Need(with.others) + " with ." + std::string(*word);
  }
  return "";
}

}  // namespace

std::string WrongWordsOf(const Instruction& instruction, unsigned ptx) {
  constexpr unsigned kNeedsAreKnownSince = 63;
  const bool needs_are_known = ptx >= kNeedsAreKnownSince;
  const auto [words, extra] = WordsOf(instruction);
  const bool whole = !Rules().whole_by_opcode[IndexOf(instruction)].empty();
  std::string wrong = whole ? WrongInForms(instruction, words, needs_are_known) : WrongWords(instruction, words);
  if (wrong.empty() && extra != nullptr) wrong = Refusal(extra->text);
  if (wrong.empty()) wrong = WrongOrder(instruction);
  if (wrong.empty() && !whole && needs_are_known) wrong = MissingWords(instruction, words);
  return wrong;
}

}  // namespace gridloom::ptx
