// All formats: the rows of table/*.def, one format for each of their operand forms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rewriter/machine/format.h"

namespace gridloom::machine {

/// The architectures the table has rows for: 75, 80, 86, 89, 90.
std::span<const unsigned> KnownArchitectures();
bool IsKnownArchitecture(unsigned sm);

/// Every format, in the order of the rows: of formats that a word fits, the first is its own. Built once, from any
/// thread.
std::span<const Format> AllFormats();

/// The formats of an architecture whose opcode is `opcode` (bits 0-11), in that order.
std::span<const Format* const> FormatsOf(unsigned sm, unsigned opcode);

/// What is wrong with the text of rows, one line each: empty, as tests see to.
std::span<const std::string> TableErrors();

}  // namespace gridloom::machine
