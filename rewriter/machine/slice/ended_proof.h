// Proof of code that counts ended threads: what it does on every way through it, read from the two codes alone.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/machine/flow.h"

namespace gridloom::machine {

/// Where that code is, and what it may use.
struct EndedCode {
  image::Bytes code{};                ///< of the form
  unsigned sm = 0;                    ///< of both
  std::uint32_t from = 0;             ///< the word that ends lead to
  std::int32_t table = 0, shift = 0;  ///< offsets of the hidden parameters in constant bank 0
};

/// Numbers of its words. They wait for all that was begun before, add as many as end together to the count of their
/// CTA, once, if somebody counts, end every lane that comes to them, and write no register that an instruction may
/// still read or lanes elsewhere have. `highest` becomes the highest general register, if that is higher.
Result<std::vector<std::uint32_t>> ProveEnded(const FlowGraph& original, const EndedCode& ended, unsigned& highest);

}  // namespace gridloom::machine
