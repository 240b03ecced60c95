// The executor as the shim's backend.
#pragma once

#include "interpose/objects/backend.h"

namespace gridloom::session {

/// Device memory and an engine with the process's settings.
Result<std::unique_ptr<Backend>> MakeExecBackend(const sim::DeviceSpec& device, std::uint64_t memory_bytes);

}  // namespace gridloom::session
