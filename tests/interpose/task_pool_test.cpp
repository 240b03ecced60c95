// The pool that runs what streams hold, and the memory that tasks are made of: every task runs once and after all it
// waits for, whoever submits and waits; tasks that wait for each other through memory all get a thread. Meant for
// ThreadSanitizer, too.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "interpose/base/recycled.h"
#include "interpose/base/task.h"

using namespace gridloom::session;

namespace {

/// Runs `main(i)` on so many threads.
void OnThreads(unsigned threads, const std::function<void(unsigned)>& main) {
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) all.emplace_back(main, i);
  for (std::thread& one : all) one.join();
}

struct Node {
  std::vector<std::size_t> after;
  std::atomic<unsigned> runs{0};
  bool early = false;     ///< something that it waits for had not run
  std::uint64_t sum = 0;  ///< of what it waits for: plain memory, that the pool's order must make visible
};

/// A random graph: each task waits for some of the last ones. How many of them did not do as they should.
unsigned WrongInGraph(std::uint64_t seed, std::size_t count) {
  TaskPool& pool = TaskPool::Get();
  std::mt19937_64 random(seed);
  std::vector<Node> nodes(count);
  std::vector<TaskPtr> tasks(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<TaskPtr> after;
    for (std::size_t wanted = random() % 4; wanted > 0 && i > 0; --wanted) {
      const std::size_t which = i - 1 - random() % std::min<std::size_t>(i, 40);
      nodes[i].after.push_back(which);
      after.push_back(tasks[which]);
    }
    const auto where = static_cast<Task::Where>(random() % 2);
    tasks[i] = MakeTask(
        random() % 5,
        [&nodes, i] {
          Node& node = nodes[i];
          node.sum = 1;
          for (const std::size_t which : node.after) {
            node.early |= nodes[which].runs.load(std::memory_order_relaxed) != 1;
            node.sum += nodes[which].sum;
          }
          ++node.runs;
        },
        where);
    if (random() % 8 == 0) {
      if (pool.SubmitOrClaim(tasks[i], after)) pool.RunHere(tasks[i]);
    } else {
      pool.Submit(tasks[i], after);
    }
    if (random() % 64 == 0) pool.Wait(tasks[random() % (i + 1)]);
  }
  for (const TaskPtr& task : tasks) pool.Wait(task);
  std::vector<std::uint64_t> sums(count);
  unsigned wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = 1;
    for (const std::size_t which : nodes[i].after) sums[i] += sums[which];
    wrong += !tasks[i]->done() || nodes[i].runs != 1 || nodes[i].early || nodes[i].sum != sums[i];
  }
  return wrong;
}

}  // namespace

TEST_CASE("tasks: random graphs, from several threads at once") {
  std::atomic<unsigned> wrong{0};
  OnThreads(3, [&](unsigned thread) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) wrong += WrongInGraph(100 * thread + seed, 1500);
  });
  CHECK(wrong == 0);
}

TEST_CASE("tasks: chains in many streams, submitted faster than they run") {
  TaskPool& pool = TaskPool::Get();
  constexpr std::size_t kStreams = 32, kTasks = 20000;
  std::vector<TaskPtr> tails(kStreams);
  std::vector<std::size_t> next(kStreams);  // by the tasks of one stream, one after the other
  std::vector<unsigned> wrong(kStreams);
  for (std::size_t i = 0; i < kTasks; ++i) {
    const std::size_t stream = i % kStreams;
    const TaskPtr task =
        MakeTask(stream + 1, [&, stream, number = i / kStreams] { wrong[stream] += next[stream]++ != number; });
    pool.Submit(task, std::vector<TaskPtr>{tails[stream]});
    tails[stream] = task;
  }
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    pool.Wait(tails[stream]);
    CHECK(next[stream] == kTasks / kStreams);
    CHECK(wrong[stream] == 0);
  }
}

TEST_CASE("tasks: what waits for each other through memory gets threads, also beside a stream that never ends") {
  TaskPool& pool = TaskPool::Get();
  constexpr unsigned kTasks = 20;
  std::atomic<unsigned> here{0};
  std::atomic<bool> over{false};
  // A stream whose tasks keep coming until the others have ended.
  std::thread endless([&] {
    TaskPtr tail;
    for (unsigned i = 0; !over; ++i) {
      const TaskPtr task = MakeTask(7, [] {});
      pool.Submit(task, std::vector<TaskPtr>{tail});
      tail = task;
      if (i % 256 == 0) pool.Wait(task);
    }
    pool.Wait(tail);
  });
  std::vector<TaskPtr> tasks;
  for (unsigned i = 0; i < kTasks; ++i) {
    tasks.push_back(MakeTask(0, [&] {
      ++here;
      while (here < kTasks) std::this_thread::yield();
    }));
    pool.Submit(tasks.back(), {});
  }
  for (const TaskPtr& task : tasks) pool.Wait(task);
  over = true;
  endless.join();
  CHECK(here == kTasks);
}

TEST_CASE("tasks: one that is submitted while the watch falls asleep gets a thread") {
  TaskPool& pool = TaskPool::Get();
  // The watch sleeps some 20 to 25 ms after the last task was ready: with all threads kept busy, a task comes at each
  // point of that time.
  const unsigned keepers = std::max(std::thread::hardware_concurrency(), 1u) + 1;
  for (unsigned round = 0; round < 60; ++round) {
    std::atomic<unsigned> here{0};
    std::atomic<bool> release{false};
    std::vector<TaskPtr> keep;
    for (unsigned i = 0; i < keepers; ++i) {
      keep.push_back(MakeTask(0, [&] {
        ++here;
        while (!release) std::this_thread::sleep_for(std::chrono::microseconds(100));
      }));
      pool.Submit(keep.back(), {});
    }
    while (here < keepers) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(18'000 + 150 * round));
    const TaskPtr last = MakeTask(0, [&] { release = true; });
    pool.Submit(last, {});
    for (unsigned i = 0; i < 2000 && !last->done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    INFO("round " << round);
    CHECK(last->done());
    release = true;
    for (const TaskPtr& task : keep) pool.Wait(task);
    pool.Wait(last);
  }
}

TEST_CASE("tasks: who waits for one runs nothing that lies behind it") {
  TaskPool& pool = TaskPool::Get();
  const auto here = std::this_thread::get_id();
  unsigned before_here = 0;
  for (unsigned round = 0; round < 300; ++round) {
    std::atomic<bool> go_on{false}, gave_up{false};
    TaskPtr tail;
    const auto submit = [&](auto function) {
      const TaskPtr task = MakeTask(9, function);
      pool.Submit(task, std::vector<TaskPtr>{tail});
      tail = task;
      return task;
    };
    for (unsigned i = 0; i < 3; ++i) submit([&] { before_here += std::this_thread::get_id() == here; });
    const TaskPtr awaited = submit([] {});
    // Its host goes on only when the wait is over.
    submit([&] {
      for (unsigned i = 0; i < 3000 && !go_on; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      gave_up = !go_on;
    });
    pool.Wait(awaited);
    go_on = true;
    pool.Wait(tail);
    REQUIRE_FALSE(gave_up);
  }
  CHECK(before_here != 0);  // else this has shown nothing
}

TEST_CASE("tasks: what another one ends") {
  TaskPool& pool = TaskPool::Get();
  for (unsigned i = 0; i < 2000; ++i) {
    std::shared_ptr<std::atomic<unsigned>> order = std::make_shared<std::atomic<unsigned>>(0);
    unsigned seen_by_next = 0;
    const TaskPtr handed = MakeTask(
        1, [order] { order->store(1); }, Task::Where::kElsewhere);
    pool.Submit(handed, {});
    const TaskPtr next = MakeTask(
        1, [&, order] { seen_by_next = order->load(); }, static_cast<Task::Where>(i % 2));
    pool.Submit(next, std::vector<TaskPtr>{handed});
    CHECK_FALSE(next->done());
    std::thread ends([&] {
      order->store(2);
      pool.Finish(handed);
    });
    pool.Wait(next);
    ends.join();
    CHECK(seen_by_next == 2);
  }
}

TEST_CASE("recycled memory: blocks of all sizes go between threads and keep what is written to them") {
  struct Parcel {
    unsigned char* bytes;
    std::size_t size;
    unsigned char mark;
  };
  constexpr unsigned kThreads = 4, kParcels = 20000;
  std::vector<std::atomic<Parcel*>> boxes(64);
  std::atomic<unsigned> wrong{0};
  const auto open = [&](Parcel* parcel) {
    if (parcel == nullptr) return;
    for (std::size_t i = 0; i < parcel->size; ++i) wrong += parcel->bytes[i] != parcel->mark;
    GiveRecycled(parcel->bytes, parcel->size);
    delete parcel;
  };
  OnThreads(kThreads, [&](unsigned thread) {
    std::mt19937 random(thread);
    for (unsigned i = 0; i < kParcels; ++i) {
      const std::size_t size = random() % 1200;
      auto* const bytes = static_cast<unsigned char*>(TakeRecycled(size));
      const auto mark = static_cast<unsigned char>(random());
      wrong += reinterpret_cast<std::uintptr_t>(bytes) % alignof(std::max_align_t) != 0;
      std::memset(bytes, mark, size);
      open(boxes[random() % boxes.size()].exchange(new Parcel{bytes, size, mark}));
    }
  });
  for (auto& box : boxes) open(box.load());
  CHECK(wrong == 0);
}

TEST_CASE("Recycled_ThreadsThatComeAndGo_UseWhatThereIs") {
  constexpr unsigned kRounds = 30'000, kMost = 64;
  constexpr std::size_t kBytes = 900;  // a size that nothing else here has
  std::vector<void*> parcels;          // at most kMost at a time
  std::mutex mutex;
  std::atomic<bool> over{false};
  std::thread frees([&] {
    for (bool last = false; !last;) {
      last = over;
      std::vector<void*> taken;
      {
        const std::lock_guard lock(mutex);
        taken.swap(parcels);
      }
      for (void* const block : taken) GiveRecycled(block, kBytes);
      std::this_thread::yield();
    }
  });
  std::set<void*> blocks;  // what was given back to the allocator does not come again
  const auto pass = [&](unsigned count) {
    while (count != 0) {
      const std::lock_guard lock(mutex);
      for (; count != 0 && parcels.size() < kMost; --count) blocks.insert(parcels.emplace_back(TakeRecycled(kBytes)));
    }
  };
  std::mt19937 random(1);
  for (unsigned round = 0; round < kRounds; ++round) {
    std::thread(pass, random() % 3).join();
    pass(random() % 4);
  }
  over = true;
  frees.join();
  INFO(blocks.size() << " blocks for " << kMost << " at a time");
  CHECK(blocks.size() < 400);
}
