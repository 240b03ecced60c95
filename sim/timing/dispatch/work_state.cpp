#include "sim/timing/dispatch/work_state.h"

namespace gridloom::timing {

Result<trace::LoadedCta> KernelState::Load(std::uint64_t cta) {
  if (cancelled) return trace::LoadedCta{};
  const Group* const group = GroupOf(cta);
  trace::CtaSource* const from = group != nullptr ? group->source.get() : source.get();
  const std::uint64_t first = group != nullptr ? group->first_cta : 0;
  GL_TRY(loaded, from->Load(cta - first));
  if (loaded.trace == nullptr) return loaded;
  GL_TRY_STATUS(checks.Check(from->code(), from->shape(), loaded));
  return loaded;
}

}  // namespace gridloom::timing
