// Dependent kernels that overlap, on hardware that lets a kernel have a page when all kernels before it are done with
// it (CRCS paper, docs/overlap.md). That hardware keeps CTAs of different kernels off one SM; these policies choose the
// kernel.
#pragma once

#include <vector>

#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// Kernels in their order: the next one gets SMs that the one before has no CTAs left for.
class CrcsFifo final : public Policy {
 public:
  std::string_view name() const override { return "crcs-fifo"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;
};

/// Pipeline parallelism-aware (section 4.4): while inputs are on their way, an SM is given away when it is empty, to
/// the kernel whose share of the available pages is largest beside its share of the SMs. Otherwise as CrcsFifo.
///
/// The paper does not say what happens when later kernels hold all SMs and wait for one that has none. Here the oldest
/// kernel that has CTAs left always gets an SM when it has none, so that somebody can go on.
class CrcsPpcs final : public Policy {
 public:
  std::string_view name() const override { return "crcs-ppcs"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;

 private:
  struct Seen {
    std::uint64_t next = 0;  ///< above all of them
    std::size_t count = 0;
  };
  void NoteKernels(const Snapshot& snapshot);

  Seen kernels_, profilers_;
  std::uint32_t sm_ = 0;  // what Slice::sms refers to
};

/// Beyond the paper: thread blocks whose pages are all there go first, those of the oldest kernel before others; then
/// those that half of what they read is there for. Other blocks only hold SMs. Blocks that would wait leave half of the
/// SMs empty while inputs are on their way, and those of later kernels always the last one, so that somebody can go on.
/// Those of the oldest kernel do so once a later kernel had blocks that need not wait: where kernels do not follow each
/// other block by block, nobody else could use the SMs.
class CrcsReady final : public Policy {
 public:
  std::string_view name() const override { return "crcs-ready"; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;

 private:
  bool follow_ = false;             // while inputs come: later kernels have had blocks whose pages were all there
  std::vector<std::uint32_t> sms_;  // what Slice::sms refers to
};

}  // namespace gridloom::policy
