#include "sim/trace/meaning.h"

#include <algorithm>

#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {
namespace {

bool IsInTables(const Meanings& meanings, const Meaning& meaning) {
  const std::uint64_t end = std::uint64_t{meaning.terms} + meaning.results + meaning.sources;
  if (meaning.text >= meanings.texts.size() || end > meanings.terms.size()) return false;
  if ((meaning.flags & ~(Meaning::kGuarded | Meaning::kPartial)) != 0) return false;
  if ((meaning.flags & Meaning::kGuarded) != 0 && meaning.sources == 0) return false;
  const auto first = meanings.terms.begin() + meaning.terms;
  return std::all_of(first, first + meaning.results,
                     [](const Term& result) { return result.kind == Term::Kind::kRegister; });
}

bool IsInTables(const Meanings& meanings, const Term& term) {
  switch (term.kind) {
    case Term::Kind::kRegister: return term.value != 0 && term.value <= meanings.registers;
    case Term::Kind::kName: return term.value < meanings.texts.size();
    case Term::Kind::kNumber:
    case Term::Kind::kOffset: return true;
  }
  return false;
}

}  // namespace

Status ValidateMeanings(const KernelCode& code) {
  const Meanings& meanings = code.meanings;
  if (meanings.empty()) return {};
  const auto bad = [&](const std::string& what) { return Error{"kernel " + code.name + ": " + what}; };
  if (meanings.of.size() != code.instructions.size() || meanings.successors.size() != code.blocks.size())
    return bad("meanings of other code");
  if (meanings.texts.empty() || !meanings.texts[0].empty()) return bad("no empty text among those of meanings");
  if (meanings.registers > meanings.terms.size()) return bad("more registers than terms that could name them");
  for (std::size_t i = 0; i < meanings.of.size(); ++i) {
    if (!IsInTables(meanings, meanings.of[i]))
      return bad("instruction " + std::to_string(i) + ": a meaning that is not in the tables");
  }
  for (std::size_t i = 0; i < meanings.terms.size(); ++i) {
    if (!IsInTables(meanings, meanings.terms[i])) return bad("term " + std::to_string(i) + " names what is not there");
  }
  for (const std::vector<std::uint32_t>& next : meanings.successors) {
    if (std::ranges::any_of(next, [&](std::uint32_t block) { return block >= code.blocks.size(); }))
      return bad("a block goes on at one that does not exist");
  }
  return {};
}

}  // namespace gridloom::trace
