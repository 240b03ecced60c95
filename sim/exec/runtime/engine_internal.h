// Making an engine with parts of one's own: for tests.
#pragma once

#include <memory>
#include <string>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/engine.h"
#include "sim/exec/runtime/printf_output.h"

namespace gridloom::exec {

struct EngineParts {
  CompileFn compile = nullptr;     ///< null: the compiler library
  std::string compiler_id;         ///< for the cache key, with `compile`
  PrintfOutput::Sink printf_sink;  ///< empty: standard output
};

Result<std::unique_ptr<Engine>> CreateEngine(const Engine::Options& options, const sim::DeviceSpec& device,
                                             DeviceMemory& memory, EngineParts parts);

}  // namespace gridloom::exec
