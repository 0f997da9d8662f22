#include "daemon/telemetry.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>

#include "daemon/worker_figures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// A listening socket of the loopback interface, and its port.
class Listener {
 public:
  Listener() : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(descriptor_, 1), 0);
    EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(descriptor_); }
  int port() const { return port_; }

 private:
  const int descriptor_;
  int port_ = 0;
};

std::string Ask(int port, const std::string& method, const std::string& path) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string request = method + " " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(send(descriptor, request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> buffer;
  for (ssize_t size; (size = recv(descriptor, buffer.data(), buffer.size(), 0)) > 0;) {
    answer.append(buffer.data(), static_cast<size_t>(size));
  }
  close(descriptor);
  return answer;
}

TEST(Telemetry, ServesFiguresByName) {
  const auto telemetry = Telemetry::Serve({"127.0.0.1", 0}, [] {
    return std::vector<Figure>{
        {"longhaul_nodes", "Nodes", false, {{"state", "lost"}}, 2},
        {"longhaul_nodes", "Nodes", false, {{"state", "connected"}}, 3},
        {"longhaul_things_total", "Things", true, {}, 7},
    };
  });
  ASSERT_TRUE(telemetry.ok()) << telemetry.status();
  const std::string answer = Ask((*telemetry)->port(), "GET", "/metrics");
  EXPECT_THAT(answer, HasSubstr("# TYPE longhaul_nodes gauge"));
  EXPECT_THAT(answer, HasSubstr("longhaul_nodes{state=\"lost\"} 2"));
  EXPECT_THAT(answer, HasSubstr("longhaul_nodes{state=\"connected\"} 3"));
  EXPECT_THAT(answer, HasSubstr("# TYPE longhaul_things_total counter"));
  EXPECT_THAT(answer, HasSubstr("longhaul_things_total 7"));
}

TEST(Telemetry, OtherRequestsAreRefusedAndServingGoesOn) {
  const auto telemetry = Telemetry::Serve({"127.0.0.1", 0}, [] { return std::vector<Figure>(); });
  ASSERT_TRUE(telemetry.ok()) << telemetry.status();
  const int port = (*telemetry)->port();
  for (const char* path : {"/", "/metrics/", "/../../etc/passwd", "/%00", "*"}) {
    EXPECT_THAT(Ask(port, "GET", path), HasSubstr(" 404 ")) << path;
  }
  EXPECT_THAT(Ask(port, "POST", "/metrics"), HasSubstr(" 405 "));
  EXPECT_THAT(Ask(port, "GET", std::string(100000, 'a')), testing::Not(HasSubstr(" 200 ")));
  EXPECT_THAT(Ask(port, "GET", "/metrics"), HasSubstr(" 200 "));
}

TEST(Telemetry, APortInUseIsNamed) {
  const Listener taken;
  const auto telemetry =
      Telemetry::Serve({"127.0.0.1", taken.port()}, [] { return std::vector<Figure>(); });
  EXPECT_THAT(std::string(telemetry.status().message()),
              HasSubstr("127.0.0.1:" + std::to_string(taken.port())));
}

TEST(WorkerFigures, CountWhatTheStreamsDid) {
  ExchangeStreamCounters counters;
  counters.bytes_sent = 12;
  counters.streams_refused = 1;
  worker::ExchangeCounters exchange;
  exchange.frames_resent = 4;
  exchange.duplicates_dropped = 5;
  exchange.stale_epochs_dropped = 6;
  exchange.corrupt_dropped = 7;
  std::map<std::string, double> values;
  for (const Figure& figure : WorkerFigures({true, false, 3, exchange}, counters)) {
    EXPECT_TRUE(values.emplace(figure.name, figure.value).second) << figure.name << " twice";
  }
  EXPECT_EQ(values["longhaul_exchange_bytes_sent_total"], 12);
  EXPECT_EQ(values["longhaul_exchange_streams_refused_total"], 1);
  EXPECT_EQ(values["longhaul_worker_member"], 1);
  EXPECT_EQ(values["longhaul_exchange_stale_epochs_refused_total"], 3);
  EXPECT_EQ(values["longhaul_exchange_frames_resent_total"], 4);
  EXPECT_EQ(values["longhaul_exchange_duplicates_dropped_total"], 5);
  EXPECT_EQ(values["longhaul_exchange_stale_frames_dropped_total"], 6);
  EXPECT_EQ(values["longhaul_exchange_corrupt_dropped_total"], 7);
}

}  // namespace
}  // namespace longhaul::daemon
