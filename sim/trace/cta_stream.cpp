#include "sim/trace/cta_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/exec/simd.h"

namespace gridloom::trace {

using exec::SimdLevel;
using exec::UsableSimd;

namespace {

constexpr std::size_t kMostModels = 16;
constexpr std::size_t kMostWords = std::size_t{1} << 22;        // of a CTA that others are compared with
constexpr std::size_t kMostRecordWords = std::size_t{1} << 28;  // of any CTA
constexpr std::size_t kLookForTurnsFrom = std::size_t{1} << 15;
constexpr std::size_t kMostKeptWords = std::size_t{1} << 14;  // the same from one launch to the next
// Where CTAs are like none before, only some of them are compared with others.
constexpr std::uint64_t kEagerMisses = 4, kLazyCompares = 8, kHopelessMisses = 256, kRareCompares = 32;
constexpr std::uint64_t kRemembered = 23;  // of the launches before: the next CTA is compared

bool Compares(std::uint64_t misses) {
  return misses <= kEagerMisses || misses % (misses <= kHopelessMisses ? kLazyCompares : kRareCompares) == 0;
}

constexpr std::uint32_t kLongestPause = 512;
/// CTAs that are only decoded before one becomes a model again, after so many models in a row that no CTA was like: to
/// make one costs as much as to decode several.
std::uint32_t PauseAfter(std::uint32_t unused_models) {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 3> kPauses = {{{4, 0}, {8, 8}, {16, 64}}};
  for (const auto& [models, pause] : kPauses) {
    if (unused_models <= models) return pause;
  }
  return kLongestPause;
}

GL_INLINE void AdvanceWords(std::uint64_t* __restrict old_words, const std::uint64_t* __restrict steps,
                            const std::uint64_t* __restrict words, std::size_t count, std::uint64_t* differs) {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < count; ++i) {
    any |= (words[i] - old_words[i]) ^ steps[i];
    old_words[i] = words[i];
  }
  *differs = any;
}

GL_INLINE void CountFollowers(const std::uint64_t* last, const std::uint64_t* steps, std::size_t words,
                              std::span<const exec::RecordedCta> ctas, std::size_t* count) {
  *count = 0;
  for (const exec::RecordedCta& cta : ctas) {
    if (cta.words.size() != words) return;
    const std::uint64_t* const next = cta.words.data();
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < words; ++i) any |= (next[i] - last[i]) ^ steps[i];
    if (any != 0) return;
    last = next;
    ++*count;
  }
}

}  // namespace

GL_SIMD_FUNCTION(AdvanceAll, AdvanceWords,
                 (std::uint64_t * old_words, const std::uint64_t* steps, const std::uint64_t* words, std::size_t count,
                  std::uint64_t* differs),
                 (old_words, steps, words, count, differs))
GL_SIMD_FUNCTION(FollowersOf, CountFollowers,
                 (const std::uint64_t* last, const std::uint64_t* steps, std::size_t words,
                  std::span<const exec::RecordedCta> ctas, std::size_t* count),
                 (last, steps, words, ctas, count))

namespace {

/// Whether each new word is the old one a step on; the old words become the new ones.
bool Advance(std::uint64_t* old_words, const std::uint64_t* steps, std::span<const std::uint64_t> words) {
  std::uint64_t differs = 0;
  AdvanceAll(old_words, steps, words.data(), words.size(), &differs);
  return differs == 0;
}

}  // namespace

CtaStream::CtaStream(const CodeTable& table, std::uint32_t warps)
    : table_(table), warps_(warps), accesses_(AccessCount(table.code)), decoder_(table), buffers_(warps) {
  std::uint32_t number = 0;
  for (const Instruction& instruction : table.code.instructions) {
    if (!instruction.has_access()) continue;
    generic_ |= (instruction.flags & kGeneric) != 0;
    if (instruction.space == Space::kLocal) local_accesses_.push_back(number);
    ++number;
  }
}

void CtaStream::BeginLaunch(Take take) {
  take_ = std::move(take);
  open_ = false;
  decoder_.BeginLaunch();
  if (PauseAfter(unused_models_) < kLongestPause) misses_ = std::min(misses_, kRemembered);
}

/// Keeps what the next launch may need, if it is small: patterns that records name are of this launch, and so is the
/// place of shared and local memory among generic addresses.
void CtaStream::EndLaunch() {
  take_ = nullptr;
  captured_.clear();
  const Model* const first = models_.empty() ? nullptr : models_.front().get();
  models_.remove_if([&](const std::unique_ptr<Model>& model) {
    std::size_t words = 0;
    for (const auto& buffer : model->words) words += buffer.size();
    return generic_ || model->sites.names_patterns || words > kMostKeptWords;
  });
  follows_ = follows_ && !models_.empty() && models_.front().get() == first;
  for (Buffer& buffer : buffers_) {
    if (buffer.words.size() <= kMostKeptWords) continue;
    buffer.words.resize(kMostKeptWords);
    buffer.words.shrink_to_fit();
  }
  decoder_.EndLaunch();
}

void CtaStream::OnRecords(const exec::RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended) {
  TakeRecords(place, words, ended);
  PassOn();
}

/// CTAs that follow their model by its step are compared with the one before where they are.
void CtaStream::OnCtas(exec::RecordPlace& place, std::span<const exec::RecordedCta> ctas, std::uint32_t) {
  std::span<const std::uint64_t> last;  // the words of the CTA before, if it was the first model's
  if (follows_) last = {buffers_.front().words.data(), buffers_.front().used};
  for (std::size_t done = 0; done < ctas.size(); ++done) {
    done += TakeExpected(ctas.subspan(done), last);
    if (done == ctas.size()) {
      last = ctas.back().words;
      break;
    }
    const exec::RecordedCta& cta = ctas[done];
    records_.assign(buffers_.size(), {});
    turns_.clear();
    cut_ = false;
    records_.front() = cta.words;
    cta.PutIn(place);
    EndCta(place);
    last = follows_ ? cta.words : std::span<const std::uint64_t>();
  }
  ForgetWords();
  expected_ = false;
  if (!ctas.empty()) Append(0, last);
  PassOn();
}

/// How many CTAs, from the first on, are the first model's, each a step on. `last`: the words of the CTA before them,
/// if it was that model's.
std::size_t CtaStream::TakeExpected(std::span<const exec::RecordedCta> ctas, std::span<const std::uint64_t> last) {
  if (last.empty()) return 0;
  const Model& model = *models_.front();
  if (!model.only_first || model.word_step.empty()) return 0;
  std::size_t count = 0;
  FollowersOf(last.data(), model.word_step.front().data(), last.size(), ctas, &count);
  for (const exec::RecordedCta& cta : ctas.first(count)) GiveExpected(cta.cta_index, cta.local_base);
  return count;
}

void CtaStream::PassOn() {
  if (captured_.empty()) return;
  take_(captured_);
  captured_.clear();
}

/// The CTA is the first model's, as far shifted as that says.
void CtaStream::GiveShifted(std::uint64_t index, std::uint64_t local_base) {
  Model& model = *models_.front();
  model.Settle();
  // Written where it stays: a copy would wait for the stores of a kernel that streams.
  Captured& captured = captured_.emplace_back();
  captured.run.index = index;
  captured.run.first.trace = model.trace;
  captured.dropped = model.dropped;
  std::uint64_t* const shifts = captured.run.first.shifts.Renew(accesses_);
  for (std::size_t a = 0; a < accesses_; ++a) shifts[a] = model.shift[model.sites.of[a]];
  for (const std::uint32_t access : local_accesses_) shifts[access] = local_base - model.local_base;
  local_base_ = local_base;
}

/// The CTA is the first model's, a step on from the one before: whether it goes on with the last run.
bool CtaStream::ProlongRun(std::uint64_t index, std::uint64_t local_base) {
  if (captured_.empty()) return false;
  CtaRun& run = captured_.back().run;
  if (run.index + run.count != index) return false;
  const std::uint64_t local_step = local_base - std::exchange(local_base_, local_base);
  if (run.count == 1) {
    const Model& model = *models_.front();
    std::uint64_t* const steps = run.steps.Renew(accesses_);
    for (std::size_t a = 0; a < accesses_; ++a) steps[a] = model.step[model.sites.of[a]];
    for (const std::uint32_t access : local_accesses_) steps[access] = local_step;
    local_step_ = local_step;
  } else if (local_step != local_step_ && !local_accesses_.empty()) {
    return false;
  }
  ++run.count;
  return true;
}

void CtaStream::TakeRecords(const exec::RecordPlace& place, std::span<const std::uint64_t> words, std::uint32_t ended) {
  if (!open_) BeginCta();
  if (place.buffer >= buffers_.size()) return;
  Append(place.buffer, words);
  if (Buffer& buffer = buffers_[place.buffer]; buffer.used >= kLookForTurnsFrom && !expected_ && !buffer.turns.open()) {
    const std::size_t used = buffer.turns.Look(buffer.filled());
    kept_words_ -= buffer.used - used;
    buffer.used = used;
  }
  ended_ += ended;
  if (ended_ < warps_) return;
  EndBufferedCta(place);
  open_ = false;
}

void CtaStream::OnCta(const exec::RecordPlace& place, std::span<const std::span<const std::uint64_t>> buffers) {
  if (!open_) BeginCta();
  for (std::uint32_t b = 0; b < std::min(buffers.size(), buffers_.size()); ++b) Append(b, buffers[b]);
  EndBufferedCta(place);
  open_ = false;
  PassOn();
}

void CtaStream::Append(std::uint32_t number, std::span<const std::uint64_t> words) {
  Buffer& buffer = buffers_[number];
  const std::size_t end = buffer.used + words.size();
  if (expected_ && end <= models_.front()->words[number].size()) {
    expected_ =
        Advance(buffer.words.data() + buffer.used, models_.front()->word_step[number].data() + buffer.used, words);
  } else {
    expected_ = false;
    if (buffer.turns.open()) {
      words = words.subspan(buffer.turns.Continue(buffer.filled(), words));
      if (words.empty()) return;
      EndTurns(buffer);
    }
    return Keep(buffer, words);
  }
  buffer.used = end;
}

void CtaStream::Keep(Buffer& buffer, std::span<const std::uint64_t> words) {
  kept_words_ += words.size();
  cut_ |= kept_words_ > kMostRecordWords;
  if (cut_) return;
  const std::size_t end = buffer.used + words.size();
  if (buffer.words.size() < end) buffer.words.resize(std::max(end, buffer.words.size() * 2));
  std::memcpy(buffer.words.data() + buffer.used, words.data(), words.size_bytes());
  buffer.used = end;
}

void CtaStream::EndTurns(Buffer& buffer) {
  const std::span<const std::uint64_t> rest = buffer.turns.End(buffer.filled());
  // Copied: the words that it is of may move.
  Keep(buffer, std::vector<std::uint64_t>(rest.begin(), rest.end()));
}

void CtaStream::ForgetWords() {
  kept_words_ = 0;
  cut_ = false;
  for (Buffer& buffer : buffers_) {
    buffer.used = 0;
    buffer.turns.Clear();
  }
}

void CtaStream::BeginCta() {
  open_ = true;
  ended_ = 0;
  ForgetWords();
  expected_ = follows_ && !models_.empty() && !models_.front()->word_step.empty();
}

/// Its records are in buffers_.
void CtaStream::EndBufferedCta(const exec::RecordPlace& place) {
  if (EndedAsExpected()) return GiveExpected(place.cta_index, place.local_base);
  records_.clear();
  turns_.clear();
  bool turns = false;
  for (Buffer& buffer : buffers_) {
    if (buffer.turns.open()) EndTurns(buffer);
    turns |= !buffer.turns.empty();
  }
  for (const Buffer& buffer : buffers_) {
    records_.push_back(buffer.filled());
    if (turns) turns_.push_back(buffer.turns.turns());
  }
  EndCta(place);
}

/// Its records are records_, and not what is expected.
void CtaStream::EndCta(const exec::RecordPlace& place) {
  const bool compares = Compares(misses_) && turns_.empty() && !cut_;
  Model* const before = follows_ ? models_.front().get() : nullptr;
  // Mostly what came after a CTA comes after one like it: the first one of a row of the grid, those inside of it, the
  // last one.
  if (compares && before != nullptr && before->successor != nullptr) {
    const auto next = std::ranges::find(models_, before->successor, &std::unique_ptr<Model>::get);
    if (next != models_.end()) models_.splice(models_.begin(), models_, next);
  }
  for (auto model = models_.begin(); compares && model != models_.end(); ++model) {
    if (!IsLike(**model)) continue;
    if (before != nullptr) before->successor = model->get();
    if (!std::exchange((*model)->used, true)) unused_models_ = 0;
    Follow(**model);
    models_.splice(models_.begin(), models_, model);
    misses_ = 0;
    return GiveShifted(place.cta_index, place.local_base);
  }
  ++misses_;
  Decode(place);
}

/// The CTA was the first model's, a step on.
void CtaStream::GiveExpected(std::uint64_t index, std::uint64_t local_base) {
  Model& model = *models_.front();
  ++model.ahead;
  model.missed = false;
  misses_ = 0;
  if (!ProlongRun(index, local_base)) GiveShifted(index, local_base);
}

void CtaStream::Model::Settle() {
  for (std::size_t s = 0; ahead != 0 && s < shift.size(); ++s) shift[s] += step[s] * ahead;
  ahead = 0;
}

bool CtaStream::EndedAsExpected() const {
  if (!expected_) return false;
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].used != models_.front()->words[b].size()) return false;
  }
  return true;
}

bool CtaStream::IsLike(const Model& model) {
  for (std::size_t b = 0; b < records_.size(); ++b) {
    if (records_[b].size() != model.words[b].size()) return false;
  }
  shift_.assign(model.shift.size(), 0);
  for (std::size_t s = 1; s < shift_.size(); ++s) {
    const auto [buffer, word] = model.sample[s];
    shift_[s] = records_[buffer][word] - model.words[buffer][word];
  }
  constexpr std::size_t kStride = 256;
  for (std::size_t b = 0; b < records_.size(); ++b) {
    const std::uint64_t* const words = records_[b].data();
    const std::uint64_t* const old_words = model.words[b].data();
    const std::uint16_t* const sites = model.sites.number[b].data();
    for (std::size_t from = 0; from < model.words[b].size(); from += kStride) {
      const std::size_t to = std::min(from + kStride, model.words[b].size());
      std::uint64_t differs = 0;
      for (std::size_t i = from; i < to; ++i) differs |= (words[i] - old_words[i]) ^ shift_[sites[i]];
      if (differs != 0) return false;
    }
  }
  return true;
}

/// The model's last CTA is the one that has just ended. When the step was wrong twice, it is taken from these two.
void CtaStream::Follow(Model& model) {
  model.Settle();
  if (model.missed) {
    model.step.resize(shift_.size());
    for (std::size_t s = 0; s < shift_.size(); ++s) model.step[s] = shift_[s] - model.shift[s];
    model.word_step.resize(buffers_.size());
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      model.word_step[b].resize(model.words[b].size());
      for (std::size_t i = 0; i < model.words[b].size(); ++i)
        model.word_step[b][i] = model.step[model.sites.number[b][i]];
    }
  }
  model.missed = true;
  model.shift = shift_;
  follows_ = true;
}

void CtaStream::Decode(const exec::RecordPlace& place) {
  std::size_t words = 0;
  for (const auto& records : records_) words += records.size();
  follows_ = false;
  const bool wanted = words <= kMostWords && turns_.empty() && !cut_ && since_model_++ >= PauseAfter(unused_models_);
  Captured& captured = captured_.emplace_back();
  captured.run.index = place.cta_index;
  if (!wanted) {
    captured.run.first.trace = decoder_.Decode(place, records_, nullptr, turns_, warps_);
    captured.dropped = decoder_.dropped();
    captured.cut = cut_ || decoder_.cut();
    return;
  }
  RecordSites sites;
  captured.run.first.trace = decoder_.Decode(place, records_, &sites, {}, warps_);
  captured.dropped = decoder_.dropped();
  captured.cut = decoder_.cut();
  since_model_ = 0;
  ++unused_models_;
  if (!sites.usable || captured.cut) return;
  if (models_.size() >= kMostModels) models_.pop_back();
  models_.push_front(MakeModel(place, std::move(sites), captured.run.first.trace));
  follows_ = true;
}

std::unique_ptr<CtaStream::Model> CtaStream::MakeModel(const exec::RecordPlace& place, RecordSites sites,
                                                       std::shared_ptr<const CtaTrace> trace) const {
  auto model = std::make_unique<Model>();
  model->only_first = true;
  for (std::size_t b = 1; b < records_.size(); ++b) model->only_first &= records_[b].empty();
  model->trace = std::move(trace);
  model->dropped = decoder_.dropped();
  model->local_base = place.local_base;
  model->sites = std::move(sites);
  model->sample.resize(model->sites.count);
  for (std::size_t b = 0; b < records_.size(); ++b) {
    model->words.emplace_back(records_[b].begin(), records_[b].end());
    for (std::size_t i = model->words[b].size(); i-- > 0;)
      model->sample[model->sites.number[b][i]] = {static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(i)};
  }
  model->shift.assign(model->sites.count, 0);
  return model;
}

}  // namespace gridloom::trace
