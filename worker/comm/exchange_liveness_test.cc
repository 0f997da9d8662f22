// A peer that is busy, a link that is slow, and a link that is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "worker/comm/exchange.h"
#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kSilenceMax = absl::Seconds(10);

// A network whose streams swallow the messages that `pass` does not want (or changes), as a link
// that is cut or that carries nothing but what the test lets through: the streams stay open.
class Swallowing : public Transport {
 public:
  using Pass = std::function<bool(StreamMessage&)>;
  Swallowing(Transport& transport, Pass pass) : transport_(transport), pass_(std::move(pass)) {}
  bool welcomed() const { return welcomed_; }

  absl::StatusOr<std::unique_ptr<ClientStream>> Dial(const std::string& node,
                                                     const std::string& address,
                                                     absl::Time deadline) override {
    absl::StatusOr<std::unique_ptr<ClientStream>> stream = transport_.Dial(node, address, deadline);
    if (!stream.ok()) return stream;
    return std::make_unique<Stream>(*std::move(stream), *this);
  }

 private:
  class Stream : public ClientStream {
   public:
    Stream(std::unique_ptr<ClientStream> stream, Swallowing& network)
        : stream_(std::move(stream)), network_(network) {}
    absl::Status Write(const StreamMessage& message) override {
      StreamMessage changed = message;
      return network_.pass_(changed) ? stream_->Write(changed) : absl::OkStatus();
    }
    absl::StatusOr<StreamReply> Read() override {
      absl::StatusOr<StreamReply> reply = stream_->Read();
      if (reply.ok() && std::holds_alternative<StreamWelcome>(*reply)) network_.welcomed_ = true;
      return reply;
    }
    void Cancel() override { stream_->Cancel(); }

   private:
    const std::unique_ptr<ClientStream> stream_;
    Swallowing& network_;
  };

  Transport& transport_;
  const Pass pass_;
  std::atomic<bool> welcomed_ = false;
};

// The link from stage 0, over a network that swallows, to stage 1. The link back does not come
// about, so that each stage's signs of life are those of one direction.
class ExchangeLiveness : public ::testing::Test {
 protected:
  // `replicas`: of one stage, instead of two stages. The link is up on return: the clock, which
  // stands still until then, cannot outrun its handshake.
  void Start(Swallowing::Pass pass, bool replicas = false) {
    swallowing_ = std::make_unique<Swallowing>(*honest_, std::move(pass));
    for (const int stage : {1, 0}) {
      ExchangeOptions options = TestOptions(stage);
      options.sign_of_life_every = absl::Seconds(1);
      options.silence_max = kSilenceMax;
      if (replicas) {
        options.stage = options.links[0].peer_stage = 0;
        options.links[0].tied_elements = 0;
      }
      stages_[stage] = MakeTestExchange(options, *swallowing_, clock_);
      if (stage == 1) {
        door_ = std::make_unique<Door>(network_, TestAddress(1), options, *stages_[1], clock_);
      }
    }
    while (!swallowing_->welcomed()) std::this_thread::yield();
  }

  // Moves the clock on until `done`, a second at a time; not before each `step` has come about.
  void Advance(
      const std::function<bool()>& done, const std::function<void()>& step = [] {}) {
    while (!done()) {
      clock_.Advance(absl::Seconds(1));
      step();
      std::this_thread::yield();
    }
  }
  uint64_t Signs(int stage) { return stages_[stage]->counters().signs_of_life_received; }

  // Runs `wait` on a thread of its own.
  void Begin(std::function<absl::Status()> wait) {
    waiter_ = std::thread([this, wait = std::move(wait)] {
      status_ = wait();
      over_ = true;
    });
  }
  absl::Status End() {
    waiter_.join();
    return status_;
  }
  absl::Status Receive() {
    std::vector<float> values(kTestElements);
    return stages_[1]->Receive(0, TestKey(FrameKind::kActivation, 0, 1), absl::MakeSpan(values),
                               absl::InfiniteFuture());
  }
  absl::Status Send(uint32_t micro_batch) {
    return stages_[0]->Send(1, TestKey(FrameKind::kActivation, micro_batch, 1),
                            TestValues(micro_batch), absl::InfiniteFuture());
  }

  // What has begun goes on for three times kSilenceMax, during which the peer gives signs of life.
  void ExpectPatience() {
    const absl::Time begin = clock_.Now();
    uint64_t signs = Signs(1);
    Advance([&] { return clock_.Now() - begin > 3 * kSilenceMax; },
            [&] {
              // The next second begins once this one's sign of life is here.
              while (Signs(1) == signs) std::this_thread::yield();
              signs = Signs(1);
              ASSERT_FALSE(over_) << status_;
            });
  }

  // What the functions that Start() is given look at: here, since streams call them until the
  // stages are gone, which is after the test's body.
  std::atomic<bool> cut_ = false;
  std::atomic<int> chunks_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int allowed_ = 0;  // guarded by mutex_

  FakeClock clock_;
  InProcessNetwork network_{clock_};
  const std::unique_ptr<Transport> honest_ = network_.MakeTransport();
  std::unique_ptr<Swallowing> swallowing_;
  std::unique_ptr<Exchange> stages_[2];
  std::unique_ptr<Door> door_;
  std::thread waiter_;
  absl::Status status_;
  std::atomic<bool> over_ = false;
};

TEST_F(ExchangeLiveness, APeerThatComputesForLongIsWaitedFor) {
  Start([](const StreamMessage&) { return true; });
  Advance([&] { return Signs(0) > 0 && Signs(1) > 0; });
  Begin([&] { return Receive(); });
  ExpectPatience();
  ASSERT_TRUE(Send(0).ok());
  EXPECT_TRUE(End().ok()) << status_;
}

TEST_F(ExchangeLiveness, SilenceIsNoticedWithoutAFrameToWaitFor) {
  Start([this](const StreamMessage&) { return !cut_; }, /*replicas=*/true);
  Advance([&] { return Signs(1) > 0; });
  Begin([&] { return stages_[1]->WaitForSilence(0); });
  ExpectPatience();
  cut_ = true;
  const absl::Time silent_since = clock_.Now();
  Advance([&] { return over_.load(); });
  EXPECT_EQ(End().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(clock_.Now() - silent_since, kSilenceMax - absl::Seconds(1));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("has not heard of stage 0 (a at "));
}

TEST_F(ExchangeLiveness, AWatchForSilenceEndsWithTheExchange) {
  Start([](const StreamMessage&) { return true; }, /*replicas=*/true);
  Begin([&] { return stages_[1]->WaitForSilence(0); });
  stages_[1]->Cancel(absl::AbortedError("over"));
  EXPECT_EQ(End(), absl::AbortedError("over"));
}

TEST_F(ExchangeLiveness, APeerThatConsumesLateIsWaitedFor) {
  Start([](const StreamMessage&) { return true; });
  Advance([&] { return Signs(0) > 0 && Signs(1) > 0; });
  for (const uint32_t micro_batch : {0, 1}) ASSERT_TRUE(Send(micro_batch).ok());
  while (stages_[1]->counters().frames_received < 2) std::this_thread::yield();
  Begin([&] { return Send(2); });
  const absl::Time begin = clock_.Now();
  uint64_t signs = Signs(0);
  Advance([&] { return clock_.Now() - begin > 3 * kSilenceMax; },
          [&] {
            while (Signs(0) == signs) std::this_thread::yield();
            signs = Signs(0);
            ASSERT_FALSE(over_) << status_;
          });
  ASSERT_TRUE(Receive().ok());
  EXPECT_TRUE(End().ok()) << status_;
}

TEST_F(ExchangeLiveness, ALinkThatFallsSilentEndsTheWaitWithHowMuchArrived) {
  // A frame of four chunks; its second is the last thing that the link carries.
  Start([this](const StreamMessage& message) {
    if (std::holds_alternative<FrameChunk>(message)) return ++chunks_ <= 2;
    return chunks_ < 2;
  });
  Advance([&] { return Signs(1) > 0; });
  ASSERT_TRUE(Send(0).ok());
  while (stages_[1]->counters().bytes_received < 256) std::this_thread::yield();
  const absl::Time silent_since = clock_.Now();
  Begin([&] { return Receive(); });
  Advance([&] { return over_.load(); });
  EXPECT_EQ(End().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(clock_.Now() - silent_since, kSilenceMax);
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("for activation of step 1 micro-batch 0 from stage 0 (a at "
                        "10.0.0.1:7000): 256 of its 496 bytes arrived; link from it connected "
                        "since"));
}

TEST_F(ExchangeLiveness, ALinkThatBrokeEndsTheWaitOfTheSenderToo) {
  Start([](const StreamMessage&) { return true; });
  Advance([&] { return Signs(0) > 0; });
  for (const uint32_t micro_batch : {0, 1}) ASSERT_TRUE(Send(micro_batch).ok());
  network_.Partition(TestAddress(1), true);
  // A wait without time only says how the link is.
  while (!absl::StrContains(stages_[0]->Flush(clock_.Now()).message(), "reconnecting")) {
    std::this_thread::yield();
  }
  Begin([&] { return Send(2); });
  Advance([&] { return over_.load(); });
  EXPECT_EQ(End().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status_.message()), HasSubstr("link reconnecting since"));
}

TEST_F(ExchangeLiveness, BytesOfASlowLinkKeepTheWaitAlive) {
  // No signs of life pass, and the whole frame takes longer than silence may.
  Start([this](const StreamMessage& message) {
    if (std::holds_alternative<StreamHello>(message)) return true;
    if (!std::holds_alternative<FrameChunk>(message)) return false;
    ++chunks_;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return allowed_ > 0; });
    --allowed_;
    return true;
  });
  ASSERT_TRUE(Send(0).ok());
  Advance([&] { return chunks_ > 0; });
  Begin([&] { return Receive(); });
  for (uint64_t chunk = 1; chunk <= 4; ++chunk) {
    EXPECT_FALSE(over_) << status_;
    clock_.Advance(kSilenceMax * 0.45);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++allowed_;
      changed_.notify_all();
    }
    while (stages_[1]->counters().bytes_received < std::min<uint64_t>(chunk * 128, 496)) {
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(End().ok()) << status_;
}

TEST_F(ExchangeLiveness, ALinkThatOnlyDeliversCorruptFramesIsTakenForSilent) {
  Start([](StreamMessage& message) {
    // The last chunk of every frame.
    if (auto* chunk = std::get_if<FrameChunk>(&message); chunk && chunk->offset == 384) {
      chunk->bytes.back() = static_cast<char>(chunk->bytes.back() ^ 1);
    }
    return true;
  });
  ASSERT_TRUE(Send(0).ok());
  const auto corrupt = [&] { return stages_[1]->counters().corrupt_dropped; };
  while (corrupt() < 10) {
    clock_.Advance(absl::Milliseconds(10));  // past the pauses before reconnections
    std::this_thread::yield();
  }
  Begin([&] { return Receive(); });
  uint64_t before = corrupt();
  Advance([&] { return over_.load(); },
          [&] {
            while (!over_ && corrupt() == before) {
              clock_.Advance(absl::Milliseconds(10));
              std::this_thread::yield();
            }
            before = corrupt();
          });
  EXPECT_EQ(End().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status_.message()), HasSubstr("link from it"));
}

}  // namespace
}  // namespace longhaul::worker
