// Trace files from anywhere: no crash, no unchecked index, and whatever CTA is given back is valid.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "sim/trace/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom::trace;
  auto file = TraceFile::FromBytes({data, data + size}, "input");
  if (!file) return 0;
  for (std::size_t l = 0; l < (*file)->launches().size(); ++l) {
    const auto source = TraceFile::Source(*file, l);
    for (const auto& [cta, place] : (*file)->launches()[l].place) {
      const auto loaded = source->Load(cta);
      if (loaded && !ValidateCta(source->code(), source->shape(), *loaded->trace).ok()) std::abort();
    }
  }
  return 0;
}
