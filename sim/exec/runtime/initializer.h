// Initialisers of module variables (PTX ISA 5.4.4): where each element goes and what bytes it is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"

namespace gridloom::exec {

/// Address of the variable or function an initialiser element names.
using SymbolAddressFn = std::function<Result<std::uint64_t>(const ptx::Operand&)>;

/// Bytes a variable takes: its declared size, or what its initialiser needs when the first dimension is open.
std::uint64_t InitializedBytes(const ptx::Variable& variable);

/// Writes the initialiser into `bytes`, which is zeroed. Elements that are not given stay zero.
Status ApplyInitializer(const ptx::Variable& variable, const SymbolAddressFn& address, std::span<std::byte> bytes);

}  // namespace gridloom::exec
