// cvt to and from packed and narrow formats (PTX ISA, 9.7.9.21 and 9.7.9.22).
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

void FunctionLifter::LiftCvtPacked(const Instruction&) { RefuseInstruction(); }
void FunctionLifter::LiftRedAsync(const Instruction&) { RefuseInstruction(); }

}  // namespace gridloom::exec
