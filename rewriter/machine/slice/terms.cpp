#include "rewriter/machine/slice/terms.h"

namespace gridloom::machine {

Terms::Value Terms::Add(const Value& a, const Value& b) const {
  if (a == "0") return b;
  if (b == "0") return a;
  return "(" + Pair(a, "+", b) + ")";
}

}  // namespace gridloom::machine
