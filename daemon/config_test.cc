#include "daemon/config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kCoordinatorBasis[] = "folder: state\ncluster_token_file: token\n";
constexpr char kWorkerBasis[] = "folder: state\nsite: berlin\ncluster_token_file: token\n";

TEST(CoordinatorConfig, DefaultsAreLoopbackAndPathsCountFromTheFile) {
  const auto config = ParseCoordinatorConfig(kCoordinatorBasis, "/etc/longhaul/c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ToString(config->listen), "127.0.0.1:7070");
  EXPECT_EQ(config->folder, "/etc/longhaul/state");
  EXPECT_EQ(config->security.cluster_token_file, "/etc/longhaul/token");
  EXPECT_FALSE(config->security.tls.has_value());
  EXPECT_EQ(config->lease, absl::Seconds(10));
  EXPECT_EQ(config->log_level, LogLevel::kInfo);
  EXPECT_FALSE(config->metrics.listen.has_value());
}

TEST(CoordinatorConfig, ReadsEverything) {
  const auto config = ParseCoordinatorConfig(
      "listen: '[::]:7171'\n"
      "folder: /var/lib/longhaul\n"
      "tls: {certificate: c.pem, key: k.pem, ca: /ca.pem}\n"
      "lease: 1m30s\nprepare_max: 20m\nending_max: 30m\n"
      "checkpoints_kept: 5\n"
      "links:\n"
      "  - {from: a, to: b, latency_milliseconds: 35, megabits_per_second: 400}\n"
      "  - {from: b, to: a, latency_milliseconds: 40, megabits_per_second: 100}\n"
      "log: {level: debug}\n"
      "metrics: {listen: 0.0.0.0:9100, insecure: true}\n",
      "/etc/c.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen, (Address{"::", 7171}));
  ASSERT_TRUE(config->security.tls.has_value());
  EXPECT_EQ(config->security.tls->certificate, "/etc/c.pem");
  EXPECT_EQ(config->security.tls->ca, "/ca.pem");
  EXPECT_EQ(config->lease, absl::Seconds(90));
  EXPECT_EQ(config->prepare_max, absl::Minutes(20));
  EXPECT_EQ(config->ending_max, absl::Minutes(30));
  EXPECT_EQ(config->checkpoints_kept, 5);
  ASSERT_EQ(config->links.size(), 2u);
  EXPECT_EQ(config->links[0].from, "a");
  EXPECT_EQ(config->links[1].latency_milliseconds, 40);
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->metrics.listen, (Address{"0.0.0.0", 9100}));
}

TEST(WorkerConfig, ReadsEverything) {
  const auto config = ParseWorkerConfig(
      "name: b1\nsite: berlin\ncoordinator: hub.example.org:7070\ncoordinator_name: hub\n"
      "data: {listen: 0.0.0.0:7171, advertise: b1.example.org:7272, connections: 4}\n"
      "folder: /var/lib/b1\nthreads: 8\nmemory: 4 GiB\npeer_wait_max: 30s\ntransfer_max: 1h\n"
      "drain_max: 0s\ninsecure: true\ncluster_token_file: /t\n",
      "w.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "b1");
  EXPECT_EQ(config->coordinator, (Address{"hub.example.org", 7070}));
  EXPECT_EQ(config->coordinator_name, "hub");
  EXPECT_EQ(config->data_advertise, (Address{"b1.example.org", 7272}));
  EXPECT_EQ(config->connections, 4);
  EXPECT_EQ(config->threads, 8);
  EXPECT_EQ(config->memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(config->peer_wait_max, absl::Seconds(30));
  EXPECT_EQ(config->drain_max, absl::ZeroDuration());
  EXPECT_TRUE(config->security.insecure);
}

TEST(WorkerConfig, ReadsDevices) {
  const auto read = [](const std::string& lines) {
    return ParseWorkerConfig(kWorkerBasis + lines, "w.yaml");
  };
  EXPECT_FALSE(read("")->cuda_device.has_value());
  EXPECT_FALSE(read("device: cpu\nthreads: 4\n")->cuda_device.has_value());
  EXPECT_EQ(read("device: cuda:0\n")->cuda_device, 0);
  EXPECT_EQ(read("device: cuda:12\nthreads: auto\n")->cuda_device, 12);
  const auto shared = read("device: cuda:1\nshare_device: true\nmemory: 20 GiB\n");
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_TRUE(shared->share_device);
  EXPECT_TRUE(shared->nccl);
  EXPECT_FALSE(read("device: cuda:1\nnccl: false\n")->nccl);
  EXPECT_EQ(shared->memory_bytes, int64_t{20} << 30);
}

struct BadFile {
  std::string lines;  // after the basis, which has 2 (coordinator) or 3 (worker) lines
  std::string start;
  std::string part;
};

TEST(CoordinatorConfig, ErrorsNameLineKeyAndRemedy) {
  const std::vector<BadFile> files = {
      {"lisen: 127.0.0.1:1\n", "c.yaml:3: ", "did you mean 'listen'?"},
      {"log: {levle: info}\n", "c.yaml:3: ", "did you mean 'level'?"},
      {"log: {level: loud}\n", "c.yaml:3: ", "loud"},
      {"listen: 127.0.0.1\n", "c.yaml:3: ", "HOST:PORT"},
      {"listen: 127.0.0.1:65536\n", "c.yaml:3: ", "HOST:PORT"},
      {"listen: 'a b:1'\n", "c.yaml:3: ", "HOST:PORT"},
      {"listen: '::1:70'\n", "c.yaml:3: ", "HOST:PORT"},
      {"listen: '[zz]:70'\n", "c.yaml:3: ", "HOST:PORT"},
      {"listen: 'a:+7'\n", "c.yaml:3: ", "HOST:PORT"},
      {"lease: soon\n", "c.yaml:3: ", "duration"},
      {"lease: 10\n", "c.yaml:3: ", "duration"},
      {"lease: -10s\n", "c.yaml:3: ", "duration"},
      {"lease: 10ms\n", "c.yaml:3: ", "from 1s to 1h"},
      {"prepare_max: 0s\n", "c.yaml:3: ", "from 1s to 24h"},
      {"ending_max: 25h\n", "c.yaml:3: ", "from 1s to 24h"},
      {"insecure: perhaps\n", "c.yaml:3: ", "insecure"},
      {"listen: 0.0.0.0:7070\n", "c.yaml:3: ", "insecure: true"},
      {"listen: node.example.org:7070\n", "c.yaml:3: ", "TLS is off"},
      {"metrics: {listen: 0.0.0.0:9100}\n", "c.yaml:3: ", "metrics are served without TLS"},
      {"tls: {certificate: a}\n", "c.yaml:3: ", "all of certificate, key and ca"},
      {"tls: {certificate: a, key: b, ca: c}\n", "c.yaml:2: ", "remove it"},
      {"tls: {certificate: a, key: b, ca: c}\ninsecure: true\n", "c.yaml:4: ", "contradicts 'tls'"},
      {"links:\n  - {from: a, to: b, megabits_per_second: 1}\n", "c.yaml:4",
       "latency_milliseconds"},
      {"links:\n  - {from: a, to: b, latency_milliseconds: 1, megabits_per_second: 0}\n",
       "c.yaml:4", "megabits_per_second"},
      {"folder: twice\n", "c.yaml:3: ", "folder"},
      {"site: berlin\n", "c.yaml:3: ", "site"},
  };
  for (const BadFile& file : files) {
    const auto config = ParseCoordinatorConfig(kCoordinatorBasis + file.lines, "c.yaml");
    ASSERT_FALSE(config.ok()) << file.lines;
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(config.status().message()), StartsWith(file.start)) << file.lines;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(file.part)) << file.lines;
  }
  EXPECT_THAT(
      std::string(ParseCoordinatorConfig("cluster_token_file: t\n", "c.yaml").status().message()),
      HasSubstr("'folder' is missing"));
  EXPECT_THAT(std::string(ParseCoordinatorConfig("folder: f\n", "c.yaml").status().message()),
              HasSubstr("mode 0600"));
}

TEST(WorkerConfig, ErrorsNameLineKeyAndRemedy) {
  const std::vector<BadFile> files = {
      {"name: a/b\n", "w.yaml:4: ", "node name"},
      {"name: ''\n", "w.yaml:4: ", "node name"},
      {"coordinator: 10.0.0.1:7070\n", "w.yaml:4: ", "TLS is off"},
      {"coordinator: 127.0.0.1:0\n", "w.yaml:4: ", "cannot be dialled"},
      {"data: {listen: 0.0.0.0:0}\n", "w.yaml:4: ", "data.advertise"},
      {"data: {advertise: 0.0.0.0:0}\n", "w.yaml:4: ", "cannot be dialled"},
      {"data: {listen: 10.0.0.2:0}\n", "w.yaml:4: ", "insecure: true"},
      {"threads: 0\n", "w.yaml:4: ", "threads"},
      {"threads: many\n", "w.yaml:4: ", "threads"},
      {"memory: 4 QiB\n", "w.yaml:4: ", "4 GiB"},
      {"memory: 0\n", "w.yaml:4: ", "size"},
      {"memory: 1\n", "w.yaml:4: ", "'memory': must be at least 16 MiB, got '1'"},
      {"memory: 15.9 MiB\n", "w.yaml:4: ", "at least 16 MiB"},
      {"memory: nan\n", "w.yaml:4: ", "size"},
      {"memory: -4 GiB\n", "w.yaml:4: ", "size"},
      {"memory: 99999999 TiB\n", "w.yaml:4: ", "size"},
      {"device: gpu\n", "w.yaml:4: ", "'device': must be 'cpu', or 'cuda:N'"},
      {"device: cuda\n", "w.yaml:4: ", "'cuda:N'"},
      {"device: 'cuda:'\n", "w.yaml:4: ", "'cuda:N'"},
      {"device: cuda:-1\n", "w.yaml:4: ", "'cuda:N'"},
      {"device: cuda:1x\n", "w.yaml:4: ", "'cuda:N'"},
      {"device: cuda:99999999999\n", "w.yaml:4: ", "'cuda:N'"},
      {"device: cuda:0\nthreads: 4\n", "w.yaml:5: ", "'threads': is for workers that compute on"},
      {"share_device: true\n", "w.yaml:4: ", "with a card"},
      {"nccl: false\n", "w.yaml:4: ", "with a card"},
      {"device: cuda:0\nshare_device: true\n", "w.yaml:5: ", "needs 'memory'"},
      {"lease: 10s\n", "w.yaml:4: ", "lease"},
  };
  for (const BadFile& file : files) {
    const auto config = ParseWorkerConfig(kWorkerBasis + file.lines, "w.yaml");
    ASSERT_FALSE(config.ok()) << file.lines;
    EXPECT_THAT(std::string(config.status().message()), StartsWith(file.start)) << file.lines;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(file.part)) << file.lines;
  }
}

TEST(Values, Addresses) {
  for (const char* loopback : {"127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseAddress(loopback))) << loopback;
  }
  for (const char* other : {"0.0.0.0:1", "[::]:1", "128.0.0.1:1", "localhost.example.org:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseAddress(other))) << other;
  }
  EXPECT_EQ(ToString(*ParseAddress("[fe80::1]:80")), "[fe80::1]:80");
}

TEST(Values, Sizes) {
  EXPECT_EQ(*ParseSize("1"), 1);
  EXPECT_EQ(*ParseSize("512 MiB"), int64_t{512} << 20);
  EXPECT_EQ(*ParseSize("1.5GB"), 1500000000);
  for (const char* bad : {"", "MiB", "-1", "1..5 MB", "0.1", "1 MiB x", "1e9"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace longhaul::daemon
