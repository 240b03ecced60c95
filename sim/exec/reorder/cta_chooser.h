// Which of the CTAs that may run go next: drawn by lot, the same for the same seed.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace gridloom::exec {

/// Random numbers that are the same everywhere (splitmix64).
class Lots {
 public:
  explicit Lots(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  /// Less than `end`, which is not 0.
  std::uint64_t Below(std::uint64_t end) { return Next() % end; }

 private:
  std::uint64_t state_;
};

/// CTAs of one kernel that run next, in any order or one after the other as they stand.
struct ChosenCtas {
  std::uint32_t kernel = 0;
  std::vector<std::uint64_t> ctas;  ///< not empty
};

/// Lots decide which kernel goes next, how many CTAs of it do, and in which order its CTAs prefer to go: from the first
/// to the last, from the last to the first, or scattered; all kernels alike, or each as it likes. Of kernels whose CTAs
/// all go in order pages come free one after the other, so that the next follows close behind; scattered, most of one
/// is done before the next finds a CTA that may run.
class CtaChooser {
 public:
  explicit CtaChooser(std::uint64_t seed);

  /// The next kernel. `in_turn`: its CTAs have to run in their own order.
  void AddKernel(std::uint32_t ctas, bool in_turn);
  /// The CTA may run. None is told twice.
  void AddReady(std::uint32_t kernel, std::uint32_t cta);
  /// Some CTAs of some kernel, which do not stand for choice any more. Nothing when no CTA may run.
  std::optional<ChosenCtas> Choose();

 private:
  enum class Order : std::uint8_t { kScattered, kRising, kFalling };
  struct Ready {
    std::uint64_t rank = 0;
    std::uint32_t cta = 0;
    auto operator<=>(const Ready&) const = default;
  };
  struct Kernel {
    std::uint32_t ctas = 0;
    bool in_turn = false;
    Order order = Order::kScattered;
    std::uint64_t scatter = 0;
    std::vector<Ready> ready;  ///< a heap, the lowest rank first
    std::uint32_t next = 0;    ///< in turn: whose turn it is

    std::uint64_t RankOf(std::uint32_t cta) const;
    bool HasReady() const { return !ready.empty() && (!in_turn || ready.front().cta == next); }
  };

  Order DrawOrder();

  Lots lots_;
  std::optional<Order> common_order_;  ///< none: each kernel has its own
  std::uint64_t newest_in_eight_ = 0;  ///< how often, of eight times, the newest kernel that can goes; else any
  std::vector<Kernel> kernels_;
};

}  // namespace gridloom::exec
