#include "sim/hardware/gemtc/super_kernel.h"

#include <algorithm>
#include <string>

#include "rewriter/ptx/parser.h"
#include "rewriter/support/check.h"

namespace gridloom::hardware::gemtc {
namespace {

constexpr const char* kName = "gl_super";
constexpr const char* kFunction = "gl_task_";

/// The first thread of a block takes a task; all threads of the block do it.
constexpr const char* kTake = R"(
.visible .entry gl_super(.param .u64 queue)
{
  .reg .u64 %queue, %entry;
  .reg .u32 %n, %m, %thread, %task, %count, %kernel, %threads;
  .reg .pred %p, %q, %leads;
  .shared .align 4 .u32 gl_super_task;
  ld.param.u64 %queue, [queue];
  cvta.to.global.u64 %queue, %queue;
  mov.u32 %thread, %tid.x;
  setp.eq.u32 %leads, %thread, 0;
LOOP:
  @!%leads bra JOIN;
LOCK:
  atom.global.cas.b32 %n, [%queue+0], 0, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra LOCK;
  membar.gl;
  ld.volatile.global.u32 %task, [%queue+4];
  ld.volatile.global.u32 %count, [%queue+8];
  setp.lt.u32 %q, %task, %count;
  add.u32 %m, %task, 1;
  @%q st.volatile.global.u32 [%queue+4], %m;
  @!%q mov.u32 %task, 0xFFFFFFFF;
  membar.gl;
  mov.u32 %n, 0;
  st.volatile.global.u32 [%queue+0], %n;
  mov.u32 %m, gl_super_task;
  st.shared.u32 [%m], %task;
JOIN:
  bar.sync 0;
  mov.u32 %m, gl_super_task;
  ld.shared.u32 %task, [%m];
  setp.eq.u32 %p, %task, 0xFFFFFFFF;
  @%p bra END;
  mul.wide.u32 %entry, %task, 64;
  add.u64 %entry, %queue, %entry;
  ld.global.u32 %kernel, [%entry+64];
  ld.global.u32 %threads, [%entry+68];
  setp.ge.u32 %p, %thread, %threads;
  @%p bra FINISHED;
)";

constexpr const char* kAgain = R"(
FINISHED:
  bar.warp.sync 0xFFFFFFFF;
  membar.gl;
  bar.sync 0;
  bra LOOP;
END:
  ret;
}
)";

std::string ModuleText(unsigned sm) {
  std::string text = ".version 7.0\n.target sm_" + std::to_string(sm) + "\n.address_size 64\n";
  for (std::uint32_t i = 0; i < kMostKernels; ++i) text += ".func " + (kFunction + std::to_string(i)) + "() { ret; }\n";
  text += kTake;
  for (std::uint32_t i = 0; i < kMostKernels; ++i) {
    const std::string next = "NOT_" + std::to_string(i);
    text += "  setp.ne.u32 %p, %kernel, " + std::to_string(i) + ";\n  @%p bra " + next + ";\n  call " + kFunction +
            std::to_string(i) + ";\n  bra FINISHED;\n" + next + ":\n";
  }
  return text + kAgain;
}

}  // namespace

Result<std::shared_ptr<const SuperKernel>> MakeSuperKernel(unsigned sm, const sim::TimingSpec& timing) {
  static_assert(QueueLayout::kHead == 4 && QueueLayout::kCount == 8 && QueueLayout::kTasks == 64 &&
                QueueLayout::kThreads == 4);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ModuleText(std::max(sm, 30u)), sink);
  const ptx::Function* const kernel = module->FindFunction(kName);
  GL_CHECK(kernel != nullptr, "the SuperKernel is no PTX");
  auto made = std::make_shared<SuperKernel>();
  resident::Names names;
  GL_TRY(code, resident::Compile(*module, *kernel, kFunction, &names));
  made->code = std::move(code);
  made->task = names.registers.at("%task");
  GL_TRY(decoded, timing::Decode(made->code.code, timing));
  made->decoded = std::make_shared<const timing::DecodedCode>(std::move(decoded));
  return std::shared_ptr<const SuperKernel>(std::move(made));
}

}  // namespace gridloom::hardware::gemtc
