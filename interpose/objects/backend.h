// What runs kernels behind a virtual GPU. One interface so that tests can put a recording engine in its place; the real
// one is wired in interpose/session/exec_backend.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/exec/device_memory.h"
#include "sim/exec/engine.h"
#include "sim/exec/program.h"

namespace gridloom::session {

class Process;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual exec::DeviceMemory& memory() = 0;
  virtual exec::Engine& engine() = 0;
  virtual Result<std::shared_ptr<exec::Program>> Load(std::unique_ptr<ptx::Module> module, std::string text) = 0;
};

using BackendFactory = std::function<Result<std::unique_ptr<Backend>>(Process& process, const sim::DeviceSpec& device,
                                                                      std::uint64_t memory_bytes)>;

/// The factory used from now on; call before the first context exists. The shim's own default is MakeExecBackend.
void SetBackendFactory(BackendFactory factory);
BackendFactory TheBackendFactory();

}  // namespace gridloom::session
