#include "sim/hardware/pagoda/master.h"

#include <algorithm>
#include <string>

#include "rewriter/passes/master_kernel.h"
#include "rewriter/ptx/parser.h"

namespace gridloom::hardware::pagoda {
namespace {

constexpr const char* kFunction = "gl_task_";

/// A module with functions in the place of tasks, of which only the calls matter.
std::string ModuleText(unsigned sm) {
  std::string text = ".version 7.0\n.target sm_" + std::to_string(sm) + "\n.address_size 64\n";
  for (std::uint32_t i = 0; i < kMostKernels; ++i)
    text += ".func " + (kFunction + std::to_string(i)) + "(.param .b32 warp) { ret; }\n";
  return text;
}

}  // namespace

Result<std::shared_ptr<const Master>> MakeMaster(unsigned sm, const sim::TimingSpec& timing) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ModuleText(std::max(sm, 30u)), sink);
  std::vector<passes::task::MasterTask> tasks;
  for (std::uint32_t i = 0; i < kMostKernels; ++i) tasks.push_back({.function = kFunction + std::to_string(i)});
  passes::task::AddMasterKernel(*module, tasks);
  const ptx::Function& kernel = *module->FindFunction(passes::task::kMasterName);
  auto master = std::make_shared<Master>();
  resident::Numbers labels;
  GL_TRY(code, resident::Compile(*module, kernel, kFunction, &labels));
  master->code = std::move(code);
  master->wait = labels.at("gl_wait");
  master->scan = labels.at("gl_scan");
  GL_TRY(decoded, timing::Decode(master->code.code, timing));
  master->decoded = std::make_shared<const timing::DecodedCode>(std::move(decoded));
  return std::shared_ptr<const Master>(std::move(master));
}

Result<std::shared_ptr<Task>> LoadTask(timing::DeviceInput& input, const timing::WorkView& kernel) {
  auto task = std::make_shared<Task>();
  task->work = kernel.id;
  task->input = &input;
  task->inputs.assign(kernel.after.begin(), kernel.after.end());
  task->code = input.CodeOf(kernel.id);
  for (std::uint64_t i = 0; i < kernel.source->shape().ctas; ++i) {
    GL_TRY(cta, input.Load(kernel.id, i));
    if (cta.trace == nullptr) break;
    task->blocks.push_back({.number = timing::WarpFeed::kMostBlocks,
                            .launch = kernel.id,
                            .cta = i,
                            .trace = std::move(cta.trace),
                            .shifts = std::move(cta.shifts),
                            .code = task->code.get(),
                            .memory = kernel.memory});
  }
  return task;
}

void DropIfCancelled(const Task& task, timing::FedBlock& block) {
  if (task.input->IsCancelled(task.work)) block.trace = timing::NothingOf(*block.trace);
}

}  // namespace gridloom::hardware::pagoda
