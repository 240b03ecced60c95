// A process forks while other threads print, allocate and free on the device: the child can do all of it at once.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/parameter_buffers.h"
#include "sim/exec/runtime/printf_output.h"

namespace {

using namespace gridloom::exec;

/// Forks while another thread calls work() again and again. Each child does the same once, and has five seconds for it.
template <typename Work>
void CheckForks(Work work) {
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) work();
  });
  for (int round = 0; round < 100; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      work();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    if (!WIFEXITED(status)) break;
  }
  stop = true;
  busy.join();
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("Fork_WhileAnotherThreadPrints_ChildPrints") {
  PrintfOutput output(1 << 16, [](std::string_view) {});
  CheckForks([&] {
    for (int i = 0; i < 100; ++i)
      output.Append(1, static_cast<std::uint64_t>(i), "some text that is longer than a short string");
    output.Flush(1);
  });
}

TEST_CASE("Fork_WhileAnotherThreadAllocates_ChildAllocates") {
  auto memory = DeviceMemory::Create({});
  REQUIRE(memory.ok());
  DeviceHeap heap(**memory, 1 << 20);
  CheckForks([&] {
    std::uint64_t blocks[100];
    for (std::uint64_t& block : blocks) block = heap.Allocate(64);
    for (const std::uint64_t block : blocks) heap.Free(block);
  });
}
#endif

}  // namespace
