// Records: what code compiled with CompileOptions::record writes into its warp's buffer while it runs, in 64-bit words.
// The compiler writes them, RecordReader and RecordGroup read them, nobody else knows the layout.
//
// Most are groups: a block with all of its accesses. What is known when the kernel is compiled stands once beside its
// code (RecordGroup); the record holds a pointer to it, and only the addresses that the run tells, one for all accesses
// at constant distances from each other.
//
// Addresses that go on by one step in each round of a loop are told once, before the loop: a group that begins it
// (RecordGroup::loop) has where they start and their steps, and the groups in the loop say which round it is. Of a loop
// of one block that all 32 lanes run together all rounds are one record (RecordKind::kRepeat).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

/// How much is recorded.
enum class Recording : std::uint8_t {
  kNone,
  kGlobal,  ///< accesses through global and generic addresses
  kAll,     ///< accesses to every space, and the path: each basic block that is begun
};

enum class RecordKind : std::uint8_t {
  kGroup,        ///< of all 32 lanes; the word is the pointer to its RecordGroup, and the words of its slots follow
  kMaskedGroup,  ///< of the lanes of the mask; then the pointer, then the words of its slots
  kBlock,        ///< nothing more: the lanes of the mask go on at this instruction, a block without accesses
  kWarpEnd,      ///< nothing more: what follows in the buffer is of the CTA's next warp
  // Accesses of a group, as RecordReader gives them.
  kAffine,   ///< an address of lane 0, and the distance between lanes
  kPattern,  ///< an address, and what each of 32 lanes adds to it; lanes that are off may lie elsewhere
  kLanes,    ///< 32 addresses
  // Again one of a buffer:
  kRepeat,  ///< of the lanes of the mask; then a pointer to a group and its words: so many rounds of it as its slot
            ///< kRounds says, from round 0 on
};

/// Bits 0-31: mask; 32-51: instruction; 52-53: AccessKind; 54-55: Space; 56-60: bytes per lane - 1; 61-63: kind.
struct RecordHeader {
  static constexpr unsigned kInstructionBits = 20, kMaxBytes = 32;
  std::uint32_t mask = 0;
  RecordKind kind = RecordKind::kBlock;
  AccessKind access = AccessKind::kRead;
  Space space = Space::kGlobal;
  std::uint32_t bytes = 1;        ///< per lane, at most kMaxBytes
  std::uint32_t instruction = 0;  ///< as InstructionNumbers counts (layout.h)

  constexpr std::uint64_t Pack() const {
    return mask | static_cast<std::uint64_t>(instruction) << 32 | static_cast<std::uint64_t>(access) << 52 |
           static_cast<std::uint64_t>(space) << 54 | static_cast<std::uint64_t>((bytes - 1) & 31) << 56 |
           static_cast<std::uint64_t>(kind) << 61;
  }
  static constexpr RecordHeader Unpack(std::uint64_t word) {
    return {.mask = static_cast<std::uint32_t>(word),
            .kind = static_cast<RecordKind>(word >> 61),
            .access = static_cast<AccessKind>(word >> 52 & 3),
            .space = static_cast<Space>(word >> 54 & 3),
            .bytes = static_cast<std::uint32_t>(word >> 56 & 31) + 1,
            .instruction = static_cast<std::uint32_t>(word >> 32 & ((1u << kInstructionBits) - 1))};
  }
};

/// How a group tells where lanes lie. Several accesses may lie at constant distances from one slot.
struct RecordSlot {
  enum Form : std::uint64_t {
    kFixed,    ///< no words: lane 0 is at `base`, and `lanes` is the distance between lanes
    kStride,   ///< a word: the address of lane 0 but for `base`; `lanes` is the distance between lanes
    kPattern,  ///< a word, an address but for `base`; `lanes` is the number of a pattern of the group
    kFound,    ///< only the run tells (RecordSite): a pointer to what each of 32 lanes adds, and an address; or what
               ///< NearLanes says; or 0 and 32 addresses. `lanes` is the unit of NearLanes
    kRounds,   ///< a word: rounds of the group's loop that have ended. No access lies there
    kInLoop,   ///< no words: as slot number `base` of the group that began the loop, so many steps further as rounds
               ///< have ended
  };
  /// Beside kStride and kPattern: the word may also be kElsewhere; then 32 addresses follow (without `base`).
  static constexpr std::uint64_t kMayDiffer = 8;
  /// In a group that begins a loop: one more word follows, which is the step. Without this flag the step is `step`.
  static constexpr std::uint64_t kStepFollows = 16;
  static constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};
  /// With kFound: the first word begins what NearLanes says.
  static constexpr std::uint64_t kNear = std::uint64_t{1} << 63;
  /// Words of the longest one, without its step.
  static constexpr std::uint32_t kMaxWords = 1 + kWarpSize;

  std::uint64_t form = kFixed;
  std::uint64_t base = 0;
  std::int64_t lanes = 0;
  std::uint64_t step = 0;  ///< of a group that begins a loop: what is added to all addresses in each round

  Form plain_form() const { return static_cast<Form>(form & 7); }
  bool has_words() const { return plain_form() != kFixed && plain_form() != kInLoop; }
  /// Whether its words, which begin at `at`, are one more and 32 addresses; those of lanes that are off are 0.
  bool HasLanes(const std::uint64_t* at) const {
    return plain_form() == kFound ? *at == 0 : (form & kMayDiffer) != 0 && *at == kElsewhere;
  }
  bool IsNear(const std::uint64_t* at) const { return plain_form() == kFound && (*at & kNear) != 0; }
  /// Without the step.
  std::uint32_t AddressWordsAt(const std::uint64_t* at) const;
  std::uint32_t WordsAt(const std::uint64_t* at) const {
    return AddressWordsAt(at) + ((form & kStepFollows) != 0 ? 1 : 0);
  }
  /// The step of a slot whose words begin at `at`.
  std::uint64_t StepAt(const std::uint64_t* at) const {
    return (form & kStepFollows) != 0 ? at[AddressWordsAt(at)] : step;
  }
};

/// Addresses that lie less than 2^32 units apart, of the lanes that are told: the word kNear with their number (bits 32
/// to 37) and mask (0 to 31), the lowest address, then distances from it of 32 bits, two a word, lowest lane first.
/// Lanes of the record's mask are told; others may be.
struct NearLanes {
  static constexpr unsigned kCountShift = 32;
  static constexpr std::uint64_t kAllLanes = RecordSlot::kNear | std::uint64_t{kWarpSize} << kCountShift | 0xffffffff;
  std::uint32_t mask = 0;
  std::uint32_t count = 0;  ///< of its lanes
  std::uint32_t unit = 1;   ///< of distances, in bytes
  std::uint64_t low = 0;
  const std::uint32_t* distances = nullptr;

  static constexpr std::uint32_t kHeadWords = 2;
  static NearLanes At(const RecordSlot& slot, const std::uint64_t* at) {
    return {static_cast<std::uint32_t>(at[0]), static_cast<std::uint32_t>(at[0] >> kCountShift & 63),
            static_cast<std::uint32_t>(slot.lanes), at[1], reinterpret_cast<const std::uint32_t*>(at + kHeadWords)};
  }
  /// Words that are taken by the lanes that `head` tells of.
  static std::uint32_t Words(std::uint64_t head) {
    return kHeadWords + (static_cast<std::uint32_t>(head >> kCountShift & 63) + 1) / 2;
  }
  /// 32 addresses, 0 for lanes that are not told.
  void Expand(std::uint64_t* lanes) const;
};

inline std::uint32_t RecordSlot::AddressWordsAt(const std::uint64_t* at) const {
  if (!has_words()) return 0;
  if (HasLanes(at)) return kMaxWords;
  if (plain_form() != kFound) return 1;
  return IsNear(at) ? NearLanes::Words(*at) : 2;
}

struct RecordAccess {
  std::uint64_t header = 0;  ///< RecordHeader without mask; of kind kLanes
  std::uint64_t slot = 0;
  std::uint64_t add = 0;  ///< to all addresses of the slot
};

/// What the compiler says of a group's records, in the constants of the kernel: this, then the accesses in the order of
/// the code, then the slots, then patterns of 32 words that begin with 0.
struct RecordGroup {
  static constexpr std::uint64_t kBeginsLoop = std::uint64_t{1} << 32;
  std::uint64_t block = 0;  ///< RecordHeader of kBlock without mask: the block that it begins; 0: goes on in the block
  std::uint32_t access_count = 0, slot_count = 0;
  /// The number of the loop of slots kInLoop. With kBeginsLoop the group begins that loop, and has slots only.
  std::uint64_t loop = 0;

  bool begins_loop() const { return (loop & kBeginsLoop) != 0; }
  std::uint32_t loop_number() const { return static_cast<std::uint32_t>(loop); }

  std::span<const RecordAccess> accesses() const {
    return {reinterpret_cast<const RecordAccess*>(this + 1), access_count};
  }
  std::span<const RecordSlot> slots() const {
    return {reinterpret_cast<const RecordSlot*>(accesses().data() + access_count), slot_count};
  }
  const std::int64_t* pattern(std::int64_t number) const {
    return reinterpret_cast<const std::int64_t*>(slots().data() + slot_count) + number * kWarpSize;
  }
};
static_assert(sizeof(RecordGroup) == 24 && sizeof(RecordAccess) == 24 && sizeof(RecordSlot) == 32);

/// Words for which compiled code makes room at once, at most. A buffer has as many, and one for kWarpEnd, beyond its
/// limit.
inline constexpr std::uint32_t kMaxGroupWords = 256;

/// What is known of how an instruction's lanes lie where only the run tells: rows whose pitch is a parameter. Compiled
/// code writes of a RecordSlot::kFound whose lanes lie like `pattern` that and an address. Of others it writes, while
/// `tries` are left, all addresses, and the runtime looks whether they lie like another pattern it knows
/// (Helper::kLearnRecord); then NearLanes where they can be. Warps of one host thread share the sites.
struct RecordSite {
  /// What each of 32 lanes adds to lane 0's address; never null while recording.
  const std::int64_t* pattern = nullptr;
  std::uint64_t tries = 0;
  /// 1: no tries are left and no pattern was found, so that compiled code need not compare.
  std::uint64_t scattered = 0;
};
inline constexpr std::uint32_t kRecordSites = 512;

/// The loops that a warp has begun: what later records of it need.
class RecordLoops {
 public:
  /// Addresses in round 0.
  struct Slot {
    RecordKind kind = RecordKind::kAffine;
    std::uint64_t base = 0, step = 0;
    std::int64_t stride = 0;                     ///< kAffine
    const std::int64_t* pattern = nullptr;       ///< kPattern
    std::array<std::uint64_t, kWarpSize> lanes;  ///< kLanes
  };
  /// `at`: the words of its slots.
  void Begin(const RecordGroup& group, const std::uint64_t* at);
  const Slot& At(std::uint32_t loop, std::uint64_t slot);

 private:
  std::vector<std::vector<Slot>> slots_;  ///< by loop
};

/// Goes through records in order: a group's block, then its accesses one by one, in each round.
class RecordReader {
 public:
  /// `loops`: of the warps whose records they are, if those before are read by another reader.
  explicit RecordReader(std::span<const std::uint64_t> words, RecordLoops* loops = nullptr)
      : words_(words), loops_(loops != nullptr ? *loops : own_loops_) {}
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;
  /// False at the end.
  bool Next();
  const RecordHeader& header() const { return header_; }
  /// With kAffine and kPattern: lane 0's address or what all lanes add to; with kAffine the distance between lanes.
  std::uint64_t base() const { return base_; }
  std::int64_t stride() const { return stride_; }
  /// With kPattern: what each of 32 lanes adds to base(); constant as long as the launch runs.
  const std::int64_t* pattern() const { return pattern_; }
  /// The 32 addresses of an access of any form.
  const std::uint64_t* addresses();
  /// The slot of an access, and where the slot's words begin.
  const RecordSlot& slot() const { return group_->slots()[group_->accesses()[access_ - 1].slot]; }
  std::size_t slot_at() const { return slot_at_[group_->accesses()[access_ - 1].slot]; }
  /// Whether more of the same group follows.
  bool in_group() const { return group_ != nullptr && (access_ < group_->access_count || rounds_left_ != 0); }
  /// Where the next record begins.
  std::size_t next() const { return next_; }

 private:
  bool Open(const RecordGroup* group, std::uint32_t mask, std::size_t at, bool repeats);
  void BeginRound();
  void TakeAccess();

  std::span<const std::uint64_t> words_;
  RecordLoops own_loops_;
  RecordLoops& loops_;
  std::size_t next_ = 0;
  const RecordGroup* group_ = nullptr;
  std::uint32_t mask_ = 0, access_ = 0;  ///< of the group; accesses that have been given
  std::uint64_t round_ = 0, rounds_left_ = 0;
  std::vector<std::size_t> slot_at_;  ///< by slot of the group
  RecordHeader header_;
  std::uint64_t base_ = 0;
  std::int64_t stride_ = 0;
  const std::int64_t* pattern_ = nullptr;
  const std::uint64_t* lanes_ = nullptr;  ///< of kLanes, before base_ is added
  std::array<std::uint64_t, kWarpSize> near_, expanded_;
};

}  // namespace gridloom::exec
