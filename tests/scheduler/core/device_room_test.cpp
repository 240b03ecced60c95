#include "scheduler/core/device_room.h"

#include <catch2/catch.hpp>

namespace gridloom::sched {
namespace {

constexpr policy::SmView kSmallSm{.free_ctas = 4, .free_warps = 16, .free_registers = 1000, .free_shared_bytes = 100};

struct Room {
  DeviceRoom room{3, kSmallSm};
  std::vector<std::uint16_t> resident = std::vector<std::uint16_t>(3);
  Holding holding;

  std::uint64_t Take(const policy::CtaNeeds& needs, std::uint64_t want, std::uint32_t max_per_sm = 0) {
    return room.Take(needs, want, max_per_sm, resident, &holding);
  }
};

TEST_CASE("Take_FewCtas_AreSpread") {
  Room r;
  CHECK(r.Take({.warps = 2}, 3) == 3);
  CHECK(r.resident == std::vector<std::uint16_t>{1, 1, 1});
  CHECK(r.Take({.warps = 2}, 2) == 2);
  CHECK(r.resident == std::vector<std::uint16_t>{2, 2, 1});
}

TEST_CASE("Take_EachResource_Limits") {
  CHECK(Room().Take({.warps = 1}, 100) == 12);
  CHECK(Room().Take({.warps = 5}, 100) == 9);
  CHECK(Room().Take({.warps = 1, .registers = 501}, 100) == 3);
  CHECK(Room().Take({.warps = 1, .shared_bytes = 50}, 100) == 6);
  CHECK(Room().Take({.warps = 17}, 100) == 0);
  CHECK(Room().Take({.warps = 1}, 100, 2) == 6);
}

TEST_CASE("Give_WhatWasTaken_RestoresTheRoom") {
  Room r;
  CHECK(r.Take({.warps = 3, .registers = 10, .shared_bytes = 7}, 100) == 12);
  r.room.Give({.warps = 3, .registers = 10, .shared_bytes = 7}, r.holding, r.resident);
  for (const policy::SmView& sm : r.room.sms()) {
    CHECK(sm.free_ctas == kSmallSm.free_ctas);
    CHECK(sm.free_warps == kSmallSm.free_warps);
    CHECK(sm.free_registers == kSmallSm.free_registers);
    CHECK(sm.free_shared_bytes == kSmallSm.free_shared_bytes);
  }
  CHECK(r.resident == std::vector<std::uint16_t>{0, 0, 0});
}

}  // namespace
}  // namespace gridloom::sched
