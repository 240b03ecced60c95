// Copies of files with other device code inside: PTX text, cubins, fat binary containers, and programs, libraries and
// objects with such.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/image/image_set.h"

namespace gridloom::image {

/// What an edit is given: a module as it is loaded, or one part of a program that is yet to be linked.
enum class PtxRole : std::uint8_t { kModule, kPart };

/// The new text of a module: of one PTX entry, or of the parts of a separately compiled (-rdc) program for one
/// architecture, which have to be linked; or of one such part in an object. Nothing: all stays as it is.
using PtxEdit = std::function<Result<std::optional<std::string>>(const std::vector<const Entry*>& parts, PtxRole role)>;

/// The new bytes of machine code. Nothing: it stays as it is.
using CodeEdit = std::function<Result<std::optional<std::vector<std::byte>>>(const Entry& entry)>;

/// A copy of a file with edited PTX. In a container where anything was edited the machine code is left out: it would
/// run in place of the PTX, unedited. A changed text is stored with zstd where the entry was compressed, or where room
/// is short.
///
/// With `code` it has edited machine code, too, where a container has no PTX that runs on the same devices; such code
/// is never left out. It is stored as it was: plain, with LZ4 or with zstd, so that a driver that read it reads it
/// again.
///
/// Containers inside a program, library or object stay where they are when they fit there; else all of them move to the
/// end of the file (elf_move.h). The parts of a separately compiled program become one, in the place of the first. In a
/// static library each member is edited, and its symbol table leads to where they are then. The parts in objects of
/// separately compiled programs, alone or in a static library, are edited one by one and stay parts.
Result<std::vector<std::byte>> EditImages(Bytes file, const PtxEdit& edit, const CodeEdit& code = {});

}  // namespace gridloom::image
