// Moving a section of an ELF file to its end, where there is room for it to grow.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/result.h"

namespace gridloom::image {

/// Something in the section that others may point to.
struct MovedPlace {
  std::uint64_t from = 0, to = 0;  ///< offsets in the section and in the new data
  bool required = false;           ///< it is an error when nothing points to it
};

/// A copy of a program or shared library with `data` in place of a read-only section. The data is put at the end of the
/// file; a segment of notes, which nothing needs at run time, becomes the one that maps it; the section header leads
/// there. Pointers to the places, which must be in the section `pointers`, are changed, those that the dynamic linker
/// fills in as well. What was in the section is zeroed. An error when the file has no such sections, no spare segment,
/// or nothing points to a place that is required.
Result<std::vector<std::byte>> MoveSection(Bytes file, std::string_view section, const std::vector<std::byte>& data,
                                           const std::vector<MovedPlace>& places, std::string_view pointers);

/// The same for an object file that is yet to be linked: the section's data is put at the end of the file; symbols in
/// the section and relocations that lead there by the section's own symbol are changed.
Result<std::vector<std::byte>> MoveSectionOfObject(Bytes file, std::string_view section,
                                                   const std::vector<std::byte>& data,
                                                   const std::vector<MovedPlace>& places);

}  // namespace gridloom::image
