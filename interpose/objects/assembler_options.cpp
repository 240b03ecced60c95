#include "interpose/objects/assembler_options.h"

#include <string_view>
#include <utility>

#include "interpose/objects/ptx_sources.h"
#include "interpose/objects/unfused_ptx.h"

namespace gridloom::session {
namespace {

/// Whether products may be fused with sums: what the last `-fmad=false`, `--fmad=true` or the like says, yes otherwise.
bool MayFuse(std::span<const std::string> options) {
  bool may = true;
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (const std::string_view option : {"--fmad", "-fmad"}) {
      std::string_view rest = options[i];
      if (!rest.starts_with(option)) continue;
      rest.remove_prefix(option.size());
      if (rest.empty() && i + 1 < options.size()) may = options[i + 1] != "false";
      else if (rest.starts_with('=')) may = rest != "=false";
      break;
    }
  }
  return may;
}

}  // namespace

std::string WithAssemblerOptions(std::string ptx, std::span<const std::string> options) {
  if (!MayFuse(options)) ptx = WithoutFusing(std::move(ptx));
  std::string all;
  for (const std::string& option : options) all += option + " ";
  return WithMaxRegisters(std::move(ptx), MaxRegisters(all));
}

}  // namespace gridloom::session
