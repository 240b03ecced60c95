#include "sim/trace/cta_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gridloom::trace {
namespace {

// Flags of an access.
constexpr std::uint8_t kVisitMask = 1;   // the mask is the visit's
constexpr std::uint8_t kNoLane = 2;      // the mask is 0; nothing else follows
constexpr std::uint8_t kLanes = 4;       // scattered
constexpr std::uint8_t kSameStride = 8;  // as predicted
constexpr std::uint8_t kSameBase = 16;
constexpr unsigned kUnitShift = 5;  // above it, of scattered lanes, their LaneUnit

// Flags of a CTA.
constexpr std::uint8_t kExpected = 1;    // the shifts are as predicted
constexpr std::uint8_t kHasEvents = 2;   // its trace, which has just been given, has events; from version 7 on
constexpr std::uint8_t kHasRepeats = 4;  // likewise, repeats; from version 11 on
constexpr std::uint8_t kCtaFlags = kExpected | kHasEvents | kHasRepeats;

constexpr std::uint64_t kLeastEventBytes = 10, kLeastRepeatBytes = 4;

}  // namespace

AccessPredictor::Guess AccessPredictor::Next(std::uint32_t instruction) const {
  const State& state = state_[instruction];
  if (state.warp == warp_) return {state.last + state.step, state.stride};
  return {state.first + state.warp_step, state.stride};
}

void AccessPredictor::Learn(std::uint32_t instruction, std::uint64_t base, std::int32_t stride) {
  State& state = state_[instruction];
  if (state.warp == warp_) {
    state.step = base - state.last;
  } else {
    if (state.warp != 0) state.warp_step = base - state.first;
    state.first = base;
    state.warp = warp_;
  }
  state.last = base;
  state.stride = stride;
}

AccessIndex::AccessIndex(const KernelCode& code) {
  std::vector<std::uint32_t> before{0};  // by instruction: memory instructions before it
  for (std::uint32_t i = 0; i < code.instructions.size(); ++i) {
    if (code.instructions[i].has_access()) instructions_.push_back(i);
    before.push_back(static_cast<std::uint32_t>(instructions_.size()));
  }
  for (const BasicBlock& block : code.blocks)
    blocks_.emplace_back(before[block.first], before[block.first + block.count]);
}

void SharedTraces::Trace::Learn(const Shifts& next) {
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const std::uint64_t shift = next.empty() ? 0 : next[i];
    step[i] = shift - shifts[i];
    shifts[i] = shift;
  }
}

std::size_t SharedTraces::Find(const CtaTrace* trace) const {
  for (std::size_t i = traces_.size(); i-- > 0;) {
    if (traces_[i].trace.get() == trace) return traces_.size() - i;
  }
  return 0;
}

void SharedTraces::Add(std::shared_ptr<const CtaTrace> trace, std::vector<AccessRange> ranges) {
  if (traces_.size() == kKept) traces_.pop_front();
  traces_.push_back({.trace = std::move(trace),
                     .ranges = std::move(ranges),
                     .shifts = std::vector<std::uint64_t>(accesses_),
                     .step = std::vector<std::uint64_t>(accesses_)});
}

// ---------------------------------------------------------------------------------------------------------------------
// Encoding
// ---------------------------------------------------------------------------------------------------------------------

void CtaEncoder::Encode(const LoadedCta& cta, ByteWriter& out) {
  std::size_t ago = shared_.Find(cta.trace.get());
  out.Varint(ago);
  const bool events = ago == 0 && !cta.trace->events.empty(), repeats = ago == 0 && !cta.trace->repeats.empty();
  if (ago == 0) {
    EncodeTrace(*cta.trace, out);
    shared_.Add(cta.trace);
    ago = 1;
  }
  SharedTraces::Trace& shared = shared_.At(ago);
  const auto shift = [&](std::size_t i) { return cta.shifts.empty() ? 0 : cta.shifts[i]; };
  bool expected = true;
  for (std::size_t i = 0; i < accesses_; ++i) expected &= shift(i) == shared.Guess(i);
  out.Fixed(
      static_cast<std::uint8_t>((expected ? kExpected : 0) | (events ? kHasEvents : 0) | (repeats ? kHasRepeats : 0)));
  if (events) EncodeEvents(*cta.trace, out);
  if (repeats) EncodeRepeats(*cta.trace, out);
  if (!expected) {
    for (std::size_t i = 0; i < accesses_; ++i) out.Signed(static_cast<std::int64_t>(shift(i) - shared.Guess(i)));
  }
  shared.Learn(cta.shifts);
}

void CtaEncoder::EncodeTrace(const CtaTrace& cta, ByteWriter& out) {
  out.Varint(cta.patterns.size());
  for (const LanePattern& pattern : cta.patterns) out.Fixed(pattern);
  out.Varint(cta.warps.size());
  for (const WarpTrace& warp : cta.warps) {
    predictor_.BeginWarp();
    EncodePath(cta, warp, out);
    std::uint32_t next = warp.first_access;
    for (std::uint32_t v = 0; v < warp.visit_count; ++v) {
      const BlockVisit& visit = cta.visits[warp.first_visit + v];
      for (const std::uint32_t i : index_.Of(visit.block)) EncodeAccess(cta, cta.accesses[next++], i, visit.mask, out);
    }
  }
}

/// Each as a step from the one before: warps, then visits of the warp, then instructions of the block.
void CtaEncoder::EncodeEvents(const CtaTrace& cta, ByteWriter& out) {
  out.Varint(cta.events.size());
  std::uint32_t warp = 0, visit = 0;
  for (const CtaEvent& event : cta.events) {
    if (event.warp != warp) visit = 0;
    out.Fixed(event.kind);
    out.Fixed(event.flags);
    out.Varint(event.warp - warp);
    out.Varint(event.visit - visit);
    out.Varint(event.instruction -
               code_.blocks[cta.visits[cta.warps[event.warp].first_visit + event.visit].block].first);
    out.Varint(event.lanes);
    std::array<std::uint64_t, 4>& last = events_.Of(event.kind);
    for (std::size_t i = 0; i < last.size(); ++i) out.Signed(static_cast<std::int64_t>(event.data[i] - last[i]));
    last = event.data;
    warp = event.warp;
    visit = event.visit;
  }
}

/// Each from the end of the one before: warps, then visits of the warp.
void CtaEncoder::EncodeRepeats(const CtaTrace& cta, ByteWriter& out) {
  out.Varint(cta.repeats.size());
  std::uint32_t warp = 0, visit = 0;
  for (const Repeat& repeat : cta.repeats) {
    if (repeat.warp != warp) visit = 0;
    out.Varint(repeat.warp - warp);
    out.Varint(repeat.visit - visit);
    out.Varint(repeat.visit_count);
    out.Varint(repeat.more);
    warp = repeat.warp;
    visit = repeat.visit + repeat.visit_count;
  }
}

/// Runs of one block with one mask: block as a step from the one before, shifted over two flags.
void CtaEncoder::EncodePath(const CtaTrace& cta, const WarpTrace& warp, ByteWriter& out) {
  out.Varint(warp.visit_count);
  std::uint32_t block = 0, mask = ~0u;
  for (std::uint32_t v = 0; v < warp.visit_count;) {
    const BlockVisit& visit = cta.visits[warp.first_visit + v];
    std::uint32_t run = 1;
    while (v + run < warp.visit_count) {
      const BlockVisit& next = cta.visits[warp.first_visit + v + run];
      if (next.block != visit.block || next.mask != visit.mask) break;
      ++run;
    }
    const std::uint64_t step = ByteWriter::ZigZag(std::int64_t{visit.block} - block);
    std::uint8_t* at = out.Room(2 * ByteWriter::kLongestVarint + sizeof visit.mask);
    at = ByteWriter::PutVarint(at, step << 2 | (visit.mask != mask ? 2u : 0u) | (run > 1 ? 1u : 0u));
    at = ByteWriter::PutIf(visit.mask != mask, at, visit.mask);
    if (run > 1) at = ByteWriter::PutVarint(at, run);
    out.EndAt(at);
    block = visit.block;
    mask = visit.mask;
    v += run;
  }
}

void CtaEncoder::EncodeAccess(const CtaTrace& cta, const MemoryAccess& access, std::uint32_t instruction,
                              std::uint32_t visit_mask, ByteWriter& out) {
  if (access.mask == 0) return out.Fixed(kNoLane);
  if (access.stride == MemoryAccess::kScattered) return EncodeLanes(cta, access, instruction, visit_mask, out);
  const AccessPredictor::Guess guess = predictor_.Next(instruction);
  std::uint8_t flags = access.mask == visit_mask ? kVisitMask : 0;
  if (access.stride == guess.stride) flags |= kSameStride;
  if (access.base == guess.base) flags |= kSameBase;
  std::uint8_t* at = out.Room(sizeof flags + sizeof access.mask + 2 * ByteWriter::kLongestVarint);
  *at++ = flags;
  at = ByteWriter::PutIf((flags & kVisitMask) == 0, at, access.mask);
  if ((flags & kSameStride) == 0) at = ByteWriter::PutVarint(at, ByteWriter::ZigZag(access.stride));
  if ((flags & kSameBase) == 0)
    at = ByteWriter::PutVarint(at, ByteWriter::ZigZag(static_cast<std::int64_t>(access.base - guess.base)));
  out.EndAt(at);
  predictor_.Learn(instruction, access.base, access.stride);
}

void CtaEncoder::EncodeLanes(const CtaTrace& cta, const MemoryAccess& access, std::uint32_t instruction,
                             std::uint32_t visit_mask, ByteWriter& out) {
  const AccessPredictor::Guess guess = predictor_.Next(instruction);
  const auto count = static_cast<std::size_t>(std::popcount(access.mask));
  const std::size_t readable = cta.lanes.size() - access.base - ScatteredLanes::kHeadWords;
  PackLanes(ScatteredLanes::At(cta.lanes.data() + access.base), count, readable, code_.instructions[instruction].width,
            packed_);
  std::uint8_t flags = kLanes | static_cast<std::uint8_t>(static_cast<unsigned>(packed_.unit) << kUnitShift);
  if (access.mask == visit_mask) flags |= kVisitMask;
  if (packed_.low == guess.base) flags |= kSameBase;
  std::uint8_t* to = out.Room(sizeof flags + sizeof access.mask + ByteWriter::kLongestVarint + sizeof packed_.bytes);
  *to++ = flags;
  to = ByteWriter::PutIf((flags & kVisitMask) == 0, to, access.mask);
  if ((flags & kSameBase) == 0)
    to = ByteWriter::PutVarint(to, ByteWriter::ZigZag(static_cast<std::int64_t>(packed_.low - guess.base)));
  // As many as there can be of that size: nobody can foretell how many there are.
  switch (SizeOf(packed_.unit)) {
    case 1: std::memcpy(to, packed_.bytes.data(), kWarpSize); break;
    case 2: std::memcpy(to, packed_.bytes.data(), kWarpSize * 2); break;
    default: std::memcpy(to, packed_.bytes.data(), sizeof packed_.bytes);
  }
  out.EndAt(to + count * SizeOf(packed_.unit));
  predictor_.Learn(instruction, packed_.low, guess.stride);
}

// ---------------------------------------------------------------------------------------------------------------------
// Decoding
// ---------------------------------------------------------------------------------------------------------------------

CtaDecoder::CtaDecoder(const KernelCode& code, TraceKeeper* keeper)
    : code_(code),
      keeper_(keeper),
      index_(code),
      accesses_(AccessCount(code)),
      predictor_(code.instructions.size()),
      shared_(accesses_) {
  for (const Instruction& instruction : code.instructions) {
    if (instruction.has_access()) moves_.push_back(instruction.space != Space::kShared);
  }
}

Result<LoadedCta> CtaDecoder::Decode(ByteReader& in) {
  std::uint64_t ago = in.Varint();
  if (ago > shared_.size()) in.Fail();
  CtaTrace trace;
  if (!in.failed() && ago == 0) trace = DecodeTrace(in);
  const auto flags = in.Fixed<std::uint8_t>();
  if ((flags & ~kCtaFlags) != 0 || ((flags & (kHasEvents | kHasRepeats)) != 0 && ago != 0)) in.Fail();
  if (!in.failed() && (flags & kHasEvents) != 0) DecodeEvents(in, trace);
  if (!in.failed() && (flags & kHasRepeats) != 0) DecodeRepeats(in, trace);
  if (!in.failed() && ago == 0) {
    GL_TRY(ranges, AccessRangesOf(code_, trace));
    shared_.Add(
        keeper_ != nullptr ? keeper_->Keep(std::move(trace)) : std::make_shared<const CtaTrace>(std::move(trace)),
        std::move(ranges));
    ago = 1;
  }
  LoadedCta cta;
  if (!in.failed()) {
    SharedTraces::Trace& shared = shared_.At(ago);
    DecodeShifts(in, (flags & kExpected) != 0, shared, cta);
    GL_TRY_STATUS(ValidateShifts(code_, shared.ranges, cta.shifts));
  }
  if (too_large_)
    return Error{"kernel " + code_.name + ": a CTA's trace takes more than " + std::to_string(most_bytes_) + " bytes"};
  if (!limit_.empty()) return Error{"kernel " + code_.name + ": " + limit_};
  if (in.failed()) return Error{"kernel " + code_.name + ": a CTA's trace is damaged"};
  return cta;
}

void CtaDecoder::DecodeShifts(ByteReader& in, bool expected, SharedTraces::Trace& of, LoadedCta& cta) {
  std::fill_n(cta.shifts.Renew(accesses_), accesses_, 0);
  bool any = false;
  for (std::size_t i = 0; i < accesses_ && !in.failed(); ++i) {
    cta.shifts[i] = of.Guess(i) + (expected ? 0 : static_cast<std::uint64_t>(in.Signed()));
    any |= cta.shifts[i] != 0;
    if (cta.shifts[i] != 0 && !moves_[i]) in.Fail();
  }
  of.Learn(cta.shifts);
  cta.trace = of.trace;
  if (!any) cta.shifts.clear();
}

void CtaDecoder::DecodeEvents(ByteReader& in, CtaTrace& cta) {
  cta.events.resize(in.Count(kLeastEventBytes));
  std::uint64_t warp = 0, visit = 0;
  for (CtaEvent& event : cta.events) {
    event.kind = in.Fixed<EventKind>();
    event.flags = in.Fixed<std::uint8_t>();
    const std::uint64_t warps = in.Varint();
    warp += warps;
    visit = (warps != 0 ? 0 : visit) + in.Varint();
    const std::uint64_t instruction = in.Varint(), lanes = in.Varint();
    if (static_cast<std::size_t>(event.kind) >= kEventKindCount || warp >= cta.warps.size() ||
        visit >= cta.warps[warp].visit_count || instruction >= code_.instructions.size() || lanes > ~0u)
      in.Fail();
    if (in.failed()) return;
    event.warp = static_cast<std::uint32_t>(warp);
    event.visit = static_cast<std::uint32_t>(visit);
    event.instruction = code_.blocks[cta.visits[cta.warps[warp].first_visit + visit].block].first +
                        static_cast<std::uint32_t>(instruction);
    event.lanes = static_cast<std::uint32_t>(lanes);
    std::array<std::uint64_t, 4>& last = events_.Of(event.kind);
    for (std::size_t i = 0; i < last.size(); ++i) event.data[i] = last[i] + static_cast<std::uint64_t>(in.Signed());
    last = event.data;
  }
  if (!in.failed() && !ValidateEvents(code_, cta).ok()) in.Fail();
}

void CtaDecoder::DecodeRepeats(ByteReader& in, CtaTrace& cta) {
  cta.repeats.resize(in.Count(kLeastRepeatBytes));
  std::uint64_t warp = 0, visit = 0, access = 0, made = cta.visits.size();
  for (Repeat& repeat : cta.repeats) {
    const std::uint64_t warps = in.Varint(), skipped = in.Varint(), count = in.Varint();
    repeat.more = in.Varint();
    if (warps != 0) visit = access = 0;
    if (warps >= cta.warps.size() - warp) in.Fail();
    if (in.failed()) return;
    warp += warps;
    const std::uint64_t left = cta.warps[warp].visit_count - visit;
    if (count == 0 || repeat.more == 0 || skipped > left || count > left - skipped) in.Fail();
    if (in.failed()) return;
    const auto accesses_of = [&](std::uint64_t visits) {
      std::uint64_t accesses = 0;
      for (; visits != 0; --visits)
        accesses += index_.Of(cta.visits[cta.warps[warp].first_visit + visit++].block).size();
      return static_cast<std::uint32_t>(accesses);
    };
    repeat.warp = static_cast<std::uint32_t>(warp);
    access += accesses_of(skipped);
    repeat.access = static_cast<std::uint32_t>(access);
    repeat.visit = static_cast<std::uint32_t>(visit);
    repeat.visit_count = static_cast<std::uint32_t>(count);
    access += repeat.access_count = accesses_of(count);
    if (made > kMostVisitsMade || repeat.more > (kMostVisitsMade - made) / count) {
      Exceeds(in, "a CTA makes more than " + std::to_string(kMostVisitsMade) + " visits");
      return;
    }
    made += repeat.more * count;
  }
  if (!in.failed() && !ValidateRepeats(code_, cta).ok()) in.Fail();
}

bool CtaDecoder::Exceeds(ByteReader& in, std::string limit) {
  limit_ = std::move(limit);
  in.Fail();
  return false;
}

bool CtaDecoder::HasRoom(ByteReader& in, const CtaTrace& cta, std::uint64_t visits) {
  const std::uint64_t bytes = (cta.visits.size() + visits) * sizeof(BlockVisit) +
                              cta.accesses.size() * sizeof(MemoryAccess) + cta.lanes.size() * sizeof(std::uint32_t);
  if (bytes <= most_bytes_) return true;
  too_large_ = true;
  in.Fail();
  return false;
}

CtaTrace CtaDecoder::DecodeTrace(ByteReader& in) {
  CtaTrace cta;
  if (keeper_ != nullptr) most_bytes_ = keeper_->most_bytes();
  const std::uint64_t patterns = in.Count(sizeof(LanePattern));
  if (patterns > MemoryAccess::kPatterns) in.Fail();
  cta.patterns.resize(in.failed() ? 0 : patterns);
  for (LanePattern& pattern : cta.patterns) pattern = in.Fixed<LanePattern>();
  const std::uint64_t warps = in.Count();
  if (warps > 64 * kWarpSize) in.Fail();
  for (std::uint64_t w = 0; w < warps && !in.failed(); ++w) {
    predictor_.BeginWarp();
    WarpTrace warp;
    if (!DecodePath(in, cta, warp)) break;
    warp.first_access = static_cast<std::uint32_t>(cta.accesses.size());
    for (std::uint32_t v = 0; v < warp.visit_count && !in.failed(); ++v) {
      const BlockVisit& visit = cta.visits[warp.first_visit + v];
      for (const std::uint32_t i : index_.Of(visit.block)) {
        if (in.failed() || !HasRoom(in, cta, 0)) break;
        DecodeAccess(in, cta, i, visit.mask);
      }
    }
    warp.access_count = static_cast<std::uint32_t>(cta.accesses.size()) - warp.first_access;
    cta.warps.push_back(warp);
  }
  return cta;
}

bool CtaDecoder::DecodePath(ByteReader& in, CtaTrace& cta, WarpTrace& warp) {
  warp.first_visit = static_cast<std::uint32_t>(cta.visits.size());
  const std::uint64_t count = in.Varint();
  if (count > kMostVisits - cta.visits.size())
    return Exceeds(in, "a CTA's path has more than " + std::to_string(kMostVisits) + " visits");
  std::uint64_t done = 0;
  std::int64_t block = 0;
  std::uint32_t mask = ~0u;
  while (done < count && !in.failed()) {
    const std::uint64_t word = in.Varint();
    const std::uint64_t zigzag = word >> 2;
    block += static_cast<std::int64_t>(zigzag >> 1 ^ (~(zigzag & 1) + 1));
    if (word & 2) mask = in.Fixed<std::uint32_t>();
    const std::uint64_t run = word & 1 ? in.Varint() : 1;
    if (run == 0 || run > count - done || block < 0 || block >= static_cast<std::int64_t>(code_.blocks.size()) ||
        mask == 0)
      in.Fail();
    if (in.failed() || !HasRoom(in, cta, run)) break;
    cta.visits.insert(cta.visits.end(), run, {static_cast<std::uint32_t>(block), mask});
    done += run;
  }
  warp.visit_count = static_cast<std::uint32_t>(count);
  return !in.failed();
}

void CtaDecoder::DecodeAccess(ByteReader& in, CtaTrace& cta, std::uint32_t instruction, std::uint32_t visit_mask) {
  const auto flags = in.Fixed<std::uint8_t>();
  MemoryAccess access;
  if (flags & kNoLane) {
    cta.accesses.push_back(access);
    return;
  }
  access.mask = flags & kVisitMask ? visit_mask : in.Fixed<std::uint32_t>();
  if (access.mask == 0) in.Fail();
  if (flags & kLanes) {
    DecodeLanes(in, cta, instruction, flags, access);
  } else {
    const AccessPredictor::Guess guess = predictor_.Next(instruction);
    const std::int64_t stride = flags & kSameStride ? guess.stride : in.Signed();
    if (stride <= INT32_MIN || stride > INT32_MAX) in.Fail();
    access.stride = static_cast<std::int32_t>(stride);
    if (access.has_pattern() && access.pattern() >= cta.patterns.size()) in.Fail();
    access.base = guess.base + (flags & kSameBase ? 0 : static_cast<std::uint64_t>(in.Signed()));
    predictor_.Learn(instruction, access.base, access.stride);
  }
  cta.accesses.push_back(access);
}

void CtaDecoder::DecodeLanes(ByteReader& in, CtaTrace& cta, std::uint32_t instruction, std::uint8_t flags,
                             MemoryAccess& access) {
  const AccessPredictor::Guess guess = predictor_.Next(instruction);
  const std::uint64_t low = guess.base + (flags & kSameBase ? 0 : static_cast<std::uint64_t>(in.Signed()));
  if (flags >> kUnitShift >= kLaneUnits) return in.Fail();
  const auto unit = static_cast<LaneUnit>(flags >> kUnitShift);
  const auto count = static_cast<std::uint32_t>(std::popcount(access.mask));
  const std::uint8_t* const bytes = in.Take(count * SizeOf(unit));
  if (bytes == nullptr) return;
  const std::uint32_t width = code_.instructions[instruction].width;
  access.base = cta.lanes.size();
  access.stride = MemoryAccess::kScattered;
  cta.lanes.resize(cta.lanes.size() + ScatteredLanes::Words(UnpackedUnit(unit, width), count));
  UnpackLanes(low, unit, width, count, bytes, cta.lanes.data() + access.base);
  predictor_.Learn(instruction, low, guess.stride);
}

}  // namespace gridloom::trace
