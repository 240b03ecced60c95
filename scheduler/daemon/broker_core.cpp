#include "scheduler/daemon/broker_core.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace gridloom::broker {

Status Mailbox::Open() {
  wake_ = protocol::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return Error{"no descriptors are left"};
  return {};
}

void Mailbox::Post(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(function));
  }
  Wake();
}

void Mailbox::Wake() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

void Mailbox::RunPosted() {
  std::uint64_t count = 0;
  static_cast<void>(!read(wake_.get(), &count, sizeof count));
  std::vector<std::function<void()>> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& function : posted) function();
}

/// What grants launches. Where time is simulated the choice acts there, and may need what there is in simulated time
/// alone; when launches really begin decides nothing then.
Result<std::unique_ptr<policy::Policy>> BrokerCore::RealPolicy(const std::string& name) const {
  auto policy = policy::MakePolicy(name, device.policy_inputs);
  if (policy.ok() || simulation == nullptr || !policy::FindPolicy(name).ok()) return policy;
  const std::string instead = DaemonConfig().policy;
  log("policy " + name + " acts in simulated time; the kernels really run under " + instead);
  return policy::MakePolicy(instead, device.policy_inputs);
}

}  // namespace gridloom::broker
