#include "sim/hardware/crcs/dependences.h"

#include <algorithm>

namespace gridloom::hardware::crcs {

using timing::Cycle;
using timing::kNever;
using timing::WorkId;

Cycle Dependences::SinceOf(const Node::Progress& progress) {
  return progress.reached() ? std::max(progress.own, progress.before) : kNever;
}

Cycle Dependences::Since(WorkId work, Stage stage) const {
  const auto node = nodes_.find(work);
  return node == nodes_.end() ? 0 : SinceOf(node->second.progress[static_cast<std::size_t>(stage)]);
}

void Dependences::Give(const timing::WorkView& work) {
  Node added;
  added.stream = work.stream;
  const auto put_behind = [&](WorkId before) {
    const auto node = nodes_.find(before);
    if (node == nodes_.end()) return;
    node->second.behind.push_back(work.id);
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      const Cycle since = SinceOf(node->second.progress[stage]);
      Node::Progress& progress = added.progress[stage];
      if (since == kNever) ++progress.missing;
      else progress.before = std::max(progress.before, since);
    }
  };
  if (const auto last = last_.find(work.stream); last != last_.end()) put_behind(last->second);
  for (const WorkId before : work.after) put_behind(before);
  last_[work.stream] = work.id;
  nodes_.emplace(work.id, std::move(added));
}

void Dependences::Reach(WorkId work, Stage stage, Cycle since) {
  const auto index = static_cast<std::size_t>(stage);
  Node::Progress& progress = nodes_.at(work).progress[index];
  if (progress.own != kNever) return;
  progress.own = since;
  if (progress.reached()) Pass(work, index);
}

/// Tells those behind it that the work has reached the stage, as they may with it.
void Dependences::Pass(WorkId work, std::size_t stage) {
  std::vector<WorkId> passing = {work};
  while (!passing.empty()) {
    const Node& node = nodes_.at(passing.back());
    passing.pop_back();
    const Cycle since = SinceOf(node.progress[stage]);
    for (const WorkId behind : node.behind) {
      Node::Progress& progress = nodes_.at(behind).progress[stage];
      progress.before = std::max(progress.before, since);
      if (--progress.missing == 0 && progress.reached()) passing.push_back(behind);
    }
  }
}

void Dependences::End(WorkId work) {
  for (std::size_t stage = 0; stage < kStages; ++stage) Reach(work, static_cast<Stage>(stage), 0);
  const auto node = nodes_.find(work);
  const auto last = last_.find(node->second.stream);
  if (last->second == work) last_.erase(last);
  nodes_.erase(node);
}

}  // namespace gridloom::hardware::crcs
