// Attacks by the channel to the timing model of a daemon that simulates time. All of them have a ring, too, and leave
// it alone.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "sim/timing/live/live_timeline.h"
#include "sim/trace/trace_records.h"
#include "tests/hostile/attack.h"
#include "tests/hostile/raw_tenant.h"

namespace gridloom::hostile {
namespace {

using protocol::FrameKind;
using trace::ByteWriter;
using trace::HostAction;

/// A place at the timing model. What the attacker sends may be refused at any point: that ends the session, and is as
/// it should be.
struct Simulated {
  explicit Simulated(Target& target) : tenant(target.socket, target.tenant), talk(tenant.channel()) {
    const timeval patience{10, 0};
    setsockopt(tenant.channel(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(tenant.channel(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  RawTenant tenant;
  TimingTalk talk;
};

constexpr std::uint64_t kMostVisits = std::uint64_t{1} << 27;  // of a CTA, as readers of traces let it become

/// A few bytes for each CTA, a GiB each once they are unpacked.
void CtaBomb(Target& target) {
  for (int round = 0; round < 3; ++round) {
    Simulated bomb(target);
    bomb.talk.SayCode();
    const std::uint64_t work = bomb.talk.Launch(64);
    for (int i = 0; i < 4; ++i) bomb.talk.SayCtas(work, 16, kMostVisits);
    bomb.tenant.Dropped(3);
  }
}

/// Smaller ones, of many launches: no frame is remarkable.
void CtaDrizzle(Target& target) {
  Simulated drizzle(target);
  drizzle.talk.SayCode();
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t work = drizzle.talk.Launch(16);
    if (!drizzle.talk.SayCtas(work, 16, 10'000)) break;
  }
  usleep(300'000);
}

void GroupOfLastRanks(Target& target) {
  Simulated last(target);
  HostAction group = last.talk.Action(HostAction::Kind::kGroup);
  last.talk.Say(group);
  for (int i = 0; i < 3000; ++i) {
    HostAction member = last.talk.Action(HostAction::Kind::kMarker);
    member.group = group.work;
    member.rank = timing::Place::kLastRank;
    if (!last.talk.Say(member)) break;
  }
  ByteWriter close;
  close.Varint(group.work);
  last.talk.Send(FrameKind::kCloseGroup, close);
  last.talk.Ask(FrameKind::kWait, std::vector{group.work});
  usleep(500'000);
  target.daemon->Ps();
}

/// As many questions as are let, about a work that does not end.
void Questions(Target& target) {
  const std::uint64_t before = target.daemon->usage().threads;
  Simulated asker(target);
  asker.talk.SayCode();
  const std::uint64_t work = asker.talk.Launch(1);  // its CTA never comes
  for (int i = 0; i < 250; ++i) {
    if (!asker.talk.Ask(FrameKind::kWait, std::vector{work})) break;
  }
  usleep(300'000);
  const std::uint64_t now = target.daemon->usage().threads;
  Require(now <= before + 8, "250 questions made " + std::to_string(now - before) + " threads");
}

/// Questions that name one work millions of times.
void Waits(Target& target) {
  for (int round = 0; round < 2; ++round) {
    Simulated asker(target);
    asker.talk.SayCode();
    const std::vector<std::uint64_t> works(8'000'000, asker.talk.Launch(1));
    for (int i = 0; i < 12; ++i) {
      if (!asker.talk.Ask(FrameKind::kWait, works)) break;
    }
    usleep(100'000);
  }
}

/// Kernels' code of 60 MB each.
void EndlessCode(Target& target) {
  Simulated coder(target);
  trace::KernelCode code;
  code.name.assign(60'000'000, 'x');
  ByteWriter out;
  trace::PutCode(code, out);
  for (int i = 0; i < 16; ++i) {
    if (!coder.talk.Send(FrameKind::kCode, out)) break;
  }
  usleep(200'000);
}

void ManyCodes(Target& target) {
  Simulated coder(target);
  for (int i = 0; i < 60'000; ++i) {
    if (!coder.talk.SayCode(64)) break;
  }
  usleep(200'000);
}

/// Works that wait for each other's, by the hundred thousand.
void EndlessWorks(Target& target) {
  Simulated worker(target);
  for (int i = 0; i < 300'000; ++i) {
    HostAction marker = worker.talk.Action(HostAction::Kind::kMarker);
    if (i != 0) marker.after.assign(8, 1 + target.Below(static_cast<std::uint64_t>(i)));
    if (!worker.talk.Say(marker)) break;
  }
  usleep(200'000);
}

/// A kernel that takes long to simulate, of a tenant that goes as soon as it has begun.
void LeftBehind(Target& target) {
  {
    Simulated gone(target);
    gone.talk.SayCode(64);
    const std::uint64_t work = gone.talk.Launch(8);
    gone.talk.SayCtas(work, 8, 400'000);
    gone.talk.EndLaunch(work);
    gone.talk.Ask(FrameKind::kWait, std::vector{work});
    usleep(200'000);
  }
  usleep(1'500'000);
}

/// A launch whose CTAs never come: others are not held back for good.
void OwedCtas(Target& target) {
  Simulated debtor(target);
  debtor.talk.SayCode();
  const std::uint64_t work = debtor.talk.Launch(100);
  debtor.talk.Ask(FrameKind::kWait, std::vector{work});
  usleep(2'500'000);
}

/// Answers that nobody reads.
void UnreadAnswers(Target& target) {
  Simulated deaf(target);
  const HostAction marker = deaf.talk.Action(HostAction::Kind::kMarker);
  deaf.talk.Say(marker);
  pollfd takes{deaf.tenant.channel(), POLLOUT, 0};
  for (int i = 0; i < 100'000; ++i) {
    if (poll(&takes, 1, 500) != 1 || !deaf.talk.Ask(FrameKind::kEnd, std::vector{marker.work})) break;
  }
}

void GarbageFrames(Target& target) {
  for (int round = 0; round < 60; ++round) {
    Simulated junk(target);
    junk.talk.SayCode();
    for (int i = 0; i < 20; ++i) {
      ByteWriter out;
      const std::uint64_t bytes = target.Below(200);
      for (std::uint64_t at = 0; at < bytes; ++at)
        out.Fixed(static_cast<std::uint8_t>(target.Below(round % 2 == 0 ? 256 : 4)));
      if (!junk.talk.Send(static_cast<FrameKind>(1 + target.Below(10)), out)) break;
    }
    // A head that promises more than comes, or more than there may be.
    const std::uint32_t head[2] = {1 + static_cast<std::uint32_t>(target.Below(40)),
                                   static_cast<std::uint32_t>(target.random())};
    static_cast<void>(!send(junk.tenant.channel(), head, sizeof head, MSG_NOSIGNAL));
  }
}

/// With little memory for each tenant, so that it is used up in a moment. A trace that is being unpacked comes on top.
constexpr Setup kSimulated{.config = "slice_timeout_s: 1\ntiming_memory: 128M\n", .timing = true};
constexpr std::uint64_t kMostMb = 128 + 128 + 64;

constexpr Attack kAttacks[] = {
    {.name = "cta-bomb",
     .what = "CTAs of a few bytes that unpack to a GiB",
     .run = CtaBomb,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = kMostMb,
     .left_mb = 96},
    {.name = "cta-drizzle",
     .what = "thousands of launches whose traces unpack to a MiB",
     .run = CtaDrizzle,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = kMostMb,
     .left_mb = 96},
    {.name = "last-ranks",
     .what = "a group of works that each come after all others",
     .run = GroupOfLastRanks,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = 128},
    {.name = "questions", .what = "250 questions at a time", .run = Questions, .setup = kSimulated},
    {.name = "waits",
     .what = "questions about eight million works",
     .run = Waits,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = kMostMb,
     .left_mb = 96},
    {.name = "endless-code",
     .what = "a GiB of kernels' code",
     .run = EndlessCode,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = kMostMb,
     .left_mb = 96},
    {.name = "many-codes",
     .what = "60,000 kernels",
     .run = ManyCodes,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = kMostMb,
     .left_mb = 96},
    {.name = "endless-works",
     .what = "300,000 works that wait for others",
     .run = EndlessWorks,
     .setup = kSimulated,
     .rounds = 3,
     .peak_mb = kMostMb,
     .left_mb = 96},
    {.name = "left-behind", .what = "a long kernel of a tenant that has left", .run = LeftBehind, .setup = kSimulated},
    {.name = "owed-ctas", .what = "a launch whose CTAs do not come", .run = OwedCtas, .setup = kSimulated},
    {.name = "unread-frames",
     .what = "answers of the timing model that nobody reads",
     .run = UnreadAnswers,
     .setup = kSimulated},
    {.name = "garbage-frames", .what = "frames of any bytes", .run = GarbageFrames, .setup = kSimulated},
};

}  // namespace

std::span<const Attack> TimingAttacks() { return kAttacks; }

}  // namespace gridloom::hostile
