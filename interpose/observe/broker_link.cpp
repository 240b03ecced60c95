#include "interpose/observe/broker_link.h"

#include <algorithm>
#include <cerrno>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/objects/process.h"
#include "scheduler/protocol/secret.h"

namespace gridloom::session {

using namespace cuda;

namespace {

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

std::optional<std::string> BrokerLink::Socket() {
  const auto& connect = TheSettings().connect;
  if (!connect || connect->empty()) return std::nullopt;
  return connect->find('/') != std::string::npos ? *connect : protocol::DefaultSocketPath();
}

Result<std::unique_ptr<BrokerLink>> BrokerLink::Join(Process& process) {
  const auto socket = Socket();
  if (!socket) return std::unique_ptr<BrokerLink>();
  GL_TRY(alone, GoesOnAlone());
  GL_TRY(token, Token());
  protocol::Client::Options options;
  options.socket = *socket;
  options.tenant = TheSettings().tenant.value_or("");
  options.token = std::move(token);
  options.program = program_invocation_short_name;
  options.reconnect = alone;
  options.log = [](bool warning, const std::string& text) { Log(warning ? LogLevel::kWarn : LogLevel::kInfo, text); };
  options.ended = [&process](const std::string& why) {
    Log(LogLevel::kError, "the broker has ended this session: " + why);
    process.Terminate(CUDA_ERROR_MPS_CLIENT_TERMINATED);
  };
  GL_TRY(client, protocol::Client::Connect(std::move(options), alone));
  const protocol::Welcome welcome = client->welcome();
  if (!welcome.tenant.empty()) {
    GL_LOG(kInfo, "tenant %s of the broker, session %u, device %s, policy %s", welcome.tenant.c_str(), welcome.session,
           welcome.device.c_str(), welcome.policy.c_str());
  }
  return std::unique_ptr<BrokerLink>(new BrokerLink(std::move(client), alone));
}

bool BrokerLink::Quota(std::uint64_t used) {
  const std::uint64_t reserved = reserved_.load(std::memory_order_relaxed);
  // What was freed is kept for the next allocations, but not by a process that has nothing any more.
  if (used <= reserved && reserved - used < 4 * kMemoryPiece && (used > 0 || reserved == 0)) return true;
  // The sum does not overflow, whatever `used` is.
  const std::uint64_t pieces = used / kMemoryPiece + (used % kMemoryPiece != 0);
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

}  // namespace gridloom::session
