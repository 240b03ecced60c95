// What of the process's objects belongs to a context.
#include "interpose/objects/array.h"
#include "interpose/objects/device.h"
#include "interpose/objects/module.h"
#include "interpose/objects/process.h"
#include "interpose/objects/texture.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"

namespace gridloom::session {

using namespace cuda;

Context* Process::FindContext(const exec::Program& program) const {
  Context* context = nullptr;
  const auto look = [&](const auto& object) {
    if (context == nullptr) context = object->code().ContextOf(program);
  };
  handles.modules.ForEach(look);
  handles.libraries.ForEach(look);
  return context;
}

void Process::ReleaseContextObjects(Context& context) {
  observers().memcheck().NoteLeaks(context);
  for (const auto& module : handles.modules.RemoveIf([&](const Module& m) { return &m.context() == &context; })) {
    if (module->owns_code()) module->code().Unload();
  }
  handles.libraries.ForEach([&](const std::shared_ptr<Library>& library) { library->ForgetContext(context); });
  handles.events.RemoveIf([&](const Event& event) { return &event.context() == &context; });
  handles.mipmaps.RemoveIf([&](const MipmappedArray& mipmap) { return &mipmap.context() == &context; });
  handles.arrays.RemoveIf([&](const Array& array) { return &array.context() == &context; });
  if (context.device().has_backend()) context.memory.FreeAll(context.device().memory());
}

}  // namespace gridloom::session
