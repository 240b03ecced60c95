// Everything that reads containers: ELF, fat binaries, cubins, PTX headers, decompression, selection.
#include <cstdint>

#include "rewriter/image/cubin.h"
#include "rewriter/image/select.h"

using gridloom::ComputeCapability;
using gridloom::image::AsBytes;
using gridloom::image::Container;
using gridloom::image::Entry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto set = gridloom::image::ReadImages({reinterpret_cast<const std::byte*>(data), size});
  if (!set.ok()) return 0;
  for (const Container& container : set->containers) {
    for (const Entry& entry : container.entries) {
      const auto bytes = entry.Read(1 << 20);
      if (bytes.ok()) (void)gridloom::image::ReadCubin(AsBytes(*bytes));
    }
  }
  (void)gridloom::image::SelectPtx(*set, ComputeCapability{9, 0});
  return 0;
}
