#include "compute/backend/streams.h"

#include <atomic>
#include <thread>
#include <vector>

#include "compute/testing/op_testing.h"
#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::HasSubstr;

// Reached when it has been asked so many times.
class CountedMark : public Mark {
 public:
  explicit CountedMark(int questions) : questions_(questions) {}
  absl::StatusOr<bool> Reached() override { return --questions_ <= 0; }

 private:
  int questions_;
};

TEST(WaitForTest, EndsWhenTheMarkIsReached) {
  CountedMark at_once(1), later(10);
  FakeClock stands_still;
  EXPECT_TRUE(WaitFor(at_once, stands_still, absl::InfinitePast(), "a copy").ok());
  const absl::Time deadline = RealClock().Now() + absl::Seconds(60);
  EXPECT_TRUE(WaitFor(later, RealClock(), deadline, "a copy").ok());
}

TEST(WaitForTest, EndsAtTheDeadline) {
  CountedMark never(1 << 30);
  FakeClock clock;
  std::atomic<bool> ended = false;
  std::thread time([&] {
    while (!ended) clock.Advance(absl::Milliseconds(100));
  });
  const absl::Time begin = clock.Now();
  const absl::Status status = WaitFor(never, clock, begin + absl::Seconds(5), "copy of m 3");
  ended = true;
  time.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("copy of m 3: not done after"));
  EXPECT_GE(clock.Now(), begin + absl::Seconds(5));
}

// One body for every backend: what was queued before a mark has run when it is reached.
TEST(StreamsTest, CopiesBesideTheOperators) {
  for (const auto& backend : TestBackends()) {
    const auto there = *backend->AllocatePinned(12), back = *backend->AllocatePinned(12);
    const auto a = *backend->Allocate(12), b = *backend->Allocate(12);
    const auto copies = *backend->MakeCopyStream();
    const auto values = [](Buffer& buffer) { return static_cast<float*>(buffer.data()); };
    EXPECT_EQ(values(*back)[2], 0) << "pinned memory is zeroed";
    for (int i = 0; i < 3; ++i) values(*there)[i] = static_cast<float>(i + 1);

    ASSERT_TRUE(copies->ToDevice(a->data(), there->data(), 12).ok());
    ASSERT_TRUE(backend->After(**copies->MarkNow()).ok());
    ASSERT_TRUE(backend->Copy(b->data(), a->data(), 12).ok());
    ASSERT_TRUE(copies->After(**backend->MarkNow()).ok());
    ASSERT_TRUE(copies->ToHost(back->data(), b->data(), 12).ok());
    const auto mark = *copies->MarkNow();
    const absl::Time deadline = RealClock().Now() + absl::Seconds(60);
    ASSERT_TRUE(WaitFor(*mark, RealClock(), deadline, "the way back").ok());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(values(*back)[i], i + 1);
  }
}

// The caller's memory is written over at once; the pieces go through pinned memory many times.
TEST(StreamsTest, UploadsLetGoOfTheCallersMemory) {
  for (const auto& backend : TestBackends()) {
    constexpr size_t kBytes = 700'001;
    const auto device = *backend->Allocate(kBytes);
    std::vector<char> values(kBytes), back(kBytes);
    for (char round = 0; round < 20; ++round) {
      for (size_t i = 0; i < kBytes; ++i) values[i] = static_cast<char>(i % 97 + round);
      const std::vector<char> expected = values;
      ASSERT_TRUE(backend->Upload(device->data(), values.data(), kBytes).ok());
      values.assign(kBytes, -1);
      ASSERT_TRUE(backend->CopyToHost(back.data(), device->data(), kBytes).ok());
      if (round % 5 != 0) continue;
      ASSERT_TRUE(backend->Synchronize().ok());
      ASSERT_EQ(back, expected);
    }
    ASSERT_TRUE(backend->Synchronize().ok());
  }
}

TEST(StreamsTest, TimersAreOfDevices) {
  for (const auto& backend : TestBackends()) {
    const auto timer = *backend->MakeTimer();
    EXPECT_EQ(timer != nullptr, backend->kind() == DeviceKind::kCuda);
    if (timer == nullptr) continue;
    const auto buffer = *backend->Allocate(1 << 20);
    ASSERT_TRUE(timer->Begin().ok());
    ASSERT_TRUE(backend->Zero(buffer->data(), buffer->bytes()).ok());
    ASSERT_TRUE(timer->End().ok());
    ASSERT_TRUE(backend->Synchronize().ok());
    const absl::Duration ran = *timer->Take();
    EXPECT_GT(ran, absl::ZeroDuration());
    EXPECT_LT(ran, absl::Seconds(60));
    EXPECT_EQ(*timer->Take(), absl::ZeroDuration());
  }
}

}  // namespace
}  // namespace longhaul::compute
