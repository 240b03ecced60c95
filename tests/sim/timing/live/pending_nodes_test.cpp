#include "sim/timing/live/pending_nodes.h"

#include <catch2/catch.hpp>

namespace gridloom::timing {
namespace {

PendingNode Member(NodeId group, bool closed) {
  PendingNode node;
  node.place.group = group;
  node.closed = closed;
  return node;
}

TEST_CASE("PendingNodes_Group_IsOpenUntilItAndAllItsMembersAreClosed") {
  PendingNodes nodes;
  nodes.Add(1, Member(0, false));
  nodes.Add(2, Member(1, false));
  nodes.Add(3, Member(2, false));
  nodes.Add(4, Member(1, true));
  CHECK(nodes.at(1).open == 2);  // itself and the group within
  nodes.Close(nodes.at(1));
  CHECK(nodes.at(1).open == 1);
  nodes.Close(nodes.at(2));
  CHECK(nodes.at(1).open == 1);
  nodes.Close(nodes.at(3));
  for (const NodeId id : {1, 2, 3, 4}) CHECK(nodes.at(id).open == 0);
}

TEST_CASE("PendingNodes_Take_GivesANodeOnce") {
  PendingNodes nodes;
  PendingNode copy;
  copy.bytes = 77;
  nodes.Add(5, std::move(copy));
  CHECK(nodes.Find(4) == nullptr);
  CHECK(nodes.Take(5)->bytes == 77);
  CHECK_FALSE(nodes.Take(5));
  CHECK(nodes.empty());
}

}  // namespace
}  // namespace gridloom::timing
