#include "interpose/objects/process.h"

#include <algorithm>

#include "interpose/base/summary.h"
#include "interpose/objects/device.h"
#include "interpose/objects/green_context.h"

namespace gridloom::session {

using namespace cuda;

Summary& Process::summary() {
  return *summary_.Get([] { return std::make_unique<Summary>(); });
}

void Process::Terminate(CUresult status) {
  std::vector<exec::Engine*> engines;
  {
    const std::lock_guard lock(init_mutex_);
    initialised_ = true;
    status_.store(status, std::memory_order_release);
    contexts_.ForEach([&](const std::shared_ptr<Context>& context) { context->Fail(status); });
    for (const auto& device : devices_) {
      if (device->has_backend()) engines.push_back(&device->engine());
    }
  }
  for (exec::Engine* const engine : engines) engine->Stop();
}

Device* Process::FindDevice(CUdevice ordinal) const {
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices_.size()
             ? devices_[static_cast<std::size_t>(ordinal)].get()
             : nullptr;
}

namespace {

constexpr std::size_t kShelved = 64;  // for so many more the handle of a destroyed context is known as one

}  // namespace

Context& Process::AddContext(Device& device) {
  {
    const std::lock_guard lock(shelf_mutex_);
    const auto free = [&](const Context* context) { return &context->device() == &device && context->on_stacks == 0; };
    const auto found = shelf_.size() > kShelved ? std::ranges::find_if(shelf_, free) : shelf_.end();
    if (found != shelf_.end()) {
      Context& context = **found;
      shelf_.erase(found);
      context.Renew();
      return context;
    }
  }
  auto context = std::make_shared<Context>(device, false);
  contexts_.Add(context);
  return *context;
}

void Process::ShelveContext(Context& context) {
  const std::lock_guard lock(shelf_mutex_);
  if (std::ranges::find(shelf_, &context) == shelf_.end()) shelf_.push_back(&context);
}

void Process::ForgetThread(std::uint64_t thread) {
  contexts_.ForEach([thread](const std::shared_ptr<Context>& context) { context->ForgetThread(thread); });
}

Context* Process::FindContext(CUcontext handle) const {
  if (Context* const context = contexts_.Find(handle).get()) return context;
  const GreenPtr green = FindGreen(handle);
  return green == nullptr ? nullptr : &green->primary();
}

GreenPtr Process::FindGreen(CUcontext handle) const {
  return handles.greens.Find(reinterpret_cast<CUgreenCtx>(handle));
}

void Process::ShelveGreen(GreenContext& green) {
  GreenPtr oldest;  // goes when the mutex is free
  const std::lock_guard lock(shelf_mutex_);
  green_shelf_.push_back(green.handle());
  if (green_shelf_.size() <= kShelved) return;
  oldest = handles.greens.Remove(green_shelf_.front());
  green_shelf_.pop_front();
}

StreamPtr Process::FindStream(CUstream handle) const {
  StreamPtr found;
  if (Context::IsDefaultStream(handle)) return found;
  contexts_.ForEach([&](const std::shared_ptr<Context>& context) {
    if (found == nullptr) found = context->FindStream(handle);
  });
  return found;
}

}  // namespace gridloom::session
