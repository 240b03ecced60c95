// Cubins whose kernels are to be sliced: what comes out can be read again, and is proven once more from the two files.
#include <cstdint>
#include <cstdlib>

#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/proof.h"
#include "rewriter/machine/slice/slice_cubin.h"

using namespace gridloom::machine;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gridloom::image::Bytes bytes{reinterpret_cast<const std::byte*>(data), size};
  const auto sliced = SliceCubin(bytes);
  if (!sliced.ok()) return 0;
  const auto before = CubinFile::Read(bytes);
  const auto after = CubinFile::Read(sliced->bytes);
  if (!before.ok() || !after.ok() || !ProveFile(*before, *after, sliced->kernels).ok()) std::abort();
  for (const SlicedKernel& kernel : sliced->kernels) {
    if (kernel.why_whole.empty() && !ProveKernel(*before, *after, kernel).ok()) std::abort();
  }
  return 0;
}
