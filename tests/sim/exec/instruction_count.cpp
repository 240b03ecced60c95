#include "tests/sim/exec/instruction_count.h"

#include <bit>
#include <mutex>

#include "sim/exec/contract/records.h"
#include "sim/exec/record_sink.h"
#include "sim/trace/code_table.h"

namespace gridloom::test {
namespace {

class Counter final : public exec::RecordSink, public exec::RecordStream {
 public:
  explicit Counter(const trace::CodeTable& table) : table_(table) {}

  exec::RecordStream& Open() override { return *this; }
  void OnRecords(const exec::RecordPlace&, std::span<const std::uint64_t> words, std::uint32_t) override {
    InstructionCount here;
    exec::RecordReader reader(words);
    while (reader.Next()) {
      const exec::RecordHeader& header = reader.header();
      if (header.kind != exec::RecordKind::kBlock) continue;
      const std::uint32_t block = table_.entries[header.instruction].block;
      if (block == trace::CodeTable::kNoBlock) continue;
      const std::uint64_t count = table_.code.blocks[block].count;
      here.warp += count;
      here.thread += count * static_cast<std::uint64_t>(std::popcount(header.mask));
    }
    const std::lock_guard lock(mutex_);
    total.warp += here.warp;
    total.thread += here.thread;
  }

  InstructionCount total;

 private:
  const trace::CodeTable& table_;
  std::mutex mutex_;
};

}  // namespace

InstructionCount CountInstructions(Executor& executor, const std::string& ptx, const std::string& kernel,
                                   exec::LaunchParams launch) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  const trace::CodeTable table = trace::BuildCodeTable(*module, *module->FindFunction(kernel));
  Counter counter(table);
  launch.records = &counter;
  const bool ran = executor.Launch(ptx, kernel, launch).kind == exec::FaultKind::kNone;
  return ran ? counter.total : InstructionCount{};
}

}  // namespace gridloom::test
