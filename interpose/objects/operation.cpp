#include "interpose/objects/operation.h"

#include "interpose/objects/green_context.h"

namespace gridloom::session {

exec::LaunchParams LaunchOf(const KernelOp& op) {
  exec::LaunchParams launch;
  launch.program = op.bound.program;
  launch.kernel = op.bound.info;
  launch.grid = op.grid;
  launch.block = op.block;
  launch.cluster = op.cluster;
  launch.dynamic_shared_bytes = op.dynamic_shared_bytes;
  launch.stack_bytes = op.stack_bytes;
  launch.params = op.params;
  launch.cooperative = op.cooperative;
  if (op.green != nullptr) launch.sms = op.green->sms();
  return launch;
}

}  // namespace gridloom::session
