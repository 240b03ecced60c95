// Who is to be told of the device's core dumps. It makes none, so nobody ever is; handles are good until they are given
// back.
#include "hooks/support.h"
#include "interpose/objects/handle_table.h"

namespace gridloom::hooks {
namespace {

struct Registration {
  CUcoredumpStatusCallback callback = nullptr;
  void* user_data = nullptr;
};
using Registrations = session::HandleTable<Registration, CUcoredumpCallbackHandle>;

// Each handle is of one of the two; never destroyed, as programs give handles back in exit handlers.
Registrations& OfStarts() {
  static auto* const registrations = new Registrations;
  return *registrations;
}
Registrations& OfEnds() {
  static auto* const registrations = new Registrations;
  return *registrations;
}

CUresult Register(Registrations& registrations, CUcoredumpStatusCallback callback, void* user_data,
                  CUcoredumpCallbackHandle* handle) {
  GL_CU_REQUIRE(callback != nullptr);
  const auto made = registrations.Add(std::make_shared<Registration>(Registration{callback, user_data}));
  if (handle != nullptr) *handle = made;
  return CUDA_SUCCESS;
}

CUresult Deregister(Registrations& registrations, CUcoredumpCallbackHandle handle) {
  return registrations.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuCoredumpRegisterStartCallback(Process& process, CUcoredumpStatusCallback callback, void* user_data,
                                         CUcoredumpCallbackHandle* callback_out) {
  return Register(OfStarts(), callback, user_data, callback_out);
}
CUresult cuCoredumpRegisterCompleteCallback(Process& process, CUcoredumpStatusCallback callback, void* user_data,
                                            CUcoredumpCallbackHandle* callback_out) {
  return Register(OfEnds(), callback, user_data, callback_out);
}
CUresult cuCoredumpDeregisterStartCallback(Process& process, CUcoredumpCallbackHandle callback) {
  return Deregister(OfStarts(), callback);
}
CUresult cuCoredumpDeregisterCompleteCallback(Process& process, CUcoredumpCallbackHandle callback) {
  return Deregister(OfEnds(), callback);
}

}  // namespace gridloom::hooks
