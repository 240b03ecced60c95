// The broker's web server, over a socket: who does not say the secret learns nothing, whatever else he says, and the
// next one is answered.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "scheduler/daemon/web.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {
namespace {

constexpr const char* kSecret = "a secret that no input has";
constexpr std::string_view kDevice = "the-device-to-be-hidden";

void Require(bool condition) {
  if (!condition) std::abort();
}

sockaddr_in Loopback(unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

unsigned FreePort() {
  const protocol::Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  Require(bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  Require(getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

/// A broker with a page; until the process ends.
class Server {
 public:
  Server() {
    char name[] = "/tmp/gridloom-web-fuzzer-XXXXXX";
    Require(mkdtemp(name) != nullptr);
    DaemonConfig config;
    config.socket = std::string(name) + "/socket";
    config.http_port = port_ = FreePort();
    config.http_token = kSecret;
    DeviceFacts device;
    device.id = kDevice;
    device.sms = 1;
    device.memory_bytes = 1 << 20;
    device.facts = [](const protocol::LaunchRecord&) { return LaunchFacts{}; };
    auto made = Broker::Create(config, device, [](const std::string&) {});
    Require(made.ok());
    broker_ = std::move(made).value();
    std::filesystem::remove_all(name);  // nobody joins
    thread_ = std::thread([this] { static_cast<void>(broker_->Run().ok()); });
    auto web = Web::Start(*broker_);
    Require(web.ok());
    web_ = std::move(web).value();
    std::atexit([] { Get().Stop(); });
  }
  static Server& Get() {
    static Server* const server = new Server;
    return *server;
  }

  /// What comes back before nothing has come for so long: half a request is not answered.
  std::string Ask(std::string_view bytes, long patience_ms) const {
    const protocol::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{patience_ms / 1000, patience_ms % 1000 * 1000};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const linger at_once{1, 0};  // or the machine runs out of ports
    setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const sockaddr_in address = Loopback(port_);
    Require(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    static_cast<void>(!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    std::string answer;
    char part[4096];
    for (ssize_t size = 0; (size = recv(fd.get(), part, sizeof part, 0)) > 0;)
      answer.append(part, static_cast<std::size_t>(size));
    return answer;
  }

 private:
  void Stop() {
    web_.reset();
    broker_->Stop();
    thread_.join();
    broker_.reset();
  }

  unsigned port_ = 0;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<Web> web_;
  std::thread thread_;
};

}  // namespace
}  // namespace gridloom::broker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom::broker;
  static unsigned inputs = 0;
  const Server& server = Server::Get();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find(kSecret) == std::string_view::npos) Require(server.Ask(text, 30).find(kDevice) == std::string::npos);
  if (inputs++ % 64 == 0) {
    const std::string good =
        std::string("GET /state HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer ") + kSecret + "\r\n\r\n";
    bool answered = false;
    for (int i = 0; i < 10 && !answered; ++i)
      answered = server.Ask(good, 5000).find(kDevice) != std::string::npos;  // busy machines: status 503
    Require(answered);
  }
  return 0;
}
