// The host's side of the TaskTable against a device that does what the MasterKernel's scheduler warps do, at random
// times: every task runs once, none is lost, whatever the order in which copies are seen, however full the table is and
// however late the host looks.
#include "interpose/tasks/task_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>
#include <set>

using namespace gridloom;
using passes::task::Entry;

namespace {

/// A device: what is written to it arrives later, in order; a step lets one scheduler warp look at its column, or a
/// task end.
class Device final : public tasks::Port {
 public:
  Device(const tasks::TableShape& shape, std::uint64_t seed) : shape_(shape), table_(shape.bytes()), random_(seed) {}

  void Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    // The words of one copy arrive in any order (4.2.1): in two parts here.
    std::vector<std::size_t> words(bytes.size() / 4);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
    std::ranges::shuffle(words, random_);
    const std::size_t first = words.empty() ? 0 : random_() % words.size();
    for (const bool later : {false, true}) {
      Copy& copy = copies_.emplace_back();
      copy.offset = offset;
      copy.bytes.assign(bytes.begin(), bytes.end());
      copy.words.assign(words.begin() + (later ? static_cast<std::ptrdiff_t>(first) : 0),
                        later ? words.end() : words.begin() + static_cast<std::ptrdiff_t>(first));
    }
    for (unsigned steps = static_cast<unsigned>(random_() % 4); steps-- > 0;) Step();
  }
  void Read(std::uint64_t offset, std::span<std::byte> bytes) override {
    while (!copies_.empty()) Arrive();  // it is behind them in their stream
    for (unsigned steps = 1 + static_cast<unsigned>(random_() % 8); steps-- > 0;) Step();
    std::memcpy(bytes.data(), table_.data() + offset, bytes.size());
  }

  void Step() {
    if (!copies_.empty() && random_() % 3 == 0) Arrive();
    Schedule(static_cast<std::uint32_t>(random_() % shape_.columns));
    if (!running_.empty() && random_() % 2 == 0) {
      const auto at = running_.begin() + static_cast<std::ptrdiff_t>(random_() % running_.size());
      Word(*at, offsetof(Entry, ready)) = 0;
      running_.erase(at);
    }
  }

  std::map<std::uint32_t, unsigned> runs;  ///< how often each task ran, by its first parameter
  std::uint32_t wrong = 0;                 ///< tasks that began before their parameters were there

 private:
  struct Copy {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
    std::vector<std::size_t> words;
  };

  std::uint32_t& Word(std::uint32_t entry, std::uint32_t field) {
    return *reinterpret_cast<std::uint32_t*>(table_.data() + std::uint64_t{entry} * shape_.entry_bytes + field);
  }
  void Arrive() {
    const Copy& copy = copies_.front();
    for (const std::size_t word : copy.words)
      std::memcpy(table_.data() + copy.offset + 4 * word, copy.bytes.data() + 4 * word, 4);
    copies_.erase(copies_.begin());
  }
  /// Algorithm 1, lines 3 to 28, with room for every task.
  void Schedule(std::uint32_t column) {
    for (std::uint32_t entry = column * shape_.rows; entry < (column + 1) * shape_.rows; ++entry) {
      const std::uint32_t ready = Word(entry, offsetof(Entry, ready));
      if (static_cast<std::int32_t>(ready) > 1 &&
          Word(ready - Entry::kFirstTask, offsetof(Entry, ready)) == 0xFFFFFFFF) {
        Word(ready - Entry::kFirstTask, offsetof(Entry, ready)) = 1;
        Word(ready - Entry::kFirstTask, offsetof(Entry, sched)) = 1;
        Word(entry, offsetof(Entry, ready)) = 0xFFFFFFFF;
      }
      if (Word(entry, offsetof(Entry, sched)) != 1) continue;
      Word(entry, offsetof(Entry, sched)) = 0;
      const std::uint32_t number = Word(entry, sizeof(Entry));
      if (Word(entry, sizeof(Entry) + 4) != ~number || Word(entry, offsetof(Entry, kernel)) != number % 7) ++wrong;
      ++runs[number];
      running_.push_back(entry);
    }
  }

  const tasks::TableShape shape_;
  std::vector<std::byte> table_;
  std::vector<Copy> copies_;
  std::vector<std::uint32_t> running_;
  std::mt19937_64 random_;
};

void RunTasks(const tasks::TableShape& shape, std::uint32_t count, std::uint64_t seed, bool word_by_word = false) {
  Device device(shape, seed);
  tasks::TaskTable table(shape, device);
  std::mt19937_64 random(seed + 1);
  std::vector<tasks::TaskId> ids;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t params[] = {i, ~i};
    const tasks::Task task{
        .kernel = i % 7, .grid = {1 + i % 3, 1, 1}, .block = {32, 1, 1}, .params = std::as_bytes(std::span(params))};
    REQUIRE_FALSE(WhyNotTask(task, shape));
    for (int tries = 0;; ++tries) {
      REQUIRE(tries < 100000);
      if (const auto id = table.Spawn(task)) {
        ids.push_back(*id);
        break;
      }
    }
    if (word_by_word && table.TryFlush()) REQUIRE(table.TryFlush());
    if (random() % 16 == 0) table.Flush();
    if (random() % 16 == 0) word_by_word ? table.Look() : table.Update();
  }
  table.Flush();
  for (int looks = 0; table.running() > 0; ++looks) {
    REQUIRE(looks < 100000);
    word_by_word ? table.Look() : table.Update();
  }
  for (const tasks::TaskId id : ids) REQUIRE(table.Ended(id));
  REQUIRE(device.wrong == 0);
  REQUIRE(device.runs.size() == count);
  REQUIRE(std::ranges::all_of(device.runs, [](const auto& run) { return run.second == 1; }));
  CHECK(table.spawned() == count);
}

}  // namespace

TEST_CASE("TaskTable_OfAnyShape_RunsEveryTaskOnce", "[tasks]") {
  std::mt19937_64 random(7);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    tasks::TableShape shape;
    shape.columns = 1 + static_cast<std::uint32_t>(random() % 6);
    shape.rows = 1 + static_cast<std::uint32_t>(random() % 32);
    shape.entry_bytes = 128;
    RunTasks(shape, 1 + static_cast<std::uint32_t>(random() % 400), seed);
  }
}

TEST_CASE("TaskTable_LookedAtWordByWord_RunsEveryTaskOnce", "[tasks]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RunTasks({.columns = 1 + static_cast<std::uint32_t>(seed % 3),
              .rows = 1 + static_cast<std::uint32_t>(seed),
              .entry_bytes = 128},
             300, seed, true);
  }
}

TEST_CASE("TaskTable_WithATaskInEveryEntry_IsFull", "[tasks]") {
  const tasks::TableShape shape{.columns = 2, .rows = 2, .entry_bytes = 128};
  Device device(shape, 1);
  tasks::TaskTable table(shape, device);
  const tasks::Task task{.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = {}};
  for (int i = 0; i < 3; ++i) REQUIRE(table.Spawn(task));
  CHECK_FALSE(table.full());
  REQUIRE(table.Spawn(task));
  CHECK(table.full());
}

TEST_CASE("TaskTable_OfOneEntry_RunsTasksOneAfterTheOther", "[tasks]") {
  tasks::TableShape shape;
  shape.columns = shape.rows = 1;
  RunTasks(shape, 200, 3);
}

TEST_CASE("TaskTable_WhatATaskIsRefusedFor_IsSaid", "[tasks]") {
  const tasks::TableShape shape{.columns = 1, .rows = 1, .entry_bytes = 128, .warps = 3, .pool_bytes = 4096};
  const std::vector<std::byte> params(64);
  tasks::Task task{.grid = {1, 1, 1}, .block = {96, 1, 1}, .static_bytes = 4000, .dynamic_bytes = 96, .params = params};
  CHECK_FALSE(WhyNotTask(task, shape));
  task.block.x = 97;
  CHECK(std::string(*WhyNotTask(task, shape)).find("more warps") != std::string::npos);
  task.block.x = 90;
  CHECK_FALSE(WhyNotTask(task, shape));
  task.full_warps = true;
  CHECK(std::string(*WhyNotTask(task, shape)).find("not full") != std::string::npos);
  task.block = {16, 6, 1};
  CHECK_FALSE(WhyNotTask(task, shape));
  task.full_rows = true;
  CHECK(std::string(*WhyNotTask(task, shape)).find("no whole warps") != std::string::npos);
  task.block = {32, 3, 1};
  CHECK_FALSE(WhyNotTask(task, shape));
  task.full_warps = task.full_rows = false, task.static_bytes = 4001;
  CHECK(std::string(*WhyNotTask(task, shape)).find("shared memory") != std::string::npos);
  task.static_bytes = 0, task.grid.x = 0;
  CHECK(std::string(*WhyNotTask(task, shape)).find("no threads") != std::string::npos);
  const std::vector<std::byte> more(65);
  task.grid.x = 1, task.params = more;
  CHECK(std::string(*WhyNotTask(task, shape)).find("parameters") != std::string::npos);
}
