#include "tests/hostile/honest.h"

#include <unistd.h>

#include <vector>

#include "tests/hostile/daemon_process.h"
#include "tests/hostile/raw_tenant.h"

namespace gridloom::hostile {

using protocol::Verdict;

HonestTenant::HonestTenant(const std::string& socket, const std::string& tenant, unsigned pause_us)
    : pause_us_(pause_us) {
  auto client = protocol::Client::Connect(
      {.socket = socket, .tenant = tenant, .token = "", .program = "honest", .reconnect = false, .log = {}});
  if (!client.ok()) throw Failed(client.error().message);
  client_ = std::move(client).value();
  channel_ = client_->TakeTiming();
  thread_ = std::thread([this] { Main(); });
}

HonestTenant::~HonestTenant() { Stop(); }

std::string HonestTenant::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return lost_;
}

double HonestTenant::longest_seconds() const {
  const std::uint64_t began = began_.load(), now = protocol::NowNs();
  return static_cast<double>(std::max(longest_ns_.load(), began != 0 && now > began ? now - began : 0)) / 1e9;
}

void HonestTenant::Main() {
  TimingTalk talk(channel_.get());
  if (channel_ && !talk.SayCode()) lost_ = "the channel to the timing model does not take a kernel's code";
  while (!stop_ && lost_.empty()) {
    began_ = protocol::NowNs();
    std::uint64_t work = 0;
    if (channel_) {
      work = talk.Launch(4);
      talk.SayCtas(work, 4, 100);
      talk.EndLaunch(work);
    }
    if (!Launch()) lost_ = "launch " + std::to_string(launches_ + 1) + " was lost: " + client_->end_reason();
    else if (channel_ && !(talk.Ask(protocol::FrameKind::kWait, std::span(&work, 1)) && talk.Answered()))
      lost_ = "the simulated end of launch " + std::to_string(launches_ + 1) + " is not known";
    const std::uint64_t took = protocol::NowNs() - began_.exchange(0);
    round_trips_.Add(took);
    if (took > longest_ns_) longest_ns_ = took;
    ++launches_;
    if (pause_us_ != 0) usleep(pause_us_);
  }
}

bool HonestTenant::Launch() {
  constexpr std::uint64_t kCtas = 20;
  protocol::Client::Ticket ticket;
  Verdict verdict = client_->Announce({.kernel = 77,
                                       .stream = 1,
                                       .ctas = kCtas,
                                       .threads_per_cta = 32,
                                       .registers_per_thread = 16,
                                       .divisible = true,
                                       .name = "honest"},
                                      &ticket);
  std::uint64_t done = 0, granted = 0;
  while (verdict == Verdict::kGranted && done < kCtas) {
    verdict = client_->Wait(ticket, done, &granted);
    if (verdict != Verdict::kGranted) break;
    done = granted;
    if (done < kCtas) client_->Progress(ticket, done);
  }
  client_->End(ticket, done, false);
  return verdict == Verdict::kGranted;
}

}  // namespace gridloom::hostile
