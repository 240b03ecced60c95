// How RecordDecoder takes what most records of code with branches are: simple groups (record_plan.cpp), one after the
// other. Each costs few instructions, since kernels whose CTAs differ have all of theirs decoded.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstring>

#include "sim/exec/simd.h"
#include "sim/trace/record_decoder.h"

namespace gridloom::trace {

using exec::NearLanes;
using exec::RecordHeader;
using exec::RecordKind;
using exec::RecordSlot;

static_assert(std::endian::native == std::endian::little && offsetof(MemoryAccess, stride) == 8 &&
              offsetof(MemoryAccess, mask) == 12);

/// False when that is none.
bool RecordDecoder::TakeBlock(std::uint32_t instruction, std::uint32_t mask) {
  if (mask == 0 || instruction >= starts_.size() || starts_[instruction].block == CodeTable::kNoBlock) return false;
  const BlockStart& start = starts_[instruction];
  if (next_ < end_) SkipTo(end_);
  *visits_.Add(1) = {start.block, mask};
  next_ = start.next;
  end_ = start.end;
  return true;
}

namespace {

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512dq")]] std::size_t TakeEmptyBlocksAvx512(std::span<const std::uint64_t> words,
                                                                      std::span<const std::uint32_t> block_of,
                                                                      BlockVisit* visits) {
  using Eight = std::uint64_t __attribute__((vector_size(64)));
  constexpr std::size_t kAtOnce = 8;
  std::size_t taken = 0;
  for (; taken + kAtOnce <= words.size(); taken += kAtOnce) {
    Eight word;
    std::memcpy(&word, words.data() + taken, sizeof word);
    const Eight instruction = word >> 32 & ((1u << RecordHeader::kInstructionBits) - 1), mask = word << 32;
    const auto fits =
        (word >> 61 == static_cast<std::uint64_t>(RecordKind::kBlock)) & (instruction < block_of.size()) & (mask != 0);
    if (_mm512_movepi64_mask(reinterpret_cast<__m512i>(fits)) != 0xff) break;
    const __m256i blocks = _mm512_mask_i64gather_epi32(
        _mm256_setzero_si256(), 0xff, reinterpret_cast<__m512i>(instruction), block_of.data(), sizeof(std::uint32_t));
    const __m512i block = _mm512_maskz_cvtepi32_epi64(0xff, blocks);
    if (_mm512_movepi64_mask(block) != 0) break;  // kNoBlock
    const Eight visit = reinterpret_cast<Eight>(block) | mask;
    std::memcpy(static_cast<void*>(visits + taken), &visit, sizeof visit);
  }
  return taken;
}
#endif

/// Takes records of kBlock whose blocks have no accesses, as long as there are eight in a row. `block_of`: the blocks
/// by instruction; kNoBlock for those that have some, too. How many.
std::size_t TakeEmptyBlocks(std::span<const std::uint64_t> words, std::span<const std::uint32_t> block_of,
                            BlockVisit* visits) {
#if defined(__x86_64__)
  if (exec::UsableSimd() == exec::SimdLevel::kAvx512) return TakeEmptyBlocksAvx512(words, block_of, visits);
#endif
  return 0;
}

}  // namespace

/// Records of kBlock, one after the other, as TakeBlock does.
RecordDecoder::Words RecordDecoder::TakeBlocks(Words at, Words end) {
  TakeBlock(RecordHeader::Unpack(*at).instruction, static_cast<std::uint32_t>(*at));
  ++at;
  if (at == end || RecordHeader::Unpack(*at).kind != RecordKind::kBlock) return at;
  const auto most = static_cast<std::size_t>(end - at);
  BlockVisit* const begin = visits_.Add(most);
  BlockVisit* visit = begin;
  const BlockStart* const starts = starts_.data();
  const std::size_t count = starts_.size();
  std::uint32_t next = next_, last = end_;
  for (std::uint32_t turn = 0; at < end; ++turn) {
    if (turn % 8 == 0 && next >= last) {
      const std::size_t taken = TakeEmptyBlocks({at, end}, empty_blocks_, visit);
      at += taken;
      visit += taken;
      if (at == end) break;
    }
    const RecordHeader header = RecordHeader::Unpack(*at);
    if (header.kind != RecordKind::kBlock) break;
    ++at;
    if (header.mask == 0 || header.instruction >= count || starts[header.instruction].block == CodeTable::kNoBlock)
      continue;
    if (next < last) {
      next_ = next;
      SkipTo(last);
    }
    const BlockStart& start = starts[header.instruction];
    *visit++ = {start.block, header.mask};
    next = start.next;
    last = start.end;
  }
  next_ = next;
  end_ = last;
  visits_.TakeBack(most - static_cast<std::size_t>(visit - begin));
  return at;
}

namespace {

struct Distances {
  std::uint32_t of[kWarpSize];
};

void Put(MemoryAccess* to, AccessWords words) { std::memcpy(static_cast<void*>(to), &words, sizeof words); }

}  // namespace

/// Takes simple groups, blocks and ends of warps from `at` on, within a warp. Where something else begins. What is
/// filled has room for all, and where it stands is kept here: nothing below waits for what was just stored. One
/// function for that reason: with one for each kind of slot all of this would go through memory.
RecordDecoder::Words RecordDecoder::TakeSimpleRecords(Words at, const Words end) {
  constexpr std::uint64_t kStrideOr = RecordSlot::kStride | RecordSlot::kMayDiffer,
                          kPatternOr = RecordSlot::kPattern | RecordSlot::kMayDiffer;
  // A record that begins before `end` may end behind it.
  const auto words_left = static_cast<std::size_t>(words_end_ - at);
  BlockVisit* visit = visits_.Room(static_cast<std::size_t>(end - at));
  // Lanes take no more than their records but for the last copy.
  std::uint32_t* lanes = lanes_.Room(2 * words_left + kWarpSize);
  const std::uint32_t* const lanes_begin = lanes_.begin();
  while (at < end) {
    const RecordHeader header = RecordHeader::Unpack(*at);
    if (header.kind == RecordKind::kBlock) {
      if (header.mask == 0 || header.instruction >= starts_.size()) break;
      const BlockStart& start = starts_[header.instruction];
      if (start.block == CodeTable::kNoBlock) break;
      if (next_ < end_) SkipTo(end_);
      *visit++ = {start.block, header.mask};
      next_ = start.next;
      end_ = start.end;
      if (++at < end && RecordHeader::Unpack(*at).kind == RecordKind::kBlock) break;  // for TakeBlocks
      continue;
    }
    if (header.kind == RecordKind::kWarpEnd) {
      visits_.EndAt(visit);
      EndWarp();
      if (++at == end) break;
      BeginWarp();
      continue;
    }
    if (header.kind > RecordKind::kMaskedGroup) break;
    const bool masked = header.kind == RecordKind::kMaskedGroup;
    const std::uint32_t mask = masked ? header.mask : ~0u;
    const Plan& plan = PlanOf(reinterpret_cast<const exec::RecordGroup*>(at[masked ? 1 : 0]));
    if (!plan.simple || mask == 0) break;
    if (next_ < end_) SkipTo(end_);
    next_ = end_ = plan.end;
    *visit++ = {plan.block, mask};
    Words words = at + (masked ? 2 : 1);
    MemoryAccess* const access = accesses_.Add(plan.accesses.size());
    const Addend* const addends = plan.addends.data();
    const LoopSlot* const in_loop = LoopSlots(plan.loop, plan.loop_slots);
    const std::uint64_t mask_word = std::uint64_t{mask} << 32;
    std::uint64_t round = 0, others = 0;
    for (const PlainSlot& slot : plan.slots) {
      const auto lies = [&](std::uint64_t base, std::int32_t stride, std::uint32_t count) {
        const AccessWords place = Lies(base, stride, mask_word);
        words += count;
        if (slot.count == 0) return;
        Put(access + slot.first.access, place + slot.first.words);
        for (const Addend *addend = addends + slot.others, *last = addend + slot.count - 1; addend != last; ++addend)
          Put(access + addend->access, place + addend->words);
      };
      const auto other = [&](std::uint32_t count) {
        const auto number = static_cast<std::size_t>(&slot - plan.slots.data());
        others |= std::uint64_t{1} << number;
        slot_at_[number] = words;
        words += count;
      };
      switch (slot.form) {
        case RecordSlot::kFixed: lies(0, slot.stride, 0); break;
        case RecordSlot::kStride: lies(words[0], slot.stride, 1); break;
        case RecordSlot::kPattern: lies(words[0], KnownPattern(slot.pattern), 1); break;
        case kStrideOr:
          if (words[0] != RecordSlot::kElsewhere) lies(words[0], slot.stride, 1);
          else other(RecordSlot::kMaxWords);
          break;
        case kPatternOr:
          if (words[0] != RecordSlot::kElsewhere) lies(words[0], KnownPattern(slot.pattern), 1);
          else other(RecordSlot::kMaxWords);
          break;
        case RecordSlot::kRounds: round = *words++; break;
        case RecordSlot::kFound: {
          const std::uint64_t head = words[0];
          if ((head & RecordSlot::kNear) == 0) {
            if (head == 0) other(RecordSlot::kMaxWords);
            else if (const std::int32_t stride = KnownPattern(reinterpret_cast<const std::int64_t*>(head));
                     stride != MemoryAccess::kScattered)
              lies(words[1], stride, 2);
            else other(2);
            break;
          }
          const Words distances = words + NearLanes::kHeadWords;
          const auto count = static_cast<std::uint32_t>(head >> NearLanes::kCountShift & 63);
          const Addend& only = slot.first;
          if (slot.count == 1 && static_cast<std::uint32_t>(head) == mask &&
              static_cast<std::size_t>(words_end_ - distances) >= sizeof(Distances) / sizeof *distances &&
              !HopesForPattern(plan.accesses[only.access].at)) {
            // As AddNear. As many distances as there can be: nobody can foretell how many there are, nor whether it is
            // a lane alone, which has a stride.
            const bool alone = count == 1;
            const std::uint64_t low = words[1] + only.words[0];
            Put(access + only.access, Lies(alone ? low : static_cast<std::uint64_t>(lanes - lanes_begin),
                                           alone ? 0 : MemoryAccess::kScattered, mask_word));
            ScatteredLanes::PutHead(low, static_cast<std::uint32_t>(slot.unit), lanes);
            std::memcpy(lanes + ScatteredLanes::kHeadWords, distances, sizeof(Distances));
            lanes += alone ? 0 : ScatteredLanes::kHeadWords + count;
            words = distances + (count + 1) / 2;
          } else if (count == 1) {
            lies(words[1], 0, NearLanes::kHeadWords + 1);
          } else {
            other(NearLanes::Words(head));
          }
          break;
        }
        default: {
          const LoopSlot& start = in_loop[slot.in_loop];
          if (start.stride != MemoryAccess::kScattered) lies(start.base + round * start.step, start.stride, 0);
          else other(0);
        }
      }
    }
    at = words;
    if (others != 0) {
      lanes_.EndAt(lanes);
      TakeOthers(plan, mask, others, round, access);
      lanes = lanes_.Room(2 * static_cast<std::size_t>(words_end_ - at) + kWarpSize);
      break;
    }
  }
  visits_.EndAt(visit);
  lanes_.EndAt(lanes);
  return at;
}

/// The accesses of these slots.
void RecordDecoder::TakeOthers(const Plan& plan, std::uint32_t mask, std::uint64_t slots, std::uint64_t round,
                               MemoryAccess* access) {
  for (const PlainAccess& plain : plan.accesses) {
    if ((slots >> plain.slot & 1) != 0) {
      access->mask = mask;
      AddPlainAccess(plan, plain, slot_at_[plain.slot], round, *access);
    }
    ++access;
  }
}

}  // namespace gridloom::trace
