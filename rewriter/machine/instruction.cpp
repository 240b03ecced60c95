#include "rewriter/machine/instruction.h"

#include <algorithm>

#include "rewriter/machine/table.h"

namespace gridloom::machine {
namespace {

constexpr unsigned kGuardAt = 12, kGuardNegatedAt = 15;
constexpr unsigned kBarriers = 6;

bool Fits(const Format& format, const Word& word) {
  if ((word & format.mask) != format.value) return false;
  return std::ranges::all_of(format.fields, [&](const Field& field) { return field.Allows(field.Read(word)); });
}

bool IsBarrier(unsigned number) { return number < kBarriers || number == kNoBarrier; }

}  // namespace

Control ReadControl(const Word& word) {
  const auto get = [&](unsigned first, unsigned width) { return static_cast<std::uint8_t>(word.Get(first, width)); };
  return {get(105, 4), get(109, 1) != 0, get(110, 3), get(113, 3), get(116, 6), get(122, 4)};
}

void WriteControl(Word& word, const Control& control) {
  word.Set(105, 4, control.stall);
  word.Set(109, 1, control.yield ? 1 : 0);
  word.Set(110, 3, control.write_barrier);
  word.Set(113, 3, control.read_barrier);
  word.Set(116, 6, control.wait);
  word.Set(122, 4, control.reuse);
}

std::optional<Instruction> Decode(const Word& word, unsigned sm) {
  for (const Format* format : FormatsOf(sm, static_cast<unsigned>(word.Get(0, 12)))) {
    if (!Fits(*format, word)) continue;
    Instruction instruction{.format = format};
    for (const Field& field : format->fields) instruction.values.push_back(field.Read(word));
    instruction.guard = static_cast<std::uint8_t>(word.Get(kGuardAt, 3));
    instruction.guard_negated = word.Get(kGuardNegatedAt, 1) != 0;
    instruction.control = ReadControl(word);
    return instruction;
  }
  return std::nullopt;
}

Word Encode(const Instruction& instruction) {
  Word word = instruction.format->value;
  for (std::size_t number = 0; number < instruction.values.size(); ++number)
    instruction.format->fields[number].Write(word, instruction.values[number]);
  word.Set(kGuardAt, 3, instruction.guard);
  word.Set(kGuardNegatedAt, 1, instruction.guard_negated ? 1 : 0);
  WriteControl(word, instruction.control);
  return word;
}

Status Verify(const Instruction& instruction) {
  const Format& format = *instruction.format;
  const auto bad = [&](const std::string& what) { return Error{std::string(format.name) + ": " + what}; };
  if (instruction.values.size() != format.fields.size()) return bad("not as many values as fields");
  for (std::size_t number = 0; number < format.fields.size(); ++number) {
    if (!format.fields[number].Allows(instruction.values[number]))
      return bad("the value " + std::to_string(instruction.values[number]) + " does not fit the field from bit " +
                 std::to_string(format.fields[number].first));
  }
  const Control& control = instruction.control;
  if (instruction.guard > kTrue) return bad("no guard predicate " + std::to_string(instruction.guard));
  if (!IsBarrier(control.write_barrier) || !IsBarrier(control.read_barrier)) return bad("no scoreboard of that number");
  if (control.stall > 15 || control.wait > 63 || control.reuse > 15) return bad("a control field is too large");
  return {};
}

}  // namespace gridloom::machine
