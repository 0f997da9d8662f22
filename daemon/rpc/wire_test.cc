#include <limits>
#include <string>

#include "daemon/rpc/protocol.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/wire_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

TEST(WireText, IsValidUtf8WithinItsBound) {
  EXPECT_EQ(WireText("plain", 10), "plain");
  EXPECT_EQ(WireText("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 100),
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(WireText("\xC3\xA9\xC3\xA9", 3), "\xC3\xA9");
  EXPECT_EQ(WireText("a\xFF"
                     "b\xC3",
                     10),
            "a?b?");
  EXPECT_EQ(WireText("\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80", 100), "?????????");
}

TEST(Status, CodesSurviveTheWire) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    const absl::Status back = FromGrpc(ToGrpc(status), "peer");
    EXPECT_EQ(back.code(), status.code());
    EXPECT_EQ(back.message(), "peer: why");
  }
  EXPECT_EQ(FromGrpc(ToGrpc(absl::InternalError("why")), "").message(), "why");
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus()), "peer").ok());
  for (const int32_t code : {-1, 0, 17, 1000}) {
    EXPECT_EQ(ErrorCodeFromWire(code), absl::StatusCode::kUnknown);
  }
  EXPECT_LE(ToGrpc(absl::InternalError(std::string(100000, 'x'))).error_message().size(), 4096u);
}

TEST(CheckProtocol, SaysBothVersionsAndTheRemedy) {
  const ProtocolVersions own = {2, 3, "1.2.0"};
  EXPECT_TRUE(CheckProtocol(own, {3, 7, "2.0"}, "worker 'b1'").ok());
  EXPECT_TRUE(CheckProtocol(own, {1, 2, "1.0"}, "worker 'b1'").ok());
  const absl::Status older = CheckProtocol(own, {1, 1, "0.9"}, "worker 'b1'");
  EXPECT_EQ(older.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(older.message()), HasSubstr("control protocol 1 to 1 (build 0.9)"));
  EXPECT_THAT(std::string(older.message()), HasSubstr("control protocol 2 to 3 (build 1.2.0)"));
  EXPECT_THAT(std::string(older.message()), HasSubstr("upgrade worker 'b1'"));
  EXPECT_THAT(std::string(CheckProtocol(own, {4, 9, "9"}, "worker 'b1'").message()),
              HasSubstr("upgrade this side"));
  EXPECT_FALSE(CheckProtocol(own, {3, 2, "9"}, "worker 'b1'").ok());
  EXPECT_FALSE(CheckProtocol(own, {0, 0, ""}, "worker 'b1'").ok());
}

TEST(WireCheck, TheFirstProblemIsKept) {
  WireCheck check("Ready");
  EXPECT_EQ(check.Stage(3), 3);
  EXPECT_TRUE(check.status().ok());
  check.Name("run", "a/b");
  check.Count("slots", 9, 8);
  EXPECT_THAT(std::string(check.status().message()), HasSubstr("Ready: run: "));
}

TEST(WireCheck, HostileNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
    WireCheck check("x");
    EXPECT_EQ(check.Measure("rate", bad), 0.0);
    EXPECT_FALSE(check.status().ok());
  }
  WireCheck check("x");
  EXPECT_EQ(check.Size("memory", -5), 0);
  EXPECT_FALSE(check.status().ok());
  WireCheck step("x");
  EXPECT_EQ(step.Step(std::numeric_limits<uint64_t>::max()), 0);
  EXPECT_FALSE(step.status().ok());
  for (const char* bad : {"", "b1", "b1:0", "0.0.0.0:80", "[::]:80", "b1:99999", "b1:80/x"}) {
    WireCheck address("x");
    address.DialAddress("data_address", bad);
    EXPECT_FALSE(address.status().ok()) << bad;
  }
}

}  // namespace
}  // namespace longhaul::daemon
