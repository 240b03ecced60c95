// What `gridloom doctor` looks at: one function per thing, one row per function.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gridloom::launcher {

enum class Verdict { kGood, kNote, kProblem };  ///< kNote: works, but worth knowing

struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string text;  ///< what was found, one sentence
  std::string mend;  ///< the command or step that mends it; empty when nothing needs mending
};

struct Check {
  std::string_view name;
  Finding (*look)();
};

std::span<const Check> Checks();

}  // namespace gridloom::launcher
