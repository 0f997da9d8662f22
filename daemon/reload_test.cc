#include "daemon/reload.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(NeedRestart, NamesWhatARunningDaemonCannotTakeUp) {
  CoordinatorConfig coordinator;
  CoordinatorConfig wanted = coordinator;
  wanted.log_level = LogLevel::kDebug;
  EXPECT_TRUE(NeedRestart(coordinator, wanted).empty());
  wanted.listen.port = 7171;
  wanted.lease = absl::Seconds(20);
  EXPECT_THAT(NeedRestart(coordinator, wanted), testing::ElementsAre("listen", "lease"));

  WorkerConfig worker;
  WorkerConfig other = worker;
  other.log_level = LogLevel::kError;
  EXPECT_TRUE(NeedRestart(worker, other).empty());
  other.security.tls = TlsFiles{"a", "b", "c"};
  other.threads = 3;
  EXPECT_THAT(NeedRestart(worker, other),
              testing::ElementsAre("threads", "tls, cluster_token_file or insecure"));
}

}  // namespace
}  // namespace longhaul::daemon
