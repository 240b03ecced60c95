#include "interpose/launch/narrow_tasks.h"

#include <algorithm>
#include <charconv>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/summary.h"
#include "interpose/objects/process.h"

namespace gridloom::session {
namespace {

constexpr std::uint64_t kUsualThreads = 512;  // the paper's tasks have fewer
constexpr std::size_t kKernelsAtOnce = 8;     // of a module, when the second of them is launched
constexpr std::uint32_t kEntryBytes = 512, kMostWarps = 31;

Result<std::uint64_t> ThreadsOfSetting() {
  const auto& text = TheSettings().task_threads;
  if (!text || text->empty()) return kUsualThreads;
  std::uint64_t threads = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), threads);
  if (error == std::errc() && end == text->data() + text->size()) return threads;
  return Error{"GRIDLOOM_TASK_THREADS=" + *text + " is not a number of threads"};
}

tasks::TableShape ShapeFor(std::uint64_t threads) {
  tasks::TableShape shape{.columns = 1, .rows = passes::task::Shared::kMostRows, .entry_bytes = kEntryBytes};
  shape.warps = static_cast<std::uint32_t>(std::clamp<std::uint64_t>((threads + 30) / 32, 1, kMostWarps));
  shape.pool_bytes = passes::task::Shared::kMostPool;
  return shape;
}

}  // namespace

NarrowTasks::NarrowTasks(Context& context)
    : context_(context),
      threads_([] {
        const auto threads = ThreadsOfSetting();
        return threads.ok() ? *threads : kUsualThreads;
      }()),
      shape_(ShapeFor(threads_)) {}

NarrowTasks::~NarrowTasks() { End(); }

std::unique_ptr<NarrowTasks> NarrowTasks::MakeFor(Context& context) {
  if (!AskedFeatures().Has(settings::Feature::kTasks)) return nullptr;
  return std::make_unique<NarrowTasks>(context);
}

Status NarrowTasks::CheckSettings() {
  if (!AskedFeatures().Has(settings::Feature::kTasks)) return {};
  if (const auto threads = ThreadsOfSetting(); !threads.ok()) return threads.error();
  return {};
}

std::string NarrowTasks::WhyGrid(const KernelOp& op, const TaskKernel& kernel) const {
  if (!kernel.refusal.empty()) return kernel.refusal;
  const MasterCode::Facts* const facts = code_ != nullptr ? code_->Find(kernel) : nullptr;
  if (facts == nullptr) return "the MasterKernel does not have it";
  const auto why = WhyNotTask({.kernel = facts->number,
                               .grid = {op.grid.x, op.grid.y, op.grid.z},
                               .block = {op.block.x, op.block.y, op.block.z},
                               .static_bytes = facts->needs.static_bytes,
                               .dynamic_bytes = op.dynamic_shared_bytes,
                               .barrier = facts->needs.barrier,
                               .full_warps = facts->needs.full_warps,
                               .full_rows = facts->needs.full_rows,
                               .params = op.params},
                              shape_);
  return why ? *why : std::string();
}

TaskKernelPtr NarrowTasks::Admit(const KernelOp& op) {
  std::string why;
  TaskKernelPtr kernel;
  if (op.grid.count() * op.block.count() >= threads_) why = "it has " + std::to_string(threads_) + " threads or more";
  else if (op.cooperative) why = "the launch is cooperative";
  else if (op.cluster.count() != 1) why = "it is launched in clusters";
  else if (op.plan.in_slices) why = "it runs in slices";
  else {
    const std::lock_guard lock(mutex_);
    kernel = Find(op);
    why = WhyGrid(op, *kernel);
  }
  context_.process().summary().NoteTask(op.kernel->name(), why);
  return why.empty() ? kernel : nullptr;
}

TaskPtr NarrowTasks::Make(std::uint64_t lane, KernelOp op) {
  op.plan.task_number = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
  return std::make_shared<LaunchedTask>(lane, queue_, std::move(op));
}

TaskKernelPtr NarrowTasks::Find(const KernelOp& op) {
  const Key key{op.bound.program.get(), op.bound.info};
  auto found = known_.find(key);
  if (found == known_.end()) {
    Enlarge(op);
    found = known_.find(key);
  }
  return found->second;
}

void NarrowTasks::Enlarge(const KernelOp& op) {
  std::erase_if(older_, [](const auto& master) { return master->ended(); });
  // Drops kernels of modules that are no more, if no task of theirs is left: a task holds its kernel.
  std::erase_if(kernels_, [&](const TaskKernelPtr& kernel) {
    return kernel->handle.expired() && kernel.use_count() == 2 &&
           known_.erase({kernel->program.get(), kernel->info}) != 0;
  });
  const auto add = [&](const exec::KernelInfo& info, std::weak_ptr<Kernel> handle) {
    TaskKernelPtr& kernel = known_[{op.bound.program.get(), &info}];
    if (kernel != nullptr) return;
    kernel = std::make_shared<TaskKernel>();
    kernel->handle = std::move(handle);
    kernel->program = op.bound.program;
    kernel->info = &info;
    kernel->refusal = WhyNeverTask(*op.bound.program, info);
    kernels_.push_back(kernel);
    if (!kernel->refusal.empty())
      GL_LOG(kInfo, "kernel %s is never a task: %s", info.name.c_str(), kernel->refusal.c_str());
  };
  // Each new MasterKernel has to be compiled. Programs that launch one kernel of a module often launch no other; those
  // that launch two are likely to launch the others, too.
  const bool second =
      std::ranges::any_of(kernels_, [&](const TaskKernelPtr& kernel) { return kernel->program == op.bound.program; });
  add(*op.bound.info, op.kernel);
  if (second && op.bound.program->kernel_names().size() <= kKernelsAtOnce) {
    for (const exec::KernelInfo& info : op.bound.program->kernels()) add(info, op.kernel);
  }
  if (!known_.at({op.bound.program.get(), op.bound.info})->refusal.empty()) return;
  const auto refuse_new = [&](const std::string& why) {
    LogFormat(LogLevel::kError, "the MasterKernel cannot have the kernels of a module: %s", why.c_str());
    for (const TaskKernelPtr& kernel : kernels_) {
      if (kernel->refusal.empty() && (code_ == nullptr || code_->Find(*kernel) == nullptr)) kernel->refusal = why;
    }
  };
  Backend* const backend = context_.device().backend();
  auto code = MakeMasterCode(*backend, kernels_);
  if (!code.ok()) return refuse_new(code.error().message);
  const exec::Dim3 block{(shape_.warps + 1) * 32, 1, 1};
  if (const Status compiled = backend->engine().Prepare((*code)->program, *(*code)->master, block); !compiled.ok())
    return refuse_new(compiled.error().message);
  Start(*std::move(code));
}

void NarrowTasks::Start(std::shared_ptr<const MasterCode> code) {
  GL_LOG(kInfo, "a MasterKernel with %zu tasks begins", code->tasks.size());
  for (auto& master : masters_) {
    master->End();
    older_.push_back(std::move(master));
  }
  masters_.clear();
  queue_.Open();
  code_ = std::move(code);
  const unsigned count = context_.device().engine().threads();
  for (unsigned i = 0; i < count; ++i)
    masters_.push_back(std::make_unique<Master>(context_, code_, shape_, queue_, count));
}

void NarrowTasks::End() {
  const std::lock_guard lock(mutex_);
  for (auto& master : masters_) master->End();
  masters_.clear();
  older_.clear();
  for (const LaunchedTaskPtr& task : queue_.Close()) TaskPool::Get().Finish(task);
  known_.clear();
  kernels_.clear();
  code_ = nullptr;
}

}  // namespace gridloom::session
