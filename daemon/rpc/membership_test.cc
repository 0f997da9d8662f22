// Both ends of the control stream over real connections.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "daemon/rpc/convert_worker.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/membership_client.h"
#include "daemon/rpc/membership_server.h"
#include "daemon/rpc/session_table.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/test_certificates.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// A list that threads add to and the test waits on.
template <typename T>
class Record {
 public:
  void Add(T value) {
    std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  // The number of values, once `condition` holds of them or twenty seconds have passed.
  std::vector<T> WaitFor(const std::function<bool(const std::vector<T>&)>& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(RealClock().WaitUntil(lock, changed_, RealClock().Now() + absl::Seconds(20),
                                      [&] { return condition(values_); }));
    return values_;
  }
  std::vector<T> WaitForCount(size_t count) {
    return WaitFor([count](const std::vector<T>& values) { return values.size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

// The coordinator's side with the core played by the test.
class FakeCoordinator {
 public:
  explicit FakeCoordinator(const Credentials& credentials, MembershipServerOptions options = {})
      : log_(LogStyle::kPriority, LogLevel::kError, [](const std::string&) {}),
        server_(options,
                {[this] { return ++session_; },
                 [this](coordinator::Event event) {
                   events.Add(std::move(event));
                   return !busy;
                 }},
                sessions, credentials, RealClock(), log_),
        credentials_(credentials) {}

  void Listen(int port = 0) {
    auto listening = ListeningServer::Listen({"127.0.0.1", port}, credentials_, {&server_}, 32);
    ASSERT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    address = listening_->address();
  }
  void StopListening(absl::Duration grace = absl::ZeroDuration()) { listening_->Shutdown(grace); }
  // The session of the newest NodeConnected, once there are `count` of them.
  uint64_t WaitForSession(size_t count) {
    const auto all = events.WaitFor([count](const std::vector<coordinator::Event>& seen) {
      return CountOf<coordinator::NodeConnected>(seen) >= count;
    });
    uint64_t session = 0;
    for (const coordinator::Event& event : all) {
      if (const auto* c = std::get_if<coordinator::NodeConnected>(&event)) session = c->session;
    }
    return session;
  }
  template <typename Event>
  static size_t CountOf(const std::vector<coordinator::Event>& all) {
    size_t count = 0;
    for (const coordinator::Event& event : all) count += std::holds_alternative<Event>(event);
    return count;
  }
  const MembershipServer& server() const { return server_; }

  Record<coordinator::Event> events;
  SessionTable sessions{RealClock(), 1000};
  Address address;
  std::atomic<bool> busy{false};

 private:
  std::atomic<uint64_t> session_{0};
  Log log_;
  MembershipServer server_;
  const Credentials& credentials_;
  std::unique_ptr<ListeningServer> listening_;
};

worker::Register RegisterAs(const std::string& name) {
  worker::Register message;
  message.facts = {name,    "berlin", "host", 1,  "127.0.0.1:7171", "0.1.0", "cpu", 1, 1,
                   1 << 30, 0,        1e9,    1e9};
  return message;
}

// A worker's side with the host played by the test.
class FakeWorker {
 public:
  FakeWorker(const Address& coordinator, const Credentials& credentials, const std::string& name,
             absl::Duration retry_when_unwanted = absl::Milliseconds(10))
      : log_(LogStyle::kPriority, LogLevel::kInfo,
             [this](const std::string& line) { log.Add(line); }),
        client_(Options(coordinator, retry_when_unwanted), credentials, RealClock(), log_) {
    client_.Start({[this, name] {
                     ++attempts;
                     return RegisterAs(name);
                   },
                   [this](const worker::ToWorker& message) { messages.Add(message); }});
  }
  MembershipClient& client() { return client_; }
  // The first line that is an error.
  std::string WaitForError() {
    const auto is_error = [](const std::string& line) { return line.rfind("<3>", 0) == 0; };
    for (const std::string& line : log.WaitFor([&](const std::vector<std::string>& lines) {
           return std::any_of(lines.begin(), lines.end(), is_error);
         })) {
      if (is_error(line)) return line;
    }
    return "";
  }

  std::atomic<int> attempts{0};
  Record<worker::ToWorker> messages;
  Record<std::string> log;

 private:
  static MembershipClientOptions Options(const Address& coordinator,
                                         absl::Duration retry_when_unwanted) {
    MembershipClientOptions options;
    options.coordinator = ToString(coordinator);
    options.coordinator_name = "hub";
    options.retry_min = absl::Milliseconds(10);
    options.retry_max = absl::Milliseconds(50);
    options.retry_when_unwanted = retry_when_unwanted;
    return options;
  }
  const Log log_;
  MembershipClient client_;
};

std::unique_ptr<Credentials> Certified(TestAuthority& authority, const std::string& name) {
  SecurityConfig config;
  config.tls = authority.Issue(name, {name});
  return *Credentials::Load(config);
}

const control::Accepted kAccepted = {absl::Seconds(10), absl::Milliseconds(50)};

TEST(Membership, RegistersHeartbeatsAndCarriesMessagesBothWays) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  FakeCoordinator coordinator(*token);
  coordinator.Listen();
  FakeWorker worker(coordinator.address, *token, "b1");
  const uint64_t session = coordinator.WaitForSession(1);
  EXPECT_FALSE(worker.client().Send(worker::Ready{"early", {}}));
  coordinator.sessions.Send(session, kAccepted);
  coordinator.sessions.Send(session, control::Start{"first", {1, 2}});
  const auto messages = worker.messages.WaitForCount(2);
  EXPECT_TRUE(std::holds_alternative<worker::Accepted>(messages[0]));
  EXPECT_EQ(std::get<worker::Start>(messages[1]).run, "first");
  EXPECT_TRUE(worker.client().membership().ok());
  EXPECT_TRUE(worker.client().Send(worker::Ready{"first", {1, 2}}));
  const auto events = coordinator.events.WaitFor([](const std::vector<coordinator::Event>& seen) {
    return FakeCoordinator::CountOf<coordinator::StageReady>(seen) == 1 &&
           FakeCoordinator::CountOf<coordinator::NodeHeartbeat>(seen) >= 3;
  });
  EXPECT_EQ(std::get<coordinator::NodeConnected>(events[0]).facts.profile.name, "b1");
  worker.client().Stop();
  coordinator.events.WaitFor([](const std::vector<coordinator::Event>& seen) {
    return FakeCoordinator::CountOf<coordinator::NodeDisconnected>(seen) == 1;
  });
}

TEST(Membership, AttachesAgainAfterTheCoordinatorsRestart) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  FakeCoordinator coordinator(*token);
  coordinator.Listen();
  FakeWorker worker(coordinator.address, *token, "b1");
  coordinator.sessions.Send(coordinator.WaitForSession(1), kAccepted);
  worker.messages.WaitForCount(1);
  coordinator.StopListening();
  EXPECT_THAT(worker.WaitForError(), HasSubstr("NOT PART OF THE CLUSTER"));
  FakeCoordinator restarted(*token);
  restarted.Listen(coordinator.address.port);
  restarted.sessions.Send(restarted.WaitForSession(1), kAccepted);
  worker.messages.WaitForCount(2);
  EXPECT_TRUE(worker.client().membership().ok());
}

TEST(RetryPause, DoublesUpToItsLongestAndIsBetweenHalfOfThatAndAll) {
  MembershipClientOptions options;
  options.retry_min = absl::Seconds(1);
  options.retry_max = absl::Seconds(10);
  const double longest[] = {1, 1, 2, 4, 8, 10, 10};
  constexpr int kSeeds = 1000;
  for (int failures = 0; failures < 7; ++failures) {
    double sum = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      options.jitter_seed = static_cast<uint64_t>(seed) << 20;
      const double pause = absl::ToDoubleSeconds(RetryPause(options, failures));
      EXPECT_GE(pause, longest[failures] / 2);
      EXPECT_LE(pause, longest[failures]);
      EXPECT_EQ(pause, absl::ToDoubleSeconds(RetryPause(options, failures)));
      sum += pause;
    }
    // Evenly drawn: the mean of 1000 is within five deviations of 3/4.
    EXPECT_NEAR(sum / kSeeds, 0.75 * longest[failures], 0.025 * longest[failures]);
  }
  EXPECT_LE(RetryPause(options, 30), absl::Seconds(10));
}

TEST(RetryPause, WorkersOfAClusterDrawDifferently) {
  MembershipClientOptions a, b;
  a.jitter_seed = 1;
  b.jitter_seed = 2;
  EXPECT_NE(RetryPause(a, 3), RetryPause(b, 3));
}

TEST(Membership, ARefusalReachesTheWorkerWithItsReason) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  FakeCoordinator coordinator(*token);
  coordinator.Listen();
  FakeWorker worker(coordinator.address, *token, "b1");
  coordinator.sessions.Send(
      coordinator.WaitForSession(1),
      control::Refused{absl::AlreadyExistsError("another process is b1"), true});
  EXPECT_THAT(worker.WaitForError(), HasSubstr("another process is b1"));
  EXPECT_EQ(worker.client().membership().code(), absl::StatusCode::kAlreadyExists);
  // It tries again by itself.
  coordinator.sessions.Send(coordinator.WaitForSession(2), kAccepted);
  worker.messages.WaitForCount(1);
}

TEST(Membership, AnotherTokenIsRefusedLoudlyAndOnce) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  const auto other = Credentials::FromToken("fedcba9876543210");
  FakeCoordinator coordinator(*token);
  coordinator.Listen();
  FakeWorker worker(coordinator.address, *other, "b1");
  EXPECT_THAT(worker.WaitForError(), HasSubstr("another cluster token"));
  while (coordinator.server().refused() < 3) {
    ASSERT_EQ(worker.client().membership().code(), absl::StatusCode::kUnauthenticated);
  }
  EXPECT_EQ(worker.log.WaitForCount(1).size(), 1u);
}

TEST(Membership, AWorkersNameIsInItsCertificate) {
  TestAuthority authority("membership");
  const auto hub = Certified(authority, "hub");
  const auto b1 = Certified(authority, "b1");
  FakeCoordinator coordinator(*hub);
  coordinator.Listen();
  {
    FakeWorker impostor(coordinator.address, *b1, "b2");
    const std::string error = impostor.WaitForError();
    EXPECT_THAT(error, HasSubstr("the certificate is for 'b1'"));
    EXPECT_THAT(error, HasSubstr("b2"));
    EXPECT_EQ(impostor.client().membership().code(), absl::StatusCode::kPermissionDenied);
  }
  FakeWorker worker(coordinator.address, *b1, "b1");
  coordinator.sessions.Send(coordinator.WaitForSession(1), kAccepted);
  worker.messages.WaitForCount(1);
}

// What only a person can change is said once; the worker looks again by itself, but not in a hurry.
TEST(Membership, AWorkerThatCannotBeAMemberComesBackSlowly) {
  TestAuthority authority("membership");
  const auto hub = Certified(authority, "hub");
  const auto b1 = Certified(authority, "b1");
  FakeCoordinator coordinator(*hub);
  coordinator.Listen();
  FakeWorker patient(coordinator.address, *b1, "b2", absl::Seconds(600));
  EXPECT_THAT(patient.WaitForError(), HasSubstr("the certificate is for 'b1'"));
  FakeWorker other(coordinator.address, *b1, "b2");
  other.WaitForError();
  while (coordinator.server().refused() < 6) {
    ASSERT_EQ(other.client().membership().code(), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(patient.attempts, 1);
  EXPECT_GE(other.attempts, 5);
  EXPECT_EQ(other.log.WaitForCount(1).size(), 1u);
}

// One raw stream: what the server answers to `first`, and its status.
std::pair<v1::CoordinatorMessage, grpc::Status> Say(const FakeCoordinator& coordinator,
                                                    const Credentials& credentials,
                                                    const v1::WorkerMessage* first) {
  const auto stub =
      v1::Membership::NewStub(OpenChannel(ToString(coordinator.address), "hub", credentials));
  grpc::ClientContext context;
  credentials.Sign(context);
  EndAfter(context, absl::Seconds(20));
  const auto stream = stub->Session(&context);
  if (first != nullptr) stream->Write(*first);
  v1::CoordinatorMessage answer;
  stream->Read(&answer);
  v1::CoordinatorMessage rest;
  while (stream->Read(&rest)) {
  }
  return {answer, stream->Finish()};
}

TEST(Membership, AnotherProtocolIsRefusedWithBothVersionsAndTheRemedy) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  FakeCoordinator coordinator(*token);
  coordinator.Listen();
  v1::WorkerMessage first = ToWire(RegisterAs("b1"));
  first.mutable_register_()->mutable_protocol()->set_oldest(8);
  first.mutable_register_()->mutable_protocol()->set_newest(9);
  first.mutable_register_()->set_build_version("7.0.0");
  const auto [answer, status] = Say(coordinator, *token, &first);
  ASSERT_TRUE(answer.has_refused());
  EXPECT_THAT(answer.refused().message(), HasSubstr("control protocol 8 to 9 (build 7.0.0)"));
  EXPECT_THAT(answer.refused().message(), HasSubstr("upgrade this side"));
  EXPECT_FALSE(answer.refused().retry());
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
}

TEST(Membership, StreamsThatDoNotBeginProperlyEnd) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  FakeCoordinator hasty(*token, {absl::Milliseconds(50), absl::Milliseconds(50)});
  hasty.Listen();
  EXPECT_EQ(Say(hasty, *token, nullptr).second.error_code(), grpc::CANCELLED);

  FakeCoordinator coordinator(*token, {absl::Seconds(30), absl::Seconds(30)});
  coordinator.Listen();
  const v1::WorkerMessage heartbeat = ToWire(worker::Heartbeat{});
  EXPECT_EQ(Say(coordinator, *token, &heartbeat).second.error_code(), grpc::INVALID_ARGUMENT);
  coordinator.busy = true;
  const v1::WorkerMessage first = ToWire(RegisterAs("b1"));
  EXPECT_EQ(Say(coordinator, *token, &first).second.error_code(), grpc::UNAVAILABLE);
}

TEST(Membership, AWorkerThatDoesNotHangUpAfterARefusalIsCutOff) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  FakeCoordinator coordinator(*token, {absl::Seconds(10), absl::Milliseconds(50)});
  coordinator.Listen();
  std::thread core([&coordinator] {
    coordinator.sessions.Send(coordinator.WaitForSession(1),
                              control::Refused{absl::AlreadyExistsError("another b1"), true});
  });
  const v1::WorkerMessage first = ToWire(RegisterAs("b1"));
  const auto [answer, status] = Say(coordinator, *token, &first);
  core.join();
  EXPECT_EQ(answer.refused().message(), "another b1");
  EXPECT_EQ(status.error_code(), grpc::CANCELLED);
}

TEST(Membership, APeerThatDoesNotReadIsNotWaitedFor) {
  const auto token = Credentials::FromToken("0123456789abcdef");
  MembershipServerOptions options;
  options.write_grace = absl::Milliseconds(50);
  FakeCoordinator coordinator(*token, options);
  coordinator.Listen();
  const auto stub =
      v1::Membership::NewStub(OpenChannel(ToString(coordinator.address), "hub", *token));
  grpc::ClientContext context;
  token->Sign(context);
  EndAfter(context, absl::Seconds(60));
  const auto stream = stub->Session(&context);
  ASSERT_TRUE(stream->Write(ToWire(RegisterAs("b1"))));
  const uint64_t session = coordinator.WaitForSession(1);
  // More than a connection holds.
  for (int i = 0; i < 50; ++i) {
    coordinator.sessions.Send(session, control::Start{std::string(1 << 20, 'r'), {1, 2}});
  }
  stream->WritesDone();
  const absl::Time begin = RealClock().Now();
  coordinator.StopListening(absl::Seconds(20));
  EXPECT_LT(RealClock().Now() - begin, absl::Seconds(15));
  v1::CoordinatorMessage message;
  while (stream->Read(&message)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
}

}  // namespace
}  // namespace longhaul::daemon
