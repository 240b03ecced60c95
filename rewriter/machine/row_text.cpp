// The text of a row of the table: docs/machine-code.md#table has the grammar.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "rewriter/machine/format.h"
#include "rewriter/machine/names.h"

namespace gridloom::machine {
namespace {

constexpr unsigned kGuardBit = 12, kGuardBits = 4, kControlBit = 105, kControlBits = 21, kWideBit = 91;
constexpr unsigned kOpcodeBits = 12;

struct Slot {
  unsigned reg, negate, absolute, swizzle;
};

// Where a source operand is: NAK's set_alu_reg and its callers. The half-precision forms have other bits.
constexpr Slot kSlotA{24, 72, 73, 74}, kSlotW{32, 63, 62, 60}, kSlotX{64, 75, 74, 0};
constexpr Slot kHalfSlotX{64, 84, 83, 81};

class RowParser {
 public:
  RowParser(const Row& row, unsigned form) : row_(row), form_(form) {}

  Result<Format> Parse();

 private:
  bool Architectures();
  bool Modifiers(std::string_view text);
  bool Operands(std::string_view text);
  bool Rest(std::string_view text);
  bool Property(std::string_view name);
  bool OneOperand(Operand& operand);
  bool Named(std::string_view letters, Operand& operand);
  bool SlotOperand(std::string_view letters, Operand& operand);
  bool WideSlot(std::uint8_t reuse, Operand& operand, bool uniform, bool half);
  bool Decorations(Operand& operand, const Slot* slot);
  bool Brackets(std::string_view prefix, Operand& operand);
  bool Length(Operand& operand);
  bool Suffixes(Operand& operand);
  bool Choice(std::uint8_t& field);

  bool Position(Field& field);
  bool Names(Field& field);
  bool Constant(unsigned first, unsigned width, std::uint64_t value);
  std::uint8_t Add(Field field);
  std::uint8_t AddBits(unsigned first, unsigned width) {
    return Add({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(width)});
  }
  bool Claim(unsigned first, unsigned width);

  void Begin(std::string_view text) { text_ = text, at_ = 0; }
  bool Match(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Spaces() {
    while (Match(' ')) {
    }
  }
  bool Number(unsigned& value);
  std::string_view Letters();
  bool Fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }

  const Row& row_;
  unsigned form_;
  Format format_{};
  Word claimed_{};
  std::string_view text_{};
  std::size_t at_ = 0;
  std::string error_{};
};

bool RowParser::Number(unsigned& value) {
  const char* begin = text_.data() + at_;
  const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (code != std::errc{}) return Fail("a number is missing");
  at_ += static_cast<std::size_t>(end - begin);
  return true;
}

std::string_view RowParser::Letters() {
  const std::size_t begin = at_;
  while (std::isalpha(static_cast<unsigned char>(Peek())) != 0) ++at_;
  return text_.substr(begin, at_ - begin);
}

bool RowParser::Claim(unsigned first, unsigned width) {
  for (unsigned bit = first; bit < first + width; ++bit) {
    if (bit >= 128 || claimed_.Get(bit, 1) != 0) return Fail("bit " + std::to_string(bit) + " has two uses");
    claimed_.Set(bit, 1, 1);
  }
  return true;
}

std::uint8_t RowParser::Add(Field field) {
  Claim(field.first, field.width);
  Claim(field.first2, field.width2);
  format_.fields.push_back(std::move(field));
  return static_cast<std::uint8_t>(format_.fields.size() - 1);
}

bool RowParser::Constant(unsigned first, unsigned width, std::uint64_t value) {
  if (!Claim(first, width)) return false;
  for (unsigned bit = 0; bit < width; ++bit) format_.value.Set(first + bit, 1, (value >> bit) & 1);
  return true;
}

// position := first [ ':' width ] [ ',' first ':' width ]
bool RowParser::Position(Field& field) {
  unsigned first = 0, width = 1;
  if (!Number(first)) return false;
  if (Match(':') && !Number(width)) return false;
  field.first = static_cast<std::uint8_t>(first);
  field.width = static_cast<std::uint8_t>(width);
  if (!Match(',')) return true;
  if (!Number(first) || !Match(':') || !Number(width)) return Fail("the second part of a field is first:width");
  field.first2 = static_cast<std::uint8_t>(first);
  field.width2 = static_cast<std::uint8_t>(width);
  return true;
}

// name := [ value '=' ] text: values are counted on from the last one, and those between have no names.
void AddName(Field& field, std::string_view name) {
  unsigned value = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (code == std::errc{} && end != name.data() + name.size() && *end == '=') {
    field.names.resize(std::max<std::size_t>(value, field.names.size()), "!");
    name.remove_prefix(static_cast<std::size_t>(end - name.data()) + 1);
  }
  field.names.push_back(name);
}

// names := '(' name { ',' name } ')' | '%' shared
bool RowParser::Names(Field& field) {
  std::string_view list;
  if (Match('%')) {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0) ++at_;
    const auto shared = SharedNames(text_.substr(begin, at_ - begin));
    if (!shared) return Fail("no shared names " + std::string(text_.substr(begin, at_ - begin)));
    list = *shared;
  } else if (Match('(')) {
    const std::size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) return Fail("a list of names has no end");
    list = text_.substr(at_, end - at_);
    at_ = end + 1;
  } else {
    return Fail("a list of names is missing");
  }
  for (std::size_t begin = 0;;) {
    const std::size_t comma = list.find(',', begin);
    AddName(field, list.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
    if (comma == std::string_view::npos) break;
    begin = comma + 1;
  }
  if (field.names.size() > (std::size_t{1} << field.bits())) return Fail("more names than values");
  return true;
}

// choice := '.' text '@' bit | '@' position names
bool RowParser::Choice(std::uint8_t& number) {
  Field field;
  if (Match('@')) {
    if (!Position(field) || !Names(field)) return false;
  } else {
    const std::size_t end = text_.find('@', at_);
    if (Peek() != '.' || end == std::string_view::npos) return Fail("a modifier is .NAME@bit or @bits(names)");
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (!Position(field)) return false;
    field.names = {"", name};
  }
  number = Add(std::move(field));
  return true;
}

bool RowParser::Modifiers(std::string_view text) {
  Begin(text);
  for (Spaces(); Peek() != '\0'; Spaces()) {
    std::uint8_t field = kNoField;
    if (!Choice(field)) return false;
    format_.modifiers.push_back(field);
  }
  return true;
}

// property := 'U' | 'branch' | 'indirect' | 'call' | 'outside' | 'return' | 'exit'
bool RowParser::Property(std::string_view name) {
  constexpr std::string_view kFlows[] = {"", "branch", "indirect", "call", "outside", "return", "exit"};
  if (name == "U") {
    format_.uniform_guard = true;
    return true;
  }
  const auto flow = std::ranges::find(kFlows, name);
  if (name.empty() || flow == std::end(kFlows)) return Fail("no property " + std::string(name));
  format_.flow = static_cast<Flow>(flow - std::begin(kFlows));
  return true;
}

// rest := { '=' first ':' width '(' value ')' | '~' position | '@' property }
bool RowParser::Rest(std::string_view text) {
  Begin(text);
  for (Spaces(); Peek() != '\0'; Spaces()) {
    Field field;
    unsigned value = 0;
    if (Match('=')) {
      if (!Position(field) || !Match('(') || !Number(value) || !Match(')'))
        return Fail("a constant is =first:width(value)");
      if (!Constant(field.first, field.width, value)) return false;
    } else if (Match('~')) {
      if (!Position(field)) return false;
      Add(std::move(field));
    } else if (Match('@')) {
      if (!Property(Letters())) return false;
    } else {
      return Fail("of the rest only =, ~ and @ are known");
    }
  }
  return true;
}

bool RowParser::Operands(std::string_view text) {
  Begin(text);
  for (Spaces(); Peek() != '\0'; Spaces()) {
    Operand operand;
    if (!OneOperand(operand)) return false;
    format_.operands.push_back(std::move(operand));
  }
  return true;
}

// operand := [ ':' ] [ '_' ] [ '>' ] [ '?' [ '!' ] ] ( letters '@' … | slot … | prefix '[' … | ''' letters | '"' )
bool RowParser::OneOperand(Operand& operand) {
  operand.silent = Match(':');
  operand.glued = Match('_');
  if (Match('"')) {
    if (format_.operands.empty()) return Fail("nothing to repeat");
    operand = format_.operands.back();
    return true;
  }
  if (Match('\'')) {
    operand.kind = OperandKind::kWord;
    const std::size_t end = std::min(text_.find(' ', at_), text_.size());
    operand.prefix = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }
  operand.written = Match('>');
  operand.optional = Match('?');
  operand.default_true = !Match('!');
  const std::string_view letters = Letters();
  if (Peek() == '[') return Brackets(letters, operand);
  if (Peek() == '@') return Named(letters, operand);
  return SlotOperand(letters, operand);
}

bool RowParser::Named(std::string_view letters, Operand& operand) {
  Match('@');
  Field field;
  if (!Position(field)) return false;
  const bool source = !operand.written;
  const auto width = [&](unsigned bits) { field.width = static_cast<std::uint8_t>(bits); };
  if (letters == "R") {
    operand.kind = OperandKind::kRegister, width(8);
    if (source && field.first == kSlotA.reg) operand.reuse = 0;
    if (source && field.first == kSlotW.reg) operand.reuse = 1;
    if (source && field.first == kSlotX.reg) operand.reuse = 2;
  } else if (letters == "U") {
    operand.kind = OperandKind::kUniformRegister, width(6);
  } else if (letters == "P" || letters == "UP") {
    operand.kind = letters == "P" ? OperandKind::kPredicate : OperandKind::kUniformPredicate, width(3);
    if (source) operand.negate = AddBits(field.first + 3u, 1);
  } else if (letters == "BR") {
    operand.kind = OperandKind::kConvergence, width(4);
  } else if (letters == "SB") {
    operand.kind = OperandKind::kScoreboard, width(3);
  } else if (letters == "M") {
    operand.kind = OperandKind::kSet;
  } else if (letters == "I" || letters == "S" || letters == "D") {
    operand.style = letters == "S" ? Style::kSigned : letters == "D" ? Style::kDecimal : Style::kHex;
  } else if (letters == "T" || letters == "TT") {
    operand.kind = OperandKind::kTarget;
    operand.scale = letters == "TT" ? 4 : 1;
  } else if (letters == "J") {
    operand.style = Style::kSigned;
    operand.scale = 4;
  } else if (letters == "N") {
    operand.kind = OperandKind::kName;
    if (!Names(field)) return false;
  } else {
    return Fail("no operand " + std::string(letters));
  }
  operand.value = Add(std::move(field));
  return Decorations(operand, nullptr);
}

// slot := [ 'U' | 'H' ] ( 'A' | 'W' | 'X' | 'B' | 'C' ): docs/machine-code.md#slots.
bool RowParser::SlotOperand(std::string_view letters, Operand& operand) {
  const bool uniform = letters.size() == 2 && letters[0] == 'U';
  const bool half = letters.size() == 2 && letters[0] == 'H';
  if (letters.empty() || (letters.size() == 2) != (uniform || half)) return Fail("no operand " + std::string(letters));
  char slot = letters.back();
  const bool swapped = form_ == 2 || form_ == 3 || form_ == 7;
  // Reuse bits count operands as they are written, not where they are in the word.
  const std::uint8_t reuse = slot == 'A' ? 0 : slot == 'B' || slot == 'W' ? 1 : 2;
  if (slot == 'D') slot = 'W';
  if (slot == 'B') slot = swapped ? 'X' : 'W';
  else if (slot == 'C') slot = swapped ? 'W' : 'X';
  if (slot == 'W') return WideSlot(reuse, operand, uniform, half);
  if (slot != 'A' && slot != 'X') return Fail("no operand " + std::string(letters));
  const Slot& place = slot == 'A' ? kSlotA : half ? kHalfSlotX : kSlotX;
  operand.kind = uniform ? OperandKind::kUniformRegister : OperandKind::kRegister;
  operand.value = AddBits(place.reg, uniform ? 6 : 8);
  if (!uniform) operand.reuse = reuse;
  if (half) {
    Field swizzle{static_cast<std::uint8_t>(place.swizzle), 2};
    swizzle.names = {"", slot == 'A' ? ".F32" : "!", ".H0_H0", ".H1_H1"};
    operand.suffixes.push_back({Add(std::move(swizzle))});
  }
  return Decorations(operand, &place);
}

bool RowParser::WideSlot(std::uint8_t reuse, Operand& operand, bool uniform, bool half) {
  const Slot& slot = kSlotW;
  const bool immediate = form_ == 2 || form_ == 4;
  if (immediate) {
    operand.kind = OperandKind::kNumber;
    operand.value = AddBits(slot.reg, 32);
    return Decorations(operand, nullptr);
  }
  const bool constant = form_ == 3 || form_ == 5;
  if (constant) {
    operand.kind = OperandKind::kBracketed;
    operand.prefix = "c";
    Operand bank{.kind = OperandKind::kNumber}, offset{.kind = OperandKind::kNumber, .style = Style::kSigned};
    bank.value = AddBits(54, 5);
    offset.value = AddBits(38, 16);
    Operand first{.kind = OperandKind::kBracketed}, second{.kind = OperandKind::kBracketed};
    first.parts.push_back(bank);
    second.parts.push_back(offset);
    operand.parts = {first, second};
  } else {
    const bool from_uniform = uniform || form_ == 6 || form_ == 7;
    operand.kind = from_uniform ? OperandKind::kUniformRegister : OperandKind::kRegister;
    operand.value = AddBits(slot.reg, from_uniform ? 6 : 8);
    if (!from_uniform) operand.reuse = reuse;
    if (from_uniform && !uniform && !Constant(kWideBit, 1, 1)) return false;
  }
  if (half) {
    Field swizzle{static_cast<std::uint8_t>(slot.swizzle), 2};
    swizzle.names = {"", "!", ".H0_H0", ".H1_H1"};
    operand.suffixes.push_back({Add(std::move(swizzle))});
  }
  return Decorations(operand, &slot);
}

// decorations := { '-' | '|' | '~' | '^' | '!' value | '#' | '/' style | '*' length | '{' choices '}' }; of an
// immediate, signs are in its value.
bool RowParser::Decorations(Operand& operand, const Slot* slot) {
  for (;;) {
    if (Match('-') || Match('~')) {
      operand.always_inverted = text_[at_ - 1] == '~';
      unsigned bit = slot != nullptr ? slot->negate : 0;
      if (std::isdigit(static_cast<unsigned char>(Peek())) != 0 && !Number(bit)) return false;
      if (bit != 0) operand.negate = AddBits(bit, 1);
    } else if (Match('|')) {
      if (slot != nullptr) operand.absolute = AddBits(slot->absolute, 1);
    } else if (Match('^')) {
      if (operand.kind == OperandKind::kNumber) format_.fields[operand.value].power_of_two = true;
    } else if (Match('#')) {
      operand.reuse = kNoField;
    } else if (Match('!')) {
      unsigned only = 0;
      if (!Number(only)) return false;
      format_.fields[operand.value].only = only;
    } else if (Match('/')) {
      constexpr std::string_view kStyles = "xsdfDhb";
      const std::size_t style = kStyles.find(Peek());
      if (style == std::string_view::npos) return Fail("no style of that letter");
      ++at_;
      operand.style = static_cast<Style>(style);
    } else if (Match('*')) {
      if (!Length(operand)) return false;
    } else if (Match('{')) {
      if (!Suffixes(operand)) return false;
    } else {
      return true;
    }
  }
}

bool RowParser::Length(Operand& operand) {
  unsigned length = 0;
  if (std::isdigit(static_cast<unsigned char>(Peek())) != 0) {
    if (!Number(length)) return false;
  } else {
    operand.measure = Peek();
    ++at_;
  }
  operand.length = static_cast<std::uint8_t>(length);
  return true;
}

bool RowParser::Suffixes(Operand& operand) {
  while (!Match('}')) {
    std::uint8_t field = kNoField;
    if (!Choice(field)) return false;
    operand.suffixes.push_back({field});
  }
  return true;
}

// brackets := prefix { '[' part { '+' part } ']' } [ decorations ]
bool RowParser::Brackets(std::string_view prefix, Operand& operand) {
  operand.kind = OperandKind::kBracketed;
  operand.prefix = prefix;
  while (Match('[')) {
    Operand group{.kind = OperandKind::kBracketed};
    do {
      Operand part;
      if (!OneOperand(part)) return false;
      group.parts.push_back(std::move(part));
    } while (Match('+'));
    if (!Match(']')) return Fail("a bracket has no end");
    operand.parts.push_back(std::move(group));
  }
  return Decorations(operand, nullptr);
}

bool RowParser::Architectures() {
  Begin(row_.architectures);
  if (!Number(format_.first_sm)) return false;
  format_.last_sm = format_.first_sm;
  return !Match('-') || Number(format_.last_sm);
}

Result<Format> RowParser::Parse() {
  format_.name = row_.name;
  format_.opcode = static_cast<std::uint16_t>(row_.opcode | form_ << 9);
  const bool good = Constant(0, kOpcodeBits, format_.opcode) && Claim(kGuardBit, kGuardBits) &&
                    Claim(kControlBit, kControlBits) && Architectures() && Rest(row_.rest) &&
                    Modifiers(row_.modifiers) && Operands(row_.operands);
  if (!good || !error_.empty())
    return Error{std::string(row_.name) + ": " + error_ + " (at " +
                 std::string(text_.substr(std::min(at_, text_.size()))) + ")"};
  // What is a constant is claimed too, and is no field.
  Word fields;
  for (const Field& field : format_.fields) {
    for (unsigned bit = 0; bit < field.width; ++bit) fields.Set(field.first + bit, 1, 1);
    for (unsigned bit = 0; bit < field.width2; ++bit) fields.Set(field.first2 + bit, 1, 1);
  }
  fields.Set(kGuardBit, kGuardBits, ~0ull);
  fields.Set(kControlBit, kControlBits, ~0ull);
  format_.mask = ~fields;
  return std::move(format_);
}

}  // namespace

Result<Format> ParseRow(const Row& row, unsigned form) { return RowParser(row, form).Parse(); }

}  // namespace gridloom::machine
