// Everything that reads containers: ELF, fat binaries, cubins, PTX headers, decompression, selection; and the way of
// their PTX as far as the verifier.
#include <cstdint>

#include "rewriter/image/cubin.h"
#include "rewriter/image/select.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/verifier.h"

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
      if (!bytes.ok()) continue;
      (void)gridloom::image::ReadCubin(AsBytes(*bytes));
      if (entry.kind != gridloom::image::EntryKind::kPtx) continue;
      gridloom::DiagnosticSink sink;
      const auto module = gridloom::ptx::ParseModule(*bytes, sink);
      if (!sink.has_errors()) (void)gridloom::ptx::VerifyModule(*module, sink, gridloom::ptx::PtxOrigin::kCompiled);
    }
  }
  (void)gridloom::image::SelectPtx(*set, ComputeCapability{9, 0});
  return 0;
}
