// The range functions in PTX, for a real GPU: reference counts of pages in global memory (CRCS paper, Figure 6, without
// the hardware). Link it to a rewritten module with rewriter/ptx/linker.h. The executor needs it not: it has the
// functions itself.
//
// The host tells it once per context what there is, by a launch of one thread of
//   gridloom_ranges_init(allocations, count, page_shift)
// where `allocations` points to `count` records in device memory, sorted by `base`, and the counts of an allocation to
// one record of two numbers for each page that it has a part in:
//   struct Allocation { std::uint64_t base, bytes, counts; };   struct Count { std::uint32_t read, write; };
//
// A call takes time in proportion to the pages it names. Each call counts once per page: a CTA that names a page in two
// calls counts twice, when it is set and when it is released.
#pragma once

#include <string_view>

namespace gridloom::passes {

/// The PTX text of the module.
std::string_view RangeRuntime();

}  // namespace gridloom::passes
