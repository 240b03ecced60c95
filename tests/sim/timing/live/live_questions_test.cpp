#include "sim/timing/live/live_questions.h"

#include <catch2/catch.hpp>

namespace gridloom::timing {
namespace {

/// A host with two works that have not ended. Calls cost 10 cycles, answers 20.
struct Asking {
  Asking() {
    hosts.SetCosts({.call = 10, .copy_call = 10, .answer = 20});
    host = hosts.Add(100);
    for (NodeId* const node : {&first, &second}) *node = hosts.AddWork(host, false);
    hosts.at(host).running = 2;
  }
  void Ask(bool waits, std::vector<NodeId> nodes, bool all = false) {
    questions.Ask(
        {.host = host, .waits = waits, .all = all, .nodes = std::move(nodes), .answer = [this](Answer answer) {
           answers.push_back(answer);
         }});
  }
  bool End(NodeId node, Cycle end) {
    hosts.SetEnd(node, end, 0);
    return questions.TellWaiters(node, end);
  }
  Cycle Clock() { return hosts.at(host).clock; }

  LiveOptions options;
  SimulationSignals signals;
  LiveHosts hosts{options};
  LiveQuestions questions{options, hosts, signals};
  HostId host = 0;
  NodeId first = 0, second = 0;
  std::vector<Answer> answers;
};

using Answers = std::vector<Answer>;

TEST_CASE("LiveQuestions_HostThatWaits_GoesOnWhenTheLastWorkHasEnded") {
  Asking asking;
  asking.Ask(true, {asking.first, asking.second});
  CHECK(asking.Clock() == 110);
  CHECK(asking.hosts.at(asking.host).waiting == 1);
  CHECK(asking.questions.Awaits(asking.first));
  CHECK(asking.questions.TakeAskedFor() == std::vector<NodeId>{asking.first, asking.second});
  CHECK(asking.End(asking.second, 500));
  CHECK(asking.answers.empty());
  CHECK(asking.End(asking.first, 300));
  CHECK(asking.answers == Answers{Answer::kYes});
  CHECK(asking.Clock() == 520);
  CHECK(asking.hosts.at(asking.host).waiting == 0);
  CHECK(asking.signals.looks());
}

TEST_CASE("LiveQuestions_HostThatAsks_IsToldWhenTheDeviceHasReachedItsTime") {
  Asking asking;
  asking.Ask(false, {asking.first});
  CHECK_FALSE(asking.End(asking.second, 50));
  asking.questions.AnswerReached(asking.signals.version(), 109);
  CHECK(asking.answers.empty());
  asking.questions.AnswerReached(asking.signals.version() - 1, 110);
  CHECK(asking.answers.empty());
  asking.questions.AnswerReached(asking.signals.version(), 110);
  CHECK(asking.answers == Answers{Answer::kNo});
  CHECK_FALSE(asking.questions.Awaits(asking.first));
  // A work that has ended later than the host asks has not ended yet for it.
  asking.End(asking.first, 115);
  asking.Ask(false, {asking.first});
  CHECK(asking.answers == Answers{Answer::kNo, Answer::kYes});
}

TEST_CASE("LiveQuestions_ForAllThatAHostHasGiven_AreAnsweredWithTheLastOfThem") {
  Asking asking;
  asking.Ask(true, {}, true);
  CHECK(asking.questions.HostsThatAskForAll() == std::set<HostId>{asking.host});
  asking.End(asking.first, 200);
  CHECK(asking.answers.empty());
  CHECK(asking.End(asking.second, 210));
  CHECK(asking.answers == Answers{Answer::kYes});
}

TEST_CASE("LiveQuestions_AfterAFailure_AndOfHostsThatAreNotThere_HaveNoAnswer") {
  Asking asking;
  asking.Ask(true, {asking.first});
  asking.signals.Fail("no");
  asking.questions.AnswerAllOf(asking.host);
  asking.Ask(false, {asking.first});
  asking.host = 77;
  asking.Ask(true, {});
  CHECK(asking.answers == Answers{Answer::kUnknown, Answer::kUnknown, Answer::kUnknown});
}

TEST_CASE("LiveQuestions_OnlyHostsForWhoseProgramTheSimulationWaits_GiveUp") {
  Asking asking;
  asking.options.patience_ms = 0;
  asking.Ask(true, {asking.first});
  asking.questions.GiveUp(asking.host);
  CHECK(asking.answers.empty());
  asking.signals.BeginLoad(asking.host);
  asking.questions.GiveUp(asking.host);
  CHECK(asking.answers == Answers{Answer::kUnknown});
  CHECK(asking.Clock() == 110);  // it stays
}

}  // namespace
}  // namespace gridloom::timing
