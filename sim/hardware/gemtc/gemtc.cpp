#include "sim/hardware/gemtc/gemtc.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/hardware/gemtc/super_sm.h"
#include "sim/timing/device_input.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::hardware {
namespace {

using namespace gemtc;
using pagoda::Task;
using timing::WorkId;

enum Key : std::size_t { kThreads, kBatch, kWorkers, kCopies, kWait };
constexpr std::string_view kCopiesNames[] = {"batch", "task"};
constexpr PartKey kKeys[] = {
    {"threads", 512, 2, 1 << 20, "threads", "kernels of fewer threads are tasks"},
    {"batch", 0, 0, 1 << 20, "blocks",
     "of tasks in a batch; 0: as many as blocks of the SuperKernel that are on the device at once"},
    {"workers", 0, 0, 1 << 20, "blocks",
     "of the SuperKernel at most; 0: as many as are on the device at once. No more than the batch has"},
    {"copies", 0, 0, 0, "", "how tasks' records get to the device and back: one copy for a batch, or one each",
     kCopiesNames},
    {"wait_ns", 10000, 0, 1 << 30, "ns", "without a new task, after which a batch that is not full begins"},
};

enum Counter : std::size_t { kTasks, kBatches, kTries, kBusy, kCounters };
constexpr timing::PartCounter kCounterTable[] = {
    {"gemtc_tasks", "tasks", "kernels that ran as tasks"},
    {"gemtc_batches", "launches", "of the SuperKernel"},
    {"gemtc_lock_tries", "accesses", "tries to take the lock of the queue"},
    {"gemtc_task_warp_cycles", "cycles", "warp cycles that warps of the SuperKernel spent in tasks"},
};
static_assert(std::size(kCounterTable) == kCounters);

struct Settings {
  std::uint64_t threads = 0;
  std::uint32_t batch = 0, workers = 0;
  bool copies_each = false;
  Cycle wait = 0, call = 0, copy_call = 0, sync = 0;
};

/// The SuperKernel's blocks for a batch. They have no trace.
class SuperSource final : public trace::CtaSource {
 public:
  SuperSource(std::shared_ptr<const SuperKernel> code, std::uint32_t threads, std::uint32_t shared_bytes,
              std::uint64_t ctas)
      : code_(std::move(code)), shape_(ShapeFor(*code_, threads, shared_bytes, ctas)) {
    auto nothing = std::make_shared<trace::CtaTrace>();
    nothing->warps.resize(shape_.warps_per_cta());
    trace_ = std::move(nothing);
  }
  /// For tasks of so many threads and so much shared memory.
  static trace::LaunchShape ShapeFor(const SuperKernel& code, std::uint32_t threads, std::uint32_t shared_bytes,
                                     std::uint64_t ctas) {
    return {.ctas = ctas,
            .threads_per_cta = threads,
            .registers_per_thread = 32,
            .shared_bytes = code.code.shared_bytes + shared_bytes};
  }
  const trace::KernelCode& code() const override { return code_->code.code; }
  const trace::LaunchShape& shape() const override { return shape_; }
  Result<trace::LoadedCta> Load(std::uint64_t) override { return trace::LoadedCta{.trace = trace_, .shifts = {}}; }

 private:
  const std::shared_ptr<const SuperKernel> code_;
  trace::LaunchShape shape_;
  std::shared_ptr<const trace::CtaTrace> trace_;
};

class Gemtc final : public timing::Part,
                    private timing::KernelPath,
                    private timing::WarpFeed,
                    private timing::CtaEvents,
                    private timing::WorkEvents,
                    private timing::TimedSource {
 public:
  Gemtc(std::shared_ptr<const SuperKernel> code, const Settings& settings)
      : code_(std::move(code)), settings_(settings) {}

  void Attach(timing::Ports& ports, timing::DeviceInput& input) override {
    input_ = &input;
    ports.kernel_path = this;
    ports.feed = this;
    ports.cta_events.push_back(this);
    ports.work_events.push_back(this);
    ports.sources.push_back(this);
  }
  std::size_t counters() const override { return kCounters; }
  void Count(std::span<std::uint64_t> values) const override {
    std::ranges::copy(counts_, values.begin());
    for (const auto& [index, sm] : sms_) values[kBusy] += sm->busy_cycles();
  }

 private:
  enum class Stage : std::uint8_t { kIdle, kCopying, kRunning, kReturning };
  struct Pending {
    std::shared_ptr<Task> task;
    std::uint32_t kernel = 0;
    std::uint32_t threads = 0, shared_bytes = 0;
    Cycle at = 0;
  };

  // ---- kernels
  bool Wants(const timing::WorkView& kernel) override {
    const trace::LaunchShape& shape = kernel.source->shape();
    if (kernel.source == source_.get() || shape.ctas * shape.threads_per_cta >= settings_.threads || shape.ctas == 0)
      return false;
    if (shape.together || !Fits(shape)) return false;
    if (numbers_.contains(kernel.code)) return true;
    if (numbers_.size() == kMostKernels) return false;
    numbers_.emplace(kernel.code, static_cast<std::uint32_t>(numbers_.size()));
    return true;
  }

  void Take(Cycle now, const timing::WorkView& kernel) override {
    auto loaded = pagoda::LoadTask(*input_, kernel);
    if (!loaded.ok()) return input_->Fail(loaded.error());
    std::shared_ptr<Task> task = *std::move(loaded);
    const trace::LaunchShape shape = kernel.source->shape();
    inputs_.insert(task->inputs.begin(), task->inputs.end());
    if (task->blocks.empty()) return input_->EndKernel({.kernel = kernel.id, .at = After(now), .started = now});
    ++counts_[kTasks];
    pending_.push_back({.task = std::move(task),
                        .kernel = numbers_.at(kernel.code),
                        .threads = shape.warps_per_cta() * trace::kWarpSize,
                        .shared_bytes = shape.shared_bytes,
                        .at = After(now)});
  }

  // ---- batches
  Cycle After(Cycle now) const { return now + input_->parameters().window; }

  /// Whether a block of the SuperKernel may run such a task. What each of several tasks fits into, all of them do.
  bool Fits(const trace::LaunchShape& task) const {
    const std::uint32_t threads = task.warps_per_cta() * trace::kWarpSize;
    return timing::NeedsOf(SuperSource::ShapeFor(*code_, threads, task.shared_bytes, 1), input_->parameters().device)
        .ok();
  }

  /// Blocks of the SuperKernel that the device holds at once, if they have so many threads and so much shared memory
  /// for tasks.
  std::uint64_t Fit(std::uint32_t threads, std::uint32_t shared_bytes) const {
    const auto needs =
        timing::NeedsOf(SuperSource::ShapeFor(*code_, threads, shared_bytes, 1), input_->parameters().device);
    return needs.ok() ? std::uint64_t{timing::CtasPerSm(*needs, input_->parameters().device)} *
                            input_->parameters().device.sm.count
                      : 1;
  }

  /// When the next batch begins: as soon as it is full, or when no task has come for a time.
  Cycle NextBatch() const {
    if (stage_ != Stage::kIdle || pending_.empty()) return timing::kNever;
    std::uint64_t blocks = 0;
    std::uint32_t threads = 0, shared_bytes = 0;
    for (auto pending = pending_.begin();; ++pending) {
      threads = std::max(threads, pending->threads);
      shared_bytes = std::max(shared_bytes, pending->shared_bytes);
      blocks += pending->task->blocks.size();
      if (blocks >= Size(threads, shared_bytes)) return std::max(free_, pending->at);
      const Cycle waits = std::max(free_, pending->at + settings_.wait);
      if (std::next(pending) == pending_.end() || std::next(pending)->at > waits) return waits;
    }
  }
  std::uint64_t Size(std::uint32_t threads, std::uint32_t shared_bytes) const {
    if (settings_.batch != 0) return settings_.batch;
    if (sized_for_ != std::pair(threads, shared_bytes)) {
      sized_for_ = {threads, shared_bytes};
      size_ = Fit(threads, shared_bytes);
    }
    return size_;
  }

  void Begin(Cycle now) {
    auto batch = std::make_shared<Batch>();
    std::uint32_t shared_bytes = 0;
    std::vector<WorkId> after;
    while (!pending_.empty() && pending_.front().at <= now) {
      Pending& next = pending_.front();
      batch->threads = std::max(batch->threads, next.threads);
      shared_bytes = std::max(shared_bytes, next.shared_bytes);
      for (std::uint32_t block = 0; block < next.task->blocks.size(); ++block) {
        batch->blocks.push_back({.task = next.task, .block = block, .kernel = next.kernel});
      }
      std::ranges::copy_if(next.task->inputs, std::back_inserter(after),
                           [&](WorkId input) { return inputs_.contains(input); });
      pending_.pop_front();
      if (batch->blocks.size() >= Size(batch->threads, shared_bytes)) break;
    }
    const std::uint64_t fit = Fit(batch->threads, shared_bytes);
    // A block more than there are blocks of tasks would find the queue empty, and hold the lock for it as long as the
    // others.
    const std::uint64_t useful = std::min<std::uint64_t>(fit, batch->blocks.size());
    const std::uint64_t workers = settings_.workers != 0 ? std::min<std::uint64_t>(settings_.workers, useful) : useful;
    source_ = std::make_shared<SuperSource>(code_, batch->threads, shared_bytes, workers);
    batch_ = std::move(batch);
    stage_ = Stage::kCopying;
    CopyQueue(now, timing::CopyDirection::kToDevice, std::move(after));
    free_ += settings_.call;
  }

  /// The records of the batch's tasks, and before them the queue's own; what comes behind the last copy comes behind
  /// all.
  void CopyQueue(Cycle now, timing::CopyDirection direction, std::vector<WorkId> after = {}) {
    const std::uint64_t tasks = batch_->blocks.size(), copies = settings_.copies_each ? tasks : 1;
    free_ = now;
    for (std::uint64_t i = 0; i < copies; ++i) {
      free_ += settings_.copy_call;
      const bool first = i == 0 && direction == timing::CopyDirection::kToDevice;
      const std::uint64_t bytes =
          (first ? sizeof(Queue) : 0) + sizeof(QueuedTask) * (settings_.copies_each ? 1 : tasks);
      copy_ = AddCopy(free_, direction, bytes, std::exchange(after, {}));
    }
  }

  WorkId AddCopy(Cycle submitted, timing::CopyDirection direction, std::uint64_t bytes,
                 std::vector<WorkId> after = {}) {
    if (!stream_) stream_ = input_->NewStream();
    const auto copy =
        input_->Add(timing::CopyWork{.order = {.stream = *stream_, .submitted = submitted, .after = std::move(after)},
                                     .direction = direction,
                                     .bytes = bytes});
    if (!copy.ok()) input_->Fail(copy.error());
    return copy.ok() ? *copy : timing::kNoWork;
  }

  /// The host has launched the SuperKernel behind the copy of the queue.
  void Launch(Cycle now) {
    stage_ = Stage::kRunning;
    ++counts_[kBatches];
    for (const auto& [index, sm] : sms_) counts_[kBusy] += sm->busy_cycles();
    sms_.clear();
    log_.clear();
    words_ = {};
    const sim::TimingSpec::Launch& launch = input_->parameters().timing().launch;
    const Cycle begins = std::max(free_ + launch.kernel_cycles, After(now) + launch.dependent_cycles);
    timing::KernelWork work;
    work.order = {.stream = *stream_, .submitted = begins - launch.kernel_cycles, .after = {}};
    work.source = source_;
    work.address_space = kAddressSpace;
    work.own_queue = true;
    const auto added = input_->Add(std::move(work));
    if (!added.ok()) return input_->Fail(added.error());
    launch_ = *added;
  }

  void OnWorkEnd(Cycle now, WorkId work) override {
    inputs_.erase(work);
    if (stage_ == Stage::kCopying && work == copy_) {
      Launch(now);
    } else if (stage_ == Stage::kRunning && work == launch_) {
      stage_ = Stage::kReturning;
      CopyQueue(std::max(free_, After(now)), timing::CopyDirection::kToHost);
    } else if (stage_ == Stage::kReturning && work == copy_) {
      free_ = std::max(now + settings_.sync, After(now));
      EndTasks(free_);
      stage_ = Stage::kIdle;
    }
  }

  /// All tasks of a batch end with the last.
  void EndTasks(Cycle at) {
    for (const QueuedBlock& queued : batch_->blocks) {
      if (queued.block != 0) continue;
      const Task& task = *queued.task;
      input_->EndKernel({.kernel = task.work,
                         .at = at,
                         .started = task.started,
                         .warp_instructions = task.warp_instructions,
                         .thread_instructions = task.thread_instructions});
    }
  }

  void OnCtaStart(Cycle, const timing::CtaPlace& place) override {
    if (!Feeds(place.launch)) return;
    auto& sm = sms_[place.sm];
    if (sm == nullptr) sm = std::make_unique<SuperSm>(code_, batch_, place.sm, log_, input_->parameters().window);
    sm->AddBlock(place.slot, static_cast<std::uint32_t>(place.cta));
  }

  // ---- while a window is simulated
  bool Feeds(std::uint32_t launch) const override { return stage_ == Stage::kRunning && launch == launch_; }
  timing::FedPiece Next(Cycle now, const timing::FedWarp& warp) override { return sms_.at(warp.sm)->Next(now, warp); }
  void OnBlockEnd(Cycle, std::uint32_t sm, std::uint32_t number, std::uint64_t warp_instructions,
                  std::uint64_t thread_instructions) override {
    sms_.at(sm)->OnBlockEnd(number, warp_instructions, thread_instructions);
  }

  // ---- time of its own
  Cycle next() const override {
    const bool acted = std::ranges::any_of(sms_, [](const auto& sm) { return sm.second->has_acts(); });
    return acted ? 0 : NextBatch();
  }
  void Run(Cycle end) override {
    Settle();
    for (Cycle next = NextBatch(); next < end; next = NextBatch()) Begin(next);
  }

  /// What warps of all SMs did to the queue, one after the other.
  void Settle() {
    std::vector<QueueAct> acts;
    for (const auto& [index, sm] : sms_) {
      const std::vector<QueueAct> of = sm->TakeActs();
      acts.insert(acts.end(), of.begin(), of.end());
    }
    std::stable_sort(acts.begin(), acts.end(), [](const QueueAct& a, const QueueAct& b) { return a.at < b.at; });
    for (const QueueAct& act : acts) {
      std::uint32_t& word = words_[act.word];
      if (act.exchanges) {
        ++counts_[kTries];
        sms_.at(act.sm)->Answer(act, word);
        if (word != act.expected) continue;
      }
      word = act.value;
      log_.push_back({.seen = After(act.at), .word = act.word, .value = act.value});
    }
  }

  const std::shared_ptr<const SuperKernel> code_;
  const Settings settings_;
  timing::DeviceInput* input_ = nullptr;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // of kernels, by policy::KernelView::code
  std::deque<Pending> pending_;
  std::unordered_set<WorkId> inputs_;  // copies to the device that tasks come behind, which have not ended
  mutable std::pair<std::uint32_t, std::uint32_t> sized_for_{0, 0};
  mutable std::uint64_t size_ = 0;
  Stage stage_ = Stage::kIdle;
  std::shared_ptr<Batch> batch_;
  std::shared_ptr<trace::CtaSource> source_;
  std::optional<std::uint32_t> stream_;
  WorkId copy_ = timing::kNoWork, launch_ = timing::kNoWork;
  Cycle free_ = 0;  // when the host goes on
  std::map<std::uint32_t, std::unique_ptr<SuperSm>> sms_;
  std::vector<QueueWrite> log_;
  QueueWords words_{};
  std::array<std::uint64_t, kCounters> counts_{};
};

Result<std::shared_ptr<timing::Part>> Make(const timing::Parameters& parameters, PartValues values) {
  const sim::TimingSpec& timing = parameters.timing();
  const auto cycles = [&](std::uint64_t ns) { return (ns * timing.clock.sm_mhz + 999) / 1000; };
  const Settings settings{
      .threads = values[kThreads],
      .batch = static_cast<std::uint32_t>(values[kBatch]),
      .workers = static_cast<std::uint32_t>(values[kWorkers]),
      .copies_each = values[kCopies] != 0,
      .wait = cycles(values[kWait]),
      .call = cycles(timing.host.call_ns),
      .copy_call = cycles(timing.host.copy_call_ns != 0 ? timing.host.copy_call_ns : timing.host.call_ns),
      .sync = cycles(timing.host.sync_ns)};
  GL_TRY(code, MakeSuperKernel(parameters.device.compute_capability.sm(), timing));
  return std::shared_ptr<timing::Part>(std::make_shared<Gemtc>(std::move(code), settings));
}

}  // namespace

const PartKind kGemtc = {
    .name = "gemtc",
    .summary = "kernels of few threads run in batches, as tasks of a kernel that takes them from a queue",
    .source =
        "S. Krieder and others, Design and Evaluation of the GeMTC Framework, HPDC 2014, as Pagoda (PPoPP 2017) "
        "describes it",
    .keys = kKeys,
    .counters = kCounterTable,
    .stalls = {},
    .make = Make,
};

}  // namespace gridloom::hardware
