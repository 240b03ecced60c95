// The executor as the shim's backend.
#pragma once

#include "interpose/objects/backend.h"

namespace gridloom::session {

/// Device memory and an engine with the process's settings; what they have to tell goes to its observers.
Result<std::unique_ptr<Backend>> MakeExecBackend(Process& process, const sim::DeviceSpec& device,
                                                 std::uint64_t memory_bytes);

}  // namespace gridloom::session
