// Kernels that are compiled while the program goes on: threads for it (sim/exec/runtime/builders.h), and what a launch waits for
// (kernel_table.h).
#include "sim/exec/runtime/builders.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/exec/runtime/kernel_table.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

/// A door that jobs wait at.
class Gate {
 public:
  void Open() { open_.store(true), open_.notify_all(); }
  void Pass() { open_.wait(false); }

 private:
  std::atomic<bool> open_{false};
};

const ptx::Function* FunctionNumber(std::uintptr_t number) { return reinterpret_cast<const ptx::Function*>(number * 64); }

LoadedKernel KernelNumber(std::uint32_t number) {
  LoadedKernel kernel;
  kernel.local_bytes = number;
  return kernel;
}

}  // namespace

TEST_CASE("Builders_EveryJobRunsOnce_AndSeveralAtATime") {
  std::atomic<unsigned> runs{0}, at_once{0}, most{0};
  {
    Builders builders(3);
    for (unsigned i = 0; i < 40; ++i) {
      builders.Run([&, i] {
        const unsigned now = ++at_once;
        for (unsigned seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (i % 4 == 0) builders.Run([&] { ++runs; });  // a job may give others
        --at_once;
        ++runs;
      });
    }
    builders.Wait();
    CHECK(runs == 50);
    builders.Run([&] { Pause(), ++runs; });
  }  // waits
  CHECK(runs == 51);
  CHECK(most > 1);
  CHECK(most <= 3);
}

TEST_CASE("Builders_WhatHasNotBegunAtAFork_RunsInBoth") {
  Builders builders(1);
  std::atomic<unsigned> runs{0};
  for (unsigned i = 0; i < 4; ++i) builders.Run([&] { Pause(), ++runs; });
  const pid_t child = fork();
  if (child == 0) {
    builders.Wait();
    _exit(runs == 4 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  builders.Wait();
  CHECK(runs == 4);
}

TEST_CASE("KernelTable_Begin_ReturnsWhenItIsCertain_AndGetWhenItIsDone") {
  Builders builders(2);
  KernelTable table;
  Gate certain, generated;
  std::atomic<unsigned> begun{0};
  const CompileOptions options;
  const auto later = [&](std::function<void()> job) { builders.Run(std::move(job)); };
  const auto begin = [&](const CompileOptions&) -> Result<KernelTable::Begun> {
    ++begun;
    certain.Pass();
    return KernelTable::Begun(KernelTable::Rest([&]() -> Result<LoadedKernel> {
      generated.Pass();
      return KernelNumber(7);
    }));
  };
  const auto build = [&](const CompileOptions&) -> Result<LoadedKernel> { return Error{"somebody else builds it"}; };
  std::atomic<unsigned> returned{0}, got{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      if (table.Begin(FunctionNumber(1), options, begin, later).ok()) ++returned;
      const auto found = table.Get(FunctionNumber(1), options, build);
      if (found.ok() && found->kernel->local_bytes == 7 && !found->built_now) ++got;
    });
  }
  Pause();
  CHECK(returned == 0);
  certain.Open();
  for (unsigned i = 0; i < 2000 && returned != 3; ++i) Pause();
  CHECK(returned == 3);
  CHECK(got == 0);
  generated.Open();
  for (std::thread& thread : threads) thread.join();
  CHECK(got == 3);
  CHECK(begun == 1);
  CHECK(table.Begin(FunctionNumber(1), options, begin, later).ok());
}

TEST_CASE("KernelTable_Begin_TellsErrors_AndGetThoseOfTheRest") {
  Builders builders(2);
  KernelTable table;
  const CompileOptions options;
  const auto later = [&](std::function<void()> job) { builders.Run(std::move(job)); };
  const auto build = [](const CompileOptions&) -> Result<LoadedKernel> { return KernelNumber(3); };
  const auto refused = [](const CompileOptions&) -> Result<KernelTable::Begun> { return Error{"it cannot be compiled"}; };
  const Status status = table.Begin(FunctionNumber(1), options, refused, later);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message == "it cannot be compiled");
  CHECK_FALSE(table.Get(FunctionNumber(1), options, build).ok());
  Gate returned;
  const auto fails = [&](const CompileOptions&) -> Result<KernelTable::Begun> {
    return KernelTable::Begun(KernelTable::Rest([&]() -> Result<LoadedKernel> {
      returned.Pass();
      return Error{"no memory"};
    }));
  };
  CHECK(table.Begin(FunctionNumber(2), options, fails, later).ok());
  returned.Open();
  builders.Wait();
  const auto found = table.Get(FunctionNumber(2), options, build);
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().message == "no memory");
  CHECK_FALSE(table.Begin(FunctionNumber(2), options, refused, later).ok());
  // Where nobody has begun, or it was there already.
  const auto here = [](const CompileOptions&) -> Result<KernelTable::Begun> { return KernelTable::Begun(KernelNumber(5)); };
  CHECK(table.Begin(FunctionNumber(3), options, here, later).ok());
  CHECK(table.Get(FunctionNumber(3), options, build)->kernel->local_bytes == 5);
  CHECK(table.Get(FunctionNumber(4), options, build)->built_now);
}
