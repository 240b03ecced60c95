#include "scheduler/daemon/web.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

#include "scheduler/daemon/http_server.h"

namespace gridloom::broker {

extern const std::string_view kPageHtml;  // page.html of this folder, compiled in (cmake/embed.cmake)

using Json = nlohmann::ordered_json;

namespace {

/// A number of a tenant, and what it is.
struct TenantMetric {
  const char* name;
  const char* type;
  const char* help;
  const char* key;  ///< in the tenant's state; "limits." for those
};

constexpr TenantMetric kTenantMetrics[] = {
    {"gridloom_tenant_launches_total", "counter", "Kernel launches that have ended", "launches"},
    {"gridloom_tenant_faults_total", "counter", "Launches that ended with a fault", "faults"},
    {"gridloom_tenant_slices_total", "counter", "Slices that have run", "slices"},
    {"gridloom_tenant_ctas_total", "counter", "Thread blocks that have run", "ctas"},
    {"gridloom_tenant_copied_bytes_total", "counter", "Bytes moved by copies and fills", "copied_bytes"},
    {"gridloom_tenant_device_seconds_total", "counter", "Time of the device that the tenant has had", "device_seconds"},
    {"gridloom_tenant_simulated_seconds_total", "counter", "Simulated time of the tenant's launches",
     "simulated_seconds"},
    {"gridloom_tenant_turnaround_seconds_total", "counter", "Simulated time of its programs, of works known alone, too",
     "turnaround_seconds"},
    {"gridloom_tenant_alone_seconds_total", "counter", "The same if the tenant had the device to itself",
     "alone_seconds"},
    {"gridloom_tenant_slowdown", "gauge", "Turnaround time over the time alone", "slowdown"},
    {"gridloom_tenant_memory_bytes", "gauge", "Device memory that the tenant's processes hold", "memory_bytes"},
    {"gridloom_tenant_memory_limit_bytes", "gauge", "Device memory that they may hold", "limits.memory_bytes"},
    {"gridloom_tenant_weight", "gauge", "Share of the device under policy fair", "limits.weight"},
    {"gridloom_tenant_cap", "gauge", "Largest part of the device's time", "limits.cap"},
    {"gridloom_tenant_processes", "gauge", "Processes that are connected", "sessions"},
    {"gridloom_tenant_in_flight", "gauge", "Launches that take part in decisions", "in_flight"},
    {"gridloom_tenant_waiting", "gauge", "Launches that wait for fewer in flight", "waiting"},
};

/// Metrics of the simulated device; left out where they are not known.
constexpr TenantMetric kSimulatedMetrics[] = {
    {"gridloom_simulated_seconds", "gauge", "How far the device has been simulated", "now_seconds"},
    {"gridloom_stp", "gauge",
     "System throughput: sum of the tenants' progress, which is time alone over turnaround time", "stp"},
    {"gridloom_antt", "gauge", "Average normalised turnaround time: mean of the tenants' slowdowns", "antt"},
    {"gridloom_fairness", "gauge", "Least over greatest progress of the tenants", "fairness"},
};

struct BrokerMetric {
  const char* name;
  const char* type;
  const char* help;
  const char* key;
};

constexpr BrokerMetric kBrokerMetrics[] = {
    {"gridloom_uptime_seconds", "gauge", "Time since the broker started", "uptime_seconds"},
    {"gridloom_decisions_total", "counter", "Questions to the policy", "decisions"},
    {"gridloom_pump_seconds_total", "counter", "Time spent deciding", "pump_seconds"},
    {"gridloom_pumps_total", "counter", "Times that the broker decided", "pumps"},
    {"gridloom_records_total", "counter", "Records taken from tenants", "records"},
    {"gridloom_sessions_total", "counter", "Processes that were admitted", "sessions_total"},
    {"gridloom_refused_total", "counter", "Processes that were refused", "refused_total"},
    {"gridloom_dropped_total", "counter", "Processes that were dropped for what they did", "dropped_total"},
};

std::string Head(const char* name, const char* type, const char* help) {
  return std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

/// What is not known of a tenant is not in its state.
bool Has(const Json& tenant, std::string_view key) { return key.starts_with("limits.") || tenant.contains(key); }

const Json& Get(const Json& tenant, std::string_view key) {
  constexpr std::string_view kLimits = "limits.";
  return key.starts_with(kLimits) ? tenant["limits"][std::string(key.substr(kLimits.size()))]
                                  : tenant[std::string(key)];
}

/// Label values: backslash and quote are escaped (line ends cannot be in a name).
std::string Label(const std::string& text) {
  std::string label;
  for (const char c : text) label += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return label;
}

/// What the broker's thread has said of its state, until the server's thread takes it.
struct StateBox {
  std::mutex mutex;
  std::optional<StateView> state;
};

/// The page, and the state in two forms. However many ask, the broker is asked one question at a time and kApart
/// between two of them: all who wait when a question goes out share its answer, and its text.
class WebServer final : public Web, private HttpHandler {
 public:
  explicit WebServer(Broker& broker) : broker_(broker), page_(std::make_shared<const std::string>(kPageHtml)) {}
  ~WebServer() override { server_.reset(); }

  Status Listen() {
    if (broker_.config().http_token.empty())
      return Error{"metrics and dashboard need a secret"};  // else no secret would be the right one
    GL_TRY(server, HttpServer::Start(broker_.config().http_port, *this));
    server_ = std::move(server);
    return {};
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Text = std::shared_ptr<const std::string>;
  static constexpr std::chrono::milliseconds kApart{20};

  void OnStart(std::function<void()> wake) override { wake_ = std::move(wake); }

  bool Allowed(const HttpRequest& request) const override {
    const std::string& secret = broker_.config().http_token;
    const std::string& given = request.token ? *request.token : request.authorization;
    const std::string wanted = request.token ? secret : "Bearer " + secret;
    // As long for every wrong guess of the right length.
    unsigned different = given.size() == wanted.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(given.size(), wanted.size()); ++i)
      different |= static_cast<unsigned>(given[i] ^ wanted[i]);
    return different == 0;
  }

  std::optional<HttpAnswer> Answer(const HttpRequest& request, std::uint64_t* ticket) override {
    if (request.path == "/") return HttpAnswer{.type = "text/html; charset=utf-8", .body = page_};
    const bool metrics = request.path == "/metrics";
    if (!metrics && request.path != "/state") return HttpProblem(404);
    TakeState();
    if (*ticket == 0)
      *ticket = questions_ + 1;  // a question that is under way may have been answered before this request came
    if (*ticket > answers_) {
      Ask();
      return std::nullopt;
    }
    Text& text = metrics ? metrics_ : json_;
    if (text == nullptr) {
      text = std::make_shared<const std::string>(metrics ? MetricsText(state_)
                                                         : state_.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return HttpAnswer{.type = metrics ? "text/plain; version=0.0.4" : "application/json", .body = text};
  }

  int AgainMs() const override {
    if (questions_ != answers_) return -1;  // it will be told
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(asked_ + kApart - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void Ask() {
    const auto now = Clock::now();
    if (questions_ != answers_ || now < asked_ + kApart) return;
    asked_ = now;
    ++questions_;
    broker_.Post([&broker = broker_, box = box_, wake = wake_] {
      {
        const std::lock_guard lock(box->mutex);
        box->state = broker.View();
      }
      wake();
    });
  }

  void TakeState() {
    std::optional<StateView> view;
    {
      const std::lock_guard lock(box_->mutex);
      view.swap(box_->state);
    }
    if (!view) return;
    state_ = ToJson(*view);
    json_ = metrics_ = nullptr;
    answers_ = questions_;
  }

  Broker& broker_;
  const Text page_;
  /// Shared with a question that is answered late.
  const std::shared_ptr<StateBox> box_ = std::make_shared<StateBox>();
  std::function<void()> wake_;
  std::uint64_t questions_ = 0, answers_ = 0;  ///< asked of the broker, and answered
  Clock::time_point asked_{};
  Json state_;
  Text json_, metrics_;                 ///< of state_, once somebody wants them
  std::unique_ptr<HttpServer> server_;  ///< its thread calls what an HttpHandler has
};

}  // namespace

std::string MetricsText(const Json& state) {
  std::string text;
  for (const BrokerMetric& metric : kBrokerMetrics) {
    text += Head(metric.name, metric.type, metric.help) + metric.name + " " + state[metric.key].dump() + "\n";
  }
  for (const TenantMetric& metric : kSimulatedMetrics) {
    if (!state.contains("simulated") || !state["simulated"].contains(metric.key)) continue;
    text +=
        Head(metric.name, metric.type, metric.help) + metric.name + " " + state["simulated"][metric.key].dump() + "\n";
  }
  for (const TenantMetric& metric : kTenantMetrics) {
    text += Head(metric.name, metric.type, metric.help);
    for (const Json& tenant : state["tenants"]) {
      if (!Has(tenant, metric.key)) continue;
      text += std::string(metric.name) + "{tenant=\"" + Label(tenant["name"]) + "\"} " +
              Get(tenant, metric.key).dump() + "\n";
    }
  }
  return text;
}

Result<std::unique_ptr<Web>> Web::Start(Broker& broker) {
  auto server = std::make_unique<WebServer>(broker);
  GL_TRY_STATUS(server->Listen());
  return std::unique_ptr<Web>(std::move(server));
}

}  // namespace gridloom::broker
