// Which function lifts which opcode, from the instruction table.
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

template <>
void Lift<semantic::None>(Lifter& l, const Instruction&) {
  l.RefuseInstruction();
}

LiftHandler HandlerFor(Opcode opcode) {
  static constexpr LiftHandler kHandlers[] = {
      &Lift<semantic::None>,  // of an opcode that the table does not know
#define PTX_OPCODE(name, text, cls, dsts, min_srcs, max_srcs, traits, meaning) &Lift<semantic::meaning>,
#include "rewriter/ptx/opcodes.def"
#undef PTX_OPCODE
  };
  return kHandlers[static_cast<std::size_t>(opcode)];
}

}  // namespace gridloom::exec
