// What operators ask of the broker, and what there is to see.
#pragma once

#include <nlohmann/json.hpp>

#include "scheduler/daemon/session_desk.h"
#include "scheduler/daemon/state_view.h"
#include "scheduler/daemon/worker.h"

namespace gridloom::broker {

class OperatorDesk final : public OperatorHost {
 public:
  OperatorDesk(BrokerCore& core, TenantDesk& tenant_desk, SessionDesk& sessions)
      : core_(core), tenant_desk_(tenant_desk), sessions_(sessions) {}

  void Request(Session& session, const protocol::Request& request) override;
  void SendAnswer(Session& session) override;
  /// Everything there is to see; on the broker's thread.
  nlohmann::ordered_json State() const;
  /// The same, to be made JSON of elsewhere.
  StateView View() const;

 private:
  Result<nlohmann::ordered_json> Answer(const Session& session, const protocol::Request& request);
  Result<nlohmann::ordered_json> AnswerLimits(const Session& session, const protocol::Request& request);
  Result<nlohmann::ordered_json> AnswerKill(const Session& session, const protocol::Request& request);
  Result<nlohmann::ordered_json> AnswerPolicy(const Session& session, const protocol::Request& request);
  void MakeState(Session& session);
  TenantView ViewOf(const Tenant& tenant) const;
  SessionView ViewOf(const Session& session) const;

  BrokerCore& core_;
  TenantDesk& tenant_desk_;
  SessionDesk& sessions_;
  Worker reporter_;  ///< makes texts; it posts, so it ends before the mailbox does
};

}  // namespace gridloom::broker
