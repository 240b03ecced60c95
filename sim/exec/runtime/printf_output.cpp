#include "sim/exec/runtime/printf_output.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace gridloom::exec {

void PrintfOutput::Append(std::uint64_t grid, std::uint64_t cta, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ += text.size();
    records_.push_back({grid, cta, std::move(text)});
    any_.store(true, std::memory_order_relaxed);
    if (bytes_ < buffer_bytes_) return;
  }
  WriteWhere([](const Record&) { return true; });
}

void PrintfOutput::Flush(std::uint64_t grid) {
  if (!any_.load(std::memory_order_relaxed)) return;
  WriteWhere([grid](const Record& record) { return record.grid == grid; });
}

template <typename Chosen>
void PrintfOutput::WriteWhere(Chosen chosen) {
  const std::lock_guard writing(writing_);
  std::vector<Record> mine;
  {
    const std::lock_guard lock(mutex_);
    const auto rest =
        std::stable_partition(records_.begin(), records_.end(), [&](const Record& record) { return !chosen(record); });
    mine.assign(std::make_move_iterator(rest), std::make_move_iterator(records_.end()));
    records_.erase(rest, records_.end());
    for (const Record& record : mine) bytes_ -= record.text.size();
  }
  Write(std::move(mine));
  const std::lock_guard lock(mutex_);
  if (records_.empty()) any_.store(false, std::memory_order_relaxed);
}

void PrintfOutput::Write(std::vector<Record> records) {
  std::ranges::stable_sort(records, {}, [](const Record& record) { return std::pair(record.grid, record.cta); });
  std::string text;
  for (const Record& record : records) text += record.text;
  if (!text.empty()) sink_(text);
}

}  // namespace gridloom::exec
