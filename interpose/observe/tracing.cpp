#include "interpose/observe/tracing.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "interpose/base/at_end.h"
#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/observe/launch_capture.h"

namespace gridloom::session {
namespace {

std::vector<std::string> SplitByCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end != at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

std::unique_ptr<Tracing> Tracing::Make() {
  std::unique_ptr<Tracing> tracing(new Tracing);
  if (tracing->writer_ == nullptr) return nullptr;
  AtEnd([tracing = tracing.get()] {
    if (tracing->of_this_process()) tracing->Finish();
  });
  return tracing;
}

bool Tracing::of_this_process() const { return owner_ == getpid(); }

Tracing::Tracing() {
  const Settings& settings = TheSettings();
  if (!settings.trace || settings.trace->empty()) return;
  path_ = *settings.trace;
  kernels_wanted_ = SplitByCommas(settings.trace_kernels.value_or(""));
  if (settings.trace_launches) {
    const auto range = ParseNumberRange(*settings.trace_launches);
    wanted_launches_ = range.value_or(NumberRange{});
    if (!range) {
      LogFormat(LogLevel::kWarn,
                "GRIDLOOM_TRACE_LAUNCHES=%s is neither a number nor a range such as 10-20; every launch is traced",
                settings.trace_launches->c_str());
    }
  }
  if (settings.trace_ctas) {
    const auto most = ParseNumberRange(*settings.trace_ctas);
    if (most && most->first != 0 && most->last == most->first) {
      most_ctas_ = most->first;
    } else {
      LogFormat(LogLevel::kWarn, "GRIDLOOM_TRACE_CTAS=%s is no number above 0; every CTA is traced",
                settings.trace_ctas->c_str());
    }
  }
  auto writer = trace::TraceWriter::Create(path_, std::string("gridloom; ") + program_invocation_short_name);
  if (!writer) {
    LogText("gridloom: error: " + writer.error().message + "\n");
    return;
  }
  writer_ = std::move(*writer);
  owner_ = getpid();
}

std::uint64_t Tracing::Now() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count());
}

const Tracing::Kernel& Tracing::KernelOf(const TracedLaunch& what) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Kernel>& kernel = kernels_[what.info->function];
  if (kernel) return *kernel;
  kernel = std::make_unique<Kernel>();
  kernel->table = &CodeTableOf(what);
  kernel->number = writer_->AddKernel(kernel->table->code);
  return *kernel;
}

bool Tracing::Wants(const KernelOp& op) {
  const std::uint64_t number = launches_.fetch_add(1);
  if (op.plan.in_slices) return false;  // what runs is other code than the kernel's
  if (number < wanted_launches_.first || number > wanted_launches_.last) return false;
  return kernels_wanted_.empty() || std::ranges::any_of(kernels_wanted_, [&](const std::string& part) {
           return op.bound.info->name.find(part) != std::string::npos;
         });
}

std::unique_ptr<trace::LaunchWriter> Tracing::Begin(const KernelOp& op, const TracedLaunch& what,
                                                    std::uint64_t* keep_every) {
  const Kernel& kernel = KernelOf(what);
  trace::LaunchInfo info;
  info.kernel = kernel.number;
  info.shape = ShapeOf(op, what);
  const exec::Dim3* const dims[] = {&op.grid, &what.block};
  std::uint32_t* const into[] = {info.grid, info.block};
  for (int i = 0; i < 2; ++i) {
    into[i][0] = dims[i]->x;
    into[i][1] = dims[i]->y;
    into[i][2] = dims[i]->z;
  }
  info.stream = op.stream;
  info.host_ns = Now();
  info.work = op.plan.work;
  info.role = what.role;
  info.ranges = what.ranges;
  info.no_ranges = what.no_ranges;
  if (info.of_program()) kept_.fetch_add(1);
  *keep_every = (info.shape.ctas - 1) / most_ctas_ + 1;
  return writer_->BeginLaunch(info, kernel.table->code);
}

void Tracing::Add(trace::HostAction action) {
  action.host_ns = Now();
  writer_->Add(action);
}

void Tracing::Finish() {
  const Status status = writer_->Close();
  if (!status) return LogText("gridloom: error: " + status.error().message + "\n");
  LogFormat(LogLevel::kInfo, "trace: %llu of %llu launches in %s", static_cast<unsigned long long>(kept_.load()),
            static_cast<unsigned long long>(launches_.load()), path_.c_str());
}

}  // namespace gridloom::session
