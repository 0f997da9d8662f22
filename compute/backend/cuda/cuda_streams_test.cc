// Streams, marks, uploads and timers of the CUDA backend, on emulated cards that run what is queued
// only when somebody waits for it: without the mark that a copy needs, it reads what was there.
#include "compute/backend/cuda/cuda_streams.h"

#include <atomic>
#include <thread>
#include <vector>

#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/launch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr size_t kCount = 100;
constexpr size_t kBytes = kCount * sizeof(float);

float* Values(Buffer& buffer) { return static_cast<float*>(buffer.data()); }
absl::Span<float> Span(Buffer& buffer) { return {Values(buffer), kCount}; }
void Fill(Buffer& pinned, float value) { std::fill_n(Values(pinned), kCount, value); }

__global__ void CountKernel(int* value) { ++*value; }

class CudaStreamsTest : public ::testing::Test {
 protected:
  ~CudaStreamsTest() override { machine_ = {}; }

  static void Check(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }
  static void Reach(Mark& mark) {
    Check(WaitFor(mark, RealClock(), RealClock().Now() + absl::Seconds(60), "a mark"));
  }

  emulated::Machine& machine_ = emulated::TheMachine();
};

// Lets a clock run while it lives.
class TimePasses {
 public:
  explicit TimePasses(FakeClock& clock)
      : thread_([this, &clock] {
          while (!ended_) clock.Advance(absl::Milliseconds(100));
        }) {}
  ~TimePasses() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

TEST_F(CudaStreamsTest, CopiesToTheHostNeedTheOperatorsMark) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto device = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes), back = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream();
  Fill(*host, 1);
  Check(backend->CopyToDevice(device->data(), host->data(), kBytes));
  Check(copies->ToHost(back->data(), device->data(), kBytes));
  Reach(**copies->MarkNow());
  EXPECT_THAT(Span(*back), Each(0)) << "did not wait";

  Check(copies->After(**backend->MarkNow()));
  Check(copies->ToHost(back->data(), device->data(), kBytes));
  Reach(**copies->MarkNow());
  EXPECT_THAT(Span(*back), Each(1));
}

TEST_F(CudaStreamsTest, OperatorsNeedTheCopiesMark) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto from = *backend->Allocate(kBytes), to = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes), back = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream();
  const auto move_on = [&] {
    Check(backend->Copy(to->data(), from->data(), kBytes));
    Check(backend->CopyToHost(back->data(), to->data(), kBytes));
    Check(backend->Synchronize());
  };
  Fill(*host, 1);
  Check(copies->ToDevice(from->data(), host->data(), kBytes));
  move_on();
  EXPECT_THAT(Span(*back), Each(0)) << "did not wait";

  Check(backend->After(**copies->MarkNow()));
  move_on();
  EXPECT_THAT(Span(*back), Each(1));
}

TEST_F(CudaStreamsTest, PinnedMemoryIsReadWhenTheCopyRuns) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto device = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream();
  Fill(*host, 1);
  Check(copies->ToDevice(device->data(), host->data(), kBytes));
  Fill(*host, 2);  // too early
  Reach(**copies->MarkNow());
  std::vector<float> back(kCount);
  Check(backend->CopyToHost(back.data(), device->data(), kBytes));
  Check(backend->Synchronize());
  EXPECT_THAT(back, Each(2));
}

// Its event serves another mark at once; what waits for the first one still does.
TEST_F(CudaStreamsTest, ADroppedMarkIsStillWaitedFor) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto device = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes), back = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream(), others = *backend->MakeCopyStream();
  Fill(*host, 1);
  Check(copies->ToDevice(device->data(), host->data(), kBytes));
  Check(backend->After(**copies->MarkNow()));
  const int64_t events = emulated::TheCounts().events;
  const auto another = *others->MarkNow();
  EXPECT_EQ(emulated::TheCounts().events, events);
  Check(backend->CopyToHost(back->data(), device->data(), kBytes));
  Check(backend->Synchronize());
  EXPECT_THAT(Span(*back), Each(1));
}

TEST_F(CudaStreamsTest, StepsMakeNothingNew) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto device = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream();
  const auto timer = *backend->MakeTimer();
  std::vector<float> values(2 * PinnedRing::kSegmentBytes / sizeof(float) + 1);
  const auto large = *backend->Allocate(values.size() * sizeof(float));
  emulated::Counts before;
  for (int step = 0; step < 20; ++step) {
    if (step == 5) before = emulated::TheCounts();
    for (int m = 0; m < 4; ++m) {
      Check(timer->Begin());
      Check(backend->Upload(large->data(), values.data(), values.size() * sizeof(float)));
      Check(timer->End());
      Check(copies->After(**backend->MarkNow()));
      Check(copies->ToHost(host->data(), device->data(), kBytes));
      Check(backend->After(**copies->MarkNow()));
    }
    Check(backend->Synchronize());
  }
  const emulated::Counts after = emulated::TheCounts();
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.pinned_allocations, before.pinned_allocations);
}

TEST_F(CudaStreamsTest, TimersAddWhatRanBetween) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto buffer = *backend->Allocate(kBytes);
  const auto timer = *backend->MakeTimer();
  const auto work = [&](int operations) {
    for (int i = 0; i < operations; ++i) Check(backend->Zero(buffer->data(), kBytes));
  };
  for (const int operations : {3, 4}) {
    Check(timer->Begin());
    work(operations);
    Check(timer->End());
    work(100);
  }
  Check(backend->Synchronize());
  EXPECT_EQ(absl::ToInt64Microseconds(*timer->Take() + absl::Nanoseconds(500)), 7);
  EXPECT_EQ(*timer->Take(), absl::ZeroDuration());
}

TEST_F(CudaStreamsTest, ALostDeviceIsNamed) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto device = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream();
  const auto timer = *backend->MakeTimer();
  const auto mark = *backend->MarkNow();
  Check(backend->CopyToDevice(device->data(), host->data(), kBytes));
  machine_.lost = cudaErrorUnknown;
  for (const absl::Status& status :
       {backend->Synchronize(), backend->Upload(device->data(), host->data(), kBytes),
        backend->Copy(device->data(), device->data(), 0), backend->Allocate(kBytes).status(),
        backend->AllocatePinned(kBytes).status(), backend->MarkNow().status(),
        backend->After(*mark), backend->MakeCopyStream().status(), timer->Begin(),
        copies->ToHost(host->data(), device->data(), kBytes), copies->After(*mark),
        mark->Reached().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("CUDA device 0"), HasSubstr("cudaErrorUnknown")));
  }
}

TEST_F(CudaStreamsTest, ADeviceThatHangsIsWaitedForOnce) {
  FakeClock clock;
  {
    const auto backend = *MakeCudaBackend(0, clock, absl::Seconds(30));
    const auto device = *backend->Allocate(kBytes);
    const auto copies = *backend->MakeCopyStream();
    machine_.hangs = true;
    Check(backend->Zero(device->data(), kBytes));
    {
      const absl::Time begin = clock.Now();
      const TimePasses passes(clock);
      const absl::Status status = backend->Synchronize();
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA device 0 hangs"));
      EXPECT_GE(clock.Now() - begin, absl::Seconds(30));
    }
    // Time stands still: a wait would not end.
    EXPECT_EQ(backend->Synchronize().code(), absl::StatusCode::kDeadlineExceeded);
    std::vector<char> values(PinnedRing::kSegments * PinnedRing::kSegmentBytes + 1);
    const auto large = backend->Allocate(values.size());
    EXPECT_EQ(large.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  machine_.hangs = false;
  EXPECT_TRUE(MakeCudaBackend(0, clock).ok());
}

TEST_F(CudaStreamsTest, UploadsToADeviceThatHangsEnd) {
  FakeClock clock;
  const auto backend = *MakeCudaBackend(0, clock, absl::Seconds(30));
  std::vector<char> values(PinnedRing::kSegments * PinnedRing::kSegmentBytes + 1);
  const auto large = *backend->Allocate(values.size());
  machine_.hangs = true;
  const TimePasses passes(clock);
  EXPECT_TRUE(backend->Upload(large->data(), values.data(), values.size() - 1).ok());
  const absl::Status status = backend->Upload(large->data(), values.data(), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA device 0 hangs: uploads before"));
}

// Found by the copy's own deadline; dropping what belongs to the card ends too.
TEST_F(CudaStreamsTest, OneStreamThatHangsHoldsUpThoseThatWaitForIt) {
  FakeClock clock;
  const TimePasses passes(clock);
  const auto backend = *CudaBackend::Open(0, clock, absl::Seconds(30));
  const auto device = *backend->Allocate(kBytes);
  const auto host = *backend->AllocatePinned(kBytes);
  const auto copies = *backend->MakeCopyStream();
  machine_.hung = {backend->stream()};
  Check(backend->Zero(device->data(), kBytes));
  Check(copies->ToHost(host->data(), device->data(), kBytes));
  EXPECT_TRUE(*(*copies->MarkNow())->Reached());

  Check(copies->After(**backend->MarkNow()));
  Check(copies->ToHost(host->data(), device->data(), kBytes));
  const auto mark = *copies->MarkNow();
  const absl::Status status =
      WaitFor(*mark, clock, clock.Now() + absl::Seconds(5), "gradient of m 3 to node b");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gradient of m 3 to node b"));
}

// CUDA would make the caller wait without a deadline.
TEST_F(CudaStreamsTest, LaunchesOnADeviceThatHangsEnd) {
  FakeClock clock;
  const TimePasses passes(clock);
  const auto backend = *MakeCudaBackend(0, clock, absl::Seconds(30));
  const auto device = *backend->Allocate(kBytes);
  machine_.hangs = true;
  absl::Status status;
  const absl::Span<float> values = Span(*device);
  int launches = 0;
  while (status.ok() && launches < 10'000) {
    status = backend->Kernels(0.f).Add(values, values, values);
    ++launches;
  }
  EXPECT_LE(launches, LaunchWindow::kParts * LaunchWindow::kPartOperations + 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA device 0 hangs"));
}

TEST_F(CudaStreamsTest, AllOfManyLaunchesRun) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  int value = 0;
  for (int i = 0; i < 3000; ++i) {
    Check(cuda::Launch(*backend, "count", {1, 1}, CountKernel, &value));
  }
  Check(backend->Synchronize());
  EXPECT_EQ(value, 3000);
}

// Each worker thread has its card and two more threads that copy, as workers in one process do.
TEST_F(CudaStreamsTest, SeveralThreads) {
  machine_.devices = 2;
  constexpr int kRounds = 50;
  const auto worker = [&](int index) {
    const auto backend = *MakeCudaBackend(index, RealClock());
    const auto device = *backend->Allocate(kBytes);
    const auto to = *backend->MakeCopyStream(), from = *backend->MakeCopyStream();
    const auto there = *backend->AllocatePinned(kBytes), back = *backend->AllocatePinned(kBytes);
    for (int round = 1; round <= kRounds; ++round) {
      std::unique_ptr<Mark> arrived, left;
      std::thread([&] {
        Fill(*there, static_cast<float>(round));
        Check(to->ToDevice(device->data(), there->data(), kBytes));
        arrived = *to->MarkNow();
      }).join();
      Check(backend->After(*arrived));
      const absl::Span<float> values = Span(*device);
      Check(backend->Kernels(0.f).Add(values, values, values));
      const auto added = *backend->MarkNow();
      std::thread([&] {
        Check(from->After(*added));
        Check(from->ToHost(back->data(), device->data(), kBytes));
        left = *from->MarkNow();
        Reach(*left);
      }).join();
      EXPECT_THAT(Span(*back), Each(2 * round));
    }
  };
  std::thread other(worker, 1);
  worker(0);
  other.join();
}

}  // namespace
}  // namespace longhaul::compute
