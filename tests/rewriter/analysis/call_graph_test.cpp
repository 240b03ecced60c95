#include "rewriter/analysis/call_graph.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/rewriter/analysis/parse.h"

namespace gridloom::analysis {
namespace {

using testing::ParseItems;

NodeId NodeNamed(const CallGraph& graph, const ptx::Module& module, std::string_view name) {
  return graph.NodeOf(*module.FindFunction(name));
}

}  // namespace

TEST_CASE("CallGraph_DirectCalls_BottomUp", "[analysis]") {
  const auto module = ParseItems(
      ".func b();\n.func a() { call b, (); ret; }\n.func b() { ret; }\n.entry k() { call a, (); ret; }\n"
      ".func even() { call odd, (); ret; }\n.func odd() { call even, (); ret; }\n");
  const CallGraph graph(*module);
  const auto order = graph.BottomUp();
  const auto at = [&](std::string_view name) {
    return std::find(order.begin(), order.end(), NodeNamed(graph, *module, name));
  };
  CHECK(at("b") < at("a"));
  CHECK(at("a") < at("k"));
  CHECK(graph.function(NodeNamed(graph, *module, "b")).body != nullptr);
  CHECK_FALSE(graph.IsRecursive(NodeNamed(graph, *module, "a")));
  CHECK(graph.IsRecursive(NodeNamed(graph, *module, "even")));
  CHECK(graph.Reachable(NodeNamed(graph, *module, "k")).size() == 3);
}

TEST_CASE("CallGraph_IndirectCall_ReachesWhoseAddressIsTaken", "[analysis]") {
  const auto module = ParseItems(
      ".func a() { ret; }\n.func b() { ret; }\n.func c() { ret; }\n.global .u64 table[1] = { b };\n"
      ".entry k() { .reg .u64 %f; mov.u64 %f, a;\nproto: .callprototype _ ();\ncall %f, (), proto;\n"
      "list: .calltargets c;\ncall %f, (), list;\nret; }\n");
  const CallGraph graph(*module);
  CHECK(graph.IsAddressTaken(NodeNamed(graph, *module, "a")));
  CHECK(graph.IsAddressTaken(NodeNamed(graph, *module, "b")));
  CHECK_FALSE(graph.IsAddressTaken(NodeNamed(graph, *module, "k")));
  const auto& calls = graph.calls(NodeNamed(graph, *module, "k"));
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].indirect);
  CHECK(calls[0].unknown_target);
  CHECK(calls[0].callees.size() == 2);
  CHECK_FALSE(calls[1].unknown_target);
  CHECK(calls[1].callees == std::vector<NodeId>{NodeNamed(graph, *module, "c")});
}

}  // namespace gridloom::analysis
