#include "interpose/objects/current_context.h"

#include <utility>
#include <vector>

#include "interpose/base/thread_end.h"
#include "interpose/base/thread_state.h"
#include "interpose/objects/context.h"
#include "interpose/objects/green_context.h"

namespace gridloom::session {

using namespace cuda;

namespace {

/// Of a stack that is not empty.
const CurrentPlace& Top() {
  const std::uint32_t depth = t_state.depth;
  return depth <= ThreadState::kInlineDepth ? t_state.stack[depth - 1] : t_state.overflow->back();
}

}  // namespace

Context* CurrentContext() { return t_state.depth == 0 ? nullptr : Top().context; }
GreenContext* CurrentGreen() { return t_state.depth == 0 ? nullptr : Top().green; }

CUcontext CurrentHandle() {
  if (GreenContext* const green = CurrentGreen()) return green->context_handle();
  Context* const context = CurrentContext();
  return context == nullptr ? nullptr : context->handle();
}

Context& ThisContext() { return *CurrentContext(); }

void PushContext(Context* context, GreenContext* green) {
  WatchThreadEnd();
  context->on_stacks.fetch_add(1, std::memory_order_relaxed);
  if (green != nullptr) green->Hold();
  if (t_state.depth < ThreadState::kInlineDepth) {
    t_state.stack[t_state.depth] = {context, green};
  } else {
    if (t_state.overflow == nullptr) t_state.overflow = new std::vector<CurrentPlace>;
    t_state.overflow->push_back({context, green});
  }
  ++t_state.depth;
}

Context* PopContext() {
  if (t_state.depth == 0) return nullptr;
  const auto [top, green] = Top();
  --t_state.depth;
  top->on_stacks.fetch_sub(1, std::memory_order_relaxed);
  if (green != nullptr) green->LetGo();
  if (t_state.overflow != nullptr && t_state.depth >= ThreadState::kInlineDepth) {
    t_state.overflow->pop_back();
    if (t_state.overflow->empty()) delete std::exchange(t_state.overflow, nullptr);
  }
  return top;
}

void SetContext(Context* context, GreenContext* green) {
  PopContext();
  if (context != nullptr) PushContext(context, green);
}

}  // namespace gridloom::session
