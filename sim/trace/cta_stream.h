// CTAs that run one after the other in the same place, recognised: mostly a CTA does what one before it did, each
// instruction at addresses that are shifted by some distance. Then its records equal those of the other word by word
// but for the shifts, and they need not be decoded.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "sim/exec/record_sink.h"
#include "sim/trace/cta_run.h"
#include "sim/trace/record_decoder.h"
#include "sim/trace/word_turns.h"

namespace gridloom::trace {

class CtaStream final : public exec::RecordStream {
 public:
  struct Captured {
    CtaRun run;
    std::uint64_t dropped = 0;  ///< accesses that have no place in it, of each CTA
    bool cut = false;           ///< it does more than a trace may have: what is beyond is left out
  };
  /// Takes CTAs that are complete.
  using Take = std::function<void(std::span<Captured> ctas)>;
  /// `table` must outlive it, and so must the compiled kernels whose records it gets.
  CtaStream(const CodeTable& table, std::uint32_t warps);
  bool IsFor(const CodeTable& table, std::uint32_t warps) const { return &table == &table_ && warps == warps_; }
  /// Before the first records of a launch, and after its last ones.
  void BeginLaunch(Take take);
  void EndLaunch();

  void OnRecords(const exec::RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended) override;
  void OnCta(const exec::RecordPlace& place, std::span<const std::span<const std::uint64_t>> buffers) override;
  void OnCtas(exec::RecordPlace& place, std::span<const exec::RecordedCta> ctas, std::uint32_t warps) override;

 private:
  /// Records while they come in. `words` may hold more, of a CTA before.
  struct Buffer {
    std::vector<std::uint64_t> words;
    std::size_t used = 0;
    TurnFinder turns;  ///< of the CTA's words, where there are many

    std::span<const std::uint64_t> filled() const { return {words.data(), used}; }
  };
  /// A CTA that others are compared with.
  struct Model {
    std::shared_ptr<const CtaTrace> trace;
    std::uint64_t dropped = 0;
    std::uint64_t local_base = 0;  ///< of the CTA that it was made of
    RecordSites sites;
    bool used = false;                                            ///< a CTA was like it
    bool only_first = false;                                      ///< all words are in the first buffer
    std::vector<std::vector<std::uint64_t>> words;                ///< by buffer
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sample;  ///< of each site, a buffer and a word
    std::vector<std::uint64_t> shift;  ///< by site, of the last CTA like it but for `ahead` steps
    std::uint64_t ahead = 0;
    std::vector<std::uint64_t> step;                    ///< by site, of the shift, from one CTA to the next
    std::vector<std::vector<std::uint64_t>> word_step;  ///< the same by buffer and word
    bool missed = true;                                 ///< the step was not that to the last CTA
    const Model* successor = nullptr;  ///< that a CTA was like which came after one like this, if it is left

    /// Takes the steps that `shift` lacks.
    void Settle();
  };

  void TakeRecords(const exec::RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended);
  void Append(std::uint32_t buffer, std::span<const std::uint64_t> words);
  void Keep(Buffer& buffer, std::span<const std::uint64_t> words);
  void EndTurns(Buffer& buffer);
  void ForgetWords();
  std::size_t TakeExpected(std::span<const exec::RecordedCta> ctas, std::span<const std::uint64_t> last);
  void GiveShifted(std::uint64_t index, std::uint64_t local_base);
  void GiveExpected(std::uint64_t index, std::uint64_t local_base);
  bool ProlongRun(std::uint64_t index, std::uint64_t local_base);
  void PassOn();
  void BeginCta();
  void EndBufferedCta(const exec::RecordPlace& place);
  void EndCta(const exec::RecordPlace& place);
  bool EndedAsExpected() const;
  /// Fills shift_ when the CTA is like the model.
  bool IsLike(const Model& model);
  void Follow(Model& model);
  void Decode(const exec::RecordPlace& place);
  std::unique_ptr<Model> MakeModel(const exec::RecordPlace& place, RecordSites sites,
                                   std::shared_ptr<const CtaTrace> trace) const;

  const CodeTable& table_;
  const std::uint32_t warps_, accesses_;
  Take take_;
  std::vector<Captured> captured_;  ///< that take_ has not got yet
  /// Memory instructions (AccessCount counts them) that go to local memory.
  std::vector<std::uint32_t> local_accesses_;
  RecordDecoder decoder_;
  std::vector<Buffer> buffers_;
  RecordBuffers records_;                          ///< of the CTA that has ended: in buffers_, or where they were made
  std::vector<std::span<const WordTurns>> turns_;  ///< the same; empty: all of its words are there
  std::size_t kept_words_ = 0;                     ///< of the CTA
  bool cut_ = false;                               ///< words of the CTA were not kept
  std::list<std::unique_ptr<Model>> models_;       ///< the latest first
  std::vector<std::uint64_t> shift_;
  std::uint64_t local_base_ = 0, local_step_ = 0;      ///< of the last CTA that was like a model; of its run
  std::uint32_t ended_ = 0;                            ///< warps of the CTA
  bool open_ = false;                                  ///< a CTA has begun
  bool follows_ = false;                               ///< the CTA before was the first model's
  bool generic_ = false;                               ///< some accesses go to generic addresses
  bool expected_ = false;                              ///< what has come of it is the first model's word, a step on
  std::uint64_t misses_ = 0;                           ///< CTAs in a row that were like none
  std::uint32_t unused_models_ = 0, since_model_ = 0;  ///< in a row; CTAs decoded since the last one
};

}  // namespace gridloom::trace
