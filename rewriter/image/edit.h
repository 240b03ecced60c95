// Copies of files with other PTX inside: PTX text, fat binary containers, and programs, libraries and objects with such.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/image/image_set.h"

namespace gridloom::image {

/// The new text of a module: of one PTX entry, or of the parts of a separately compiled (-rdc) program for one architecture, which
/// have to be linked. Nothing: all stays as it is.
using PtxEdit = std::function<Result<std::optional<std::string>>(const std::vector<const Entry*>& parts)>;

/// A copy of a file with edited PTX. In a container where anything was edited the machine code is left out: it would run in
/// place of the PTX, unedited. A changed text is stored with zstd where the entry was compressed, or where room is short.
///
/// Containers inside a program, library or object stay where they are when they fit there; else all of them move to the end of the
/// file (elf_move.h). The parts of a separately compiled program become one, in the place of the first. In a static library each
/// member is edited, and its symbol table leads to where they are then. Objects of separately compiled programs, alone or in a
/// static library, are errors: what calls their functions is not known before they are linked.
Result<std::vector<std::byte>> EditImages(Bytes file, const PtxEdit& edit);

}  // namespace gridloom::image
