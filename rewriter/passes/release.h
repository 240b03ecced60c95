// release: at the end of each CTA one thread computes the CTA's ranges again and releases them (CRCS paper, 4.2.3).
//
//   before:  .entry k(…) { … @%p exit; … ret; }
//   after:   .entry k(…) { … @%p bra END; … END: wait until no other thread of the CTA is left;
//                          if this is the one that does it: { low, high = …; gridloom_release_range(A, low, high,
//                                                                                                         flags); } }
//
// All threads of a CTA have ended their work before the release, whichever way they ended. Two ways of waiting:
//   barrier  every thread waits at a barrier that the kernel does not use, then thread 0 releases. Not when a thread
//            may come to the end while others go on to a barrier or a .sync instruction: those would wait for one that
//            waits at the end.
//   counter  a word of shared memory counts the threads that are left; the last one releases, and nobody waits.
// Threads that end in device functions come back to the kernel first (lower_exits.h). A kernel is refused when it is
// irregular, or when a function in which threads end is called through a pointer.
#pragma once

#include "rewriter/passes/pass.h"
#include "rewriter/passes/range_calls.h"

namespace gridloom::passes {

class ReleasePass final : public Pass {
 public:
  explicit ReleasePass(RangeForm form) : form_(form) {}
  std::string_view name() const override { return form_ == RangeForm::kInterval ? "release" : "release-strided"; }
  std::string_view summary() const override;
  /// Ranges of a changed kernel may be wider or narrower, and what was set must be released.
  std::string_view answers() const override { return form_ == RangeForm::kInterval ? "profile" : "profile-strided"; }
  Result<PassReport> Run(ptx::Module& module) const override;

 private:
  const RangeForm form_;
};

}  // namespace gridloom::passes
