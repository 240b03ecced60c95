// Reads of shared memory that generated code asks about all at once (compiler/read_groups.h). A table in the code's
// constants says where they are, the code gives the addresses that it knows only when it runs:
//
//   ReadGroup, ReadGroup::Family × families, ReadGroup::Read × reads
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

struct ReadGroup {
  static constexpr std::uint32_t kFewestReads = 4, kMostReads = 64;
  static constexpr std::uint32_t kMostBases = 32;  ///< addresses that the code gives

  /// Reads of one sort at constant distances from the same addresses.
  struct Family {
    std::uint32_t first_base;  ///< the address of the first lane of each row, without the read's own offset
    std::uint32_t rows;
    std::int32_t least, end;  ///< bytes from there that the rows of its reads lie in
    SharedAccessImm what;
  };
  struct Read {
    std::uint32_t family;
    std::int32_t offset;
    std::uint32_t line;
  };

  std::uint32_t family_count, read_count;

  const Family* families() const { return reinterpret_cast<const Family*>(this + 1); }
  const Read* reads() const { return reinterpret_cast<const Read*>(families() + family_count); }
};
static_assert(sizeof(ReadGroup) == 8 && sizeof(ReadGroup::Family) == 24 && sizeof(ReadGroup::Read) == 12);
static_assert(alignof(ReadGroup) == 4 && alignof(ReadGroup::Family) == 4 && alignof(ReadGroup::Read) == 4);

}  // namespace gridloom::exec
