// Which CTAs of several kernels may run now: the scoreboard of the CRCS paper (section 4.1) as a rule about whole CTAs.
// A page belongs to the oldest kernel that has CTAs left which name it; a CTA may run when all pages it names belong to
// its kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/exec/ranges/page_set.h"

namespace gridloom::exec {

/// A CTA of one of the kernels.
struct KernelCta {
  std::uint32_t kernel = 0;  ///< 0: the oldest
  std::uint32_t cta = 0;     ///< linear
  bool operator==(const KernelCta&) const = default;
};

class PageOwners {
 public:
  static constexpr std::size_t kMostKernels = 64;

  struct Kernel {
    std::uint32_t ctas = 0;
    std::vector<CtaPages> pages;  ///< by CTA; those without a page are not in it
  };
  /// Kernels in the program's order, at most kMostKernels.
  explicit PageOwners(std::span<const Kernel> kernels);

  /// CTAs that may run and were not told before. Which and in what order depends on what was released, and in what
  /// order.
  std::vector<KernelCta> TakeReady();
  /// The CTA has ended.
  void Release(const KernelCta& cta);

 private:
  /// Pages that no range of any CTA tells apart.
  using Segment = std::uint32_t;
  static constexpr std::uint32_t kNone = ~0u;
  struct Span {
    Segment first = 0, end = 0;
  };
  /// A CTA of a kernel: which of the kernel's spans are its own, and how far it has come.
  struct Cta {
    std::size_t first_span = 0, end_span = 0;
    std::size_t span = 0;  ///< all before it belong to the kernel, and so does what lies before `segment` in it
    Segment segment = 0;
  };
  struct State {
    std::uint32_t first_cta = 0;  ///< the number of its first CTA among all
    std::vector<Span> spans;
    std::vector<Cta> ctas;
    std::vector<std::uint32_t> left;  ///< by segment: CTAs that have not ended
  };

  void Add(std::uint32_t number, const Kernel& kernel, const std::vector<std::uint64_t>& cuts);
  void Advance(const KernelCta& cta);
  void WakeAt(Segment segment);
  std::uint32_t OwnerOf(Segment segment) const;

  std::vector<State> kernels_;
  std::vector<std::uint64_t> users_;  ///< by segment: a bit for each kernel with CTAs left
  // CTAs that wait for a segment, as lists: by segment, and by number of the CTA among all.
  std::vector<KernelCta> parked_first_, parked_next_;
  std::vector<KernelCta> ready_;
};

}  // namespace gridloom::exec
