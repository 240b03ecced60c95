// Who a peer is, where the kernel tells less than usual: a broker in a user namespace that has numbers for nobody.
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom::broker {
namespace {

/// The broker's answer to a message, as text; sent over a socket of our own, since a client would ask who the broker
/// is.
std::string AnswerTo(const std::string& path, const std::vector<std::byte>& message) {
  const protocol::Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "cannot connect";
  if (!protocol::Send(fd.get(), message, true)) return "cannot send";
  const auto received = protocol::Receive(fd.get(), true);
  if (!received.ok()) return received.error().message;
  const auto answer = protocol::ParseMessage(received->bytes);
  if (!answer.ok()) return answer.error().message;
  const auto* const text = std::get_if<protocol::Text>(&*answer);
  return text != nullptr ? text->text : "a welcome";
}

TEST_CASE("Broker_InANamespaceWithoutUsers_TakesNobodyForItsOwnUserOrForATenant") {
  int pipe_of_answers[2];
  REQUIRE(pipe(pipe_of_answers) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // one thread: it may leave the namespace
    std::string answers = "no namespace";
    if (unshare(CLONE_NEWUSER) == 0) {
      BrokerFixture f;
      f.Start();
      answers = AnswerTo(f.config.socket, Format(protocol::Hello{"", "", "app"})) + "\n" +
                AnswerTo(f.config.socket, Format(protocol::Hello{"anything", "", "app"})) + "\n" +
                AnswerTo(f.config.socket, Format(protocol::Request{.verb = protocol::Verb::kShutdown, .target = ""}));
      f.Stop();
    }
    static_cast<void>(!write(pipe_of_answers[1], answers.data(), answers.size()));
    _exit(0);
  }
  close(pipe_of_answers[1]);
  std::string answers;
  char part[1000];
  for (ssize_t size = 0; (size = read(pipe_of_answers[0], part, sizeof part)) > 0;)
    answers.append(part, static_cast<std::size_t>(size));
  close(pipe_of_answers[0]);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  if (answers == "no namespace") {
    WARN("user namespaces are forbidden here: the broker in one was not tried");
    return;
  }
  INFO(answers);
  CHECK(answers.starts_with("your user has no number in the broker's user namespace (it sees 65534)"));
  CHECK(answers.find("\nyour user has no number") != std::string::npos);
  CHECK(answers.ends_with("\nonly the broker's user and root may do that"));
}

}  // namespace
}  // namespace gridloom::broker
