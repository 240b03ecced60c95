// Copies of files with other PTX inside: PTX text, fat binary containers, and programs, libraries and objects with such.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/image/image_set.h"

namespace gridloom::image {

/// The new text of a PTX entry; nothing: it stays as it is.
using PtxEdit = std::function<Result<std::optional<std::string>>(const Entry& entry)>;

/// A copy of a file with edited PTX. In a container where anything was edited the machine code is left out: it would run in
/// place of the PTX, unedited. A changed text is stored with zstd where the entry was compressed, or where room is short.
///
/// Containers inside a program or library stay where they are when they fit there; else all of them move to the end of the file
/// (elf_move.h). Static libraries and separately compiled (-rdc) containers, whose parts cannot be edited one by one, are errors.
Result<std::vector<std::byte>> EditImages(Bytes file, const PtxEdit& edit);

}  // namespace gridloom::image
