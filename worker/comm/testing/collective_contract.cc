#include "worker/comm/testing/collective_contract.h"

#include <cmath>
#include <condition_variable>
#include <future>
#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "base/check.h"
#include "gmock/gmock.h"

namespace longhaul::worker {

void OnThreads(int count, const std::function<void(int rank)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) threads.emplace_back([&work, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

absl::Span<float> BackendGroup::Put(int rank, const std::vector<float>& values) {
  compute::Backend& backend = *backends_[rank];
  auto buffer = backend.Allocate(values.size() * sizeof(float));
  LH_CHECK(buffer.ok(), buffer.status().ToString());
  buffers_[rank].push_back(*std::move(buffer));
  auto* const data = static_cast<float*>(buffers_[rank].back()->data());
  absl::Status status = backend.CopyToDevice(data, values.data(), values.size() * sizeof(float));
  status.Update(backend.Synchronize());
  LH_CHECK(status.ok(), status.ToString());
  return {data, values.size()};
}

std::vector<float> BackendGroup::Get(int rank, absl::Span<const float> values) {
  compute::Backend& backend = *backends_[rank];
  std::vector<float> copy(values.size());
  absl::Status status =
      backend.CopyToHost(copy.data(), values.data(), values.size() * sizeof(float));
  status.Update(backend.Synchronize());
  LH_CHECK(status.ok(), status.ToString());
  return copy;
}

MeshGroup::MeshGroup(std::vector<std::unique_ptr<Mesh>> meshes, size_t piece_max) {
  for (std::unique_ptr<Mesh>& mesh : meshes) {
    backends_.push_back(compute::MakeCpuBackend(1));
    collectives_.push_back(MakeCollective(std::move(mesh), piece_max));
  }
}

void CollectiveTest::SetUp() {
  size_ = std::get<int>(GetParam());
  group_ = std::get<CollectiveCase>(GetParam()).make(size_);
}

std::vector<absl::Status> CollectiveTest::All(const std::function<absl::Status(int rank)>& call) {
  std::vector<absl::Status> statuses(size_);
  OnThreads(size_, [&](int rank) { statuses[rank] = call(rank); });
  return statuses;
}

namespace {

using ::testing::HasSubstr;

absl::Time In(absl::Duration duration) { return RealClock().Now() + duration; }

// Of very different sizes, so that every order of additions rounds in its own way.
template <typename T>
std::vector<std::vector<T>> RandomValues(int ranks, size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<T>> values(ranks, std::vector<T>(count));
  for (std::vector<T>& of_rank : values) {
    for (T& value : of_rank) {
      value = std::ldexp(static_cast<T>(random()) / 4294967296 - T{0.5},
                         static_cast<int>(random() % 12));
    }
  }
  return values;
}

// The sum as the contract has it, of one element: a tree over the ranks from `first` on.
template <typename T>
T Tree(const std::vector<T>& leaves, size_t first, size_t count) {
  if (count == 1) return leaves[first];
  return Tree(leaves, first, count / 2) + Tree(leaves, first + count / 2, count / 2);
}

template <typename T>
std::vector<T> ExpectedSum(const std::vector<std::vector<T>>& values) {
  size_t power = 1;
  while (2 * power <= values.size()) power *= 2;
  std::vector<T> sum;
  for (size_t i = 0; i < values[0].size(); ++i) {
    std::vector<T> leaves;
    for (size_t rank = 0; rank < power; ++rank) {
      leaves.push_back(values[rank][i]);
      if (rank + power < values.size()) leaves.back() += values[rank + power][i];
    }
    sum.push_back(Tree(leaves, 0, power));
  }
  return sum;
}

// The same bits, or what any order of additions may make of them.
template <typename T>
void ExpectSum(const std::vector<T>& sum, const std::vector<std::vector<T>>& values, bool exact) {
  const std::vector<T> expected = ExpectedSum(values);
  if (exact) {
    EXPECT_EQ(sum, expected);
    return;
  }
  ASSERT_EQ(sum.size(), expected.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    T sizes = 0;
    for (const std::vector<T>& of_rank : values) sizes += std::abs(of_rank[i]);
    EXPECT_NEAR(sum[i], expected[i], 8 * std::numeric_limits<T>::epsilon() * sizes);
  }
}

TEST_P(CollectiveTest, SumsWithTheSameBitsEverywhere) {
  for (const size_t count : {1u, 2u, 3u, 7u, 64u, 4099u}) {
    const auto values = RandomValues<float>(size_, count, 5);
    std::vector<absl::Span<float>> places(size_);
    for (int rank = 0; rank < size_; ++rank) places[rank] = group_->Put(rank, values[rank]);
    for (const absl::Status& status : All([&](int rank) {
           return group_->Of(rank).AllReduceSum(places[rank], In(absl::Seconds(60)));
         })) {
      EXPECT_EQ(status, absl::OkStatus());
    }
    const std::vector<float> first = group_->Get(0, places[0]);
    ExpectSum(first, values, std::get<CollectiveCase>(GetParam()).in_tree_order);
    for (int rank = 1; rank < size_; ++rank) EXPECT_EQ(group_->Get(rank, places[rank]), first);
  }
}

TEST_P(CollectiveTest, SumsDoublesAndBroadcastsInOneOrder) {
  const auto doubles = RandomValues<double>(size_, 5000, 6);
  auto sums = doubles;
  const auto floats = RandomValues<float>(size_, 100, 7);
  std::vector<absl::Span<float>> places(size_);
  for (int rank = 0; rank < size_; ++rank) places[rank] = group_->Put(rank, floats[rank]);
  std::vector<std::vector<double>> verdicts(size_, {0.0, 0.0});
  verdicts[0] = {1.5, -2.5};
  for (const absl::Status& status : All([&](int rank) {
         Collective& collective = group_->Of(rank);
         const absl::Time deadline = In(absl::Seconds(60));
         absl::Status done = collective.SumDoubles(absl::MakeSpan(sums[rank]), deadline);
         done.Update(collective.Broadcast(places[rank], deadline));
         done.Update(collective.BroadcastDoubles(absl::MakeSpan(verdicts[rank]), deadline));
         return done;
       })) {
    EXPECT_EQ(status, absl::OkStatus());
  }
  ExpectSum(sums[0], doubles, std::get<CollectiveCase>(GetParam()).in_tree_order);
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(group_->Of(rank).rank(), rank);
    EXPECT_EQ(group_->Of(rank).size(), size_);
    EXPECT_EQ(sums[rank], sums[0]);
    EXPECT_EQ(group_->Get(rank, places[rank]), floats[0]);
    EXPECT_EQ(verdicts[rank], verdicts[0]);
  }
}

TEST_P(CollectiveTest, ADeadReplicaEndsTheCallsOfAll) {
  const int dead = size_ - 1;
  const absl::Time start = RealClock().Now();
  std::vector<absl::Span<float>> places(size_);
  for (int rank = 0; rank < size_; ++rank) {
    places[rank] = group_->Put(rank, std::vector<float>(1000, 1));
  }
  const std::vector<absl::Status> statuses = All([&](int rank) {
    if (rank == dead) {
      group_->Kill(rank);
      return absl::OkStatus();
    }
    absl::Status status = group_->Of(rank).AllReduceSum(places[rank], In(absl::Seconds(60)));
    // One that ends takes its connections with it.
    if (!status.ok()) group_->Kill(rank);
    return status;
  });
  for (int rank = 0; rank < dead; ++rank) {
    EXPECT_EQ(statuses[rank].code(), absl::StatusCode::kUnavailable) << statuses[rank];
    EXPECT_THAT(std::string(statuses[rank].message()), HasSubstr("replica "));
  }
  EXPECT_LT(RealClock().Now() - start, absl::Seconds(50));
}

TEST_P(CollectiveTest, AReplicaThatNeverComesIsNamedAtTheDeadline) {
  const absl::Span<float> values = group_->Put(0, std::vector<float>(1000, 1));
  const absl::Status status = group_->Of(0).AllReduceSum(values, In(absl::Milliseconds(50)));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not come in time"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica "));
}

TEST_P(CollectiveTest, CancelEndsAWait) {
  const absl::Span<float> values = group_->Put(0, std::vector<float>(1000, 1));
  Collective& collective = group_->Of(0);
  const absl::Time start = RealClock().Now();
  absl::Status status;
  std::promise<void> begins;
  std::thread waits([&] {
    begins.set_value();
    status = collective.AllReduceSum(values, In(absl::Seconds(60)));
  });
  begins.get_future().wait();
  // Gloo's waits cannot be seen from outside; it is there by then.
  std::mutex mutex;
  std::condition_variable nothing;
  std::unique_lock<std::mutex> lock(mutex);
  RealClock().WaitUntil(lock, nothing, In(absl::Milliseconds(30)), [] { return false; });
  collective.Cancel(absl::AbortedError("node n is lost"));
  waits.join();
  EXPECT_EQ(status, absl::AbortedError("node n is lost"));
  collective.Cancel(absl::AbortedError("another reason"));
  status = collective.Broadcast(values, In(absl::Seconds(60)));
  EXPECT_EQ(status, absl::AbortedError("node n is lost"));
  EXPECT_LT(RealClock().Now() - start, absl::Seconds(50));
}

}  // namespace
}  // namespace longhaul::worker
