#include "sim/timing/dispatch/code_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace gridloom::timing {

Result<std::shared_ptr<const CodeOfWorks>> CodeTable::DecodedOf(const trace::KernelCode& code) {
  std::weak_ptr<const CodeOfWorks>& known = decoded_[&code];
  auto decoded = known.lock();
  if (decoded != nullptr) return decoded;
  GL_TRY(made, DecodeLowered(code, device_));
  decoded = std::make_shared<const CodeOfWorks>(CodeOfWorks{std::make_shared<const DecodedCode>(std::move(made))});
  known = decoded;
  if (decoded_.size() > most_) {
    std::erase_if(decoded_, [](const auto& entry) { return entry.second.expired(); });
    most_ = std::max(kFewest, 2 * decoded_.size());
  }
  return decoded;
}

bool IsSame(const DecodedCode& a, const DecodedCode& b) {
  return &a == &b || (a.register_count == b.register_count && a.operands == b.operands && a.access == b.access &&
                      a.event_ops == b.event_ops && a.ops == b.ops && a.blocks == b.blocks && a.regions == b.regions);
}

std::uint64_t IdentityOf(const trace::KernelCode& code, const trace::LaunchShape& shape) {
  const std::uint64_t name = XXH3_64bits(code.name.data(), code.name.size());
  const std::uint64_t block[] = {name, code.instructions.size(), shape.threads_per_cta, shape.registers_per_thread,
                                 shape.shared_bytes};
  return std::max<std::uint64_t>(XXH3_64bits(block, sizeof(block)), 1);
}

}  // namespace gridloom::timing
