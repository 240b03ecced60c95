// Which label the lines have that a launch writes, and from when to when the next kernel of its stream needs them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/timing/cycle.h"

namespace gridloom::hardware {

/// Kernel and stream in a number: both are reused when there are more than their bits can tell apart (section 3.3: 3
/// and 5 bits).
using Label = std::uint16_t;
inline constexpr Label kNoLabel = 0xffff;

/// Changes between windows of cycles; lookups may come from several threads meanwhile. Cycles are L2's.
class Labels {
 public:
  /// What the kernel's part of a label tells apart.
  enum class Naming : std::uint8_t {
    kPosition,  ///< launches of a stream, by their place in it: a kernel that is launched again and again is its own
                ///< consumer
    kKernel,    ///< kernels, as in the paper
  };
  /// `reach`: what a launch writes is needed by so many launches behind it in its stream; at least 1.
  Labels(Naming naming, unsigned kernel_bits, unsigned stream_bits, unsigned reach = 1);

  /// A launch was given, behind all earlier ones of its stream. `kernel`: its name.
  void Give(std::uint32_t launch, std::uint32_t stream, std::string_view kernel, timing::Cycle at);
  /// The launch may run from now on.
  void Begin(std::uint32_t launch, timing::Cycle at);
  /// The kernel has ended: nobody needs any more what the launch `reach` before it in its stream wrote, whose label it
  /// answers, if there is one.
  std::optional<Label> End(std::uint32_t launch, timing::Cycle at);
  /// Lookups ask for no cycle before that any more.
  void Forget(timing::Cycle before);

  /// The label of the lines that the launch writes.
  Label Of(std::uint32_t launch) const;
  /// The label of the lines that the launch before it in its stream wrote.
  Label ProducerOf(std::uint32_t launch) const;
  /// Whether a kernel that has not ended at that cycle needs lines with the label.
  bool Needed(Label label, timing::Cycle at) const { return Lies(at, label, &Use::known); }
  /// Whether the kernel that needed them has ended, and no launch has begun to write with the label since.
  bool Dead(Label label, timing::Cycle at) const;
  /// Whether such a kernel may run then.
  bool Running(Label label, timing::Cycle at) const { return Lies(at, label, &Use::running); }

  std::size_t labels() const { return uses_.size(); }
  /// Launches that are still known.
  std::size_t launches() const { return launches_.size(); }

 private:
  /// One launch's lines, which another one will read.
  struct Use {
    std::uint32_t producer = 0;
    timing::Cycle known = 0, running = timing::kNever, ended = timing::kNever;
    timing::Cycle reused = timing::kNever;  ///< another launch has got the label
  };
  struct Launch {
    Label label = kNoLabel, producer = kNoLabel;
    std::uint32_t stream = 0;
    std::optional<std::uint32_t> before{},
        releases{};  ///< launches of its stream: the one before it, and the one whose lines it is the last to need
  };
  struct Stream {
    std::uint32_t number = 0;            ///< in the order in which streams came
    std::uint64_t position = 0;          ///< of the next launch
    std::deque<std::uint32_t> recent{};  ///< the last launches, `reach` at most
  };
  std::uint64_t NumberOf(std::string_view kernel);
  void Reuse(Label label, timing::Cycle at);
  bool Lies(timing::Cycle at, Label label, timing::Cycle Use::*from) const;
  Use* UseOf(std::uint32_t producer);

  const Naming naming_;
  const unsigned kernel_bits_, stream_bits_, reach_;
  std::unordered_map<std::uint32_t, Stream> streams_;
  std::map<std::string, std::uint64_t, std::less<>> kernels_;  // their numbers, in the order in which they came
  std::unordered_map<std::uint32_t, Launch> launches_;
  std::vector<std::vector<Use>> uses_;  // by label
  struct Ended {
    timing::Cycle at = 0;
    std::uint32_t launch = 0;
  };
  std::deque<Ended> ended_;  // launches that are still known
  struct Closed {
    timing::Cycle at = 0;
    Label label = kNoLabel;
  };
  std::deque<Closed> closed_;  // labels that launches have got again, in the order of time
};

}  // namespace gridloom::hardware
