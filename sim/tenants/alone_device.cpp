#include "sim/tenants/alone_device.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "scheduler/policy/builtin.h"
#include "sim/hardware/catalog.h"

namespace gridloom::tenants {

using timing::Cycle;
using timing::HostId;
using timing::LiveTimeline;
using timing::NodeId;
using timing::Place;

namespace {

/// What programs are alone under, as `gridloom replay` has it: it keeps nothing back that there is room for.
constexpr const char* kPolicy = "leftover";
/// Below all else in the broker.
constexpr int kNiceness = 10;
/// What the model of a device takes of memory; that of the largest one, h200, took 17 MB.
constexpr std::uint64_t kEngineBytes = 32u << 20;
/// And of its tenant's memory at most.
constexpr std::uint64_t kEngineShare = 8;
/// A work that has not ended here, and one that it waits for.
constexpr std::uint64_t kAloneWorkBytes = 2560, kAloneWaitBytes = 64;
/// The time when one ended.
constexpr std::uint64_t kAloneEndBytes = 8;
constexpr std::uint64_t kAlonePayBackEvery = 256;

}  // namespace

// ---- the device

AloneDevice::AloneDevice(Options options) : options_(std::move(options)), engine_(options_.account) {}

Result<std::shared_ptr<AloneDevice>> AloneDevice::Create(const sim::DeviceSpec& device, Options options) {
  std::shared_ptr<AloneDevice> alone(new AloneDevice(std::move(options)));
  const std::uint64_t most = alone->options_.account->limits().bytes / kEngineShare;
  if (kEngineBytes > most || !alone->engine_.Add(kEngineBytes))
    return Error{"its tenant has too little memory for a device of its own (timing_memory)"};
  GL_TRY(policy, policy::MakePolicy(kPolicy));
  LiveTimeline::Options timeline;
  timeline.engine.keep_ended = false;
  timeline.keep_table = false;
  timeline.niceness = kNiceness;
  GL_TRY(parts, hardware::Build(device));
  timeline.engine.parts = std::move(parts);
  timeline.on_node_ended = [raw = alone.get()](NodeId node, Cycle end) { raw->Ended(node, end); };
  GL_TRY(made, LiveTimeline::Create(device, std::move(policy), std::move(timeline)));
  alone->timeline_ = std::move(made);
  try {
    alone->makes_calls_ = std::thread([raw = alone.get()] { raw->Main(); });
  } catch (const std::system_error& error) {
    return Error{std::string("there is no thread for it: ") + error.what()};
  }
  return alone;
}

AloneDevice::~AloneDevice() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const auto& given : sources_) {
      if (const auto source = given.lock()) source->Abandon();
    }
    called_.notify_all();
  }
  if (makes_calls_.joinable()) makes_calls_.join();
  timeline_.reset();
}

std::shared_ptr<AloneProgram> AloneDevice::AddProgram(std::shared_ptr<SharingTotals> totals, Cycle shared_begin) {
  const HostId host = timeline_->AddHost();
  auto record = std::make_shared<SharingRecord>(std::move(totals), shared_begin, timeline_->HostTime(host));
  auto charge = std::make_shared<Charge>(options_.account);
  {
    const std::lock_guard lock(mutex_);
    programs_[host] = {.record = record, .charge = charge, .calls = {}};
    ++attached_;
    if (given_up()) record->Freeze();
  }
  return std::make_shared<AloneProgram>(shared_from_this(), host, std::move(record), std::move(charge));
}

void AloneDevice::GiveUp(const std::string& why) {
  std::vector<std::shared_ptr<TenantSource>> sources;
  {
    const std::lock_guard lock(mutex_);
    if (given_up_.exchange(true)) return;
    for (auto& [host, program] : programs_) {
      program.record->Freeze();
      program.calls.clear();
    }
    for (const auto& given : sources_) {
      if (auto source = given.lock()) sources.push_back(std::move(source));
    }
  }
  for (const auto& source : sources) source->Abandon();
  if (options_.given_up) options_.given_up(why);
  if (options_.changed) options_.changed();
}

void AloneDevice::Check() {
  if (const std::string problem = timeline_->problem(); !problem.empty()) GiveUp(problem);
}

bool AloneDevice::idle() const {
  const std::lock_guard lock(mutex_);
  return attached_ == 0 && (programs_.empty() || given_up());
}

/// Makes the calls of all programs, each of them in order.
void AloneDevice::Main() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto next = std::ranges::find_if(programs_, [](const auto& one) {
      const Program& program = one.second;
      return !program.calls.empty() && (program.dropped || !program.waits);
    });
    if (next == programs_.end()) {
      called_.wait(lock);
      continue;
    }
    const HostId host = next->first;
    const Call call = std::move(next->second.calls.front());
    next->second.calls.pop_front();
    lock.unlock();
    call(host);
    lock.lock();
  }
}

void AloneDevice::Post(HostId host, Call call) {
  const std::lock_guard lock(mutex_);
  const auto program = programs_.find(host);
  if (program == programs_.end() || given_up()) return;
  program->second.calls.push_back(std::move(call));
  called_.notify_one();
}

/// On the thread that makes the calls, as WaitForAll: the program's next call comes when it is answered.
void AloneDevice::Wait(HostId host, std::vector<NodeId> nodes) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto program = programs_.find(host); program != programs_.end()) program->second.waits = true;
  }
  timeline_->answers().AskForEnd(host, std::move(nodes), [this, host](timing::Answer) { Answered(host); });
}

void AloneDevice::WaitForAll(HostId host) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto program = programs_.find(host); program != programs_.end()) program->second.waits = true;
  }
  timeline_->answers().AskForEndOfAll(host, [this, host](timing::Answer) { Answered(host); });
}

void AloneDevice::Answered(HostId host) {
  const std::lock_guard lock(mutex_);
  if (const auto program = programs_.find(host); program != programs_.end()) program->second.waits = false;
  called_.notify_one();
}

/// The program is gone in the middle of something: what it gave is dropped, as soon as the thread that makes the calls
/// comes to it.
void AloneDevice::Abandon(HostId host) {
  const std::lock_guard lock(mutex_);
  const auto program = programs_.find(host);
  if (program == programs_.end() || given_up()) return;
  program->second.record->Freeze();
  program->second.dropped = true;
  program->second.calls.clear();
  program->second.calls.push_back([this](HostId which) { Drop(which); });
  called_.notify_one();
}

/// On the thread that makes the calls.
void AloneDevice::Drop(HostId host) {
  timeline_->DropHost(host);
  {
    const std::lock_guard lock(mutex_);
    programs_.erase(host);
  }
  if (options_.changed) options_.changed();
}

void AloneDevice::Ended(NodeId node, Cycle end) {
  std::shared_ptr<SharingRecord> record;
  {
    const std::lock_guard lock(mutex_);
    if (const auto program = programs_.find(static_cast<HostId>(node >> 32)); program != programs_.end())
      record = program->second.record;
  }
  if (record != nullptr) record->AloneEnded(node & 0xffffffffu, end);
}

void AloneDevice::Left() {
  {
    const std::lock_guard lock(mutex_);
    --attached_;
  }
  if (options_.changed) options_.changed();
}

std::shared_ptr<TenantSource> AloneDevice::SourceOf(std::shared_ptr<const trace::KernelCode> code,
                                                    const trace::LaunchShape& shape) {
  auto source = std::make_shared<TenantSource>(
      std::move(code), shape,
      TenantSource::Owner{.account = options_.account,
                          .now = [] { return Cycle{0}; },
                          .problem = [this](const std::string& why) { GiveUp(why); },  // on the timeline's thread
                          .store = options_.account->alone_store()});
  const std::lock_guard lock(mutex_);
  if (given_up()) return nullptr;
  if (sources_.size() >= most_sources_) {
    std::erase_if(sources_, [](const auto& given) { return given.expired(); });
    most_sources_ = std::max<std::size_t>(64, 2 * sources_.size());
  }
  sources_.push_back(source);
  return source;
}

// ---- a program

AloneProgram::~AloneProgram() {
  if (!finished_) device_->Abandon(host_);
  device_->Left();
}

Place AloneProgram::Own(Place place) const {
  place.host = host_;
  for (NodeId& before : place.after) before = Own(before);
  if (place.group != 0) place.group = Own(place.group);
  return place;
}

/// For one more work. False where nothing comes of it.
bool AloneProgram::Pay(const Place& place) {
  if (finished_ || device_->given_up()) return false;
  const std::uint64_t works = ++works_;
  if (works % kAlonePayBackEvery == 0)
    charge_->ShrinkTo((works - record_->counted()) * (kAloneWorkBytes + kAloneWaitBytes) + works * kAloneEndBytes);
  const TenantAccount& account = *device_->options_.account;
  if (account.bytes() <= account.limits().bytes / 2 &&
      charge_->Add(kAloneWorkBytes + place.after.size() * kAloneWaitBytes))
    return true;
  device_->GiveUp("the tenant's programs need the memory that is left (timing_memory)");
  return false;
}

std::shared_ptr<TenantSource> AloneProgram::AddKernel(Place place, std::shared_ptr<const trace::KernelCode> code,
                                                      const trace::LaunchShape& shape, bool opens) {
  if (!Pay(place)) return nullptr;
  auto source = device_->SourceOf(std::move(code), shape);
  if (source == nullptr) return nullptr;
  device_->Post(host_, [timeline = device_->timeline_.get(), place = Own(std::move(place)), source, opens](HostId) {
    const auto node = opens ? timeline->OpenKernel(place, source) : timeline->AddKernel(place, source);
    // As on the shared device: one that there is no room for takes no time.
    if (!node.ok()) opens ? timeline->OpenGroup(place) : timeline->AddMarker(place);
  });
  return source;
}

void AloneProgram::AddCopy(Place place, timing::CopyDirection direction, std::uint64_t bytes) {
  if (!Pay(place)) return;
  device_->Post(host_, [timeline = device_->timeline_.get(), place = Own(std::move(place)), direction, bytes](HostId) {
    timeline->AddCopy(place, direction, bytes);
  });
}

void AloneProgram::AddMarker(Place place) {
  if (!Pay(place)) return;
  device_->Post(host_, [timeline = device_->timeline_.get(), place = Own(std::move(place))](HostId) {
    timeline->AddMarker(place);
  });
}

void AloneProgram::OpenGroup(Place place) {
  if (!Pay(place)) return;
  device_->Post(host_, [timeline = device_->timeline_.get(), place = Own(std::move(place))](HostId) {
    timeline->OpenGroup(place);
  });
}

void AloneProgram::CloseGroup(NodeId group) {
  if (finished_) return;
  device_->Post(host_,
                [timeline = device_->timeline_.get(), group = Own(group)](HostId) { timeline->CloseGroup(group); });
}

void AloneProgram::Push(TenantSource& source, std::uint64_t cta, trace::LoadedCta trace) {
  if (device_->given_up()) return;
  const TenantAccount& account = *device_->options_.account;
  const bool room = account.bytes() <= account.limits().bytes / 2;
  if (room && source.Push(cta, std::move(trace)) == TenantSource::Pushed::kYes) return;
  const std::string lost = source.lost();
  device_->GiveUp(lost.empty() ? "the tenant's programs need the memory that is left (timing_memory)" : lost);
}

void AloneProgram::Waited(std::vector<NodeId> nodes) {
  if (finished_) return;
  for (NodeId& node : nodes) node = Own(node);
  device_->Post(host_, [device = device_.get(), nodes = std::move(nodes)](HostId host) { device->Wait(host, nodes); });
}

void AloneProgram::SetAway(bool away, Cycle shared) {
  const std::uint64_t number = away ? 0 : record_->Resumed(works_, shared);
  device_->Post(host_, [timeline = device_->timeline_.get(), record = record_, away, number](HostId host) {
    timeline->SetAway(host, away);
    if (!away) record->AloneResumed(number, timeline->HostTime(host));
  });
}

void AloneProgram::Finish() {
  if (std::exchange(finished_, true)) return;
  device_->Post(host_, [device = device_.get()](HostId host) { device->WaitForAll(host); });
  device_->Post(host_, [device = device_.get()](HostId host) { device->Drop(host); });
}

}  // namespace gridloom::tenants
