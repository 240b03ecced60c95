// Few bytes of a trace can ask for any number of instructions, which a model simulates one by one: turns of a loop that
// are kept once, CTAs that are like others.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// The same CTAs as long as those that were loaded execute no more than `most` warp instructions together; then Load
/// fails with a sentence that begins with the kernel's name. 0: the source itself.
std::shared_ptr<CtaSource> WithInstructionLimit(std::shared_ptr<CtaSource> source, std::uint64_t most);

}  // namespace gridloom::trace
