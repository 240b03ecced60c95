#include "interpose/launcher/rewrite/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gridloom::launcher {
namespace {

using Lines = std::vector<std::string_view>;

Lines Split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Lines [old_begin, old_end) became lines [new_begin, new_end).
struct Change {
  std::size_t old_begin, old_end, new_begin, new_end;
};

class Differ {
 public:
  Differ(const Lines& before, const Lines& after) : before_(before), after_(after) {}

  std::vector<Change> Run() {
    std::vector<Change> changes;
    std::size_t i = 0, j = 0;
    while (i < before_.size() || j < after_.size()) {
      if (i < before_.size() && j < after_.size() && before_[i] == after_[j]) {
        ++i;
        ++j;
        continue;
      }
      const Change change = Next(i, j);
      changes.push_back(change);
      i = change.old_end;
      j = change.new_end;
    }
    return changes;
  }

 private:
  static constexpr std::size_t kAgree = 2;     // lines that have to agree
  static constexpr std::size_t kWindow = 600;  // how far agreement is looked for

  bool AgreesAt(std::size_t i, std::size_t j) const {
    for (std::size_t k = 0; k < kAgree; ++k) {
      const bool old_ends = i + k >= before_.size(), new_ends = j + k >= after_.size();
      if (old_ends || new_ends) return old_ends && new_ends;
      if (before_[i + k] != after_[j + k]) return false;
    }
    return true;
  }

  /// The change that begins here and leaves out and puts in the fewest lines.
  Change Next(std::size_t i, std::size_t j) const {
    for (std::size_t total = 1; total <= kWindow; ++total) {
      for (std::size_t removed = 0; removed <= total; ++removed) {
        const std::size_t a = i + removed, b = j + (total - removed);
        if (a <= before_.size() && b <= after_.size() && AgreesAt(a, b)) return {i, a, j, b};
      }
    }
    return {i, std::min(i + kWindow, before_.size()), j, std::min(j + kWindow, after_.size())};
  }

  const Lines &before_, &after_;
};

std::string RangeText(std::size_t begin, std::size_t count) {
  return std::to_string(count == 0 ? begin : begin + 1) + (count == 1 ? "" : "," + std::to_string(count));
}

}  // namespace

std::string UnifiedDiff(std::string_view old_text, std::string_view new_text, const std::string& old_name,
                        const std::string& new_name) {
  constexpr std::size_t kAround = 3;
  const Lines before = Split(old_text), after = Split(new_text);
  const std::vector<Change> changes = Differ(before, after).Run();
  if (changes.empty()) return {};
  std::string text = "--- " + old_name + "\n+++ " + new_name + "\n";
  for (std::size_t first = 0, last = 0; first < changes.size(); first = last + 1) {
    last = first;  // changes that are near each other make one hunk
    while (last + 1 < changes.size() && changes[last + 1].old_begin - changes[last].old_end <= 2 * kAround) ++last;
    const std::size_t lead = std::min(kAround, changes[first].old_begin);
    const std::size_t trail = std::min(kAround, before.size() - changes[last].old_end);
    const std::size_t old_begin = changes[first].old_begin - lead, new_begin = changes[first].new_begin - lead;
    text += "@@ -" + RangeText(old_begin, changes[last].old_end + trail - old_begin) + " +" +
            RangeText(new_begin, changes[last].new_end + trail - new_begin) + " @@\n";
    const auto add = [&text](char sign, const Lines& lines, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) (text += sign) += std::string(lines[i]) + "\n";
    };
    std::size_t at = old_begin;
    for (std::size_t i = first; i <= last; ++i) {
      add(' ', before, at, changes[i].old_begin);
      add('-', before, changes[i].old_begin, changes[i].old_end);
      add('+', after, changes[i].new_begin, changes[i].new_end);
      at = changes[i].old_end;
    }
    add(' ', before, at, at + trail);
  }
  return text;
}

}  // namespace gridloom::launcher
