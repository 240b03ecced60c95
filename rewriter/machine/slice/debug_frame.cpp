#include "rewriter/machine/slice/debug_frame.h"

#include <cstring>

namespace gridloom::machine {

// An entry's first field is the address of the code, which a relocation fills in; its size stands behind it.
Status GrowFrame(CubinFile& cubin, std::uint32_t symbol, std::uint64_t before, std::uint64_t after) {
  const auto section = cubin.Find(".debug_frame");
  if (!section) return {};
  std::vector<std::byte> data = cubin.sections()[*section].data;
  bool any = false;
  for (const CubinFile::Relocation& relocation : cubin.RelocationsOf(*section)) {
    const std::uint64_t size_at = relocation.offset + sizeof(std::uint64_t);
    const auto size = image::ReadAt<std::uint64_t>(data, size_at);
    if (relocation.symbol != symbol || relocation.addend != 0 || size != before) continue;
    std::memcpy(data.data() + size_at, &after, sizeof after);
    any = true;
  }
  return any ? cubin.SetData(*section, std::move(data)) : Status();
}

}  // namespace gridloom::machine
