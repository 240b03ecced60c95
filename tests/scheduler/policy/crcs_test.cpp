// The schedulers of dependent kernels that overlap: whose blocks go next, and to which multiprocessor.
#include "scheduler/policy/crcs.h"

#include <catch2/catch.hpp>
#include <vector>

namespace gridloom::policy {
namespace {

/// A device of four multiprocessors whose kernels' inputs are on their way.
class CrcsDevice {
 public:
  explicit CrcsDevice(Policy& policy) : policy_(policy) {}

  /// `resident`: blocks on each multiprocessor; all of them have started, and `left` have not.
  CrcsDevice& Kernel(std::vector<std::uint16_t> resident, std::uint64_t left, std::uint64_t pages = 0,
                     std::int32_t priority = 0) {
    resident.resize(4);
    residents_.push_back(std::move(resident));
    std::uint64_t running = 0;
    for (const std::uint16_t ctas : residents_.back()) running += ctas;
    kernels_.push_back(
        {.id = next_++, .ctas = running + left, .started = running, .priority = priority, .pages = pages});
    return *this;
  }
  /// Of the last kernel: blocks with all of their pages, and with half of what they read.
  CrcsDevice& Announce(std::uint64_t ready, std::uint64_t begun) {
    kernels_.back().announced = true;
    kernels_.back().ready = ready;
    kernels_.back().begun = begun;
    return *this;
  }
  CrcsDevice& Profiler(std::uint64_t left) { return Kernel({1}, left, 0, 1 << 20); }

  struct Answer {
    std::uint64_t kernel, ctas;
    std::vector<std::uint32_t> sms;
    bool operator==(const Answer&) const = default;
  };
  std::optional<Answer> Ask(std::uint64_t pages = 8, bool loading = true) {
    for (std::size_t i = 0; i < kernels_.size(); ++i) kernels_[i].resident = residents_[i];
    const std::vector<SmView> sms(4, {.free_ctas = 1, .free_warps = 1, .free_registers = 1, .free_shared_bytes = 1});
    const auto slice = policy_.Next({.cycle = 5, .kernels = kernels_, .sms = sms, .pages = pages, .loading = loading});
    if (!slice) return std::nullopt;
    return Answer{slice->kernel, slice->ctas, {slice->sms.begin(), slice->sms.end()}};
  }

 private:
  Policy& policy_;
  std::uint64_t next_ = 0;
  std::vector<KernelView> kernels_;
  std::vector<std::vector<std::uint16_t>> residents_;
};

using Answer = CrcsDevice::Answer;
const std::vector<std::uint32_t> kAnywhere;

TEST_CASE("CrcsFifo_TakesKernelsInTheirOrder_AndProfilersFirst") {
  CrcsFifo policy;
  CHECK(CrcsDevice(policy).Kernel({2, 2, 2, 2}, 0).Kernel({}, 7).Kernel({}, 9).Ask() == Answer{1, 7, kAnywhere});
  CHECK(CrcsDevice(policy).Kernel({2, 2, 2, 2}, 3).Profiler(5).Ask() == Answer{1, 5, kAnywhere});
  CHECK(CrcsDevice(policy).Kernel({2, 2, 2, 2}, 0).Ask() == std::nullopt);
}

TEST_CASE("CrcsPpcs_GivesAnEmptyMultiprocessor_ToTheKernelWithTheLargestShareOfPagesBesideItsShareOfMultiprocessors") {
  CrcsPpcs policy;
  // Shares of pages 4/8, 3/8; of multiprocessors 2/4, 1/4.
  CHECK(CrcsDevice(policy).Kernel({2, 2}, 5, 4).Kernel({0, 0, 2}, 6, 3).Ask() == Answer{1, 4, {3}});
  CHECK(CrcsDevice(policy).Kernel({2, 2}, 5, 5).Kernel({0, 0, 2}, 6, 2).Ask() == Answer{0, 5, {3}});
  // One whose blocks have all started gets none, whatever it owns.
  CHECK(CrcsDevice(policy).Kernel({2, 2}, 0, 7).Kernel({0, 0, 2}, 6, 1).Ask() == Answer{1, 2, {3}});
  // The oldest with blocks left has none: it goes first.
  CHECK(CrcsDevice(policy).Kernel({}, 5, 0).Kernel({2, 2, 2}, 6, 8).Ask() == Answer{0, 3, {3}});
}

TEST_CASE("CrcsPpcs_WhileInputsAreOnTheirWay_LeavesMultiprocessorsWithBlocksAlone") {
  CrcsPpcs policy;
  CHECK(CrcsDevice(policy).Kernel({1, 1, 1}, 5, 4).Kernel({0, 0, 0, 1}, 6, 4).Ask() == std::nullopt);
  // Profilers' blocks do not count.
  CHECK(CrcsDevice(policy).Kernel({1, 1, 1}, 0, 4).Kernel({}, 6, 4).Profiler(0).Ask() == Answer{1, 2, {3}});
  // Afterwards it is first in, first out.
  CHECK(CrcsDevice(policy).Kernel({1, 1, 1}, 5, 4).Kernel({0, 0, 0, 1}, 6, 4).Ask(8, false) == Answer{0, 5, kAnywhere});
}

TEST_CASE("CrcsPpcs_FillsOneMultiprocessorAfterTheOther_FromTheBeginning") {
  CrcsPpcs policy;
  // The first kernel is there before all others, and so is the second one's profiler.
  CHECK(CrcsDevice(policy).Kernel({}, 80).Ask() == Answer{0, 20, {0}});
  CHECK(CrcsDevice(policy).Kernel({8}, 72).Ask() == Answer{0, 20, {1}});
  CHECK(CrcsDevice(policy).Kernel({3, 3, 3, 3}, 4).Profiler(2).Ask() == Answer{1, 2, kAnywhere});
  CHECK(CrcsDevice(policy).Kernel({3, 3, 3, 3}, 4).Profiler(0).Profiler(2).Ask() == Answer{2, 2, kAnywhere});
  // The profilers have ended, their kernels are not there yet: room on multiprocessors that have blocks stays free for
  // those.
  CHECK(CrcsDevice(policy).Kernel({3, 2, 3, 3}, 4).Ask() == std::nullopt);
}

TEST_CASE("CrcsPpcs_SpreadsASmallGrid_OverItsPartOfTheDevice") {
  CrcsPpcs policy;
  CHECK(CrcsDevice(policy).Kernel({}, 4).Ask() == Answer{0, 1, {0}});
  CHECK(CrcsDevice(policy).Kernel({1}, 3).Ask() == Answer{0, 1, {1}});
  CHECK(CrcsDevice(policy).Kernel({}, 4).Kernel({}, 4).Ask() == Answer{0, 2, {0}});
  CHECK(CrcsDevice(policy).Kernel({2, 2, 2}, 2, 0).Kernel({}, 4, 8).Ask() == Answer{1, 2, {3}});
}

TEST_CASE("CrcsPpcs_WithALoneKernel_FillsWhatRoomThereIs") {
  CrcsPpcs policy;
  CHECK(CrcsDevice(policy).Profiler(1).Ask() == Answer{0, 1, kAnywhere});
  CHECK(CrcsDevice(policy).Profiler(0).Kernel({3, 2, 3, 3}, 4).Ask() == Answer{1, 4, kAnywhere});
}

TEST_CASE("CrcsReady_TakesBlocksWithAllOfTheirPages_OfTheOldestKernelThatHasSome") {
  CrcsReady policy;
  CHECK(CrcsDevice(policy).Kernel({1}, 5).Announce(0, 5).Kernel({}, 6).Announce(2, 6).Ask() == Answer{1, 2, {1, 2, 3}});
  CHECK(CrcsDevice(policy).Kernel({1}, 5).Announce(3, 5).Kernel({}, 6).Announce(2, 6).Ask() ==
        Answer{0, 3, {0, 1, 2, 3}});
  CHECK(CrcsDevice(policy).Kernel({1}, 5).Announce(3, 5).Profiler(4).Ask() == Answer{1, 4, kAnywhere});
  // One of which nothing is known runs as room comes.
  CHECK(CrcsDevice(policy).Kernel({}, 5).Kernel({}, 6).Announce(2, 6).Ask() == Answer{0, 5, kAnywhere});
}

TEST_CASE("CrcsReady_LetsBlocksBeginThatWait_OneAtATime_AndThoseOfLaterKernelsLeaveRoom") {
  CrcsReady policy;
  CHECK(CrcsDevice(policy).Kernel({1, 1, 1}, 5).Announce(0, 5).Ask() == Answer{0, 1, {0, 1, 2, 3}});
  CHECK(CrcsDevice(policy).Kernel({1}, 5).Announce(0, 0).Kernel({}, 6).Announce(0, 3).Ask() == Answer{1, 1, {1}});
  CHECK(CrcsDevice(policy).Kernel({1, 1}, 5).Announce(0, 0).Kernel({}, 6).Announce(0, 3).Ask() == std::nullopt);
  CHECK(CrcsDevice(policy).Kernel({1, 1}, 5).Announce(0, 0).Kernel({0, 0, 1}, 6).Announce(0, 3).Ask() == std::nullopt);
  // When all inputs are there, one stays free, for an older kernel.
  CHECK(CrcsDevice(policy).Kernel({1, 1}, 5).Announce(0, 0).Kernel({}, 6).Announce(0, 3).Ask(8, false) ==
        Answer{1, 1, {2}});
  CHECK(CrcsDevice(policy).Kernel({1, 1, 1}, 5).Announce(0, 0).Kernel({}, 6).Announce(0, 3).Ask(8, false) ==
        std::nullopt);
  CHECK(CrcsDevice(policy).Kernel({1, 1, 1, 1}, 0).Announce(0, 0).Kernel({}, 6).Announce(0, 0).Ask() == std::nullopt);
}

TEST_CASE("CrcsReady_BlocksOfTheOldestThatWait_LeaveRoomOnceLaterKernelsCouldUseIt") {
  CrcsReady policy;
  const auto waiting = [&](std::vector<std::uint16_t> resident, bool loading = true) {
    return CrcsDevice(policy)
        .Kernel(std::move(resident), 5)
        .Announce(0, 5)
        .Kernel({}, 6)
        .Announce(0, 0)
        .Ask(8, loading);
  };
  CHECK(waiting({1, 1}) == Answer{0, 1, {0, 1, 2, 3}});
  CHECK(CrcsDevice(policy).Kernel({1}, 5).Announce(0, 5).Kernel({}, 6).Announce(2, 6).Ask() == Answer{1, 2, {1, 2, 3}});
  CHECK(waiting({1, 1}) == Answer{0, 1, {0, 1}});
  CHECK(waiting({1}) == Answer{0, 1, {0, 1}});
  CHECK(waiting({}) == Answer{0, 1, {0, 1, 2, 3}});  // so that somebody goes on
  CHECK(waiting({1, 1}, false) == Answer{0, 1, {0, 1, 2, 3}});
  CHECK(waiting({1, 1}) == Answer{0, 1, {0, 1, 2, 3}});  // of other inputs nothing is known yet
}

}  // namespace
}  // namespace gridloom::policy
