#include "daemon/telemetry.h"

#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace longhaul::daemon {
namespace {

// In Prometheus' text format; figures of one name must be one family.
std::string ToText(const std::vector<Figure>& figures) {
  std::map<std::string, prometheus::MetricFamily> families;
  for (const Figure& figure : figures) {
    prometheus::MetricFamily& family = families[figure.name];
    family.name = figure.name;
    family.help = figure.help;
    family.type =
        figure.is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [name, value] : figure.labels) metric.label.push_back({name, value});
    (figure.is_counter ? metric.counter.value : metric.gauge.value) = figure.value;
  }
  std::vector<prometheus::MetricFamily> list;
  for (auto& [name, family] : families) list.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(list);
}

// The numeric address of a host, for binding.
absl::StatusOr<sockaddr_storage> Resolve(const Address& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot serve metrics on ", ToString(address), ": ", gai_strerror(error)));
  }
  sockaddr_storage result = {};
  std::memcpy(&result, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return result;
}

}  // namespace

// One thread of libmicrohttpd's. (prometheus-cpp's own server gives its threads a stack that
// OpenBLAS's thread-local storage more than half fills; any error page then overflows it.)
class Telemetry::Impl {
 public:
  explicit Impl(std::function<std::vector<Figure>()> collect) : collect_(std::move(collect)) {}
  ~Impl() {
    if (server_ != nullptr) MHD_stop_daemon(server_);
  }

  absl::Status Start(const Address& address) {
    LH_ASSIGN_OR_RETURN(sockaddr_storage bound, Resolve(address));
    const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
                           (bound.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    server_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &Impl::Answer, this,
                               MHD_OPTION_SOCK_ADDR, reinterpret_cast<sockaddr*>(&bound),
                               MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,
                               MHD_OPTION_CONNECTION_TIMEOUT, kIdleSecondsMax, MHD_OPTION_END);
    if (server_ != nullptr) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", ToString(address), ": ",
                                               std::strerror(errno), "; is the port in use?"));
  }

  int port() const { return MHD_get_daemon_info(server_, MHD_DAEMON_INFO_BIND_PORT)->port; }

 private:
  static constexpr unsigned kConnectionsMax = 16;
  static constexpr unsigned kIdleSecondsMax = 10;

  static MHD_Result Answer(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char*, size_t* upload_bytes,
                           void** state) {
    // The first call has the headers only; the answer is queued when what is sent has been read.
    if (*state == nullptr) {
      *state = self;
      return MHD_YES;
    }
    if (*upload_bytes != 0) {
      *upload_bytes = 0;
      return MHD_YES;
    }
    const absl::string_view verb = method;
    if (verb != "GET" && verb != "HEAD") {
      return Queue(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    }
    if (absl::string_view(url) != "/metrics") {
      return Queue(connection, MHD_HTTP_NOT_FOUND, "figures are at /metrics\n");
    }
    return Queue(connection, MHD_HTTP_OK, ToText(static_cast<Impl*>(self)->collect_()));
  }

  static MHD_Result Queue(MHD_Connection* connection, unsigned code, std::string text) {
    MHD_Response* const response =
        MHD_create_response_from_buffer(text.size(), text.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            "text/plain; version=0.0.4; charset=utf-8");
    const MHD_Result queued = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return queued;
  }

  const std::function<std::vector<Figure>()> collect_;
  MHD_Daemon* server_ = nullptr;
};

Telemetry::Telemetry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Telemetry::~Telemetry() = default;

int Telemetry::port() const { return impl_->port(); }

absl::StatusOr<std::unique_ptr<Telemetry>> Telemetry::Serve(
    const Address& address, std::function<std::vector<Figure>()> collect) {
  auto impl = std::make_unique<Impl>(std::move(collect));
  LH_RETURN_IF_ERROR(impl->Start(address));
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(impl)));
}

}  // namespace longhaul::daemon
