#pragma once

#include <memory>

#include "hooks/support.h"
#include "interpose/objects/pool.h"

namespace gridloom::hooks {

/// Pools of the device are entered in the handle table when a program first sees them: the handle to give it.
CUmemoryPool Publish(Process& process, const std::shared_ptr<session::MemoryPool>& pool);

}  // namespace gridloom::hooks
