// From a line of PTX to the line of the source that .loc names (PTX ISA, 11.5.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

struct SourcePlace {
  std::string file;  ///< relative to the current folder when it lies below
  std::uint32_t line = 0;
};

std::optional<SourcePlace> FindSource(const ptx::Module& module, std::uint32_t ptx_line);

}  // namespace gridloom::exec
