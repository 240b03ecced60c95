#include "interpose/session/broker_link.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "interpose/session/log.h"
#include "interpose/session/process.h"
#include "interpose/session/range_checking.h"
#include "interpose/session/settings.h"
#include "interpose/session/slicing.h"
#include "rewriter/passes/slice_range.h"
#include "scheduler/protocol/secret.h"
#include "sim/exec/add_stats.h"

namespace gridloom::session {

using namespace cuda;
using protocol::Verdict;

namespace {

std::atomic<BrokerLink*> g_link{nullptr};

/// Memory is asked for in pieces of this size: most allocations ask nobody.
constexpr std::uint64_t kMemoryPiece = 32u << 20;

Result<std::string> Token() {
  const auto& path = TheSettings().token_file;
  if (!path || path->empty()) return std::string();
  return protocol::ReadSecret(*path, false);  // a group may share a tenant, and its file
}

/// True: embedded.
Result<bool> GoesOnAlone() {
  const auto& choice = TheSettings().on_broker_loss;
  if (!choice || choice->empty() || *choice == "embedded") return true;
  if (*choice == "fail") return false;
  return Error{"GRIDLOOM_ON_BROKER_LOSS=" + *choice + " is neither embedded nor fail"};
}

}  // namespace

BrokerLink* BrokerLink::Get() { return g_link.load(std::memory_order_acquire); }

std::optional<std::string> BrokerLink::Socket() {
  const auto& connect = TheSettings().connect;
  if (!connect || connect->empty()) return std::nullopt;
  return connect->find('/') != std::string::npos ? *connect : protocol::DefaultSocketPath();
}

Status BrokerLink::Start() {
  const auto socket = Socket();
  if (!socket || Get() != nullptr) return {};
  GL_TRY(alone, GoesOnAlone());
  GL_TRY(token, Token());
  protocol::Client::Options options;
  options.socket = *socket;
  options.tenant = TheSettings().tenant.value_or("");
  options.token = std::move(token);
  options.program = program_invocation_short_name;
  options.reconnect = alone;
  options.log = [](bool warning, const std::string& text) { Log(warning ? LogLevel::kWarn : LogLevel::kInfo, text); };
  options.ended = [](const std::string& why) {
    Log(LogLevel::kError, "the broker has ended this session: " + why);
    Process::Get().Terminate(CUDA_ERROR_MPS_CLIENT_TERMINATED);
  };
  GL_TRY(client, protocol::Client::Connect(std::move(options), alone));
  const protocol::Welcome welcome = client->welcome();
  if (!welcome.tenant.empty()) {
    GL_LOG(kInfo, "tenant %s of the broker, session %u, device %s, policy %s", welcome.tenant.c_str(), welcome.session,
           welcome.device.c_str(), welcome.policy.c_str());
  }
  g_link.store(new BrokerLink(std::move(client), alone),
               std::memory_order_release);  // never destroyed: threads may use it at exit
  return {};
}

void BrokerLink::AbandonAfterFork() {
  if (BrokerLink* const link = g_link.exchange(nullptr)) link->client_->AbandonAfterFork();
}

bool BrokerLink::Quota(std::uint64_t used) {
  const std::uint64_t reserved = reserved_.load(std::memory_order_relaxed);
  // What was freed is kept for the next allocations, but not by a process that has nothing any more.
  if (used <= reserved && reserved - used < 4 * kMemoryPiece && (used > 0 || reserved == 0)) return true;
  const std::uint64_t pieces =
      used / kMemoryPiece + (used % kMemoryPiece != 0);  // as many as a number holds, for any `used`
  const std::uint64_t wanted = std::max(used, pieces * kMemoryPiece);
  if (client_->Reserve(wanted)) {
    reserved_.store(wanted, std::memory_order_relaxed);
    return true;
  }
  if (used <= reserved) return true;  // giving back less than asked is no refusal
  if (!client_->Reserve(used)) return false;
  reserved_.store(used, std::memory_order_relaxed);
  return true;
}

void BrokerLink::MemoryInfo(std::uint64_t used, std::uint64_t* free, std::uint64_t* total) const {
  std::uint64_t limit = 0, all = 0;
  if (!client_->MemoryInfo(&limit, &all)) return;
  // What is reserved for this process and unused is free to it.
  const std::uint64_t reserved = reserved_.load(std::memory_order_relaxed);
  const std::uint64_t others = all - std::min(all, reserved);
  *total = std::min(*total, limit);
  *free = *total - std::min(*total, others + used);
}

// ---- launches

BrokeredLaunch::~BrokeredLaunch() { link_.client().End(ticket_, done_, faulted_); }

protocol::LaunchRecord BrokeredLaunch::Record() const {
  const exec::KernelInfo& info = *op_.bound.info;
  const std::string& name = op_.kernel->name();
  return {.kernel = protocol::KernelHash(name),
          .stream = op_.stream,
          .ctas = op_.grid.count(),
          .threads_per_cta = static_cast<std::uint32_t>(op_.block.count()),
          .registers_per_thread = info.registers,
          .shared_bytes = info.static_shared_bytes + op_.dynamic_shared_bytes,
          .priority = std::clamp(-op_.priority, -100, 100),  // CUDA's smaller number is the more urgent one
          .divisible = op_.in_slices,
          .name = name};
}

void BrokeredLaunch::Fail(Verdict verdict) {
  faulted_ = true;
  if (context_.failed()) return;
  if (verdict == Verdict::kEnded) {
    context_.Fail(CUDA_ERROR_MPS_CLIENT_TERMINATED);
  } else {
    Log(LogLevel::kError, "the broker is gone, and --on-broker-loss is fail: no kernel runs any more");
    context_.Fail(CUDA_ERROR_MPS_RPC_FAILURE);
  }
}

exec::SlicedRun BrokeredLaunch::Run(exec::Engine& engine, const exec::LaunchParams& launch) {
  exec::SlicedRun run;
  exec::LaunchParams whole = launch;
  if (op_.in_slices) whole.grid_id = engine.NewGridId();
  const std::uint64_t ctas = op_.grid.count();
  Verdict verdict = link_.client().Announce(Record(), &ticket_);
  while (done_ < ctas && !context_.failed()) {
    std::uint64_t end = ctas;
    if (verdict == Verdict::kGranted) verdict = link_.client().Wait(ticket_, done_, &end);
    if (verdict == Verdict::kEnded || (verdict == Verdict::kLost && !link_.goes_on_alone())) {
      Fail(verdict);
      break;
    }
    if (verdict == Verdict::kLost) end = ctas;
    RunPart(engine, whole, std::min(end, ctas), run);
    if (run.fault.kind != exec::FaultKind::kNone) break;
    if (verdict == Verdict::kGranted && done_ < ctas) link_.client().Progress(ticket_, done_);
  }
  faulted_ = faulted_ || run.fault.kind != exec::FaultKind::kNone || context_.failed();
  return run;
}

/// Runs the CTAs from done_ to `end`.
void BrokeredLaunch::RunPart(exec::Engine& engine, const exec::LaunchParams& whole, std::uint64_t end,
                             exec::SlicedRun& run) {
  const std::uint64_t ctas = op_.grid.count();
  const auto add = [&run](const exec::LaunchStats& one) { exec::AddTo(run.stats, one); };
  if (!op_.in_slices || (done_ == 0 && end == ctas && SliceSizeOf(op_) == 0)) {
    exec::LaunchStats stats;
    if (RangeChecks* checks = RangeChecks::Get())
      run.fault = checks->Run(engine, context_.device().memory(), whole, stats);
    else run.fault = engine.Run(whole, &stats);
    add(stats);
    if (run.fault.kind == exec::FaultKind::kNone) done_ = ctas;
    return;
  }
  const passes::GridShape shape{op_.grid.x, op_.grid.y, op_.grid.z};
  while (done_ < end && !context_.failed()) {
    std::uint64_t count = std::min(end - done_, passes::LongestSlice(shape, done_));
    if (const std::uint64_t size = SliceSizeOf(op_); size != 0) count = std::min(count, size);
    exec::LaunchStats stats;
    run.fault = exec::RunSlice(engine, whole, *op_.bound.sliced, done_, count, whole.grid_id, &stats);
    add(stats);
    ++run.slices;
    if (run.fault.kind != exec::FaultKind::kNone) return;
    done_ += count;
  }
}

}  // namespace gridloom::session
