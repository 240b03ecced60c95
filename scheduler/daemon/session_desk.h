// Connections and sessions of the broker: who comes, what a session may do besides launching, and how it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/daemon/broker_core.h"
#include "scheduler/daemon/listener.h"
#include "scheduler/daemon/tenant_desk.h"
#include "scheduler/protocol/message.h"

namespace gridloom::broker {

/// Who answers those who connect to operate the broker.
class OperatorHost {
 public:
  virtual void Request(Session& session, const protocol::Request& request) = 0;
  /// Sends what is left of an answer.
  virtual void SendAnswer(Session& session) = 0;

 protected:
  ~OperatorHost() = default;
};

class SessionDesk final : private SessionHost {
 public:
  /// `operators` is not used before somebody connects.
  SessionDesk(BrokerCore& core, TenantDesk& tenant_desk, OperatorHost& operators)
      : core_(core), tenant_desk_(tenant_desk), operators_(operators) {}

  /// Makes the socket.
  Status Open();
  /// From now on the loop hears of those who connect.
  Status Attend();
  void Close() { listener_.reset(); }
  void Accept();
  void Listen(bool on);
  /// Nobody is accepted until then: there were no descriptors.
  const std::optional<std::uint64_t>& listen_again() const { return listen_again_; }
  void OnSocket(Session& session);
  void WatchSocket(const Session& session, std::uint32_t events);
  Result<std::uint32_t> TakeOf(Session& session);
  /// Ends a session at the end of this turn; tells it why where a reason is given.
  void Drop(Session& session, std::string_view event, const std::string& why,
            std::optional<protocol::GoodbyeReason> goodbye = {});
  /// Tells a session that it is over. It is there, and pays, until what runs of it has ended.
  void Terminate(Session& session, const std::string& why);
  /// Ends a session that was told so and of which nothing runs any more.
  void DropIfOver(Session& session);
  void Reap();

 private:
  void OnMemory(Session& session, std::uint64_t bytes) override;
  void OnSubmit(sched::LaunchId launch, Session& session, std::uint32_t slot) override;
  void OnEnd(sched::LaunchId launch) override;

  bool Connect(protocol::Fd socket);
  void Hello(Session& session, const protocol::Hello& hello);
  void Refuse(Session& session, const std::string& why);
  void Leave(Session& session, std::string_view event);

  BrokerCore& core_;
  TenantDesk& tenant_desk_;
  OperatorHost& operators_;
  std::unique_ptr<Listener> listener_;
  std::optional<std::uint64_t> listen_again_;
  std::uint64_t next_session_ = 1;
  bool doomed_ = false;  ///< some session ends with this turn
};

}  // namespace gridloom::broker
