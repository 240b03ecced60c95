#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "sim/exec/runtime/half.h"
#include "sim/exec/runtime/interpreter/frame.h"
#include "sim/exec/runtime/interpreter/plain_steps.h"

namespace gridloom::exec {

StepFn PlainStepBaseline(const ByteStep& step) { return PlainSteps<0>::Find(step); }

}  // namespace gridloom::exec
