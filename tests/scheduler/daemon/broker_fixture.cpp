#include "tests/scheduler/daemon/broker_fixture.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

namespace gridloom::broker {

BrokerFixture::BrokerFixture() {
  char name[] = "/tmp/gridloom-broker-XXXXXX";
  folder = mkdtemp(name);
  config.socket = folder + "/socket";
  config.state = folder + "/state";
  config.quantum_us = 0;
  config.stall_ms = 0;  // tests hold launches for as long as they like
}

BrokerFixture::~BrokerFixture() {
  Stop();
  std::filesystem::remove_all(folder);
}

void BrokerFixture::Start() {
  DeviceFacts device;
  device.id = device.source = "small";
  device.sms = 4;
  device.empty_sm = {.free_ctas = 2, .free_warps = 64, .free_registers = 65536, .free_shared_bytes = 65536};
  device.resident_kernels = 32;
  device.memory_bytes = 1 << 20;
  device.facts = [](const protocol::LaunchRecord& launch) {
    return LaunchFacts{.needs = {.warps = launch.threads_per_cta / 32}};
  };
  auto made = Broker::Create(
      config, device, [](const std::string&) {}, nullptr, disk);
  if (!made.ok()) FAIL(made.error().message);
  broker_ = std::move(made).value();
  thread_ = std::thread([this] { static_cast<void>(broker_->Run().ok()); });
}

void BrokerFixture::Stop() {
  if (broker_ == nullptr) return;
  broker_->Stop();
  thread_.join();
  broker_.reset();
}

std::unique_ptr<protocol::Client> BrokerFixture::Join(const std::string& tenant, bool reconnect) {
  protocol::Client::Options options;
  options.socket = config.socket;
  options.tenant = tenant;
  options.program = "test";
  options.reconnect = reconnect;
  auto client = protocol::Client::Connect(options);
  if (!client.ok()) FAIL(client.error().message);
  return std::move(client).value();
}

bool BrokerFixture::Ask(const protocol::Request& request) const {
  const auto socket = protocol::Connect(config.socket, 5000);
  REQUIRE(socket.ok());
  REQUIRE(protocol::Send(socket->get(), Format(request), true));
  const auto received = protocol::Receive(socket->get(), true);
  REQUIRE(received.ok());
  const auto message = protocol::ParseMessage(received->bytes);
  REQUIRE(message.ok());
  const auto* const text = std::get_if<protocol::Text>(&*message);
  return text != nullptr && text->type == protocol::MessageType::kReply && text->code == 0;
}

nlohmann::ordered_json BrokerFixture::State() {
  std::promise<nlohmann::ordered_json> state;
  broker_->Post([&] { state.set_value(broker_->State()); });
  return state.get_future().get();
}

nlohmann::ordered_json BrokerFixture::TenantState(const std::string& name) {
  const auto state = State();
  for (const auto& tenant : state["tenants"]) {
    if (tenant["name"] == name) return tenant;
  }
  return {};
}

bool BrokerFixture::Eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string BrokerFixture::AuditText() const {
  if (broker_ != nullptr) {
    std::promise<void> here;  // what was asked before has been noted
    broker_->Post([&] { here.set_value(); });
    here.get_future().wait();
    broker_->WaitForDisk();
  }
  std::ifstream file(config.state + "/audit.jsonl");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

protocol::LaunchRecord LaunchOf(std::uint64_t ctas, bool divisible) {
  return {.kernel = 1, .ctas = ctas, .threads_per_cta = 32, .divisible = divisible, .name = "kernel"};
}

protocol::Verdict RunLaunch(protocol::Client& client, std::uint64_t ctas, std::uint64_t* slices) {
  protocol::Client::Ticket ticket;
  protocol::Verdict verdict = client.Announce(LaunchOf(ctas), &ticket);
  std::uint64_t done = 0;
  while (verdict == protocol::Verdict::kGranted && done < ctas) {
    std::uint64_t granted = 0;
    verdict = client.Wait(ticket, done, &granted);
    if (verdict != protocol::Verdict::kGranted) break;
    done = granted;
    if (slices != nullptr) ++*slices;
    if (done < ctas) client.Progress(ticket, done);
  }
  client.End(ticket, done, false);
  return verdict;
}

}  // namespace gridloom::broker
