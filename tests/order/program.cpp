#include "program.h"

namespace order {

const char* Name(Kind kind) {
  static const char* const names[] = {
      "kernel",         "host function",  "host work",    "copy",          "copy (sync)",    "fill",
      "fill (sync)",    "gate",           "open gate",    "record event",  "wait for event", "sync event",
      "poll event",     "peek event",     "sync stream",  "poll stream",   "peek stream",    "sync device",
      "create stream",  "destroy stream", "create event", "destroy event", "create pool",    "destroy pool",
      "allocate async", "free async",     "allocate",     "free",          "make graph",     "launch graph",
      "update graph",   "destroy graph"};
  return names[static_cast<int>(kind)];
}

namespace {

std::string StreamName(int stream) {
  if (stream == kLegacy) return "legacy";
  if (stream == kPerThread) return "per-thread";
  return std::to_string(stream);
}
const char* MemoryName(Memory memory) {
  static const char* const names[] = {"device", "pinned", "managed", "pageable", "block"};
  return names[static_cast<int>(memory)];
}
std::string DescribeNodes(const std::vector<GraphNode>& nodes) {
  static const char* const names[] = {"kernel", "fill", "copy", "host", "empty", "child", "if", "while"};
  std::string text;
  for (const GraphNode& node : nodes) {
    text += (text.empty() ? "" : "; ") + std::string(names[static_cast<int>(node.kind)]);
    if (node.kind == GraphNode::Kind::kIf || node.kind == GraphNode::Kind::kWhile)
      text += " " + std::to_string(node.turns);
    if (node.spin != 0) text += " spin " + std::to_string(node.spin);
    for (std::size_t i = 0; i < node.after.size(); ++i)
      text += (i == 0 ? " after " : ",") + std::to_string(node.after[i]);
    if (!node.body.empty()) text += " {" + DescribeNodes(node.body) + "}";
  }
  return text;
}

}  // namespace

std::string Describe(const Operation& operation) {
  std::string text =
      "#" + std::to_string(operation.id) + " thread " + std::to_string(operation.thread) + ": " + Name(operation.kind);
  switch (operation.kind) {
    case Kind::kHostWork:
    case Kind::kCreatePool:
    case Kind::kDestroyPool:
    case Kind::kCreateEvent:
    case Kind::kDestroyEvent:
    case Kind::kOpenGate:
    case Kind::kSyncEvent:
    case Kind::kPollEvent:
    case Kind::kPeekEvent:
    case Kind::kSyncDevice:
    case Kind::kMalloc:
    case Kind::kFree:
    case Kind::kMakeGraph:
    case Kind::kUpdateGraph:
    case Kind::kDestroyGraph: break;
    case Kind::kCreateStream:
    case Kind::kDestroyStream: text += " " + StreamName(operation.stream); break;
    default: text += " in stream " + StreamName(operation.stream);
  }
  if (operation.kind == Kind::kCreateStream) text += operation.blocking ? ", blocking" : ", non-blocking";
  if (operation.object >= 0) text += ", object " + std::to_string(operation.object);
  if (operation.other >= 0 && operation.kind == Kind::kAlloc) text += ", pool " + std::to_string(operation.other);
  if (operation.other >= 0 && operation.kind == Kind::kGate)
    text += ", while #" + std::to_string(operation.other) + " waits";
  if (operation.in_stream) text += ", by the stream";
  if (operation.cooperative) text += ", cooperative";
  if (operation.kind == Kind::kKernel)
    text += ", grid " + std::to_string(operation.grid) + " block " + std::to_string(operation.block);
  if (operation.spin != 0) text += ", spin " + std::to_string(operation.spin);
  if (operation.kind == Kind::kCopy || operation.kind == Kind::kCopySync)
    text += ", " + std::string(MemoryName(operation.from)) + " to " + MemoryName(operation.to);
  if (operation.kind == Kind::kMakeGraph)
    text += std::string(operation.captured ? ", captured"
                        : operation.cloned ? ", cloned"
                                           : ", built") +
            ": " + DescribeNodes(operation.nodes);
  return text;
}

}  // namespace order
