// One work alone on the device, and others beside each other.
#include "interpose/observe/device_turns.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using gridloom::session::DeviceTurns;
using std::chrono::milliseconds;

TEST_CASE("DeviceTurns_OneAlone_HasNobodyBesideIt") {
  DeviceTurns turns(std::chrono::seconds(60));
  std::atomic<int> together{0}, alone{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        if (i % 3 == 0) {
          if (!turns.BeginAlone()) ++wrong;
          if (++alone != 1 || together != 0) ++wrong;
          --alone;
          turns.EndAlone();
        } else {
          turns.Begin();
          ++together;
          if (alone != 0) ++wrong;
          --together;
          turns.End();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("DeviceTurns_OneThatDoesNotEnd_IsWaitedForOnce") {
  DeviceTurns turns(milliseconds(50));
  turns.Begin();
  const auto start = std::chrono::steady_clock::now();
  CHECK(!turns.BeginAlone());
  CHECK(std::chrono::steady_clock::now() - start >= milliseconds(50));
  turns.Begin();  // others go on
  turns.End();
  const auto again = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) CHECK(!turns.BeginAlone());
  CHECK(std::chrono::steady_clock::now() - again < std::chrono::seconds(4));
  turns.End();
  CHECK(turns.BeginAlone());
  turns.EndAlone();
}

TEST_CASE("DeviceTurns_TwoThatWantToBeAlone_TakeTurns") {
  DeviceTurns turns(milliseconds(50));
  CHECK(turns.BeginAlone());
  CHECK(!turns.BeginAlone());
  std::atomic<bool> begun{false};
  std::thread other([&] {
    turns.Begin();
    begun = true;
    turns.End();
  });
  std::this_thread::sleep_for(milliseconds(20));
  CHECK(!begun);  // the one that gave up has not taken the other's place
  turns.EndAlone();
  other.join();
  CHECK(begun);
}
