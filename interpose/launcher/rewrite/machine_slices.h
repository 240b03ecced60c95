// What `gridloom rewrite --slice-machine-code` does with machine code (docs/machine-code.md#slices), and says of it.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewriter/image/edit.h"
#include "rewriter/machine/slice/slice_cubin.h"

namespace gridloom::launcher {

/// The machine code of one entry and what became of it.
struct CodePiece {
  std::string name;
  std::string problem;  ///< not empty: nothing, and why
  std::vector<machine::SlicedKernel> kernels = {};
};

/// Puts sliced forms beside the kernels; `pieces`, which has to outlive the edit, gets what became of each.
image::CodeEdit SliceMachineCode(const std::string& file, std::deque<CodePiece>& pieces);

/// A title and a line for each kernel.
std::string OutcomeText(const CodePiece& piece);
nlohmann::ordered_json OutcomeJson(const CodePiece& piece);

}  // namespace gridloom::launcher
