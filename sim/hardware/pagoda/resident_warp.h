// A warp that runs resident code (resident_code.h), a block of it at a time: values of its registers, where its lanes
// are, and for the timing model which block it has executed with which accesses.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/hardware/pagoda/resident_code.h"

namespace gridloom::hardware::resident {

inline constexpr std::uint32_t kLanes = 32;

/// What its accesses go to.
class ResidentMemory {
 public:
  virtual ~ResidentMemory() = default;
  /// Bytes at an address, 1 or 4; those of shared memory count from the block's.
  virtual std::uint32_t Load(bool shared, std::uint64_t address, std::uint32_t bytes) = 0;
  virtual void Store(bool shared, std::uint64_t address, std::uint32_t bytes, std::uint64_t value) = 0;
  /// Asks for the exchange of a word of global memory; ResidentWarp::Answer tells what was there.
  virtual void CompareAndSwap(std::uint64_t address, std::uint32_t expected, std::uint32_t value);
};

/// The block and thread that the warp is, and the kernel's parameters.
struct ResidentPlace {
  std::uint32_t block = 0, threads = 0, warp = 0;
  const std::vector<std::uint64_t>* parameters = nullptr;
};

/// Words of addresses without a pattern, for accesses that may be on their way while the warp goes on; the oldest are
/// overwritten.
class LaneWords {
 public:
  LaneWords();
  std::uint64_t Add(std::span<const std::uint64_t> addresses);
  const trace::CtaTrace& trace() const { return trace_; }

 private:
  static constexpr std::size_t kWords = 1 << 14;
  trace::CtaTrace trace_;
  std::size_t next_ = 0;
};

class ResidentWarp {
 public:
  ResidentWarp(const ResidentCode& code, const ResidentPlace& place);

  /// Executes the block that comes next. False: all lanes have ended, or (Waits) stand at different barriers.
  bool Execute(ResidentMemory& memory, LaneWords& lanes);
  /// What the block executed last did.
  const trace::BlockVisit& visit() const { return visit_; }
  const trace::MemoryAccess* accesses() const { return accesses_.data(); }
  /// The function that the block called at its end, if it called one.
  std::optional<std::uint32_t> called() const { return called_; }
  /// Whether the block ended with a question, which has to be answered before the warp goes on.
  bool asks() const { return asks_.has_value(); }
  void Answer(std::uint32_t value);
  /// Nanoseconds of the sleep that the block ended with; 0: it did not end with one.
  std::uint32_t TakeSleep() { return std::exchange(slept_ns_, 0); }
  bool ended() const { return live_ == 0; }
  /// Whether all of its lanes are at the beginning of that block.
  bool IsAt(std::uint16_t block) const { return groups_.size() == 1 && groups_[0].block == block; }

 private:
  /// Alike in all lanes, most of them are: then only the first is kept.
  template <typename T>
  struct Register {
    bool uniform = true;
    std::array<T, kLanes> lane{};
  };
  struct Group {
    std::uint16_t block = 0;
    std::uint32_t lanes = 0;
  };

  template <typename T>
  static T At(const Register<T>& reg, std::uint32_t lane) {
    return reg.lane[reg.uniform ? 0 : lane];
  }
  std::uint32_t FirstLane() const;
  std::optional<std::size_t> Choose() const;
  bool IsUniform(const Source& source) const;
  std::uint64_t Value(const Source& source, std::uint32_t lane) const;
  std::uint64_t ValueOfSpecial(Special special, std::uint32_t lane) const;
  std::uint32_t Guarded(const Step& step) const;
  void Run(const Step& step, std::uint32_t lanes, ResidentMemory& memory, LaneWords& words);
  template <typename Of>
  void Put(const Step& step, std::uint32_t lanes, bool uniform, Of of);
  template <typename T, typename Of>
  void PutIn(Register<T>& reg, std::uint32_t lanes, bool uniform, Of of);
  template <typename Of>
  void PutPredicate(std::uint32_t& predicate, std::uint32_t lanes, bool uniform, Of of);
  void Compute(const Step& step, std::uint32_t lanes);
  void Compare(const Step& step, std::uint32_t lanes);
  void Access(const Step& step, std::uint32_t lanes, ResidentMemory& memory, LaneWords& words);
  void Move(std::size_t group, std::uint16_t block, std::uint32_t lanes);
  void Join();

  const ResidentCode& code_;
  const ResidentPlace place_;
  std::vector<Register<std::uint32_t>> narrow_;
  std::vector<Register<std::uint64_t>> wide_;
  std::vector<std::uint32_t> predicates_;  // a bit for each lane
  std::vector<Group> groups_;              // lanes that are at one place, by block
  std::uint32_t live_ = ~0u;
  std::uint32_t running_ = 0;  // lanes that execute the block
  trace::BlockVisit visit_;
  std::vector<trace::MemoryAccess> accesses_;
  std::optional<std::uint32_t> called_;
  std::uint32_t slept_ns_ = 0;
  struct Question {
    std::uint16_t destination = 0;
    std::uint32_t lanes = 0;
  };
  std::optional<Question> asks_;
};

}  // namespace gridloom::hardware::resident
