#include "daemon/rpc/credentials.h"

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "daemon/rpc/certificates.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/exchange_server.h"
#include "daemon/rpc/grpc_transport.h"
#include "daemon/rpc/test_certificates.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::unique_ptr<Credentials> LoadTls(const TlsFiles& files) {
  SecurityConfig config;
  config.tls = files;
  auto credentials = Credentials::Load(config);
  EXPECT_TRUE(credentials.ok()) << credentials.status();
  return *std::move(credentials);
}

// Answers the hello with a welcome; remembers who called.
class Greeter : public worker::StreamAcceptor {
 public:
  absl::Status Serve(worker::ServerStream& stream) override {
    peer = stream.peer();
    const auto hello = stream.Read();
    if (!hello.ok()) return hello.status();
    return stream.Write(worker::StreamWelcome{7, 3});
  }
  std::string peer;
};

// A worker's data plane, and one call to it.
class Plane {
 public:
  explicit Plane(const Credentials& credentials)
      : server_(greeter_, credentials, counters_),
        listening_(*ListeningServer::Listen({"127.0.0.1", 0}, credentials, {&server_}, 16)) {}

  // The status of a hello to this plane as `node`, sent with `credentials`.
  absl::Status Greet(const Credentials& credentials, const std::string& node) {
    GrpcTransport transport(credentials, RealClock(), counters_);
    auto stream = transport.Dial(node, ToString(listening_->address()),
                                 RealClock().Now() + absl::Seconds(20));
    if (!stream.ok()) return stream.status();
    worker::StreamHello hello;
    hello.run = "first";
    hello.token = "t";
    (*stream)->Write(hello).IgnoreError();
    const auto reply = (*stream)->Read();
    if (!reply.ok()) return reply.status();
    EXPECT_EQ(std::get<worker::StreamWelcome>(*reply).next_sequence, 7u);
    EXPECT_EQ(std::get<worker::StreamWelcome>(*reply).consumed_before, 3u);
    return absl::OkStatus();
  }

  const std::string& peer() const { return greeter_.peer; }

 private:
  Greeter greeter_;
  ExchangeStreamCounters counters_;
  ExchangeServer server_;
  std::unique_ptr<ListeningServer> listening_;
};

TEST(MutualTls, WorksBetweenHoldersOfTheCa) {
  TestAuthority authority("good");
  const auto b1 = LoadTls(authority.Issue("b1"));
  const auto b2 = LoadTls(authority.Issue("ignored", {"b2", "b2.example.org"}));
  Plane plane(*b1);
  EXPECT_TRUE(plane.Greet(*b2, "b1").ok()) << plane.Greet(*b2, "b1");
  EXPECT_THAT(plane.peer(), HasSubstr("ignored"));
  EXPECT_TRUE(b2->CheckOwnName("b2").ok());
  EXPECT_THAT(Message(b2->CheckOwnName("b3")), HasSubstr("not for 'b3'"));
}

TEST(MutualTls, TheServerMustBeTheNodeThatWasDialled) {
  TestAuthority authority("names");
  const auto b1 = LoadTls(authority.Issue("b1", {"b1"}));
  const auto b2 = LoadTls(authority.Issue("b2", {"b2"}));
  Plane plane(*b1);
  const absl::Status refused = plane.Greet(*b2, "b3");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("node b3 at 127.0.0.1:"));
}

TEST(MutualTls, AnotherCaIsRefusedOnBothSides) {
  TestAuthority ours("ours");
  TestAuthority theirs("theirs");
  const auto b1 = LoadTls(ours.Issue("b1"));
  const TlsFiles foreign = theirs.Issue("b1");
  Plane plane(*b1);
  EXPECT_FALSE(plane.Greet(*LoadTls(foreign), "b1").ok());
  // Holds our CA, so that it trusts us, but its own certificate is not of our CA.
  TlsFiles mixed = foreign;
  mixed.ca = ours.folder() + "/ca.crt";
  EXPECT_THAT(Message(CheckTlsFiles(mixed).status()), HasSubstr("is not valid under the CA"));
}

TEST(MutualTls, PlaintextIsRefused) {
  TestAuthority authority("plain");
  const auto b1 = LoadTls(authority.Issue("b1"));
  const auto token = Credentials::FromToken("0123456789abcdef");
  Plane secured(*b1);
  EXPECT_FALSE(secured.Greet(*token, "b1").ok());
  Plane open(*token);
  EXPECT_FALSE(open.Greet(*b1, "b1").ok());
}

TEST(ClusterTokenOnCalls, IsDemanded) {
  const auto ours = Credentials::FromToken("0123456789abcdef");
  Plane plane(*ours);
  EXPECT_TRUE(plane.Greet(*ours, "b1").ok());
  for (const char* other : {"0123456789abcdeF", "0123456789abcde", ""}) {
    const absl::Status refused = plane.Greet(*Credentials::FromToken(other), "b1");
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("cluster_token_file"));
  }
}

TEST(Certificates, ErrorsNameTheFile) {
  TestAuthority authority("files");
  const TlsFiles good = authority.Issue("b1", {"b1", "b1.example.org"});
  const auto names = CheckTlsFiles(good);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, testing::ElementsAre("b1", "b1.example.org"));

  TlsFiles bad = good;
  bad.certificate = "/nonexistent.crt";
  EXPECT_THAT(Message(CheckTlsFiles(bad).status()), HasSubstr("/nonexistent.crt"));
  bad = good;
  bad.certificate = good.key;
  EXPECT_THAT(Message(CheckTlsFiles(bad).status()), HasSubstr("holds no certificate"));
  bad = good;
  bad.key = authority.Issue("b2").key;
  EXPECT_THAT(Message(CheckTlsFiles(bad).status()), HasSubstr("does not belong"));
  bad.key = good.certificate;
  ASSERT_EQ(chmod(bad.key.c_str(), 0600), 0);
  EXPECT_THAT(Message(CheckTlsFiles(bad).status()), HasSubstr("private key"));
  EXPECT_THAT(Message(CheckTlsFiles(authority.Issue("b1", {}, -1)).status()), HasSubstr("expired"));
  ASSERT_EQ(chmod(good.key.c_str(), 0644), 0);
  EXPECT_EQ(CheckTlsFiles(good).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(MutualTls, ReplacedFilesAreTakenUp) {
  TestAuthority authority("replaced");
  const TlsFiles files = authority.Issue("b1", {"b1"});
  SecurityConfig config;
  config.tls = files;
  const auto b1 = *Credentials::Load(config, 1);
  const auto caller = LoadTls(authority.Issue("caller"));
  Plane plane(*b1);
  EXPECT_TRUE(plane.Greet(*caller, "b1").ok());
  EXPECT_FALSE(plane.Greet(*caller, "renewed").ok());
  const TlsFiles renewed = authority.Issue("renewed", {"renewed"});
  ASSERT_EQ(rename(renewed.key.c_str(), files.key.c_str()), 0);
  ASSERT_EQ(rename(renewed.certificate.c_str(), files.certificate.c_str()), 0);
  EXPECT_TRUE(b1->CheckFilesAgain().ok());
  const absl::Time give_up = RealClock().Now() + absl::Seconds(20);
  while (!plane.Greet(*caller, "renewed").ok()) ASSERT_LT(RealClock().Now(), give_up);
  ASSERT_TRUE(WriteFileAtomically(files.certificate, "rubbish").ok());
  EXPECT_THAT(Message(b1->CheckFilesAgain()), HasSubstr(files.certificate));
}

TEST(Listening, APortInUseIsNamed) {
  const auto credentials = Credentials::FromToken("0123456789abcdef");
  Greeter greeter;
  ExchangeStreamCounters counters;
  ExchangeServer service(greeter, *credentials, counters);
  const auto first = ListeningServer::Listen({"127.0.0.1", 0}, *credentials, {&service}, 4);
  ASSERT_TRUE(first.ok()) << first.status();
  ExchangeServer again(greeter, *credentials, counters);
  const auto second = ListeningServer::Listen((*first)->address(), *credentials, {&again}, 4);
  EXPECT_THAT(Message(second.status()), HasSubstr(ToString((*first)->address())));
  EXPECT_THAT(Message(second.status()), HasSubstr("in use"));
  ExchangeServer elsewhere(greeter, *credentials, counters);
  EXPECT_THAT(
      Message(ListeningServer::Listen({"192.0.2.1", 0}, *credentials, {&elsewhere}, 4).status()),
      HasSubstr("not an address of this machine"));
}

}  // namespace
}  // namespace longhaul::daemon
