// The calls of the host in a trace, one in a line. usage: trace_actions TRACE
#include <cstdio>

#include "sim/trace/trace_file.h"

using namespace gridloom::trace;

int main(int count, char** arguments) {
  const auto file = TraceFile::Open(count > 1 ? arguments[1] : "");
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 1;
  }
  static constexpr const char* kKinds[] = {"to_device", "to_host", "on_device", "fill",
                                           "wait",      "launch",  "marker",    "group"};
  for (const HostAction& action : (*file)->actions()) {
    std::printf(
        "%s bytes=%llu span=%llu source_span=%llu host_span=%llu%s%s ranks=", kKinds[static_cast<int>(action.kind)],
        static_cast<unsigned long long>(action.bytes), static_cast<unsigned long long>(action.span),
        static_cast<unsigned long long>(action.source_span), static_cast<unsigned long long>(action.host_span),
        action.special ? " special" : "", action.sees ? " sees" : "");
    for (const std::uint32_t rank : action.ranks) std::printf("%u,", rank);
    std::printf(" reuses=");
    for (const HostAction::Reuse& reuse : action.reuses) {
      std::printf("%llu:%lld,", static_cast<unsigned long long>(reuse.work), static_cast<long long>(reuse.begin));
    }
    std::printf("\n");
  }
  return 0;
}
