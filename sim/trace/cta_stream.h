// CTAs that run one after the other in the same place, recognised: mostly a CTA does what one before it did, each instruction at
// addresses that are shifted by some distance. Then its records equal those of the other word by word but for the shifts, and
// they need not be decoded.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "sim/exec/record_sink.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/record_decoder.h"

namespace gridloom::trace {

class CtaStream final : public exec::RecordStream {
 public:
  /// Takes a CTA that is complete, and how many of its accesses have no place in it.
  using Take = std::function<void(std::uint64_t cta, LoadedCta trace, std::uint64_t dropped)>;
  CtaStream(const CodeTable& table, std::uint32_t warps, Take take);

  void OnRecords(const exec::RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended) override;

 private:
  /// Records while they come in. `words` may hold more, of a CTA before.
  struct Buffer {
    std::vector<std::uint64_t> words;
    std::size_t used = 0;
  };
  /// A CTA that others are compared with.
  struct Model {
    std::shared_ptr<const CtaTrace> trace;
    std::uint64_t dropped = 0;
    std::uint64_t local_base = 0;  ///< of the CTA that it was made of
    RecordSites sites;
    std::vector<std::vector<std::uint64_t>> words;                ///< by buffer
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sample;  ///< of each site, a buffer and a word
    std::vector<std::uint64_t> shift;                             ///< by site, of the last CTA like it
    std::vector<std::uint64_t> step;                              ///< by site, of the shift, from one CTA to the next
    std::vector<std::vector<std::uint64_t>> word_step;            ///< the same by buffer and word
    bool missed = true;                                           ///< the step was not that to the last CTA
  };

  void BeginCta();
  void EndCta(const exec::RecordPlace& place);
  bool EndedAsExpected() const;
  /// Fills shift_ when the CTA is like the model.
  bool IsLike(const Model& model);
  void Follow(Model& model);
  void Decode(const exec::RecordPlace& place);
  std::unique_ptr<Model> MakeModel(const exec::RecordPlace& place, RecordSites sites, std::shared_ptr<const CtaTrace> trace) const;
  LoadedCta Shifted(const Model& model, const exec::RecordPlace& place) const;

  const std::uint32_t warps_, accesses_;
  const Take take_;
  std::vector<std::uint32_t> local_accesses_;  ///< memory instructions (AccessCount counts them) that go to local memory
  RecordDecoder decoder_;
  std::vector<Buffer> buffers_;
  std::list<std::unique_ptr<Model>> models_;  ///< the latest first
  std::vector<std::uint64_t> shift_;
  std::uint32_t ended_ = 0;   ///< warps of the CTA
  bool open_ = false;         ///< a CTA has begun
  bool expected_ = false;     ///< what has come of it is the first model's word, a step on
  std::uint64_t misses_ = 0;  ///< CTAs in a row that were like none
};

}  // namespace gridloom::trace
